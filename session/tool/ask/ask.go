// Package ask holds the tool ask_user_question, by which a model puts a question to the person (docs/protocol/rind-v2.md sections 7.7 and 9).
// The session keeps the question, tells it and waits; an open question outlives the process, and the call is then run again with the same
// arguments. So whether a question is one depends on nothing but them. It owns no goroutine.
package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Bounds of a question: what a person reads at a glance.
const (
	maxQuestionChars = 4000
	maxOptions       = 12
	maxLabelChars    = 200
	maxDescribeChars = 1000
)

// recommended ends the label of the first option.
const recommended = " (Recommended)"

type userQuestion struct{}

// UserQuestion is the tool ask_user_question. Where nobody can be asked it is not offered.
func UserQuestion() session.Tool { return userQuestion{} }

// Spec implements session.Tool.
func (userQuestion) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "ask_user_question", Kind: "think",
		Description: "Ask the person one question and wait for the answer. Use it when a decision is theirs and the files do not settle it. " +
			"With options, put the one you advise first and end its label with \" (Recommended)\", no other label; " +
			"the answer may be a label or the person's own words. Do not ask for consent to a call: that is asked by itself.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"question":{"type":"string","description":"the question, with what is needed to decide it"},` +
			`"options":{"type":"array","description":"answers to choose from; leave them out for free text","items":{"type":"object","properties":{` +
			`"label":{"type":"string","description":"the answer, in a few words"},` +
			`"description":{"type":"string","default":"","description":"what it means"}},` +
			`"required":["label"],"additionalProperties":false}}},` +
			`"required":["question"],"additionalProperties":false}`),
	}
}

// Run implements session.Tool. Data is {answer}.
func (userQuestion) Run(ctx context.Context, call session.ToolCall, out session.Progress) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	var args struct {
		Question string            `json:"question"`
		Options  []protocol.Choice `json:"options"`
	}
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	question := strings.TrimSpace(args.Question)
	switch n := protocol.CharLen(question); {
	case n == 0:
		return session.InvalidArguments("ask_user_question", "the question is blank."), nil
	case n > maxQuestionChars:
		return session.InvalidArguments("ask_user_question", "the question has %d characters; at most %d are shown.", n, maxQuestionChars), nil
	}
	options, why := choices(args.Options)
	if why != "" {
		return session.InvalidArguments("ask_user_question", "%s", why), nil
	}
	answer, err := out.Ask(ctx, question, options)
	if err != nil {
		return session.ToolResult{}, fmt.Errorf("ask the person: %w", err)
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return session.ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrQuestionEmpty, Error: "User provided an empty answer."}, nil
	}
	return session.ToolResult{Data: map[string]any{"answer": answer}}, nil
}

// choices checks the options: why says what is wrong with them. None is nil, which asks for free text.
func choices(options []protocol.Choice) (checked []protocol.Choice, why string) {
	if len(options) > maxOptions {
		return nil, fmt.Sprintf("there are %d options; at most %d are shown.", len(options), maxOptions)
	}
	seen := map[string]int{}
	for i, o := range options {
		o = protocol.Choice{Label: strings.TrimSpace(o.Label), Description: strings.TrimSpace(o.Description)}
		short := strings.ToLower(strings.TrimSuffix(o.Label, recommended))
		switch ends := strings.HasSuffix(o.Label, recommended); {
		case o.Label == "":
			return nil, fmt.Sprintf("option %d has no label.", i+1)
		case strings.ContainsAny(o.Label, "\r\n"):
			return nil, fmt.Sprintf("the label of option %d is more than one line.", i+1)
		case protocol.CharLen(o.Label) > maxLabelChars, protocol.CharLen(o.Description) > maxDescribeChars:
			return nil, fmt.Sprintf("option %d is too long: %d characters are shown of a label, %d of a description.", i+1, maxLabelChars, maxDescribeChars)
		case i == 0 && !ends:
			return nil, fmt.Sprintf("the label of the first option must end with %q: put the option you advise first.", recommended)
		case i > 0 && ends:
			return nil, fmt.Sprintf("only the label of the first option may end with %q, not option %d.", recommended, i+1)
		case seen[short] > 0:
			return nil, fmt.Sprintf("options %d and %d have the same label.", seen[short], i+1)
		}
		seen[short] = i + 1
		checked = append(checked, o)
	}
	return checked, ""
}

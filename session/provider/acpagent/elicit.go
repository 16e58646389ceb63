package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// field is one member of a form.
type field struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	OneOf       []struct {
		Const json.RawMessage `json:"const"`
		Title string          `json:"title"`
	} `json:"oneOf"`
}

// Bounds of a form: what a person can answer.
const (
	maxFields   = 8
	maxQuestion = 4000 // characters
	maxChoices  = 200
)

// form is what a child asks for with elicitation/create.
type form struct {
	Mode    string `json:"mode"`
	Message string `json:"message"`
	Schema  struct {
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	} `json:"requestedSchema"`
}

// Answers to a form.
var (
	cancelForm  = object{"action": "cancel"}
	declineForm = object{"action": "decline"}
)

// elicit puts a form of the child to the person, a question a member (docs/protocol/acp.md section 5.3).
func elicit(ctx context.Context, _ *child, k *talk, f *form) (any, error) {
	if k == nil {
		return cancelForm, nil
	}
	if k.unasked || !f.answerable() {
		return declineForm, nil
	}
	leave, err := k.queue(ctx) // one after another, with the requests for consent
	defer leave()
	var content object
	if err == nil {
		content, err = k.fill(ctx, f)
	}
	switch {
	case errors.Is(err, errWithdrawn):
		return nil, err
	case err != nil:
		return cancelForm, nil
	case content == nil:
		return declineForm, nil
	}
	return object{"action": "accept", "content": content}, nil
}

// answerable reports whether a person can be asked what the form asks.
func (f *form) answerable() bool {
	n := len(f.Schema.Properties)
	if f.Mode != "form" && f.Mode != "" || n == 0 || n > maxFields {
		return false
	}
	for _, member := range f.Schema.Properties {
		if len(member.choices()) > maxChoices {
			return false
		}
	}
	return true
}

// fill asks for the members of a form one after another; nil when one that is required was not answered.
func (k *talk) fill(ctx context.Context, f *form) (content object, err error) {
	content = object{}
	for _, name := range f.order() {
		member := f.Schema.Properties[name]
		text := f.Message
		if len(f.Schema.Properties) > 1 || text == "" {
			text = strings.TrimSpace(text + "\n" + member.label(name))
		}
		answer, err := k.question(ctx, protocol.Prefix(text, maxQuestion), member.choices())
		if err != nil {
			return nil, err
		}
		if value, fits := member.value(answer); fits {
			content[name] = value
		} else if slices.Contains(f.Schema.Required, name) {
			return nil, nil
		}
	}
	return content, nil
}

// order is that in which the members of a form are asked for: those that are required first, as listed.
func (f *form) order() []string {
	var names []string
	for _, n := range slices.Concat(f.Schema.Required, slices.Sorted(maps.Keys(f.Schema.Properties))) {
		if _, ok := f.Schema.Properties[n]; ok && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func (f *field) label(name string) string {
	switch {
	case f.Title != "" && f.Description != "":
		return f.Title + ": " + f.Description
	case f.Title != "":
		return f.Title
	case f.Description != "":
		return f.Description
	}
	return name
}

// choices are what a member may be, in words; none for free text.
func (f *field) choices() []protocol.Choice {
	var out []protocol.Choice
	switch {
	case len(f.OneOf) > 0:
		for _, o := range f.OneOf {
			label := o.Title
			if label == "" {
				label = bare(o.Const)
			}
			out = append(out, protocol.Choice{Label: oneLine(label, 200)})
		}
	case len(f.Enum) > 0:
		for _, v := range f.Enum {
			out = append(out, protocol.Choice{Label: oneLine(bare(v), 200)})
		}
	case f.Type == "boolean":
		out = []protocol.Choice{{Label: "Yes"}, {Label: "No"}}
	}
	return out
}

// bare is a JSON value as a person reads it.
func bare(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// value is an answer as the form wants it; false when it does not fit.
func (f *field) value(answer string) (any, bool) {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		return nil, false
	}
	for i, c := range f.choices() {
		if !strings.EqualFold(c.Label, answer) {
			continue
		}
		switch {
		case len(f.OneOf) > 0:
			return f.OneOf[i].Const, true
		case len(f.Enum) > 0:
			return f.Enum[i], true
		}
		return i == 0, true
	}
	if len(f.choices()) > 0 {
		return nil, false
	}
	switch f.Type {
	case "integer":
		n, err := strconv.ParseInt(answer, 10, 64)
		return n, err == nil
	case "number":
		n, err := strconv.ParseFloat(answer, 64)
		return n, err == nil
	case "string", "":
		return answer, true
	}
	return nil, false
}

// question asks the person one thing, as a call of ours. An error is that of ask.
func (k *talk) question(ctx context.Context, question string, choices []protocol.Choice) (string, error) {
	args := object{"question": question}
	if len(choices) > 0 {
		args["options"] = choices
	}
	k.mu.Lock()
	if k.halted() {
		k.mu.Unlock()
		return "", errNoTurn
	}
	c := k.ours("ask_user_question", oneLine(question, 200), "other", args)
	k.start(c)
	k.mu.Unlock()
	answer, err := ask(ctx, k, c.id, func() (string, error) { return k.t.AskUser(c.id, question, choices) })
	if errors.Is(err, errNoTurn) { // the call ends with the turn
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c.output = protocol.MustMarshal(object{"answer": answer})
	k.end(c, protocol.ToolCompleted, "")
	return answer, err
}

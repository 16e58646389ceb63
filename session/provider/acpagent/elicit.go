package acpagent

import (
	"context"
	"encoding/json"
	"errors"
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

// elicit puts a form of the child to the person, a question a member (docs/protocol/acp.md section 5.3).
func elicit(ctx context.Context, c *child, k *talk, params json.RawMessage) (any, error) {
	var p struct {
		Session string `json:"sessionId"`
		Mode    string `json:"mode"`
		Message string `json:"message"`
		Schema  struct {
			Properties map[string]field `json:"properties"`
			Required   []string         `json:"required"`
		} `json:"requestedSchema"`
	}
	if err := readParams(params, &p); err != nil {
		return nil, err
	}
	if k == nil {
		return object{"action": "cancel"}, nil
	}
	if p.Mode != "form" && p.Mode != "" || k.unasked || len(p.Schema.Properties) == 0 || len(p.Schema.Properties) > maxFields {
		return object{"action": "decline"}, nil
	}
	leave, err := k.wait(ctx) // one after another, with the requests for consent
	defer leave()
	if errors.Is(err, errWithdrawn) {
		return nil, err
	}
	if err != nil {
		return object{"action": "cancel"}, nil
	}
	c.seenTo("elicitation")
	content := object{}
	for _, name := range formOrder(p.Schema.Properties, p.Schema.Required) {
		f := p.Schema.Properties[name]
		question := p.Message
		if len(p.Schema.Properties) > 1 || question == "" {
			question = strings.TrimSpace(question + "\n" + f.label(name))
		}
		choices := f.choices()
		if len(choices) > maxChoices {
			return object{"action": "decline"}, nil
		}
		answer, ok, err := k.question(ctx, protocol.Prefix(question, maxQuestion), choices)
		if err != nil {
			return object{"action": "cancel"}, nil
		}
		value, fits := f.value(answer)
		switch {
		case ok && fits:
			content[name] = value
		case slices.Contains(p.Schema.Required, name):
			return object{"action": "decline"}, nil
		}
	}
	return object{"action": "accept", "content": content}, nil
}

// formOrder is the order in which the members of a form are asked for: those that are required first, as listed.
func formOrder(properties map[string]field, required []string) []string {
	var names []string
	for _, n := range required {
		if _, ok := properties[n]; ok && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	for _, n := range sortedKeys(properties) {
		if !slices.Contains(names, n) {
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

// question asks the person one thing, as a call of ours. An error is the end of the turn, or of the request.
func (k *talk) question(ctx context.Context, question string, choices []protocol.Choice) (answer string, ok bool, err error) {
	k.mu.Lock()
	if k.closed || k.halted {
		k.mu.Unlock()
		return "", false, noTurn()
	}
	args := object{"question": question}
	if len(choices) > 0 {
		args["options"] = choices
	}
	c := k.ours("ask_user_question", oneLine(question, 200), "other", args)
	k.start(c)
	k.mu.Unlock()
	type said struct {
		text string
		err  error
	}
	answered := make(chan said, 1)
	go func() { // ends with the answer, at the latest with the turn
		text, err := k.t.AskUser(c.id, question, choices)
		answered <- said{text, err}
	}()
	select {
	case got := <-answered:
		answer, err = got.text, got.err
	case <-k.stopped:
		return "", false, noTurn()
	case <-ctx.Done():
		k.t.Withdraw(c.id)
		err = errWithdrawn
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed && !c.done {
		c.output = protocol.MustMarshal(object{"answer": answer})
		k.end(c, protocol.ToolCompleted, "")
	}
	return answer, answer != "", err
}

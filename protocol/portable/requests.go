package portable

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

var errNoBody = Invalid("Request body is required")

// StartExecution asks for an execution (docs/protocol/portable-2026-09-02.md sections 4 and 6).
type StartExecution struct {
	ConversationID string
	ProviderID     string
	Input          string
	Capabilities   []string        // unique, sorted by code point; never nil
	Config         json.RawMessage // an object as written, "{}" where it was absent
	Key            string          // "" for none
}

// ReadStart reads the body of a start. VALIDATION_ERROR for anything that is not one.
func ReadStart(text json.RawMessage) (StartExecution, error) {
	bad := Invalid("Invalid execution request")
	var r StartExecution
	if text == nil {
		return r, errNoBody
	}
	m, ok := object(text)
	if !ok {
		return r, bad
	}
	if r.ConversationID, ok = m.text("conversationId"); !ok || r.ConversationID == "" {
		return r, bad
	}
	if r.ProviderID, ok = m.text("providerId"); !ok || r.ProviderID == "" {
		return r, bad
	}
	if r.Input, ok = m.text("input"); !ok {
		return r, bad
	}
	if r.Config, ok = m.object("config"); !ok {
		return r, bad
	}
	if r.Capabilities, ok = m.names("requiredCapabilities"); !ok {
		return r, bad
	}
	if _, there := m["idempotencyKey"]; there {
		if r.Key, ok = m.text("idempotencyKey"); !ok || r.Key == "" || protocol.CharLen(r.Key) > 200 {
			return r, bad
		}
	}
	return r, nil
}

// names reads an optional array of non-empty strings as a set.
func (m members) names(name string) ([]string, bool) {
	raw, there := m[name]
	if !there {
		return []string{}, true
	}
	t := bytes.TrimLeft(raw, " \t\r\n")
	if len(t) == 0 || t[0] != '[' {
		return nil, false
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	out := make([]string, 0, len(items))
	for _, it := range items {
		s, ok := protocol.Text(it)
		if !ok || s == "" {
			return nil, false
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return slices.Compact(out), true
}

// Digest is the fingerprint of what a start asks for: equal for equivalent requests (section 6).
func (r *StartExecution) Digest() (string, error) {
	text, err := protocol.Canonical(bytes.NewReader(protocol.MustMarshal(map[string]any{
		"providerId": r.ProviderID, "input": r.Input, "requiredCapabilities": r.Capabilities, "config": r.Config,
	})))
	if err != nil {
		return "", err
	}
	return protocol.Digest(text), nil
}

// ReadConversation reads the body of a create: the metadata. An absent body is {}.
func ReadConversation(text json.RawMessage) (metadata json.RawMessage, err error) {
	if text == nil {
		return json.RawMessage("{}"), nil
	}
	m, ok := object(text)
	if ok {
		metadata, ok = m.object("metadata")
	}
	if !ok {
		return nil, Invalid("Invalid conversation request")
	}
	return metadata, nil
}

// ReadCancel reads the body of a cancel: its reason, nil where none is given.
func ReadCancel(text json.RawMessage) (reason *string, err error) {
	bad := Invalid("Invalid cancellation request")
	if text == nil {
		return nil, nil
	}
	m, ok := object(text)
	if !ok {
		return nil, bad
	}
	if _, there := m["reason"]; !there {
		return nil, nil
	}
	s, ok := m.text("reason")
	if !ok || s == "" || protocol.CharLen(s) > 500 {
		return nil, bad
	}
	return &s, nil
}

// ActionResponse answers an action.
type ActionResponse struct {
	Approved *bool
	Value    json.RawMessage // nil where there is none; "null" is a value
}

var errBadAnswer = Invalid("Invalid action response")

// ErrBadAnswer says that an answer does not fit its action, which stays open.
func ErrBadAnswer() *Error { return errBadAnswer }

// ReadResponse reads the body of an answer.
func ReadResponse(text json.RawMessage) (ActionResponse, error) {
	var r ActionResponse
	m, ok := object(text)
	if !ok {
		return r, errBadAnswer
	}
	if raw, there := m["approved"]; there {
		switch string(bytes.TrimSpace(raw)) {
		case "true":
			yes := true
			r.Approved = &yes
		case "false":
			no := false
			r.Approved = &no
		default:
			return r, errBadAnswer
		}
	}
	if _, ok := m.object("metadata"); !ok {
		return r, errBadAnswer
	}
	r.Value = m["value"]
	return r, nil
}

// Choice is what an answer picks: the text of a question's answer, or an approval's option ("" for none named).
func (r *ActionResponse) Choice() (text string) {
	if r.Value == nil {
		return ""
	}
	if s, ok := protocol.Text(r.Value); ok {
		return s
	}
	if m, ok := object(r.Value); ok {
		s, _ := m.text("optionId")
		return s
	}
	return ""
}

// Words is the text of an answer to a question; "" declines.
func (r *ActionResponse) Words() string {
	if r.Approved != nil && !*r.Approved || r.Value == nil {
		return ""
	}
	s, _ := protocol.Text(r.Value)
	return s
}

// ErrNoBody says that a body is missing where one is required.
func ErrNoBody() *Error { return errNoBody }

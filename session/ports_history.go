package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// CheckMessages holds the messages of a request against the promise of Message, as strictly as the strictest provider does: the error
// names the first message that breaks it, by its index. It shares no code with what builds contexts, so that it can catch its mistakes.
func CheckMessages(messages []Message) error {
	if len(messages) == 0 {
		return fmt.Errorf("the request has no messages")
	}
	if r := messages[0].Role; r != RoleSystem && r != RoleUser {
		return fmt.Errorf("message 0 is of role %q, a context begins with system or user", r)
	}
	seen := map[string]bool{}    // every call id so far
	owed := map[string]string{}  // call id -> tool name, of the calls still without result
	answered := map[string]int{} // call id -> index of its result
	for i := range messages {
		m := &messages[i]
		if err := checkText(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
		if m.Role != RoleTool && len(owed) > 0 {
			return fmt.Errorf("message %d (%s) stands before the results of %d calls, one of them %q", i, m.Role, len(owed), anyKey(owed))
		}
		if m.Role != RoleAssistant && len(m.Calls) > 0 {
			return fmt.Errorf("message %d (%s) holds tool calls, only the assistant makes them", i, m.Role)
		}
		var err error
		switch m.Role {
		case RoleSystem:
			if m.Text == "" {
				err = fmt.Errorf("is empty")
			}
		case RoleUser:
			if m.Text == "" && len(m.Parts) == 0 {
				err = fmt.Errorf("is empty")
			}
		case RoleAssistant:
			err = checkCalls(m, seen, owed)
		case RoleTool:
			err = settle(m, i, seen, owed, answered)
		default:
			err = fmt.Errorf("there is no such role")
		}
		if err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	if len(owed) > 0 {
		return fmt.Errorf("the messages end without the results of %d calls, one of them %q", len(owed), anyKey(owed))
	}
	return nil
}

func checkCalls(m *Message, seen map[string]bool, owed map[string]string) error {
	if m.Text == "" && len(m.Calls) == 0 {
		return fmt.Errorf("says nothing and calls nothing")
	}
	for _, c := range m.Calls {
		switch {
		case c.ID == "":
			return fmt.Errorf("a call of %q has no id", c.Name)
		case c.Name == "":
			return fmt.Errorf("call %q names no tool", c.ID)
		case seen[c.ID]:
			return fmt.Errorf("call id %q is used twice", c.ID)
		}
		if err := checkArguments(c.Arguments); err != nil {
			return fmt.Errorf("arguments of call %q: %w", c.ID, err)
		}
		seen[c.ID], owed[c.ID] = true, c.Name
	}
	return nil
}

// settle takes m as the result of one of the calls right before it.
func settle(m *Message, i int, seen map[string]bool, owed map[string]string, answered map[string]int) error {
	if first, twice := answered[m.CallID]; twice {
		return fmt.Errorf("call %q has its result in message %d already", m.CallID, first)
	}
	name, ok := owed[m.CallID]
	switch {
	case !ok && !seen[m.CallID]:
		return fmt.Errorf("result of call %q, which nobody made", m.CallID)
	case !ok:
		return fmt.Errorf("result of call %q does not stand behind its message", m.CallID)
	case m.ToolName != "" && m.ToolName != name:
		return fmt.Errorf("result of call %q names tool %q, the call %q", m.CallID, m.ToolName, name)
	}
	delete(owed, m.CallID)
	answered[m.CallID] = i
	return nil
}

func checkArguments(raw json.RawMessage) error {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(trimmed) {
		return fmt.Errorf("%s is no JSON object", strconv.Quote(protocol.Prefix(string(raw), 60)))
	}
	if i := loneSurrogate(trimmed); i >= 0 {
		return fmt.Errorf("half a surrogate pair is escaped at byte %d", i)
	}
	return nil
}

// loneSurrogate finds a \uD800–\uDFFF escape of valid JSON that is no pair: Go reads it, strict parsers refuse it. -1 for none.
func loneSurrogate(j []byte) int {
	unit := func(i int) uint64 { // of the \uXXXX at i, 0 for anything else
		if i+6 > len(j) || j[i] != '\\' || j[i+1] != 'u' {
			return 0
		}
		u, err := strconv.ParseUint(string(j[i+2:i+6]), 16, 16)
		if err != nil {
			return 0
		}
		return u
	}
	for i := 0; i < len(j); i++ {
		if j[i] != '\\' {
			continue
		}
		switch u := unit(i); {
		case u >= 0xDC00 && u <= 0xDFFF:
			return i
		case u >= 0xD800 && u <= 0xDBFF:
			if low := unit(i + 6); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 11
		default:
			i++ // the escaped character may be a backslash itself
		}
	}
	return -1
}

// checkText asks that all text of m is valid UTF-8.
func checkText(m *Message) error {
	texts := []string{m.Text, m.CallID, m.ToolName}
	for _, p := range m.Parts {
		texts = append(texts, p.Kind, p.Name, p.MIME, p.URI, p.Text)
	}
	for _, r := range m.Reasoning {
		texts = append(texts, r.Text, string(r.Opaque))
	}
	for _, c := range m.Calls {
		texts = append(texts, c.ID, c.Name, string(c.Arguments))
	}
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return fmt.Errorf("%s is no valid UTF-8", strconv.Quote(protocol.Prefix(t, 60)))
		}
	}
	return nil
}

// anyKey returns the smallest key, so that the message is the same each time.
func anyKey(m map[string]string) string { return slices.Min(slices.Collect(maps.Keys(m))) }

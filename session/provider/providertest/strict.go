package providertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Strict reads the body of a request as the strictest provider does: valid JSON and UTF-8, no half of a surrogate pair, every tool call
// with exactly one result in the messages right behind it (of OpenAI's shape: the tool messages; of Anthropic's: the next message, which
// begins with the results; of Responses': outputs before anything else), names of letters, digits, _ and -, and arguments that are an
// object. The error names the first breach and where it is. It shares no code with what builds requests.
func Strict(body []byte) error {
	if err := wellFormed(body); err != nil {
		return err
	}
	var r struct {
		Messages []message         `json:"messages"`
		Input    []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("body is no request: %w", err)
	}
	switch {
	case len(r.Messages) > 0:
		return strictMessages(r.Messages)
	case len(r.Input) > 0:
		return strictInput(r.Input)
	}
	return errors.New("body has neither messages nor input")
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

type block struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// toolName is what all providers take.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// ledger holds calls against results.
type ledger struct {
	owed map[string]bool
	seen map[string]bool
}

func newLedger() *ledger { return &ledger{owed: map[string]bool{}, seen: map[string]bool{}} }

func (l *ledger) call(id, name string, arguments []byte) error {
	switch {
	case id == "":
		return fmt.Errorf("a call of %q has no id", name)
	case name == "":
		return fmt.Errorf("call %q names no tool", id)
	case !toolName().MatchString(name):
		return fmt.Errorf("call %q names %q, which is no name of a tool", id, name)
	case l.seen[id]:
		return fmt.Errorf("call id %q is used twice", id)
	}
	if err := object(arguments); err != nil {
		return fmt.Errorf("arguments of call %q: %w", id, err)
	}
	l.seen[id], l.owed[id] = true, true
	return nil
}

func (l *ledger) result(id string) error {
	if !l.owed[id] {
		if l.seen[id] {
			return fmt.Errorf("call %q has a second result, or one that does not stand right behind it", id)
		}
		return fmt.Errorf("result of call %q, which nobody made", id)
	}
	delete(l.owed, id)
	return nil
}

func (l *ledger) settled() error {
	for id := range l.owed {
		return fmt.Errorf("call %q has no result right behind it", id)
	}
	return nil
}

func strictMessages(msgs []message) error {
	l := newLedger()
	for i := range msgs {
		m := &msgs[i]
		blocks, err := blocksOf(m.Content)
		if err == nil {
			err = l.message(m, blocks)
		}
		if err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	if err := l.settled(); err != nil {
		return fmt.Errorf("behind the last message: %w", err)
	}
	return nil
}

// blocksOf reads a content that is a list; text and null have no blocks.
func blocksOf(content json.RawMessage) ([]block, error) {
	if len(content) == 0 || content[0] != '[' {
		return nil, nil
	}
	var blocks []block
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if len(blocks) == 0 {
		return nil, errors.New("content is an empty list")
	}
	return blocks, nil
}

func (l *ledger) message(m *message, blocks []block) error {
	switch m.Role {
	case "tool":
		return l.result(m.ToolCallID)
	case "user":
		others := false
		for _, b := range blocks {
			if b.Type != "tool_result" {
				others = true
				continue
			}
			if others {
				return errors.New("a result stands behind other content")
			}
			if err := l.result(b.ToolUseID); err != nil {
				return err
			}
		}
		if bytes.Equal(m.Content, []byte(`""`)) {
			return errors.New("is empty")
		}
		return l.settled()
	case "assistant":
		if err := l.settled(); err != nil {
			return err
		}
		for _, c := range m.ToolCalls {
			if c.Type != "function" {
				return fmt.Errorf("call %q is of type %q", c.ID, c.Type)
			}
			if err := l.call(c.ID, c.Function.Name, []byte(c.Function.Arguments)); err != nil {
				return err
			}
		}
		for _, b := range blocks {
			if b.Type == "tool_use" {
				if err := l.call(b.ID, b.Name, b.Input); err != nil {
					return err
				}
			}
		}
		if len(m.ToolCalls) == 0 && len(blocks) == 0 && (len(m.Content) == 0 || bytes.Equal(m.Content, []byte("null")) || bytes.Equal(m.Content, []byte(`""`))) {
			return errors.New("says nothing and calls nothing")
		}
		return nil
	case "system", "developer":
		return l.settled()
	}
	return errors.New("there is no such role")
}

func strictInput(items []json.RawMessage) error {
	l := newLedger()
	for i, raw := range items {
		var it struct {
			Type      string `json:"type"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}
		err := json.Unmarshal(raw, &it)
		if err == nil {
			switch it.Type {
			case "function_call":
				err = l.call(it.CallID, it.Name, []byte(it.Arguments))
			case "function_call_output":
				err = l.result(it.CallID)
			default:
				err = l.settled()
			}
		}
		if err != nil {
			return fmt.Errorf("item %d (%s): %w", i, it.Type, err)
		}
	}
	if err := l.settled(); err != nil {
		return fmt.Errorf("behind the last item: %w", err)
	}
	return nil
}

// object asks for a JSON object that is well-formed itself: as text it was opaque to the check of the body.
func object(j []byte) error {
	if err := wellFormed(j); err != nil {
		return err
	}
	if trimmed := bytes.TrimSpace(j); trimmed[0] != '{' {
		return fmt.Errorf("%.40q is no object", trimmed)
	}
	return nil
}

func wellFormed(j []byte) error {
	switch {
	case !utf8.Valid(j):
		return errors.New("is no valid UTF-8")
	case !json.Valid(j):
		return fmt.Errorf("%.40q is no JSON", j)
	}
	if i := halfPair(j); i >= 0 {
		return fmt.Errorf("half a surrogate pair is escaped at byte %d", i)
	}
	return nil
}

// halfPair finds an escaped surrogate without its other half in valid JSON; -1 for none.
func halfPair(j []byte) int {
	for i := 0; i < len(j); i++ {
		if j[i] != '\\' {
			continue
		}
		if j[i+1] != 'u' {
			i++
			continue
		}
		u, _ := strconv.ParseUint(string(j[i+2:i+6]), 16, 16)
		switch {
		case u < 0xD800 || u > 0xDFFF:
			i += 5
		case u >= 0xDC00 || i+12 > len(j) || j[i+6] != '\\' || j[i+7] != 'u':
			return i
		default:
			if low, _ := strconv.ParseUint(string(j[i+8:i+12]), 16, 16); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 11
		}
	}
	return -1
}

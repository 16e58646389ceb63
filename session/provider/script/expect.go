package script

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rind-dev/rind/session"
)

// expectation is what an expect step asks of the request; members left out ask nothing.
type expectation struct {
	Role       string   `json:"role"`       // of the last message
	Messages   *int     `json:"messages"`   // how many there are
	System     string   `json:"system"`     // part of a system message
	User       string   `json:"user"`       // part of the last user message
	ToolResult string   `json:"toolResult"` // part of one of the tool messages at the end
	Tools      []string `json:"tools"`      // names that must be offered
	Model      string   `json:"model"`
	Effort     string   `json:"effort"`
}

// miss says in what r differs from what is expected, "" in nothing.
func (e *expectation) miss(r session.ModelRequest) string {
	last := session.Message{}
	if n := len(r.Messages); n > 0 {
		last = r.Messages[n-1]
	}
	switch {
	case e.Role != "" && string(last.Role) != e.Role:
		return fmt.Sprintf("expected a last message of role %q, got %q", e.Role, last.Role)
	case e.Messages != nil && len(r.Messages) != *e.Messages:
		return fmt.Sprintf("expected %d messages, got %d", *e.Messages, len(r.Messages))
	case e.Model != "" && r.Model != e.Model:
		return fmt.Sprintf("expected model %q, got %q", e.Model, r.Model)
	case e.Effort != "" && r.Effort != e.Effort:
		return fmt.Sprintf("expected effort %q, got %q", e.Effort, r.Effort)
	case e.User != "" && !strings.Contains(lastUser(r.Messages), e.User):
		return fmt.Sprintf("expected %q in the last user message, got %q", e.User, short(lastUser(r.Messages)))
	}
	if e.System != "" && !slices.ContainsFunc(r.Messages, func(m session.Message) bool {
		return m.Role == session.RoleSystem && strings.Contains(m.Text, e.System)
	}) {
		return fmt.Sprintf("expected %q in a system message", e.System)
	}
	for _, name := range e.Tools {
		if !slices.ContainsFunc(r.Tools, func(t session.ToolSpec) bool { return t.Name == name }) {
			return fmt.Sprintf("expected tool %q to be offered", name)
		}
	}
	if e.ToolResult == "" {
		return ""
	}
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role == session.RoleTool; i-- {
		if strings.Contains(r.Messages[i].Text, e.ToolResult) {
			return ""
		}
	}
	return fmt.Sprintf("expected %q in a tool result at the end, the last message is %q", e.ToolResult, short(last.Text))
}

func short(s string) string {
	const most = 120
	if cut := []rune(s); len(cut) > most {
		return string(cut[:most]) + "…"
	}
	return s
}

package executions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// agentConfig reads the config of an execution of the agent (docs/protocol/portable-2026-09-02.md section 11). What is wrong with it fails
// the execution, not the request.
func agentConfig(config json.RawMessage, tools []string) (*session.ExecutionLimits, error) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(config, &members)
	l := &session.ExecutionLimits{}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // one fault is told, always the same
	for _, name := range names {
		set := settings[name]
		if set == nil || bytes.Equal(bytes.TrimSpace(members[name]), []byte("null")) || !set(l, members[name], tools) {
			return nil, &session.Failure{
				Type: protocol.FailConfiguration, Status: "rejected", Source: "runtime", Message: "Invalid agent config: " + protocol.Prefix(name, 200),
			}
		}
	}
	return l, nil
}

const longestTimeout = 604_800 // seconds

var settings = map[string]func(l *session.ExecutionLimits, raw json.RawMessage, tools []string) bool{
	"model":           func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool { return filled(raw, &l.Model) },
	"reasoningEffort": func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool { return filled(raw, &l.Effort) },
	"approvals": func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return false
		}
		switch s {
		case "ask":
			l.Mode = "ask"
		case "auto":
			l.Mode = "full"
		case "never":
			l.Mode, l.Unattended = "ask", true
		default:
			return false
		}
		return true
	},
	"timeout": func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool {
		var n float64
		if json.Unmarshal(raw, &n) != nil || n <= 0 || n > longestTimeout {
			return false
		}
		l.Timeout, l.TimeoutText = time.Duration(n*float64(time.Second)), fmt.Sprintf("Execution exceeded its timeout of %s s", bytes.TrimSpace(raw))
		return true
	},
	"maxSteps": func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool {
		return json.Unmarshal(raw, &l.Steps) == nil && l.Steps >= 1 && l.Steps <= 1000
	},
	"maxTokens": func(l *session.ExecutionLimits, raw json.RawMessage, _ []string) bool {
		return json.Unmarshal(raw, &l.Tokens) == nil && l.Tokens >= 1
	},
	"tools": func(l *session.ExecutionLimits, raw json.RawMessage, known []string) bool {
		l.Tools = []string{}
		if json.Unmarshal(raw, &l.Tools) != nil || l.Tools == nil {
			return false
		}
		return !slices.ContainsFunc(l.Tools, func(name string) bool { return !slices.Contains(known, name) })
	},
}

func filled(raw json.RawMessage, to *string) bool { return json.Unmarshal(raw, to) == nil && *to != "" }

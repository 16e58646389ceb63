package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// ExecutionLimits are what the configuration of an execution of our agent says.
type ExecutionLimits struct {
	Model, Effort string        // "" takes the session's
	Mode          string        // approval mode
	Unattended    bool          // what needs consent is rejected
	Timeout       time.Duration // since the start; 0 for none
	TimeoutText   string        // what the turn fails with
	Steps         int           // model requests, of which a retried one counts once; 0 for none
	Tokens        int           // input and output tokens as reported, else as estimated; 0 for none
	Tools         []string      // only these are offered; nil for all
}

// ReadLimits reads the configuration of an execution of the agent (docs/protocol/portable-2026-09-02.md section 11). Whether there are
// tools of the names it gives is seen once the turn has its tools. An error is the *Failure the execution ends with.
func ReadLimits(config json.RawMessage) (*ExecutionLimits, error) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(config, &members)
	l := &ExecutionLimits{Mode: "ask"}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // one fault is told, always the same
	for _, name := range names {
		set := limitSettings[name]
		if set == nil || bytes.Equal(bytes.TrimSpace(members[name]), []byte("null")) || !set(l, members[name]) {
			return nil, wrongConfig(protocol.Prefix(name, 200))
		}
	}
	return l, nil
}

const longestTimeout = 604_800 // seconds

var limitSettings = map[string]func(l *ExecutionLimits, raw json.RawMessage) bool{
	"model":           func(l *ExecutionLimits, raw json.RawMessage) bool { return filled(raw, &l.Model) },
	"reasoningEffort": func(l *ExecutionLimits, raw json.RawMessage) bool { return filled(raw, &l.Effort) },
	"approvals": func(l *ExecutionLimits, raw json.RawMessage) bool {
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
	"timeout": func(l *ExecutionLimits, raw json.RawMessage) bool {
		var n float64
		if json.Unmarshal(raw, &n) != nil || n <= 0 || n > longestTimeout {
			return false
		}
		l.Timeout = max(1, time.Duration(n*float64(time.Second))) // 0 would be none
		l.TimeoutText = fmt.Sprintf("Execution exceeded its timeout of %s s", bytes.TrimSpace(raw))
		return true
	},
	"maxSteps": func(l *ExecutionLimits, raw json.RawMessage) bool {
		n, ok := protocol.Integer(raw)
		l.Steps = int(n)
		return ok && n >= 1 && n <= 1000
	},
	"maxTokens": func(l *ExecutionLimits, raw json.RawMessage) bool {
		n, ok := protocol.Integer(raw)
		l.Tokens = int(n)
		return ok && n >= 1
	},
	"tools": func(l *ExecutionLimits, raw json.RawMessage) bool {
		l.Tools = []string{}
		return json.Unmarshal(raw, &l.Tools) == nil && l.Tools != nil
	},
}

func filled(raw json.RawMessage, to *string) bool { return json.Unmarshal(raw, to) == nil && *to != "" }

// offers reports whether a turn with limits may use a tool.
func (l *ExecutionLimits) offers(name string) bool {
	return l == nil || l.Tools == nil || slices.Contains(l.Tools, name)
}

// choose puts the model an execution names in the place of the session's.
func (l *ExecutionLimits) choose(sel Selection) Selection {
	if l != nil && l.Model != "" {
		sel.Model = l.Model
	}
	if l != nil && l.Effort != "" {
		sel.Effort = l.Effort
	}
	return sel
}

// expire ends the turn when its time is over, counted from its start. A clock that was set back since gives it no more than its time.
func (t *Turn) expire(started time.Time) {
	if l := t.limits; l != nil && l.Timeout > 0 {
		left := l.Timeout - max(0, t.s.all.now().Sub(started))
		t.expiry = t.s.after(max(0, left), func() { t.cancel(executionFault(l.TimeoutText)) })
	}
}

// givenLimits are the limits an execution of the agent was accepted with, and what is wrong with them.
type givenLimits struct {
	limits *ExecutionLimits
	wrong  error
}

// limitsOf finds the limits of a turn that goes on in another process; nil for one that has none.
func (s *Session) limitsOf(open *OpenTurn, then func(*givenLimits)) {
	if open.Surface != protocol.SurfacePortable || open.Parallel {
		then(nil)
		return
	}
	turn := open.ID
	fetch(s, func(ctx context.Context, store Store) (acceptedAt, error) { return readAcceptance(ctx, store, turn) }, func(a acceptedAt, err error) {
		g := &givenLimits{wrong: err}
		if err == nil {
			g.limits, g.wrong = ReadLimits(a.More.Config)
		}
		then(g)
	})
}

// restrict gives a turn that goes on in another process the limits it was accepted with, and a place: it lost its own with that process.
func (t *Turn) restrict(open *OpenTurn, given *givenLimits) {
	if given == nil {
		return
	}
	t.s.all.places.retake() // it goes on at once
	t.hold()
	t.limits, t.wrong = given.limits, given.wrong
	t.Selection = t.limits.choose(t.Selection)
	t.expire(open.StartedAt)
}

// checkSteps fails a turn at its n-th model request: beyond what its execution allows, which is the only bound where it names one, else beyond
// what every turn has.
func (l *ExecutionLimits) checkSteps(n int) error {
	switch {
	case l != nil && l.Steps > 0:
		if n > l.Steps {
			return executionFault(fmt.Sprintf("Execution exceeded maxSteps %d", l.Steps))
		}
	case n > maxSteps:
		return limitReached(fmt.Sprintf("The turn reached its limit of %d model requests.", maxSteps))
	}
	return nil
}

// checkTokens fails a turn that used more tokens than its execution may.
func (w *work) checkTokens() error {
	most := w.t.limits
	if most == nil || most.Tokens == 0 {
		return nil
	}
	spent := 0
	if err := w.t.View(func(_ *State, open *OpenTurn, _ *History) { spent = open.Tokens }); err != nil {
		return err
	}
	if spent > most.Tokens {
		return executionFault(fmt.Sprintf("Execution exceeded maxTokens %d", most.Tokens))
	}
	return nil
}

func executionFault(text string) *Failure {
	return &Failure{Type: protocol.FailLimit, Status: "failed", Source: "runtime", Message: text}
}

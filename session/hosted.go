package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// This file is what a turn and a session offer beside to an Agent that hosts another one, which has a loop and tools of its own
// (docs/protocol/acp.md section 5).

// Hosting is what an Agent may offer beside Turn.
type Hosting interface {
	// Hosts names the provider whose agent, with a loop of its own, answers turns of a selection; false when none does. Such turns never wait for
	// a person beyond the end of their process, and are not gone on with after a crash. It must not block.
	Hosts(sel Selection) (provider string, ok bool)
	// Hosted tells what is known of that agent, and in the session where it runs; false where Hosts says so. It starts nothing.
	Hosted(id SessionID, sel Selection) (HostedAgent, bool)
}

// HostedAgent is what is known of a hosted agent.
type HostedAgent struct {
	Provider string
	Name     string            // with its version; "" until it ran
	Seen     time.Time         // when it ran last; zero for never
	Manifest map[string]string // capability -> native, emulated, degraded, unsupported (docs/protocol/acp.md section 5.6)
	Commands []string          // names of its slash commands, as it told them last
}

// String says it in one line: who it is, and what it can do, by level.
func (a HostedAgent) String() string {
	if a.Seen.IsZero() {
		return a.Provider + " has not run yet; what it can do is known once it did"
	}
	words := []string{strings.TrimSpace(a.Name + " as " + a.Provider + ", seen " + a.Seen.Local().Format(time.DateOnly))}
	for _, level := range []string{"native", "emulated", "degraded", "unsupported"} {
		var of []string
		for capability, l := range a.Manifest {
			if l == level {
				of = append(of, capability)
			}
		}
		if slices.Sort(of); len(of) > 0 {
			words = append(words, level+": "+strings.Join(of, ", "))
		}
	}
	return strings.Join(words, "; ")
}

// Hosted tells what is known of the hosted agent that answers a session set to sel; false where none does.
func (ss *Sessions) Hosted(id SessionID, sel Selection) (HostedAgent, bool) {
	if h, hosting := ss.cfg.Agent.(Hosting); hosting {
		return h.Hosted(id, sel)
	}
	return HostedAgent{}, false
}

// HostedPrefix is in front of a hosted agent's name where it is a provider of the portable protocol (docs/protocol/portable-2026-09-02.md
// section 11).
const HostedPrefix = "acp."

// ErrAgentCancelled is what an Agent returns when the agent it hosts ended the turn as cancelled and nobody here asked for that.
var ErrAgentCancelled = errors.New("the hosted agent cancelled the turn")

const reasonAgent = "Agent cancelled"

// ChildSession is the session of a hosted agent behind one of ours.
type ChildSession struct {
	Provider string
	ID       string
}

var errLaneMoved = errors.New("there were other turns since")

type agentFunc func(ctx context.Context, t *Turn) (stop string, err error)

// hosts names the provider whose hosted agent answers turns of a selection.
func (s *Session) hosts(sel Selection) (provider string, ok bool) {
	if h, hosting := s.all.cfg.Agent.(Hosting); hosting {
		return h.Hosts(sel)
	}
	return "", false
}

// markHosted notes at the start of a turn that a hosted agent answers it, and which: a prompt of an editor is an execution of that provider.
func (s *Session) markHosted(sel Selection, ls []line) {
	provider, ok := s.hosts(sel)
	if !ok {
		return
	}
	for _, l := range ls {
		switch b := l.body.(type) {
		case *protocol.TurnStarted:
			b.More.Hosted = true
		case *protocol.TurnAccepted:
			b.More.Provider = HostedPrefix + provider
		}
	}
}

// emptyConfig refuses a configuration for a hosted agent, which takes none.
func emptyConfig(config json.RawMessage) error {
	var members map[string]json.RawMessage
	if _ = json.Unmarshal(config, &members); len(members) == 0 {
		return nil
	}
	return &Failure{Type: protocol.FailConfiguration, Status: "rejected", Source: "runtime", Message: "Hosted agent takes no execution config"}
}

// Said is what a turn begins with.
type Said struct {
	Text      string
	Parts     []protocol.Part
	Context   []string // what is said to the model beside it: skills, system messages of this turn
	Operation string
	Surface   string // protocol.SurfaceEditor …
	Workspace string
	Roots     []string      // further folders of the session's tools
	Messages  int           // of the session before this turn
	Cost      float64       // likewise, US dollars
	Before    TurnID        // the turn before it, "" for none
	Child     *ChildSession // nil for none
	Unasked   bool          // nobody can be asked in this turn
}

// Said returns what the turn begins with.
func (t *Turn) Said() (Said, error) {
	var out Said
	err := t.View(func(st *State, open *OpenTurn, past *History) {
		out.Operation, out.Surface, out.Workspace, out.Child = open.Operation, open.Surface, st.Workspace, st.Child
		out.Roots, out.Cost = slices.Clone(st.Roots), st.Cost
		if st.Last != nil {
			out.Before = st.Last.Turn
		}
		out.Unasked = t.limits != nil && t.limits.Unattended
		for _, m := range open.Transient {
			out.Context = append(out.Context, m.Content)
		}
		for _, it := range past.items {
			switch {
			case it.Turn != t.ID:
				out.Messages++
			case it.Role == RoleSystem:
				out.Context = append(out.Context, it.Text)
			case it.Role == RoleUser && it.ID == open.UserMessageID:
				out.Text, out.Parts = it.Text, it.Parts
			case it.Role == RoleUser: // of tasks that ended
				out.Context = append(out.Context, it.Text)
			}
		}
	})
	return out, err
}

// Mode is the session's approval mode as it stands now, or that of the execution.
func (t *Turn) Mode() (string, error) {
	mode := ""
	err := t.View(func(st *State, _ *OpenTurn, _ *History) { mode = st.Sel.Mode })
	if t.limits != nil {
		mode = t.limits.Mode
	}
	return mode, err
}

// NewID makes an id for a message or a call.
func (t *Turn) NewID() string { return t.s.all.cfg.IDs.Hex32() }

// Now is the time of the session's clock.
func (t *Turn) Now() time.Time { return t.s.all.now() }

// Hurry is closed when somebody waits for the end of this turn: one that nobody asked for ends then.
func (t *Turn) Hurry() <-chan struct{} { return t.hurry }

// Recap tells the conversation before this turn in at most most bytes, the newest of it whole: for an agent that does not know it.
func (t *Turn) Recap(most int) (string, error) {
	var parts []string
	err := t.View(func(_ *State, _ *OpenTurn, past *History) {
		left := most
		for i := len(past.items) - 1; i >= 0 && left > 0; i-- {
			it := past.items[i]
			text := recapLine(it)
			if it.Turn == t.ID || text == "" || past.refused[it.Turn] {
				continue
			}
			if len(text) > left {
				if len(parts) > 0 {
					break
				}
				text = cutMiddle(text, max(0, left-64))
			}
			left -= len(text) + 2
			parts = append(parts, text)
		}
	})
	slices.Reverse(parts)
	return strings.Join(parts, "\n\n"), err
}

const recapResult = 600 // bytes of a call's result in a recap

func recapLine(it *Item) string {
	switch {
	case it.Hidden:
		return ""
	case it.Role == RoleUser:
		return "User: " + it.Text
	case it.Role == RoleTool:
		return "Result of " + it.ToolName + ": " + cutMiddle(it.Text, recapResult)
	case it.Role == RoleAssistant:
		var b strings.Builder
		if it.Text != "" {
			b.WriteString("Assistant: " + it.Text)
		}
		for _, c := range it.Calls {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString("Assistant called " + c.Name + " " + cutMiddle(string(c.Arguments), recapResult))
		}
		return b.String()
	}
	return ""
}

// CallEnd makes the facts that end a call: its changes, and its result.
func (t *Turn) CallEnd(callID, tool string, r *ToolResult, took time.Duration) ([]protocol.Body, error) {
	return t.resultBodies(callID, tool, r, took, t.s.all.cfg.Outputs, t.s.all.now())
}

// FirstChange reports whether a file was not changed in this turn before.
func (t *Turn) FirstChange(path string) (bool, error) {
	first := true
	err := t.View(func(_ *State, open *OpenTurn, _ *History) {
		first = !slices.Contains(open.Files, path)
	})
	return first, err
}

// Choose puts a hosted agent's request for consent to the person, with its own options, and returns the id of the one that was chosen: "" when
// the request was closed without one. An error is the cause of the turn's end.
func (t *Turn) Choose(a *protocol.ApprovalRequested) (string, error) {
	a.ActionID = t.s.all.cfg.IDs.Hex32()
	a.More.QuestionEventID = t.s.all.cfg.IDs.Hex32()
	got, err := t.await(a.ToolCallID, func(*OpenTurn) (string, protocol.Body) { return a.ActionID, a })
	return got.option, err
}

// Aside starts a turn that nobody asked for and that run answers, and returns at once. after is the turn it comes behind. done is called when it has
// ended, or with an error: TurnActive when the lane is taken, something else when it cannot be told here, as there were other turns since or
// another process works in the session. It must not block.
func (ss *Sessions) Aside(id SessionID, after TurnID, run func(ctx context.Context, t *Turn) (stop string, err error), done func(error)) {
	s := ss.known(id)
	if s == nil {
		done(ErrNotFound)
		return
	}
	p := &Prompt{s: s, req: PromptRequest{aside: run, after: after}, done: []func(Outcome, error){func(_ Outcome, err error) { done(err) }}}
	if !s.post(func() {
		if s.lane.busy() || s.door.shut || s.stopping || s.gone.Load() || s.draft.Load() {
			p.finish(Outcome{}, protocol.Errorf(protocol.TurnActive, "Another turn is running."))
			return
		}
		s.begin(p)
	}) {
		done(ErrNotFound)
	}
}

// startAside starts a turn that nobody asked for.
func (s *Session) startAside(p *Prompt, turn TurnID) {
	if s.next.Last == nil || s.next.Last.Turn != p.req.after {
		s.notStarted(p, errLaneMoved)
		return
	}
	acc := &protocol.TurnAccepted{}
	acc.More.Provider, acc.More.Surface = "agent", protocol.SurfaceEditor
	started := &protocol.TurnStarted{Operation: protocol.OpPrompt, Origin: protocol.OriginBackground}
	started.More.Model, started.More.Provider = s.next.Sel.Model, s.next.Sel.Provider
	s.startWith(p, turn, append(s.opening(), lines(turn, acc, started)...), nil)
}

// hurryAside asks a turn nobody asked for to end.
func (s *Session) hurryAside() {
	if t := s.lane.run; t != nil && t.aside != nil {
		select {
		case <-t.hurry:
		default:
			close(t.hurry)
		}
	}
}

// Outside appends small things that belong to no turn. What cannot be stored is dropped: nobody waits for it.
func (ss *Sessions) Outside(id SessionID, bodies ...protocol.Body) {
	s := ss.known(id)
	if s == nil {
		return
	}
	s.post(func() {
		if s.draft.Load() || s.gone.Load() || s.stopping {
			return
		}
		s.withLease(func(err error) {
			if err == nil {
				s.append(lines("", bodies...), nil)
			}
		})
	})
}

// Retitle gives a session the title a hosted agent has for it, unless a person gave it another; before is the one the agent gave last.
func (ss *Sessions) Retitle(id SessionID, title, before string) {
	s := ss.known(id)
	if s == nil || strings.TrimSpace(title) == "" {
		return
	}
	s.post(func() {
		if s.draft.Load() || s.gone.Load() || s.stopping || s.next.Title == title || s.next.Renamed && s.next.Title != before {
			return
		}
		s.withLease(func(err error) {
			if err == nil {
				s.append(lines("", &protocol.SessionRenamed{Name: title, Title: title}), nil)
			}
		})
	})
}

// argumentsOf is what a hosted agent calls a tool with: an object, whatever it sent.
func argumentsOf(raw json.RawMessage) (args json.RawMessage, same bool) {
	args, same, ok := objectOf(string(raw))
	return args, same && ok
}

// RequestedBy makes the fact of a call of a hosted agent. raw is what it is called with, or nil; view is what it shows of it, or nil.
func RequestedBy(callID, messageID, tool, title string, raw json.RawMessage, view *protocol.CallView) *protocol.ToolRequested {
	r := &protocol.ToolRequested{ToolCallID: callID, ToolName: tool, ArgsPreview: protocol.Prefix(string(raw), 500)}
	r.More.MessageID, r.More.Title, r.More.View = messageID, title, view
	if view != nil {
		r.More.ToolKind = view.Kind
	}
	var same bool
	if r.Arguments, same = argumentsOf(raw); !same && len(raw) > 0 {
		r.More.Raw = string(raw)
	}
	return r
}

// Withdraw closes what the person is asked about a call, without an answer: the hosted agent does not want to know any more.
func (t *Turn) Withdraw(callID string) {
	s := t.s
	s.post(func() {
		open := s.next.turn(t.ID)
		if open == nil {
			return
		}
		for _, a := range open.Actions {
			if a.CallID == callID && !s.answering[a.ID] {
				s.resolve(open, a, withdrawal(a), answer{}, letter{}, s.answerOnce(a.ID, func(error) {}))
				return
			}
		}
	})
}

func withdrawal(a *Action) protocol.Body {
	if !a.Question {
		return &protocol.ApprovalResolved{ActionID: a.ID, ToolCallID: a.CallID, Outcome: protocol.OutcomeCancelled, By: protocol.ByRuntime}
	}
	q := &protocol.UserQuestionAnswered{ToolCallID: a.CallID}
	q.More.ActionID, q.More.By = a.ID, protocol.ByRuntime
	return q
}

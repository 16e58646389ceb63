package session

import (
	"slices"

	"github.com/rind-dev/rind/protocol"
)

// This file is what a hosted agent does to itself: it changes its settings, and makes its context smaller (docs/protocol/acp.md section 5.2).

// sourceAgent is the selection_source of settings that a hosted agent changed.
const sourceAgent = "agent"

// Adopt takes over what the agent of this turn set itself to: of says what that changes of the session's settings, on the session's goroutine, and
// false where it is nothing. It reports whether something changed, once that is on disk.
func (t *Turn) Adopt(of func(Selection) (Change, bool)) (changed bool, err error) {
	err = t.do(func(done func(error)) {
		t.gather.flush()
		t.s.takeOver(of, func(is bool, err error) {
			changed = is
			done(err)
		})
	})
	return changed, err
}

// Adopt is Turn.Adopt between two turns. It does not wait; what cannot be stored is dropped.
func (ss *Sessions) Adopt(id SessionID, of func(Selection) (Change, bool)) {
	if s := ss.known(id); s != nil {
		s.post(func() {
			if !s.draft.Load() && !s.gone.Load() && !s.stopping {
				s.takeOver(of, func(bool, error) {})
			}
		})
	}
}

// takeOver changes settings as of says; done is told whether that is a change, once it is on disk.
func (s *Session) takeOver(of func(Selection) (Change, bool), done func(changed bool, err error)) {
	c, ok := of(s.next.Sel)
	if !ok {
		done(false, nil)
		return
	}
	c.Source, c.holds = sourceAgent, true
	s.change(c, func(_ Selection, _ string, err error) { done(err == nil, err) })
}

// Compacted makes the fact that the agent of this turn made its own context smaller. summary is what it shows of the rest, "" for nothing; asked is
// that the person asked for it. Log, history and the view of our own models stay as they are.
func (t *Turn) Compacted(provider, summary string, asked bool) (protocol.Body, error) {
	rec := protocol.Compaction{
		ID: t.s.all.cfg.IDs.Hex32(), CreatedAt: protocol.FormatTime(t.s.all.now()), Strategy: protocol.CompactByModel, Reason: protocol.CompactAuto,
		Phase: protocol.CompactMidTurn, PolicyVersion: protocol.CompactPolicy,
		ContinuationUserMessage: protocol.CompactionMessage{Role: string(RoleUser)},
		HandoffMessage:          protocol.CompactionMessage{Role: string(RoleAssistant), Content: cutMiddle(summary, keepSummaryChars)},
	}
	if asked {
		rec.Reason = protocol.CompactManual
	}
	err := t.View(func(st *State, _ *OpenTurn, past *History) { rec.Source = past.source("", st.Created, 0) })
	b := &protocol.ContextCompacted{Record: protocol.MustMarshal(rec)}
	b.More.Provider = provider
	return b, err
}

// ErrAgentCompacts says that the session's hosted agent has a command /compact of its own.
var ErrAgentCompacts error = protocol.Errorf(protocol.UnsupportedOperation, "This agent compacts its own context: send /compact as a prompt.")

// agentCompacts says why a session is not compacted from here; nil where it is.
func (s *Session) agentCompacts() error {
	a, hosted := s.all.Hosted(s.ID, s.next.Sel)
	switch {
	case !hosted:
		return nil
	case slices.Contains(a.Commands, "compact"):
		return ErrAgentCompacts
	}
	return protocol.Errorf(protocol.UnsupportedOperation, "A hosted agent keeps its own context, and this one has no command that compacts it.")
}

package session

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Change sets what a session is set to; nil fields stay. done runs once it is on disk (a draft is kept in memory only) with what
// holds now and when it applies: "now", or "next_turn" while a turn runs.
type Change struct {
	Provider, Model, Effort, Mode *string
	Source                        string // selection_source; "" is "session"

	holds bool // it is said of what holds already, as a hosted agent set itself to it
}

// Change changes settings.
func (s *Session) Change(c Change, done func(sel Selection, applies string, err error)) {
	if !s.post(func() { s.change(c, done) }) {
		done(Selection{}, "", errGone(s.ID))
	}
}

func (s *Session) change(c Change, done func(Selection, string, error)) {
	body := func() (*protocol.SessionSettingsChanged, Selection) {
		sel := s.next.Sel
		for _, f := range []struct {
			to   *string
			from *string
		}{{&sel.Provider, c.Provider}, {&sel.Model, c.Model}, {&sel.Effort, c.Effort}, {&sel.Mode, c.Mode}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		b := &protocol.SessionSettingsChanged{
			Provider: sel.Provider, Model: sel.Model, ReasoningEffort: sel.Effort, ApprovalMode: sel.Mode, Applies: "now",
			SelectionSource: c.Source, ConnectionReady: true,
		}
		if b.SelectionSource == "" {
			b.SelectionSource = "session"
		}
		// The mode is looked at before each call, the others when a turn begins.
		if (c.Provider != nil || c.Model != nil || c.Effort != nil) && !c.holds && !s.lane.free() {
			b.Applies = "next_turn"
		}
		return b, sel
	}
	if s.draft && s.lane.starting == nil {
		b, sel := body()
		s.next.Sel, s.shown.Sel = sel, sel
		s.announce(b)
		done(sel, b.Applies, nil)
		return
	}
	s.withLease(func(err error) {
		if err != nil {
			done(Selection{}, "", err)
			return
		}
		b, sel := body()
		s.append(append(s.opening(), lines("", b)...), func(_ Seq, err error) { done(sel, b.Applies, err) })
	})
}

// Rename gives the session a title. done runs once it is on disk; a draft keeps it in memory.
func (s *Session) Rename(name string, done func(title string, err error)) {
	name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD"))
	if !s.post(func() {
		b := &protocol.SessionRenamed{Name: name, Title: name}
		if s.draft && s.lane.starting == nil {
			s.next.Title, s.next.Renamed = name, true
			s.shown.Title, s.shown.Renamed = name, true
			s.announce(b)
			done(name, nil)
			return
		}
		s.withLease(func(err error) {
			if err != nil {
				done("", err)
				return
			}
			s.append(append(s.opening(), lines("", b)...), func(_ Seq, err error) { done(name, err) })
		})
	}) {
		done("", errGone(s.ID))
	}
}

// Fork copies the messages before a user message (all of them when before is "") into a new session and returns it, opened.
// InvalidRequest for a draft or a bad fork point, TurnActive while a turn runs.
func (s *Session) Fork(ctx context.Context, before string) (*Session, error) {
	return s.ForkWith(ctx, before, nil)
}

// ForkWith is Fork with other further folders for its tools; nil takes those of the session.
func (s *Session) ForkWith(ctx context.Context, before string, roots *[]string) (*Session, error) {
	var st State
	var head Seq
	err := s.call(ctx, func(done func(error)) {
		switch {
		case s.draft:
			done(protocol.Errorf(protocol.InvalidRequest, "Cannot fork a draft session."))
		case !s.lane.free() || s.shown.Serial != nil:
			done(protocol.Errorf(protocol.TurnActive, "Cannot fork a session while a turn is active."))
		default:
			st, head = *s.shown, s.shown.Head
			done(nil)
		}
	})
	if err != nil {
		return nil, err
	}
	body := &protocol.SessionForked{}
	m := &body.More
	m.WorkspaceRoot, m.Title, m.Parent, m.ParentSeq = st.Workspace, st.Title, s.ID, head
	m.Provider, m.Model, m.Effort, m.Mode = st.Sel.Provider, st.Sel.Model, st.Sel.Effort, st.Sel.Mode
	m.ConversationID = "conv_" + s.all.cfg.IDs.Hex32()
	if m.Roots = st.Roots; roots != nil {
		m.Roots = *roots
	}
	if m.Entries, err = s.forkEntries(ctx, head, before); err != nil {
		return nil, err
	}
	return s.all.fork(ctx, body)
}

// historyKind reports whether a fork copies an entry.
func historyKind(k protocol.Kind) bool {
	switch k {
	case protocol.KindUserMessage, protocol.KindQueuedInputDelivered, protocol.KindReasoningCompleted, protocol.KindAssistantMessageCompleted,
		protocol.KindToolRequested, protocol.KindToolResult, protocol.KindContextCompacted, protocol.KindHistoryRepaired:
		return true
	}
	return false
}

// forkEntries reads what is copied, up to head or the user message before.
func (s *Session) forkEntries(ctx context.Context, head Seq, before string) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for e, err := range readLog(ctx, s.all.cfg.Store, s.ID, 0, protocol.ViewFacts) {
		if err != nil {
			return nil, s.all.storeError(err)
		}
		if e.Seq > head {
			break
		}
		b, err := protocol.Decode(e)
		if err != nil {
			return nil, s.all.storeError(err)
		}
		if f, ok := b.(*protocol.SessionForked); ok {
			for i, fe := range forkedEntries(f) {
				if at, err := forkPoint(fe.body, before); at {
					return out, err
				}
				out = append(out, f.More.Entries[i])
			}
			continue
		}
		if at, err := forkPoint(b, before); at {
			return out, err
		}
		if historyKind(e.Kind) {
			out = append(out, protocol.MustMarshal(protocol.ForkedEntry{
				Kind: e.Kind, Turn: e.Turn, TS: protocol.FormatTime(e.Time), Event: e.Event, More: e.More,
			}))
		}
	}
	if before != "" {
		return nil, protocol.Errorf(protocol.InvalidRequest, "Fork message not found.")
	}
	return out, nil
}

// forkPoint reports whether b is the message a fork ends before, and whether it may be.
func forkPoint(b protocol.Body, before string) (bool, error) {
	if before == "" {
		return false, nil
	}
	switch b := b.(type) {
	case *protocol.UserMessage:
		return b.More.ID == before, nil
	case *protocol.QueuedInputDelivered:
		return b.InputID == before, nil
	case *protocol.AssistantMessageCompleted:
		if b.MessageID != before {
			return false, nil
		}
	case *protocol.ToolRequested:
		if b.More.MessageID != before {
			return false, nil
		}
	case *protocol.ToolResult:
		if "result_"+b.ToolCallID != before {
			return false, nil
		}
	default:
		return false, nil
	}
	return true, protocol.Errorf(protocol.InvalidRequest, "Fork point must be a user message.")
}

// fork stores a new session whose first entry is body.
func (ss *Sessions) fork(ctx context.Context, body *protocol.SessionForked) (*Session, error) {
	st := newState()
	m := &body.More
	st.Workspace, st.Conversation, st.Parent, st.Created, st.Roots = m.WorkspaceRoot, m.ConversationID, m.Parent, ss.now(), m.Roots
	s := ss.newSession(protocol.NewSessionID(ss.cfg.IDs, ss.now()), st)
	s.draft = true
	ss.mu.Lock()
	if ss.stopping {
		ss.mu.Unlock()
		return nil, errStopping()
	}
	ss.start(s)
	ss.mu.Unlock()
	err := s.call(ctx, func(done func(error)) {
		s.withLease(func(err error) {
			if err != nil {
				done(err)
				return
			}
			s.append(lines("", body), func(_ Seq, err error) { done(err) })
		})
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

package session

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

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
		case s.draft.Load():
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

// forkEntries reads what is copied, up to head or the user message before. A damaged entry is an error only where it is one that is needed.
func (s *Session) forkEntries(ctx context.Context, head Seq, before string) ([]json.RawMessage, error) {
	c := copying{before: before, beside: beside[forked]{}}
	for e, err := range readLog(ctx, s.all.cfg.Store, s.ID, 0, protocol.ViewFacts) {
		if err != nil {
			return nil, s.all.storeError(err)
		}
		if e.Seq > head || c.complete() {
			break
		}
		var b protocol.Body
		if c.needs(e) {
			if b, err = protocol.Decode(e); err != nil {
				return nil, damaged(s.ID, e.Seq, err)
			}
		}
		if err := c.take(e, b); err != nil {
			return nil, err
		}
	}
	if before != "" && !c.found {
		return nil, protocol.Errorf(protocol.InvalidRequest, "Fork message not found.")
	}
	out := make([]json.RawMessage, len(c.out))
	for i := range c.out {
		out[i] = c.out[i].raw
	}
	return out, nil
}

// copying gathers what a fork copies, in the order in which it stands in the history: so the model of the fork is given what that of its parent
// is.
type copying struct {
	before string         // the message it ends before, "" for the whole
	found  bool           // that message
	cut    TurnID         // the turn it belongs to
	beside beside[forked] // what has not joined the history yet
	out    []forked
}

// complete reports that what follows changes nothing: where the fork ends within a turn, the end of that is still looked for.
func (c *copying) complete() bool {
	n := len(c.out)
	return c.found && (n == 0 || c.out[n-1].turn != c.cut || refuses(c.out[n-1].body))
}

func (c *copying) needs(e *Entry) bool {
	return remembers(e.Kind) && (!c.found || e.Turn == c.cut && e.Kind == protocol.KindTurnFailed)
}

func (c *copying) take(e *Entry, b protocol.Body) error {
	if f, ok := b.(*protocol.SessionForked); ok {
		for _, fe := range forkedEntries(f) {
			if err := c.join(fe); err != nil {
				return err
			}
		}
		return nil
	}
	fe := forked{seq: e.Seq, turn: e.Turn, time: e.Time, body: b}
	if b != nil {
		fe.raw = protocol.MustMarshal(protocol.ForkedEntry{Kind: e.Kind, Turn: e.Turn, TS: protocol.FormatTime(e.Time), Event: e.Event, More: e.More})
	}
	before, now := c.beside.take(e, b, fe)
	if now {
		before = append(before, fe)
	}
	for _, fe := range before {
		if err := c.join(fe); err != nil {
			return err
		}
	}
	return nil
}

// join adds an entry, where it is one that is copied.
func (c *copying) join(fe forked) error {
	switch {
	case fe.body == nil:
		return nil
	case c.found:
		if fe.turn == c.cut && refuses(fe.body) && !c.complete() {
			c.out = append(c.out, fe)
		}
		return nil
	case refuses(fe.body):
	case !historyKind(fe.body.Kind()):
		return nil
	}
	at, err := forkPoint(fe.body, c.before)
	if at {
		c.found, c.cut = true, fe.turn
		return err
	}
	where := len(c.out)
	if b, ok := fe.body.(*protocol.ContextCompacted); ok && b.More.Through > 0 {
		// Messages it leaves as they are stand behind it: that is how it is read where all entries have one number.
		for where > 0 && c.out[where-1].seq > b.More.Through && c.out[where-1].body.Kind() != protocol.KindContextCompacted {
			where--
		}
	}
	c.out = slices.Insert(c.out, where, fe)
	return nil
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
	s.draft.Store(true)
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

// forked is one entry of a fork.
type forked struct {
	seq  Seq // in the log of the parent, where it is copied from there
	turn TurnID
	time time.Time
	body protocol.Body
	raw  json.RawMessage // protocol.ForkedEntry
}

// forkedEntries decodes what a fork copied. What cannot be read is left out: a fork is made whole by its own version.
func forkedEntries(b *protocol.SessionForked) []forked {
	out := make([]forked, 0, len(b.More.Entries))
	for _, raw := range b.More.Entries {
		var fe protocol.ForkedEntry
		if json.Unmarshal(raw, &fe) != nil {
			continue
		}
		at, err := time.Parse(protocol.TimeForm, fe.TS)
		if err != nil {
			continue
		}
		body, err := protocol.Decode(&Entry{Kind: fe.Kind, Event: fe.Event, More: fe.More})
		if err != nil || body == nil {
			continue
		}
		out = append(out, forked{turn: fe.Turn, time: at, body: body, raw: raw})
	}
	return out
}

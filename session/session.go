package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Session is one open conversation. Its state belongs to one goroutine, started by Sessions and ended by it when nothing refers
// to the session and nothing is left to do; all others post functions to it. It never waits for I/O while it can
// go on: appends are handed to the store, which acknowledges into the mailbox.
//
// Two folds of the same log run beside each other: next holds what was handed to the store, and decides; shown holds what was
// acknowledged, and is told. When an append fails, next falls back to shown.
type Session struct {
	ID        SessionID
	workspace string // never changes
	all       *Sessions
	box       *mailbox
	end       chan struct{} // closed when the goroutine has ended

	tail *tail

	// Owned by the goroutine.
	next, shown *State
	past        *History // follows shown; nil until somebody needs it
	draft       bool
	removed     bool
	lease       Lease
	leased      bool
	leasing     []func(error) // waiting for the lease
	releasing   bool
	granting    bool               // those who waited for the lease are being told
	flights     []*flight          // appends not yet acknowledged, in order
	failure     error              // an append failed; those behind it fail too
	run         *Turn              // the serial turn this process runs
	starting    *Prompt            // the prompt whose turn is being started
	onStart     []func()           // to be done once starting is over
	queue       []*Prompt          // waiting prompts
	keyed       map[string]*Prompt // prompts with an idempotency key that have no answer yet
	watchers    map[TurnID][]func(Outcome)
	unsettled   *ending              // a terminal that could not be stored yet
	reading     map[int64]bool       // letters being worked off
	jobs        map[string]*liveTask // by task id
	readTo      map[string]int64     // offsets of task output the model has read to
	endedJobs   []*liveTask          // the newest that ended here: their output can still be read
	reserved    int                  // places for tasks that calls may still take
	waits       []*taskWait
	noticing    bool    // a task ended here whose end the model may have to be told
	scoped      *Prompt // of the open request scope, while its turn is over and something of it is to come
	scopeLast   Outcome
	driving     bool            // goal turns are started here
	goalAfter   time.Time       // not before
	answered    map[string]bool // approvals that have an answer on its way or in the log
	refs        int
	followers   []*Follower
	stopping    bool
	onQuiet     []func()
	exec        executions
}

// Workspace is the folder the session is bound to: absolute, links resolved.
func (s *Session) Workspace() string { return s.workspace }

// flight is one batch on its way to the store.
type flight struct {
	entries []Entry
	bodies  []protocol.Body
	then    func(Seq, error)
}

// line is one body to be appended to a turn's part of the log; turn "" is the session itself.
type line struct {
	turn TurnID
	body protocol.Body
}

func lines(turn TurnID, bodies ...protocol.Body) []line {
	out := make([]line, len(bodies))
	for i, b := range bodies {
		out[i] = line{turn, b}
	}
	return out
}

// loop is the session's goroutine.
func (s *Session) loop() {
	defer close(s.end)
	for {
		for _, f := range s.box.take() {
			f()
		}
		if s.idle() && s.all.drop(s) {
			return
		}
		<-s.box.wake
	}
}

// post runs f on the session's goroutine; false when the session is gone.
func (s *Session) post(f func()) bool { return s.box.post(f) }

// busy reports whether there is work here: what a lease is held for.
func (s *Session) busy() bool {
	return s.run != nil || s.starting != nil || len(s.queue) > 0 || len(s.flights) > 0 || s.unsettled != nil || len(s.leasing) > 0 ||
		s.goalDue() || len(s.jobs) > 0 || s.reserved > 0 || s.noticeDue() || s.exec.busy()
}

func (s *Session) idle() bool { return s.refs == 0 && !s.busy() && !s.leased && !s.releasing }

// settleDown gives the lease back when there is no work left. It is called after everything that may have ended some.
func (s *Session) settleDown() {
	if s.busy() || s.granting {
		return
	}
	for _, f := range s.onQuiet {
		f()
	}
	s.onQuiet = nil
	if !s.leased || s.releasing {
		return
	}
	l := s.lease
	s.leased, s.releasing = false, true
	go func() {
		err := s.all.cfg.Store.Release(context.Background(), l)
		s.post(func() {
			s.releasing = false
			if err != nil {
				s.log().Warn("release lease", "session", s.ID, "err", err)
			}
			if len(s.leasing) > 0 {
				s.takeLease()
			}
		})
	}()
}

func (s *Session) log() *slog.Logger { return s.all.cfg.Log }

// withLease runs then once this process may append. Calls are answered in order.
func (s *Session) withLease(then func(error)) {
	if s.removed {
		then(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
		return
	}
	if s.leased {
		then(nil)
		return
	}
	s.leasing = append(s.leasing, then)
	if len(s.leasing) == 1 && !s.releasing {
		s.takeLease()
	}
}

// takeLease gets the lease and everything other processes appended meanwhile.
func (s *Session) takeLease() {
	draft, head, shown := s.draft, s.shown.Head, s.shown
	meta := Meta{ID: s.ID, ConversationID: shown.Conversation, Workspace: shown.Workspace, Created: shown.Created}
	store := s.all.cfg.Store
	go func() {
		ctx := context.Background()
		var err error
		if draft {
			err = store.Create(ctx, meta)
		}
		var lease Lease
		if err == nil {
			lease, err = store.Acquire(ctx, s.ID)
		}
		var missed []Entry
		if err == nil && lease.Head > head {
			missed, err = readAll(ctx, store, s.ID, head, lease.Head)
			if err != nil {
				_ = store.Release(ctx, lease)
			}
		}
		s.post(func() { s.gotLease(lease, missed, err) })
	}()
}

func (s *Session) gotLease(l Lease, missed []Entry, err error) {
	waiting := s.leasing
	s.leasing = nil
	if err == nil {
		s.lease, s.leased, s.draft = l, true, false
		if err = s.catchUp(missed); err != nil {
			s.leased = false
		}
	}
	if err != nil {
		err = s.all.storeError(err)
	}
	if err == nil {
		s.loseTasks()
	}
	s.granting = true // one of them may find nothing to do, and must not give the lease back under the next
	for _, f := range waiting {
		f(err)
	}
	s.granting = false
	s.settleDown()
}

// catchUp takes over entries this process did not write.
func (s *Session) catchUp(missed []Entry) error {
	if len(missed) == 0 {
		return nil
	}
	for i := range missed {
		b, err := protocol.Decode(&missed[i])
		if err != nil {
			return fmt.Errorf("%w: session %s: %w", ErrCorrupt, s.ID, err)
		}
		s.show(&missed[i], b)
	}
	s.tail.add(missed)
	s.next = s.shown.clone()
	s.ring()
	s.wakeWatchers()
	return nil
}

// show folds an acknowledged entry into what is told.
func (s *Session) show(e *Entry, b protocol.Body) {
	s.shown.Apply(e, b)
	if s.past != nil {
		s.past.Apply(e, b)
	}
}

// append hands a batch to the store. then runs on this goroutine, exactly once, with the last Seq or the error; nothing of the
// batch is told before. The lease must be held.
func (s *Session) append(ls []line, then func(Seq, error)) { s.appendKeyed(ls, nil, then) }

func (s *Session) appendKeyed(ls []line, keys []Key, then func(Seq, error)) {
	if then == nil {
		then = func(Seq, error) {}
	}
	if s.failure != nil {
		s.flights = append(s.flights, &flight{then: then}) // not sent: fails with those before it
		return
	}
	f := &flight{then: then, entries: make([]Entry, 0, len(ls)), bodies: make([]protocol.Body, 0, len(ls))}
	fact := false
	for _, l := range ls {
		e, err := s.encode(l)
		if err != nil { // next is half way through the batch: it falls back once no append is under way
			s.failure = err
			if len(s.flights) == 0 {
				s.recover()
			}
			then(0, err)
			return
		}
		s.next.Apply(&e, l.body)
		f.entries = append(f.entries, e)
		f.bodies = append(f.bodies, l.body)
		fact = fact || e.Class() == protocol.Fact
	}
	b := Batch{Entries: f.entries, Keys: keys}
	if fact {
		b.Row = s.next.row()
		b.Row.Usage = usageOf(f)
	}
	s.flights = append(s.flights, f)
	s.all.cfg.Store.Append(s.lease, b, func(err error) {
		s.post(func() { s.landed(f, err) })
	})
}

func usageOf(f *flight) *UsageSample {
	for i, b := range f.bodies {
		if t, ok := b.(*protocol.TokenStatsUpdated); ok {
			st := t.Stats
			return &UsageSample{
				Time: f.entries[i].Time, Model: t.More.Model, Input: st.InputTokens, Cached: st.CachedInputTokens, Output: st.OutputTokens,
				Reasoning: st.ReasoningOutputTokens, Compaction: st.SamplingKind == "compact",
			}
		}
	}
	return nil
}

// encode gives an entry its place: Seq, time, event id and portable numbers.
func (s *Session) encode(l line) (Entry, error) {
	now := s.all.now()
	if t := s.next.turn(l.turn); t != nil && now.Before(t.LastTime) {
		now = t.LastTime
	}
	h := protocol.Head{Time: now, Session: s.ID, Turn: l.turn}
	if l.body.Kind().Info().Told != protocol.NotTold {
		h.EventID = s.all.cfg.IDs.Hex32()
	}
	if _, ok := l.body.(*protocol.TaskUpdated); ok {
		h.Turn = "" // its event belongs to the session, wherever the entry lies
	}
	e, err := protocol.Encode(h, l.body)
	if err != nil {
		return e, err
	}
	e.Turn = l.turn
	e.Seq = s.next.Head + 1
	num, first := s.next.numbering(l.turn)
	if acc, ok := l.body.(*protocol.TurnAccepted); ok {
		num, first = protocol.Numbering{Execution: true, Parallel: acc.More.Parallel, Open: true}, 1
	}
	e.PortableFirst, e.PortableCount = first, protocol.PortableCount(l.body, num)
	return e, nil
}

// landed is the store's acknowledge of the oldest flight.
func (s *Session) landed(f *flight, err error) {
	s.flights = s.flights[1:]
	if err != nil {
		s.fail(f, err)
		return
	}
	for i := range f.entries {
		s.show(&f.entries[i], f.bodies[i])
	}
	var head Seq
	if n := len(f.entries); n > 0 {
		head = f.entries[n-1].Seq
		s.tail.add(f.entries)
		s.ring()
	}
	if s.failure != nil && len(s.flights) == 0 {
		s.recover()
	}
	f.then(head, nil)
	s.settleDown()
}

// fail ends a flight that was not stored. The store refuses all that were sent behind it, so they come back here too; what was
// appended meanwhile was not even sent. Once none is under way, the session goes on from what the store holds.
func (s *Session) fail(f *flight, err error) {
	if s.failure == nil {
		s.failure = err
		s.log().Error("append", "session", s.ID, "err", err)
	}
	told := s.all.storeError(s.failure)
	lost := []*flight{f}
	for len(s.flights) > 0 && s.flights[0].entries == nil {
		lost = append(lost, s.flights[0])
		s.flights = s.flights[1:]
	}
	if len(s.flights) == 0 {
		s.recover()
	}
	for _, l := range lost {
		l.then(0, told)
	}
	s.settleDown()
}

// recover lets next fall back to what was stored.
func (s *Session) recover() {
	if errors.Is(s.failure, ErrFenced) {
		s.leased = false
	}
	s.failure = nil
	s.next = s.shown.clone()
}

// history returns the fold of messages, reading the log the first time.
func (s *Session) history() (*History, error) {
	if s.past != nil {
		return s.past, nil
	}
	h := newHistory()
	if !s.draft {
		after := Seq(0)
		for after < s.shown.Head {
			page, err := s.all.cfg.Store.Read(context.Background(), s.ID, after, 1024, protocol.ViewFacts)
			if err != nil {
				return nil, s.all.storeError(err)
			}
			for i := range page {
				if page[i].Seq > s.shown.Head {
					break
				}
				b, err := protocol.Decode(&page[i])
				if err != nil {
					return nil, s.all.storeError(fmt.Errorf("%w: session %s: %w", ErrCorrupt, s.ID, err))
				}
				h.Apply(&page[i], b)
			}
			if len(page) < 1024 {
				break
			}
			after = page[len(page)-1].Seq
		}
	}
	h.head = s.shown.Head
	s.past = h
	return h, nil
}

// readAll reads entries in (after, through].
func readAll(ctx context.Context, store Log, id SessionID, after, through Seq) ([]Entry, error) {
	var out []Entry
	for after < through {
		page, err := store.Read(ctx, id, after, 1024, protocol.ViewAll)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		out = append(out, page...)
		after = page[len(page)-1].Seq
	}
	return out, nil
}

// call runs f on the session's goroutine and waits for it: for callers that may block.
func (s *Session) call(ctx context.Context, f func(done func(error))) error {
	ch := make(chan error, 1)
	if !s.post(func() { f(func(err error) { ch <- err }) }) {
		return protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID)
	}
	select {
	case err := <-ch:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// after posts f in d.
func (s *Session) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { s.post(f) })
}

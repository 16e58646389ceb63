package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// journal is what a session knows of its log, as two folds that run beside each other: next holds what was handed to the store, and
// decides; shown holds what was acknowledged, and is told. When an append fails, next falls back to shown once none is under way any more.
//
//	append: next ─ sent ─▶ flights ─ stored ─▶ shown
//	                       flights ─ lost ───▶ next = shown
//
// It does no I/O and belongs to the session's goroutine.
type journal struct {
	next, shown *State
	past        *History  // follows shown; nil until somebody needs it
	flights     []*flight // appends not yet acknowledged, in order
	failure     error     // an append failed; those behind it fail too
}

// flight is one batch on its way to the store.
type flight struct {
	entries []Entry
	bodies  []protocol.Body
	then    func(Seq, error)
	sent    time.Time // handed to the store; zero when it was not, because one before it failed

	retakes, releases bool // the lease; see leasehold
}

func newJournal(st *State) journal { return journal{shown: st, next: st.clone()} }

// writing reports whether an append is under way.
func (j *journal) writing() bool { return len(j.flights) > 0 }

// settled runs f once every append made so far is acknowledged, with the outcome of the last one.
func (j *journal) settled(f func(error)) {
	if !j.writing() {
		f(nil)
		return
	}
	last := j.flights[len(j.flights)-1]
	before := last.then
	last.then = func(seq Seq, err error) {
		before(seq, err)
		f(err)
	}
}

// show folds an acknowledged entry into what is told.
func (j *journal) show(e *Entry, b protocol.Body) {
	j.shown.Apply(e, b)
	if j.past != nil {
		j.past.Apply(e, b)
	}
}

// fail notes the first failure; what is appended from here on is not sent.
func (j *journal) fail(err error) {
	if j.failure == nil {
		j.failure = err
	}
}

// advance takes the oldest flight off, which the store has answered, and the ones behind it that were never sent: they are lost. With
// none under way any more, a failure is over: next falls back to what was stored.
func (j *journal) advance() (lost []*flight, recovered error) {
	j.flights = j.flights[1:]
	for j.writing() && j.flights[0].sent.IsZero() {
		lost = append(lost, j.flights[0])
		j.flights = j.flights[1:]
	}
	return lost, j.fallBack()
}

// fallBack ends a failure when no append is under way, and returns it.
func (j *journal) fallBack() error {
	if j.failure == nil || j.writing() {
		return nil
	}
	err := j.failure
	j.failure, j.next = nil, j.shown.clone()
	return err
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

// append hands a batch to the store. then runs on this goroutine, exactly once, with the last Seq or the error; nothing of the
// batch is told before. The lease must be held.
func (s *Session) append(ls []line, then func(Seq, error)) { s.appendKeyed(ls, nil, then) }

// appendKeyed is append with idempotency keys that are claimed in the same transaction. It returns what was handed over, nil when nothing was.
func (s *Session) appendKeyed(ls []line, keys []Key, then func(Seq, error)) *flight {
	if then == nil {
		then = func(Seq, error) {}
	}
	f := &flight{then: then}
	if s.failure != nil {
		s.flights = append(s.flights, f) // not sent: it fails with those before it
		return nil
	}
	fact, err := s.place(f, ls)
	if err != nil { // next is half way through the batch
		s.fail(err)
		s.recovered(s.fallBack())
		then(0, err)
		return nil
	}
	f.releases = s.lastWord(f)
	f.retakes = s.lease.sent(f.releases)
	b := Batch{Entries: f.entries, Keys: keys, Retake: f.retakes, Release: f.releases}
	if fact {
		b.Row = s.next.row()
		b.Row.Usage = usageOf(f)
	}
	f.sent = time.Now()
	s.flights = append(s.flights, f)
	s.all.cfg.Store.Append(s.lease.held, b, func(err error) {
		s.post(func() { s.landed(f, err) })
	})
	return f
}

// place makes the entries of a batch, folding each into next before the one behind it gets its place. It reports whether one is a fact.
func (s *Session) place(f *flight, ls []line) (fact bool, err error) {
	f.entries, f.bodies = make([]Entry, 0, len(ls)), make([]protocol.Body, 0, len(ls))
	for _, l := range ls {
		e, err := s.encode(l)
		if err != nil {
			return false, err
		}
		s.next.Apply(&e, l.body)
		f.entries, f.bodies = append(f.entries, e), append(f.bodies, l.body)
		fact = fact || e.Class() == protocol.Fact
	}
	return fact, nil
}

// lastWord reports whether a batch ends the last turn there is something to do for.
func (s *Session) lastWord(f *flight) bool {
	n := len(f.entries)
	return n > 0 && f.bodies[n-1].Kind().Info().Terminal && s.leaves(f.entries[n-1].Turn)
}

func usageOf(f *flight) *UsageSample {
	for i, b := range f.bodies {
		if t, ok := b.(*protocol.TokenStatsUpdated); ok && !t.More.Level {
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

// landed is the store's answer to the oldest flight. The store refuses all that were sent behind one that failed, so they come back here
// too; what was appended meanwhile was not even sent.
func (s *Session) landed(f *flight, err error) {
	var head Seq
	switch {
	case err == nil:
		head = s.stored(f)
	case f.retakes && (errors.Is(err, ErrFenced) || errors.Is(err, ErrNotFound)): // nothing is wrong: it was only tried
		s.fail(fmt.Errorf("%w: %w", errRetaken, err))
	case s.failure == nil:
		s.log().Error("append", "session", s.ID, "err", err)
		s.fail(err)
	}
	told := s.all.storeError(s.failure)
	lost, recovered := s.advance()
	s.recovered(recovered)
	if err == nil {
		f.then(head, nil)
	} else {
		f.then(0, told)
	}
	for _, l := range lost {
		l.then(0, told)
	}
	s.seekLease()
	s.settleDown()
}

// stored tells what a flight has brought into the log, and returns the last Seq of it.
func (s *Session) stored(f *flight) Seq {
	s.all.figures.appended(time.Since(f.sent))
	s.lease.landed(f.retakes, f.releases)
	for i := range f.entries {
		s.all.figures.told(s.shown.turn(f.entries[i].Turn), f.bodies[i])
		s.show(&f.entries[i], f.bodies[i])
	}
	n := len(f.entries)
	if n == 0 {
		return 0
	}
	s.tail.add(f.entries)
	s.ring(f.entries)
	return f.entries[n-1].Seq
}

// recovered goes on after a failure that is over: nil for none. A stale lease is not held any more.
func (s *Session) recovered(failure error) {
	switch {
	case failure == nil:
	case errors.Is(failure, ErrFenced), errors.Is(failure, errRetaken):
		s.lease.lost()
	default:
		s.lease.fallBack()
	}
}

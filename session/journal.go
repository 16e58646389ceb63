package session

import (
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// flight is one batch on its way to the store.
type flight struct {
	entries []Entry
	bodies  []protocol.Body
	then    func(Seq, error)
	sent    time.Time // handed to the store
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
	f.sent = time.Now()
	s.flights = append(s.flights, f)
	s.all.cfg.Store.Append(s.lease, b, func(err error) {
		s.post(func() { s.landed(f, err) })
	})
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

// landed is the store's acknowledge of the oldest flight.
func (s *Session) landed(f *flight, err error) {
	s.flights = s.flights[1:]
	if err != nil {
		s.fail(f, err)
		return
	}
	s.all.figures.appended(time.Since(f.sent))
	for i := range f.entries {
		s.all.figures.told(s.shown.turn(f.entries[i].Turn), f.bodies[i])
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

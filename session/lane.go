package session

import (
	"slices"
	"time"
)

// maxWaiting bounds the editor prompts that wait for a session's serial lane (docs/protocol/rind-v2.md section 7.1).
const maxWaiting = 8

// lane is the serial lane of a session: one turn at a time, and the line of prompts behind it.
//
//	free ─ start ─▶ starting ─ begun(turn) ─▶ running ─ over ─▶ free
//	                starting ─ begun(nil) ──▶ free
//
// While a turn is being started nobody can tell whether there will be one, as the store may refuse it: what has to know waits with later.
// It belongs to the session's goroutine.
type lane struct {
	run      *Turn     // the turn this process runs
	starting *Prompt   // the prompt whose turn is being started
	late     []func()  // to be done once starting is over
	line     []*Prompt // waiting, oldest first
}

func (l *lane) free() bool { return l.run == nil && l.starting == nil }

// busy reports whether somebody has the lane or waits for it.
func (l *lane) busy() bool { return !l.free() || len(l.line) > 0 }

// start gives the free lane to a prompt.
func (l *lane) start(p *Prompt) { l.starting = p }

// begun ends the start: t runs, or nothing does. It returns what waited for that.
func (l *lane) begun(t *Turn) []func() {
	late := l.late
	l.starting, l.run, l.late = nil, t, nil
	return late
}

// later runs f once the start is over; at once when there is none.
func (l *lane) later(f func()) {
	if l.starting == nil {
		f()
		return
	}
	l.late = append(l.late, f)
}

// over frees the lane of a turn that has ended.
func (l *lane) over(t *Turn) {
	if l.run == t {
		l.run = nil
	}
}

// join puts a prompt at the end of the line.
func (l *lane) join(p *Prompt) {
	l.line = append(l.line, p)
	l.tell()
}

// rejoin puts a prompt that could not start back to the head of the line.
func (l *lane) rejoin(p *Prompt) {
	l.line = slices.Insert(slices.Clone(l.line), 0, p)
	l.tell()
}

// leave takes a prompt out of the line; false when it does not stand there.
func (l *lane) leave(p *Prompt) bool {
	i := slices.Index(l.line, p)
	if i < 0 {
		return false
	}
	l.line = slices.Delete(slices.Clone(l.line), i, i+1)
	l.tell()
	return true
}

// tell says to those in line where they stand, when that has changed.
func (l *lane) tell() {
	for i, p := range l.line {
		if p.position == i+1 {
			continue
		}
		p.position = i + 1
		if p.req.Queued != nil {
			p.req.Queued(p.position)
		}
	}
}

// editors counts the prompts in line that editors asked for.
func (l *lane) editors() int {
	n := 0
	for _, p := range l.line {
		if p.req.exec == "" {
			n++
		}
	}
	return n
}

// execution finds the prompt in line that starts an execution; nil for none.
func (l *lane) execution(turn TurnID) *Prompt {
	for _, p := range l.line {
		if p.req.exec == turn {
			return p
		}
	}
	return nil
}

// begin starts the turn of a prompt: the lane is free.
func (s *Session) begin(p *Prompt) {
	s.lane.start(p)
	failed := func(err error) {
		if p.req.exec != "" {
			s.all.places.give()
		}
		s.notStarted(p, err)
	}
	lease := s.withLease
	if p.restarts() {
		lease = s.withLeaseOrParked
	}
	lease(func(err error) {
		if err != nil {
			failed(err)
			return
		}
		s.settleOpen(nil, func(err error) { // a turn a dead process left open is closed first
			if err != nil {
				failed(err)
				return
			}
			s.startTurn(p)
		})
	})
}

// restarts reports whether the start of a prompt's turn can be made anew, should the lease turn out to be taken: that is so the first time, for
// the words of a person.
func (p *Prompt) restarts() bool {
	return p.turn == nil && p.req.exec == "" && p.req.aside == nil && !p.req.task && !p.req.goal
}

// notStarted answers a prompt whose turn could not be started. An execution is accepted already: it stays at the head of the line, and is tried
// again in a moment.
func (s *Session) notStarted(p *Prompt, err error) {
	if p.req.exec != "" && !s.stopping && !s.gone.Load() {
		s.log().Warn("execution did not start", "session", s.ID, "turn", p.req.exec, "err", err)
		s.lane.rejoin(p)
		s.startOver(nil)
		s.after(time.Second, s.nextPrompt)
		return
	}
	p.finish(Outcome{}, err)
	s.startOver(nil)
	s.nextPrompt()
}

// startOver ends the start: t runs, or nothing does. What came in meanwhile is done now.
func (s *Session) startOver(t *Turn) {
	late := s.lane.begun(t)
	if t != nil {
		if s.stopping {
			t.stop()
		}
		t.launch()
	}
	for _, f := range late {
		f()
	}
}

// nextPrompt starts the oldest waiting prompt, if the lane is free; with none in line what the runtime itself has to start.
func (s *Session) nextPrompt() {
	if !s.lane.free() {
		return
	}
	if len(s.lane.line) == 0 {
		s.checkScope()
		if !s.taskTurn() && !s.drive() {
			s.settleDown()
		}
		return
	}
	p := s.lane.line[0]
	if p.req.exec != "" {
		if s.waitsForAnswer() || !s.placeForNext() {
			return
		}
		s.exec.placed = false // it is the turn's from here on
	}
	s.lane.leave(p)
	s.begin(p)
}

// turnOver frees the lane and answers whoever waits for the turn.
func (s *Session) turnOver(t *Turn, o Outcome) {
	s.lane.over(t)
	t.leavePlace()
	s.turnTold(t, o)
	s.nextPrompt()
}

// turnTold answers whoever waits for the turn.
func (s *Session) turnTold(t *Turn, o Outcome) {
	if t.prompt != nil && !s.hold(t.prompt, o) {
		t.prompt.finish(o, nil)
	}
	s.tellWatchers(o)
}

// vacate frees the lane of a turn that ended without its agent: that has come back, or is not waited for any more.
func (s *Session) vacate(t *Turn) {
	t.leavePlace()
	if s.lane.run == t {
		s.lane.over(t)
		s.nextPrompt()
	}
}

// waitsForAnswer reports whether the serial lane is held by a turn that only waits for a person and no process runs: executions stand behind
// it (docs/protocol/portable-2026-09-02.md section 10).
func (s *Session) waitsForAnswer() bool {
	return s.lane.run == nil && s.next.Serial != nil && s.next.Serial.waiting()
}

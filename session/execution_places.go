package session

import "sync"

// places bound the executions that run in this process at one time (docs/protocol/portable-2026-09-02.md section 1, --max-running). Those
// that find none wait in the order in which they asked. An execution that waits for a person has none and goes on at once after the
// answer, so that for a while more may run than there are places. Safe for concurrent use.
type places struct {
	mu     sync.Mutex
	most   int // 0: no bound
	taken  int
	line   []func()
	closed bool // none is given out any more
}

// take takes a place and reports true; when there is none, ready is called once one was taken for it. ready must not block, and must see to
// it that the place is given back.
func (p *places) take(ready func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free() {
		p.line = append(p.line, ready)
		return false
	}
	p.taken++
	return true
}

// try takes a place if there is one now.
func (p *places) try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.free() {
		return false
	}
	p.taken++
	return true
}

// free reports whether who comes now may have a place; p.mu is held.
func (p *places) free() bool {
	return !p.closed && (p.most == 0 || p.taken < p.most && len(p.line) == 0)
}

// close keeps what stands in line from starting, because the runtime ends: a place that one leaves goes to nobody.
func (p *places) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.line = true, nil
}

// retake takes a place for what had one before, and waits for none.
func (p *places) retake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
}

// give gives a place back.
func (p *places) give() {
	p.mu.Lock()
	p.taken--
	var next []func()
	for !p.closed && len(p.line) > 0 && p.taken < p.most {
		next = append(next, p.line[0])
		p.line = p.line[1:]
		p.taken++
	}
	p.mu.Unlock()
	for _, ready := range next {
		ready()
	}
}

// takePlace asks for a place in which an execution of this session can start: true when it has it, else ready runs on the session's
// goroutine once it has.
func (s *Session) takePlace(ready func()) bool {
	p := &s.all.places
	return p.take(func() {
		if !s.post(ready) {
			p.give()
		}
	})
}

// placeForNext reports whether the execution at the head of the serial line has a place; when it has none, nextPrompt is called again once
// there is one.
func (s *Session) placeForNext() bool {
	x := &s.exec
	if !x.placed && !x.asking {
		x.placed = s.takePlace(func() {
			x.asking, x.placed = false, true
			s.nextPrompt()
			if x.placed { // whoever asked for it is not in line any more
				x.placed = false
				s.all.places.give()
			}
		})
		x.asking = !x.placed
	}
	return x.placed
}

// hold takes over the place of an execution of the serial lane, for as long as its turn runs.
func (t *Turn) hold() { t.placed.Store(true) }

// leavePlace gives the turn's place back, if it holds one.
func (t *Turn) leavePlace() {
	if t.placed.CompareAndSwap(true, false) {
		t.s.all.places.give()
	}
}

// standAside waits for a person without a place: what it returns takes the place again.
func (t *Turn) standAside() (back func()) {
	if !t.placed.Load() {
		return func() {}
	}
	t.leavePlace()
	return func() {
		t.s.all.places.retake()
		t.hold()
	}
}

// hold takes a place again for an execution that goes on after its answer, or is being cancelled.
func (run *besideRun) hold() {
	if !run.placed && run.stage != stageEnded {
		run.placed = true
		run.s.all.places.retake()
	}
}

// leave gives the place of an execution back, because it waits for a person or has ended.
func (run *besideRun) leave() {
	if run.placed {
		run.placed = false
		run.s.all.places.give()
	}
}

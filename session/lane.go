package session

// maxWaiting bounds the editor prompts that wait for a session's serial lane (docs/protocol/rind-v2.md section 7.1).
const maxWaiting = 8

// begin starts the turn of a prompt: the lane is free.
func (s *Session) begin(p *Prompt) {
	s.starting = p
	s.withLease(func(err error) {
		if err != nil {
			s.notStarted(p, err)
			return
		}
		s.settleOpen(nil, func(err error) { // a turn a dead process left open is closed first
			if err != nil {
				s.notStarted(p, err)
				return
			}
			s.startTurn(p)
		})
	})
}

func (s *Session) notStarted(p *Prompt, err error) {
	p.finish(Outcome{}, err)
	s.startOver(nil)
	s.nextPrompt()
}

// startOver ends the phase in which a turn is being started: t runs, or nothing does. What came in meanwhile is done now.
func (s *Session) startOver(t *Turn) {
	s.starting, s.run = nil, t
	if t != nil {
		if s.stopping {
			t.stop()
		}
		t.launch()
	}
	late := s.onStart
	s.onStart = nil
	for _, f := range late {
		f()
	}
}

// nextPrompt starts the oldest waiting prompt, if the lane is free.
func (s *Session) nextPrompt() {
	if s.run != nil || s.starting != nil {
		return
	}
	if len(s.queue) == 0 {
		s.checkScope()
		if !s.taskTurn() && !s.drive() {
			s.settleDown()
		}
		return
	}
	p := s.queue[0]
	if p.req.exec != "" && s.waitsForAnswer() {
		return
	}
	s.queue = s.queue[1:]
	s.tellPositions()
	s.begin(p)
}

// lane frees the serial lane and answers whoever waits for the turn.
func (s *Session) lane(t *Turn, o Outcome) {
	if s.run == t {
		s.run = nil
	}
	if t.prompt != nil && !s.hold(t.prompt, o) {
		t.prompt.finish(o, nil)
	}
	s.tellWatchers(o)
	s.nextPrompt()
}

func (s *Session) tellPositions() {
	for i, p := range s.queue {
		if p.position != i+1 {
			p.position = i + 1
			if p.req.Queued != nil {
				p.req.Queued(p.position)
			}
		}
	}
}

// editorPrompts counts the prompts in line that editors asked for.
func (s *Session) editorPrompts() int {
	n := 0
	for _, p := range s.queue {
		if p.req.exec == "" {
			n++
		}
	}
	return n
}

// waitsForAnswer reports whether the serial lane is held by a turn that only waits for a person and no process runs: executions stand behind
// it (section 10).
func (s *Session) waitsForAnswer() bool {
	return s.run == nil && s.next.Serial != nil && s.next.Serial.waiting()
}

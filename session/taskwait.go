package session

import (
	"time"

	"github.com/rind-dev/rind/protocol"
)

// taskWait is a call or a request that waits for a task, or for a command that is none yet.
type taskWait struct {
	call, task string
	tool       bool
	released   chan struct{}
}

// Released implements Background.
func (p *toolProgress) Released() <-chan struct{} {
	w := &taskWait{call: p.call.ID, tool: true, released: make(chan struct{})}
	p.t.s.post(func() { p.t.s.waitFor(w) })
	return w.released
}

// waitFor begins a wait. A steering input that is waiting already lets go of a tool's at once.
func (s *Session) waitFor(w *taskWait) {
	s.jobs.waits = append(s.jobs.waits, w)
	if w.tool && s.next.Serial != nil && len(s.next.Serial.Inputs) > 0 {
		s.jobs.release(func(x *taskWait) bool { return x == w })
	}
}

// TaskPart is a task with a part of its output.
type TaskPart struct {
	Task        protocol.Task
	Start, Next int64
	Reason      string // finished, yield_timeout, released, interrupted
}

// Reasons of a TaskPart.
const (
	waitFinished    = "finished"
	waitTimeout     = "yield_timeout"
	waitReleased    = "released"
	waitInterrupted = "interrupted"
)

// ReadTask reads a task's output. done runs at once.
func (s *Session) ReadTask(id string, from int64, chars int, done func(TaskPart, error)) {
	if !s.post(func() { done(s.part(id, from, chars, waitTimeout)) }) {
		done(TaskPart{}, s.noTask(id))
	}
}

// TailTask is a task with the last chars characters of each stream. Reading so consumes nothing.
func (s *Session) TailTask(id string, chars int, done func(protocol.Task, error)) {
	if !s.post(func() {
		rec, err := s.view().Task(id)
		if err != nil {
			done(rec, err)
			return
		}
		if job := s.jobs.job(id); job != nil {
			rec.Stdout, rec.Stderr = job.Tail(chars)
			rec.Meta.Truncated = rec.Meta.OutputIncomplete || rec.Meta.TotalBytes > int64(len(rec.Stdout)+len(rec.Stderr))
		} else {
			rec.Stdout, rec.Stderr = protocol.Suffix(rec.Stdout, chars), protocol.Suffix(rec.Stderr, chars)
		}
		done(rec, nil)
	}) {
		done(protocol.Task{}, s.noTask(id))
	}
}

// part reads output of a task from an offset on.
func (s *Session) part(id string, from int64, chars int, reason string) (TaskPart, error) {
	rec, err := s.view().Task(id)
	if err != nil {
		return TaskPart{}, err
	}
	p := TaskPart{Task: rec, Reason: reason}
	if !rec.Live() {
		p.Reason = waitFinished
	}
	job := s.jobs.job(id)
	if job == nil { // what its record holds is all there is
		if from >= rec.Meta.TotalBytes && rec.Meta.TotalBytes > 0 {
			p.Task.Stdout, p.Task.Stderr, p.Start, p.Next = "", "", from, from
			return p, nil
		}
		p.Start, p.Next = max(0, rec.Meta.TotalBytes-int64(len(rec.Stdout)+len(rec.Stderr))), rec.Meta.TotalBytes
		return p, nil
	}
	p.Task.Stdout, p.Task.Stderr, p.Start, p.Next = job.Output(from, chars)
	return p, nil
}

// WaitTask is ReadTask once the task has ended, the time is over, or somebody releases the wait.
func (s *Session) WaitTask(id string, from int64, chars int, wait time.Duration, done func(TaskPart, error)) {
	s.wait(&taskWait{task: id}, from, chars, wait, nil, done)
}

// wait waits for a task. over, when not nil, ends the wait as interrupted.
func (s *Session) wait(w *taskWait, from int64, chars int, wait time.Duration, over <-chan struct{}, done func(TaskPart, error)) {
	if !s.post(func() {
		t := s.jobs.live[w.task]
		if t == nil {
			done(s.part(w.task, from, chars, waitFinished))
			return
		}
		w.released = make(chan struct{})
		s.waitFor(w)
		go func() {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			reason := waitTimeout
			select {
			case <-t.ended:
				reason = waitFinished
			case <-w.released:
				reason = waitReleased
			case <-over:
				reason = waitInterrupted
			case <-timer.C:
			}
			if !s.post(func() {
				s.jobs.release(func(x *taskWait) bool { return x == w })
				if s.stopping {
					reason = waitInterrupted
				}
				done(s.part(w.task, from, chars, reason))
			}) {
				done(TaskPart{}, s.noTask(w.task))
			}
		}()
	}) {
		done(TaskPart{}, s.noTask(w.task))
	}
}

// ReleaseWait ends the waits for a task, or of a tool call; the process goes on. It reports whether there was one.
func (s *Session) ReleaseWait(task, call string, done func(bool, error)) {
	if !s.post(func() {
		if task != "" && s.shown.task(task) == nil {
			done(false, s.noTask(task))
			return
		}
		done(s.jobs.release(func(w *taskWait) bool { return task != "" && w.task == task || call != "" && w.call == call }), nil)
	}) {
		done(false, s.noTask(task))
	}
}

package session

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// jobs are the processes of a session's background tasks in this process of ours, and who waits for them. They belong to the session's
// goroutine.
type jobs struct {
	live     map[string]*liveTask // by task id
	ended    []*liveTask          // the newest: their output can still be read
	readTo   map[string]int64     // offsets the model has read output to, by task id
	named    []string             // ids in Sessions.tasks
	reserved int                  // places that calls may still take
	waits    []*taskWait
	notice   bool // one ended here, and the model may have to be told
}

func newJobs() jobs { return jobs{live: map[string]*liveTask{}, readTo: map[string]int64{}} }

func (j *jobs) busy() bool { return len(j.live) > 0 || j.reserved > 0 }

// room reports whether one more may be started.
func (j *jobs) room() bool { return len(j.live)+j.reserved < maxTasks }

// retire moves one that has ended to those whose output can still be read.
func (j *jobs) retire(t *liveTask) {
	delete(j.live, t.id)
	j.ended = append(j.ended[max(0, len(j.ended)-keptOutputs+1):], t)
}

// job is the process of a task that runs here or ended here a while ago; nil for none.
func (j *jobs) job(id string) Job {
	if t := j.live[id]; t != nil {
		return t.job
	}
	for _, t := range j.ended {
		if t.id == id {
			return t.job
		}
	}
	return nil
}

// release ends the waits that match, and reports whether there were any.
func (j *jobs) release(match func(*taskWait) bool) bool {
	n := len(j.waits)
	j.waits = slices.DeleteFunc(j.waits, func(w *taskWait) bool {
		if !match(w) {
			return false
		}
		close(w.released)
		return true
	})
	return len(j.waits) < n
}

// liveTask is a task whose process runs here. Its goroutine watches the process and ends with it.
type liveTask struct {
	id     string
	job    Job
	reason string        // it is being cancelled
	ended  chan struct{} // closed when its end is on disk
	noted  int64         // bytes of output told so far
}

var errTaskAgain = errors.New("the call has started a task before")

// Reserve implements Background.
func (p *toolProgress) Reserve(spec JobSpec, now bool) (free func(), ok bool, err error) {
	s := p.t.s
	err = p.t.do(func(done func(error)) {
		for _, t := range s.next.Tasks {
			if t.Task.OriginToolCallID == p.call.ID {
				done(errTaskAgain)
				return
			}
		}
		if open := s.next.turn(p.t.ID); open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		if !s.jobs.room() {
			done(nil)
			return
		}
		s.jobs.reserved++
		ok, p.holds = true, true
		if !now {
			done(nil)
			return
		}
		p.intent = s.newTask(&p.call, spec, protocol.TaskStarting)
		s.append(s.taskLines(p.intent), func(_ Seq, err error) {
			if err != nil {
				s.jobs.reserved--
				p.intent, ok, p.holds = nil, false, false
			}
			done(err)
		})
	})
	if err != nil || !ok {
		return nil, false, err
	}
	return func() { s.post(func() { s.unreserve(p) }) }, true, nil
}

// unreserve gives the place of a call back that no task took; an intent that came to nothing is ended.
func (s *Session) unreserve(p *toolProgress) {
	if !p.holds {
		return
	}
	p.holds = false
	s.jobs.reserved--
	if rec := p.intent; rec != nil {
		p.intent = nil
		rec.Status, rec.Reason, rec.FinishedAt = protocol.TaskCancelled, "It was not started.", unix(s.all.now())
		s.append(s.taskLines(rec), nil)
	}
	s.settleDown()
}

// callOver forgets what a call held that has come back: its wait, and a place for a task that it neither took nor gave back.
func (s *Session) callOver(p *toolProgress) {
	s.jobs.release(func(w *taskWait) bool { return w.call == p.call.ID && w.task == "" })
	s.unreserve(p)
}

// HandOff implements Background.
func (p *toolProgress) HandOff(job Job, spec JobSpec) (string, error) {
	s := p.t.s
	var id string
	err := p.t.do(func(done func(error)) {
		if open := s.next.turn(p.t.ID); open == nil || open.Cancel != nil {
			done(errCancelled)
			return
		}
		rec := p.intent
		if rec == nil {
			rec = s.newTask(&p.call, spec, protocol.TaskRunning)
		}
		rec.Status = protocol.TaskRunning
		id = rec.TaskID
		t := &liveTask{id: id, job: job, ended: make(chan struct{})}
		s.measure(t, rec)
		t.noted = rec.Meta.TotalBytes
		s.append(s.taskLines(rec), func(_ Seq, err error) {
			if err == nil {
				p.intent = nil
				if p.holds {
					p.holds = false
					s.jobs.reserved--
				}
				s.watchJob(t)
			}
			done(err)
		})
	})
	return id, err
}

// watchJob makes a job a live task of the session.
func (s *Session) watchJob(t *liveTask) {
	s.jobs.live[t.id] = t
	if s.stopping {
		s.endJob(t, protocol.ReasonShutdown)
	}
	seen := t.noted
	go func() {
		tick := time.NewTicker(taskOutputGap)
		defer tick.Stop()
		for {
			select {
			case <-t.job.Done():
				s.post(func() { s.jobEnded(t) })
				return
			case <-tick.C:
				if n := t.job.Sum().Bytes; n != seen {
					seen = n
					s.post(func() { s.noteOutput(t, n) })
				}
			}
		}
	}()
}

// forgetTasks lets go of what is kept beside the records, by task id, of those that are forgotten themselves.
func (s *Session) forgetTasks() {
	known := map[string]bool{}
	for _, t := range s.next.Tasks {
		known[t.Task.TaskID] = true
	}
	maps.DeleteFunc(s.jobs.readTo, func(id string, _ int64) bool { return !known[id] })
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	s.jobs.named = slices.DeleteFunc(s.jobs.named, func(id string) bool {
		if !known[id] {
			delete(s.all.tasks, id)
		}
		return !known[id]
	})
}

// record makes the present record of a live task.
func (s *Session) record(t *liveTask) *protocol.Task {
	rec := s.next.task(t.id).Task
	s.measure(t, &rec)
	return &rec
}

func (s *Session) measure(t *liveTask, rec *protocol.Task) {
	sum := t.job.Sum()
	rec.Meta = protocol.TaskMeta{
		Truncated: sum.Incomplete || sum.Bytes > 2*taskTail, TotalBytes: sum.Bytes, TotalLines: sum.Lines, OutputPath: sum.Path, OutputIncomplete: sum.Incomplete,
	}
	rec.Stdout, rec.Stderr = t.job.Tail(taskTail)
	if rec.StartedAt != nil {
		rec.ElapsedMS = max(0, s.all.now().Sub(time.UnixMicro(int64(*rec.StartedAt*1e6))).Milliseconds())
	}
}

// noteOutput tells the newest output of a running task.
func (s *Session) noteOutput(t *liveTask, n int64) {
	if s.jobs.live[t.id] != t || n == t.noted || !s.lease.has() || s.stopping {
		return
	}
	t.noted = n
	rec := s.record(t)
	s.append(lines("", &protocol.TaskOutput{Task: protocol.MustMarshal(rec), OriginTurnID: rec.OriginTurnID}), nil)
}

// jobEnded records how a task ended.
func (s *Session) jobEnded(t *liveTask) {
	if s.jobs.live[t.id] != t {
		return
	}
	rec := s.record(t)
	rec.Status, rec.ExitCode = t.job.Exit()
	rec.FinishedAt = unix(s.all.now())
	if t.reason != "" {
		rec.Status, rec.Reason = protocol.TaskCancelled, t.reason
	}
	s.withLease(func(err error) {
		if err == nil {
			s.append(s.taskLines(rec), func(_ Seq, err error) { s.jobRecorded(t, rec, err) })
			return
		}
		s.jobRecorded(t, rec, err)
	})
}

func (s *Session) jobRecorded(t *liveTask, rec *protocol.Task, err error) {
	if err != nil && !s.stopping && protocol.KindOf(err) == protocol.PersistenceError {
		s.after(time.Second, func() { s.jobEnded(t) })
		return
	}
	if err != nil {
		s.log().Warn("record the end of a task", "session", s.ID, "task", t.id, "err", err)
	}
	s.jobs.retire(t)
	s.forgetTasks()
	t.job.Close()
	close(t.ended)
	s.jobs.release(func(w *taskWait) bool { return w.task == t.id })
	s.jobs.notice = s.jobs.notice || rec.Notify == protocol.NotifyOnExit
	s.nextPrompt()
}

// endJob ends a live task's process. Its end is recorded when it is confirmed.
func (s *Session) endJob(t *liveTask, reason string) {
	t.reason = reason
	go func() {
		if err := t.job.End(); err != nil {
			s.log().Warn("end of a task", "session", s.ID, "task", t.id, "err", err)
		}
	}()
}

// loseTasks records as lost what a dead process left running. The lease is held.
func (s *Session) loseTasks() {
	for _, t := range s.next.Tasks {
		if t.Task.Live() && s.jobs.live[t.Task.TaskID] == nil && !s.intended(t.Task.TaskID) {
			rec := t.Task
			rec.Status, rec.Reason, rec.FinishedAt = protocol.TaskLost, "The runtime that ran it stopped.", unix(s.all.now())
			s.append(s.taskLines(&rec), nil)
		}
	}
}

// intended reports whether a task is just being started here.
func (s *Session) intended(id string) bool {
	t := s.next.task(id)
	return t != nil && t.Task.Status == protocol.TaskStarting && s.jobs.reserved > 0
}

// CancelTask ends a task; done runs with its record once the end is confirmed. One that has ended stays as it is.
func (s *Session) CancelTask(id string, done func(protocol.Task, error)) {
	if !s.post(func() {
		t := s.jobs.live[id]
		if t == nil {
			rec, err := s.view().Task(id)
			if err == nil && rec.Live() {
				err = errBusy()
			}
			done(rec, err)
			return
		}
		if t.reason == "" {
			rec := s.record(t)
			rec.Status = protocol.TaskCancelling
			s.append(s.taskLines(rec), nil)
			s.endJob(t, protocol.ReasonTaskCancelled)
		}
		go func() {
			timer := time.NewTimer(5 * time.Second) // TERM, 1 s, KILL, 2 s, and a little
			defer timer.Stop()
			select {
			case <-t.ended:
				if !s.post(func() {
					rec, err := s.view().Task(id)
					done(rec, err)
				}) {
					done(protocol.Task{}, errGone(s.ID))
				}
			case <-timer.C:
				done(protocol.Task{}, protocol.Errorf(protocol.UnsupportedOperation, "Termination not confirmed: %s", id))
			}
		}()
	}) {
		done(protocol.Task{}, s.noTask(id))
	}
}

package session

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of background tasks (docs/protocol/rind-v2.md section 7.5, docs/decisions.md).
const (
	maxTasks      = 8                      // live ones of a session
	keptTasks     = 200                    // records of ended ones that a session remembers
	keptOutputs   = 20                     // of them, with the ends of their output
	taskPage      = 50                     // records a list shows at once
	taskTail      = 2000                   // characters of each stream in a record, and in what the model is told
	taskCommand   = 2000                   // characters of the command
	taskOutputGap = 250 * time.Millisecond // between two notes of a task's output
)

// TaskState is what a session knows of a background task: its record, and whether the model was told of its end.
type TaskState struct {
	Task protocol.Task
	Told bool
}

// task finds a record.
func (st *State) task(id string) *TaskState {
	for _, t := range st.Tasks {
		if t.Task.TaskID == id {
			return t
		}
	}
	return nil
}

// applyTask folds a task's record in. The oldest ended ones are forgotten beyond a bound.
func (st *State) applyTask(b *protocol.TaskUpdated) {
	var rec protocol.Task
	if json.Unmarshal(b.Task, &rec) != nil || rec.TaskID == "" {
		return
	}
	if t := st.task(rec.TaskID); t != nil {
		t.Task = rec
		st.shedOutputs()
		return
	}
	st.Tasks = append(st.Tasks, &TaskState{Task: rec})
	for len(st.Tasks) > keptTasks {
		i := slices.IndexFunc(st.Tasks, func(t *TaskState) bool { return !t.Task.Live() })
		if i < 0 {
			return
		}
		st.Tasks = slices.Delete(st.Tasks, i, i+1)
	}
}

// shedOutputs forgets the output of tasks that ended long ago: the state is stored whole at the end of each turn.
func (st *State) shedOutputs() {
	kept := 0
	for i := len(st.Tasks) - 1; i >= 0; i-- {
		t := st.Tasks[i]
		if t.Task.Live() || t.Task.Stdout == "" && t.Task.Stderr == "" {
			continue
		}
		if kept++; kept > keptOutputs && (t.Told || t.Task.Notify == protocol.NotifyManual) {
			t.Task.Stdout, t.Task.Stderr, t.Task.Meta.Truncated = "", "", true
		}
	}
}

// untold lists the ended tasks the model is to be told of.
func (st *State) untold() []*TaskState {
	var out []*TaskState
	for _, t := range st.Tasks {
		if !t.Told && !t.Task.Live() && t.Task.Notify == protocol.NotifyOnExit && t.Task.Status != protocol.TaskCancelled {
			out = append(out, t)
		}
	}
	return out
}

// backgroundWait counts the running tasks whose end the model waits for; nil for none.
func (st *State) backgroundWait() *protocol.BackgroundWait {
	var w *protocol.BackgroundWait
	for _, t := range st.Tasks {
		rec := &t.Task
		if !rec.Live() || rec.Status == protocol.TaskStarting || rec.Notify != protocol.NotifyOnExit || rec.StartedAt == nil {
			continue
		}
		if w == nil {
			w = &protocol.BackgroundWait{StartedAt: *rec.StartedAt}
		}
		w.Count++
		w.StartedAt = min(w.StartedAt, *rec.StartedAt)
	}
	return w
}

// unix is a time as a record has it.
func unix(t time.Time) *float64 {
	f := float64(t.UnixMicro()) / 1e6
	return &f
}

// taskLines are the entries of a changed record: they lie in the turn of the call that started it while that is open.
func (s *Session) taskLines(rec *protocol.Task) []line {
	b := &protocol.TaskUpdated{Task: protocol.MustMarshal(rec), OriginTurnID: rec.OriginTurnID}
	turn := rec.OriginTurnID
	if s.next.turn(turn) == nil {
		turn = ""
	}
	b.More.InTurn = turn
	before := s.next.backgroundWait()
	ls := lines(turn, b)
	if after := s.waitWith(rec); !sameWait(before, after) {
		ls = append(ls, lines("", &protocol.BackgroundWaitChanged{BackgroundWait: after})...)
	}
	return ls
}

// waitWith is the background wait once rec is in the log.
func (s *Session) waitWith(rec *protocol.Task) *protocol.BackgroundWait {
	st := State{}
	for _, t := range s.next.Tasks {
		if t.Task.TaskID != rec.TaskID {
			st.Tasks = append(st.Tasks, t)
		}
	}
	st.Tasks = append(st.Tasks, &TaskState{Task: *rec})
	return st.backgroundWait()
}

func sameWait(a, b *protocol.BackgroundWait) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// newTask makes the record of a task that a call starts.
func (s *Session) newTask(call *ToolCall, spec JobSpec, status string) *protocol.Task {
	rec := &protocol.Task{
		TaskID: "task_" + s.all.cfg.IDs.Hex32(), OwnerSessionID: s.ID, OriginToolCallID: call.ID, OriginTurnID: call.Turn,
		Command: protocol.Prefix(spec.Command, taskCommand), Cwd: spec.CWD, ShellBackend: spec.Backend, ShellExecutable: spec.Executable,
		Status: status, ExitCode: -1, Notify: spec.Notify, StartedAt: unix(spec.Started),
	}
	if spec.Started.IsZero() {
		rec.StartedAt = unix(s.all.now())
	}
	if t := s.next.turn(call.Turn); t != nil {
		rec.RequestID = t.Scope
	}
	rec.BgID = rec.TaskID
	s.jobs.named = append(s.jobs.named, rec.TaskID)
	s.all.mu.Lock()
	s.all.tasks[rec.TaskID] = s.ID
	s.all.mu.Unlock()
	return rec
}

// seen is a record as it is shown: a task whose owner is gone is lost, before that is recorded.
func (v *View) seen(rec protocol.Task) protocol.Task {
	if t := v.Session.jobs.live[rec.TaskID]; t != nil {
		v.Session.measure(t, &rec)
		return rec
	}
	if rec.Live() && !v.Session.intended(rec.TaskID) && !v.foreign() {
		rec.Status, rec.Reason = protocol.TaskLost, "The runtime that ran it stopped."
	}
	return rec
}

// foreign reports whether another living process works in the session.
func (v *View) foreign() bool {
	return !v.Session.lease.has() && !v.Draft && v.ownerAlive()
}

// Tasks lists records, unfinished first, then the newest, without output. page is "" for the first; a bad one is InvalidRequest.
func (v *View) Tasks(page string) (tasks []protocol.Task, next string, err error) {
	from := 0
	if page != "" {
		if from, err = strconv.Atoi(page); err != nil || from < 0 {
			return nil, "", protocol.Errorf(protocol.InvalidRequest, "page_token is not one of ours.")
		}
	}
	all := v.allTasks()
	from = min(from, len(all))
	to := min(from+taskPage, len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	tasks = append([]protocol.Task{}, all[from:to]...)
	for i := range tasks {
		tasks[i].Stdout, tasks[i].Stderr = "", ""
	}
	return tasks, next, nil
}

// AllTasks are the records of session/replay: every live one and the newest ended ones, with the ends of their output.
func (v *View) AllTasks() []protocol.Task {
	all := v.allTasks()
	return all[:min(len(all), taskPage)]
}

func (v *View) allTasks() []protocol.Task {
	all := make([]protocol.Task, 0, len(v.State.Tasks))
	for i := len(v.State.Tasks) - 1; i >= 0; i-- {
		all = append(all, v.seen(v.State.Tasks[i].Task))
	}
	slices.SortStableFunc(all, func(a, b protocol.Task) int {
		switch {
		case a.Live() == b.Live():
			return 0
		case a.Live():
			return -1
		}
		return 1
	})
	return all
}

// BackgroundWait is background_wait (docs/protocol/rind-v2.md section 4.4).
func (v *View) BackgroundWait() *protocol.BackgroundWait {
	st := State{}
	for _, t := range v.State.Tasks {
		if rec := v.seen(t.Task); rec.Live() {
			st.Tasks = append(st.Tasks, t)
		}
	}
	return st.backgroundWait()
}

// Task finds one record. NotFound; TaskNotOwned where another session that is open in this process has it.
func (v *View) Task(id string) (protocol.Task, error) {
	t := v.State.task(id)
	if t == nil {
		return protocol.Task{}, v.Session.noTask(id)
	}
	return v.seen(t.Task), nil
}

// noTask is the error of a task that this session does not have.
func (s *Session) noTask(id string) error {
	s.all.mu.Lock()
	owner, known := s.all.tasks[id]
	s.all.mu.Unlock()
	if known && owner != s.ID {
		return protocol.Errorf(protocol.TaskNotOwned, "Task belongs to another session: %s", id)
	}
	return protocol.Errorf(protocol.NotFound, "Task not found: %s", protocol.Prefix(id, 100))
}

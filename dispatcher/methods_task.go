package dispatcher

import (
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// The methods of background tasks and their older views (docs/protocol/rind-v2.md section 4.8).

func taskList(k *call, p *rindv2.TaskListParams) {
	k.inspect(func(v *session.View) {
		tasks, next, err := v.Tasks(p.PageToken)
		res := rindv2.TaskList{Tasks: tasks}
		if next != "" {
			res.NextPageToken = &next
		}
		k.Settle(res, err)
	})
}

func taskRead(k *call, p *rindv2.TaskReadParams) {
	k.with(func(s *session.Session) { s.ReadTask(p.TaskID, p.Cursor, p.MaxOutputChars, k.part) })
}

func taskWait(k *call, p *rindv2.TaskWaitParams) {
	k.with(func(s *session.Session) {
		s.WaitTask(p.TaskID, p.Cursor, p.MaxOutputChars, time.Duration(p.WaitMS)*time.Millisecond, k.part)
	})
}

// part answers with a task and a part of its output.
func (k *call) part(p session.TaskPart, err error) {
	k.Settle(rindv2.TaskPart{Task: p.Task, StartCursor: p.Start, NextCursor: p.Next, ReturnReason: p.Reason}, err)
}

func taskCancel(k *call, p *rindv2.TaskParams) {
	k.with(func(s *session.Session) {
		s.CancelTask(p.TaskID, func(rec protocol.Task, err error) { k.Settle(rec, err) })
	})
}

func releaseWait(k *call, p *rindv2.ReleaseParams) {
	k.with(func(s *session.Session) {
		s.ReleaseWait(p.TaskID, p.ToolCallID, func(released bool, err error) { k.Settle(rindv2.Released{OK: true, Released: released}, err) })
	})
}

// olderStatus is the status of the older views: what has not ended is running.
func olderStatus(t *protocol.Task) string {
	if t.Live() {
		return protocol.TaskRunning
	}
	return t.Status
}

func backgroundItem(t *protocol.Task) rindv2.BackgroundItem {
	return rindv2.BackgroundItem{BgID: t.BgID, Status: olderStatus(t), ExitCode: t.ExitCode, Cwd: t.Cwd}
}

func backgroundList(k *call, _ *rindv2.Target) {
	k.inspect(func(v *session.View) {
		res := rindv2.BackgroundList{Tasks: []rindv2.BackgroundItem{}}
		for _, t := range v.AllTasks() {
			res.Tasks = append(res.Tasks, backgroundItem(&t))
		}
		k.OK(res)
	})
}

func backgroundOutput(k *call, p *rindv2.BackgroundOutputParams) {
	k.with(func(s *session.Session) {
		s.TailTask(p.BgID, p.MaxOutputChars, func(t protocol.Task, err error) {
			if kind := protocol.KindOf(err); kind == protocol.NotFound || kind == protocol.TaskNotOwned { // the older view knows only this
				err = protocol.Errorf(protocol.NotFound, "No background process: %s", protocol.Prefix(p.BgID, 100))
			}
			var res rindv2.BackgroundOutput
			res.Task.BackgroundItem = backgroundItem(&t)
			res.Task.Stdout, res.Task.Stderr, res.Task.Truncated = t.Stdout, t.Stderr, t.Meta.Truncated
			k.Settle(res, err)
		})
	})
}

// taskRecords are the records of a replay's snapshot.
func taskRecords(v *session.View) []json.RawMessage {
	out := []json.RawMessage{}
	for _, t := range v.AllTasks() {
		out = append(out, protocol.MustMarshal(t))
	}
	return out
}

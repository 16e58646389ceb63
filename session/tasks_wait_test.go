package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestTasksAreReadWaitedForReleasedAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9), Notify: protocol.NotifyManual}
		h := policyHouse(t, memory.New(), say(bgCalls("c1", "c2"), done()), allowing(), "", jobs)
		s := h.draft()
		h.prompt(s, "start two")
		one, two := <-jobs.Started, <-jobs.Started
		two.Stubborn = true
		one.Write("héllo world")
		var ids []string
		h.view(s, func(v *session.View) {
			for _, task := range v.AllTasks() {
				ids = append(ids, task.TaskID)
			}
		})
		type got struct {
			session.TaskPart
			err error
		}
		ch := make(chan got, 2)
		answer := func(p session.TaskPart, err error) { ch <- got{p, err} }
		s.ReadTask(ids[1], 3, 4, answer)
		if g := <-ch; g.err != nil || g.Task.Stdout != "llo " || g.Start != 3 || g.Next != 7 || g.Reason != "yield_timeout" {
			t.Errorf("read %+v", g)
		}
		s.ReadTask("task_nope", 0, 4, answer)
		if g := <-ch; protocol.KindOf(g.err) != protocol.NotFound {
			t.Errorf("read of none: %v", g.err)
		}
		began := time.Now()
		s.WaitTask(ids[1], 0, 100, 7*time.Second, answer)
		if g := <-ch; g.Reason != "yield_timeout" || time.Since(began) != 7*time.Second {
			t.Errorf("wait %s after %s", g.Reason, time.Since(began))
		}
		s.WaitTask(ids[1], 0, 100, time.Minute, answer)
		synctest.Wait()
		released := make(chan bool, 2)
		for range 2 {
			s.ReleaseWait(ids[1], "", func(yes bool, err error) { released <- yes && err == nil })
		}
		if first, second := <-released, <-released; !first || second {
			t.Errorf("released %v, %v", first, second)
		}
		if g := <-ch; g.Reason != "released" {
			t.Errorf("wait %s", g.Reason)
		}
		s.WaitTask(ids[1], 0, 100, time.Minute, answer)
		synctest.Wait()
		one.Finish(protocol.TaskCompleted, 0)
		if g := <-ch; g.Reason != "finished" || g.Task.Status != protocol.TaskCompleted || g.Task.ExitCode != 0 || g.Task.Stdout != "héllo world" {
			t.Errorf("wait %+v", g)
		}
		s.ReadTask(ids[1], 3, 3, answer) // what has ended is read like what runs
		if g := <-ch; g.err != nil || g.Task.Stdout != "llo" || g.Next != 6 || g.Reason != "finished" {
			t.Errorf("read at the end %+v", g)
		}
		cancelled := make(chan error, 1)
		began = time.Now()
		s.CancelTask(ids[0], func(_ protocol.Task, err error) { cancelled <- err })
		if err := <-cancelled; protocol.KindOf(err) != protocol.UnsupportedOperation || time.Since(began) > 6*time.Second {
			t.Errorf("cancel of a stubborn one: %v after %s", err, time.Since(began))
		}
		two.Finish(protocol.TaskFailed, -1)
		synctest.Wait()
		if got := h.tasksOf(s); got != "make c2 cancelled, make c1 completed" {
			t.Errorf("tasks %s", got)
		}
		s.CancelTask(ids[0], func(rec protocol.Task, err error) { cancelled <- err })
		if err := <-cancelled; err != nil {
			t.Errorf("cancel again: %v", err)
		}
		if got := h.starts(s); got != "user" {
			t.Errorf("manual tasks started turns: %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestTheModelReadsWhatIsNewAndASteeringInputEndsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9), Notify: protocol.NotifyManual}
		var h *house
		var s *session.Session
		m := say(bgCalls("c1"), done())
		id := func() string { return h.oneTask(s).TaskID }
		step := 0
		m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			step++
			args := ""
			switch step {
			case 1:
				for _, c := range bgCalls("c1") {
					yield(c, nil)
				}
				return
			case 2, 3:
				args = `{"action":"read","task_id":"` + id() + `"}`
			case 4:
				args = `{"action":"wait","task_id":"` + id() + `","wait_ms":60000}`
			case 5:
				args = `{"action":"list"}`
			default:
				_ = yield(text("done"), nil) && yield(finish(session.FinishStop), nil)
				return
			}
			for _, c := range append(callChunks(fmt.Sprint("t", step), "task_control", args), finish(session.FinishCalls)) {
				yield(c, nil)
			}
		}
		h = policyHouse(t, memory.New(), m, allowing(), "", jobs)
		s = h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		job := <-jobs.Started
		job.Write("once only")
		synctest.Wait()
		time.Sleep(3 * time.Second)
		began := time.Now()
		steered := make(chan error, 1)
		s.Enqueue(protocol.ModeSteering, "hurry", "", func(_ session.InputResult, err error) { steered <- err })
		if err := <-steered; err != nil {
			t.Fatal(err)
		}
		if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted || time.Since(began) > time.Second {
			t.Errorf("outcome %+v after %s", o, time.Since(began))
		}
		got := texts(m.requests[len(m.requests)-1])
		if strings.Count(got, "once only") > 2 || !strings.Contains(got, `"return_reason":"released"`) || !strings.Contains(got, `"next_page_token":null`) {
			t.Errorf("the model was given\n%s", got)
		}
		checkLog(t, h)
		job.Finish(protocol.TaskCompleted, 0)
		synctest.Wait()
		h.close()
	})
}

func TestWaitingForALongTaskIsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9), Notify: protocol.NotifyManual}
		var h *house
		var s *session.Session
		m := say(done())
		m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			chunks := []session.Chunk{text("done"), finish(session.FinishStop)}
			switch n := len(m.requests); {
			case n == 1:
				chunks = bgCalls("c1")
			case n < 40 && h.oneTask(s).Status == protocol.TaskRunning:
				chunks = append(callChunks(fmt.Sprint("w", n), "task_control", `{"action":"wait","task_id":"`+h.oneTask(s).TaskID+`","wait_ms":60000}`), finish(session.FinishCalls))
			}
			for _, c := range chunks {
				if !yield(c, nil) {
					return
				}
			}
		}
		h = policyHouse(t, memory.New(), m, allowing(), "", jobs)
		s = h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "go"})
		job := <-jobs.Started
		time.Sleep(20*time.Minute + time.Second)
		job.Finish(protocol.TaskCompleted, 0)
		if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted || len(m.requests) < 20 {
			t.Errorf("outcome %+v after %d requests", o, len(m.requests))
		}
		h.close()
	})
}

func TestACallThatIsOverHoldsNoWaitAndNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		careless := writeTool("do", nil)
		careless.run = func(_ context.Context, _ session.ToolCall, out session.Progress) (session.ToolResult, error) {
			bg := out.(session.Background)
			bg.Released()
			if _, ok, err := bg.Reserve(session.JobSpec{Command: "x", Notify: protocol.NotifyManual}, true); !ok || err != nil {
				t.Errorf("reserve: %v, %v", ok, err)
			}
			panic("it gave nothing back")
		}
		var chunks []session.Chunk
		for i := range 9 { // one more than there are places
			chunks = append(chunks, callChunks(fmt.Sprint("c", i), "do", `{}`)...)
		}
		h := policyHouse(t, memory.New(), say(append(chunks, finish(session.FinishCalls)), done()), allowing(), "", careless)
		s := h.draft()
		h.prompt(s, "go")
		synctest.Wait()
		released := make(chan bool, 1)
		s.ReleaseWait("", "c0", func(yes bool, _ error) { released <- yes })
		if <-released {
			t.Error("a call that is over still waits")
		}
		if got := h.tasksOf(s); strings.Count(got, "cancelled") != 9 {
			t.Errorf("tasks %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

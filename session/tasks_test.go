package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// allowing is a Policy that allows everything.
func allowing() policy {
	return policy{judge: func(string, session.ToolCall) session.Verdict { return session.Verdict{Effect: "allow"} }}
}

func bgCalls(ids ...string) []session.Chunk {
	var c []session.Chunk
	for _, id := range ids {
		c = append(c, callChunks(id, "bg", `{"command":"make `+id+`"}`)...)
	}
	return append(c, finish(session.FinishCalls))
}

// tasksOf lists what a list shows, "command status".
func (h *house) tasksOf(s *session.Session) string {
	h.t.Helper()
	var out []string
	h.view(s, func(v *session.View) {
		tasks, _, err := v.Tasks("")
		if err != nil {
			h.t.Fatal(err)
		}
		for _, t := range tasks {
			out = append(out, t.Command+" "+t.Status)
		}
	})
	return strings.Join(out, ", ")
}

func (h *house) oneTask(s *session.Session) (t protocol.Task) {
	h.t.Helper()
	h.view(s, func(v *session.View) { t = v.AllTasks()[0] })
	return t
}

func TestTheEndOfATaskIsToldToTheModelInATurnOfItsOwnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
		m := say(bgCalls("c1", "c2"), done())
		h := policyHouse(t, memory.New(), m, allowing(), "", jobs)
		s := h.draft()
		h.prompt(s, "start two")
		one, two := <-jobs.Started, <-jobs.Started
		if got := h.tasksOf(s); got != "make c2 running, make c1 running" {
			t.Errorf("tasks %s", got)
		}
		h.view(s, func(v *session.View) {
			if w := v.BackgroundWait(); w == nil || w.Count != 2 {
				t.Errorf("background wait %+v", w)
			}
		})
		one.Write("all is built\n")
		one.Finish(protocol.TaskCompleted, 0)
		synctest.Wait()
		two.Write("broken\n")
		two.Finish(protocol.TaskFailed, 2)
		synctest.Wait()
		if got := h.starts(s); got != "user task task" {
			t.Errorf("turns %s", got)
		}
		got := texts(m.requests[len(m.requests)-1])
		for _, part := range []string{`"runtime_notification":"task_completed"`, `"exit_code":2`, `"untrusted_stdout":"broken\n"`, `"untrusted_stdout":"all is built\n"`} {
			if strings.Count(got, part) != map[bool]int{true: 2, false: 1}[strings.Contains(part, "notification")] {
				t.Errorf("the model was told %s:\n%s", part, got)
			}
		}
		for _, w := range h.wire(s) {
			if w.Role == session.RoleUser && *w.Content != "start two" {
				t.Errorf("message mode shows %q", *w.Content)
			}
		}
		h.view(s, func(v *session.View) {
			if v.BackgroundWait() != nil || v.State.TaskCursor == 0 {
				t.Errorf("wait %+v, task cursor %d", v.BackgroundWait(), v.State.TaskCursor)
			}
		})
		if !one.Closed() || !two.Closed() {
			t.Error("a job was not closed")
		}
		var turns []string // in the turn while that is open, its event never
		for _, e := range h.entries(s.ID) {
			if e.Kind == protocol.KindTaskUpdated {
				var ev struct {
					Turn string `json:"turn_id"`
					Task protocol.Task
				}
				if err := json.Unmarshal(e.Event, &ev); err != nil || ev.Turn != "" {
					t.Errorf("event %s, %v", e.Event, err)
				}
				turns = append(turns, fmt.Sprint(ev.Task.Status, " ", e.Turn != "", " ", e.PortableCount))
			}
		}
		if got := strings.Join(turns, ", "); got != "starting true 1, running true 1, starting true 1, running true 1, completed false 0, failed false 0" {
			t.Errorf("task entries %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestACancelHoldsContinuationsUntilTheNextPromptWhichTellsTheModelItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
		m := say(bgCalls("c1"), done())
		play := m.play
		hang := true
		m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			if len(m.requests) == 2 && hang {
				<-ctx.Done()
				yield(session.Chunk{}, context.Cause(ctx))
				return
			}
			play(ctx, r, yield)
		}
		h := policyHouse(t, memory.New(), m, allowing(), "", jobs)
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "start it"})
		job := <-jobs.Started
		synctest.Wait()
		s.Cancel(session.CancelRequest{}, func(error) {})
		<-ch
		if got := h.tasksOf(s); got != "make c1 running" {
			t.Errorf("a cancel of the turn left %s", got)
		}
		job.Finish(protocol.TaskCompleted, 0)
		synctest.Wait()
		time.Sleep(time.Minute)
		if got := h.starts(s); got != "user" {
			t.Errorf("turns %s", got)
		}
		h.prompt(s, "and now?")
		if got := texts(m.requests[len(m.requests)-1]); !strings.Contains(got, "task_completed") || !strings.HasSuffix(got, "user: and now?\n") {
			t.Errorf("the model was given\n%s", got)
		}
		synctest.Wait()
		if got := h.starts(s); got != "user user" {
			t.Errorf("turns %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestARequestScopeIsAnsweredAfterItsTasksAndTheirTurns(t *testing.T) {
	for _, end := range []string{"by itself", "cancelled by a person", "by a failing turn", "at the end of the runtime"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
				m := say(bgCalls("c1"), []session.Chunk{text("started"), finish(session.FinishStop)}, []session.Chunk{text("it is done"), finish(session.FinishStop)})
				play := m.play
				m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
					if end == "by a failing turn" && len(m.requests) == 3 {
						yield(session.Chunk{}, &session.ModelError{Fault: session.FaultAuth, Message: "no"})
						return
					}
					play(ctx, r, yield)
				}
				h := policyHouse(t, memory.New(), m, allowing(), "", jobs)
				s := h.draft()
				req := session.PromptRequest{Input: "start it", Scope: true, Surface: "rind", Key: "k", Digest: "d"}
				_, ch := ask(s, req)
				job := <-jobs.Started
				synctest.Wait()
				select {
				case o := <-ch:
					t.Fatalf("answered while a task of it runs: %+v", o)
				default:
				}
				if _, second := ask(s, session.PromptRequest{Input: "x", Scope: true}); protocol.KindOf((<-second).err) != protocol.SessionBusy {
					t.Error("a second scope was opened")
				}
				want := session.OutcomeCompleted
				switch end {
				case "cancelled by a person":
					want = session.OutcomeCancelled
					s.Cancel(session.CancelRequest{}, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				case "at the end of the runtime":
					want = session.OutcomeCancelled
					h.close()
				case "by a failing turn":
					want = session.OutcomeFailed
					job.Finish(protocol.TaskCompleted, 0)
				default:
					job.Finish(protocol.TaskCompleted, 0)
				}
				o := <-ch
				if o.err != nil || o.Outcome.Outcome != want || want == session.OutcomeCompleted && o.Answer != "it is done" {
					t.Errorf("outcome %+v", o)
				}
				if end == "by itself" || end == "by a failing turn" { // what is in the log says so whenever it is asked again
					if _, ch := ask(s, req); !reflect.DeepEqual(<-ch, o) {
						t.Errorf("asked again it is not %+v", o)
					}
				}
				if end != "at the end of the runtime" {
					checkLog(t, h)
					h.close()
				}
			})
		})
	}
}

func TestNineTasksAreOneTooMany(t *testing.T) {
	jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
	synctest.Test(t, func(t *testing.T) {
		jobs.Started = make(chan *testkit.Job, 9)
		h := policyHouse(t, memory.New(), say(bgCalls("1", "2", "3", "4", "5", "6", "7", "8", "9"), done()), allowing(), "", jobs)
		s := h.draft()
		h.prompt(s, "many")
		var types []string
		for _, e := range h.entries(s.ID) {
			if e.Kind == protocol.KindToolResult {
				b, _ := protocol.Decode(&e)
				types = append(types, b.(*protocol.ToolResult).ErrorType)
			}
		}
		if got := strings.Join(types, ","); got != ",,,,,,,,TaskLimitExceeded" {
			t.Errorf("error types %s", got)
		}
		h.close()
		if n := len(jobs.Started); n != 8 {
			t.Errorf("%d started", n)
		}
	})
}

func TestTheEndOfTheRuntimeCancelsTasksAndACrashLosesThem(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backing := memory.NewBacking()
				jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
				a := policyHouse(t, backing.Open("a"), say(bgCalls("c1"), done()), allowing(), "", jobs)
				s := a.draft()
				a.prompt(s, "start it")
				job := <-jobs.Started
				want, reason := protocol.TaskCancelled, "Worker shutting down"
				if crash {
					want, reason = protocol.TaskLost, "The runtime that ran it stopped."
					a.store.Kill()
				} else {
					a.close()
				}
				m := say(done())
				b := policyHouse(t, backing.Open("b"), m, allowing(), "", jobs)
				s2 := b.open(s.ID)
				before := len(b.entries(s.ID))
				if rec := b.oneTask(s2); rec.Status != want || rec.Reason != reason {
					t.Errorf("record %+v", rec)
				}
				time.Sleep(time.Minute)
				if n := len(b.entries(s.ID)); n != before {
					t.Errorf("looking wrote %d entries", n-before)
				}
				b.prompt(s2, "what became of it?")
				synctest.Wait()
				if got := b.starts(s2); got != "user user" || strings.Contains(texts(m.requests[0]), "task_completed") != crash {
					t.Errorf("turns %s; the model was given\n%s", got, texts(m.requests[0]))
				}
				if rec := b.oneTask(s2); rec.Status != want || rec.FinishedAt == nil {
					t.Errorf("record %+v", rec)
				}
				checkLog(t, b)
				b.close()
				if crash {
					job.Finish(protocol.TaskFailed, 1)
					a.all.Shutdown(canceled())
					_ = a.store.Close()
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
			})
		})
	}
}

func TestTheTasksOfASessionEndWhenItIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
		h := policyHouse(t, memory.New(), say(bgCalls("c1"), done()), allowing(), "", jobs)
		s := h.draft()
		h.prompt(s, "start it")
		job := <-jobs.Started
		synctest.Wait()
		if err := h.all.Delete(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.all.Open(t.Context(), s.ID); protocol.KindOf(err) != protocol.SessionNotFound {
			t.Errorf("opened while its task ends: %v", err)
		}
		synctest.Wait()
		if !job.Closed() {
			t.Error("a process nobody can reach any more runs on")
		}
		h.close()
	})
}

func TestAStateRemembersTheOutputOfTheNewestTasksOnly(t *testing.T) {
	bubble(t, say(done()), nil, func(h *house) {
		s := h.draft()
		h.prompt(s, "hi")
		h.view(s, func(v *session.View) {
			for i := range 300 {
				rec := protocol.Task{TaskID: fmt.Sprint("task_", i), Status: protocol.TaskCompleted, Notify: protocol.NotifyManual, Stdout: "out"}
				for _, status := range []string{protocol.TaskRunning, protocol.TaskCompleted} {
					rec.Status = status
					v.State.Apply(&session.Entry{Kind: protocol.KindTaskUpdated}, &protocol.TaskUpdated{Task: protocol.MustMarshal(rec)})
				}
			}
			with := 0
			for _, task := range v.State.Tasks {
				if task.Task.Stdout != "" {
					with++
				}
			}
			if len(v.State.Tasks) != 200 || with != 20 {
				t.Errorf("%d tasks, %d with output", len(v.State.Tasks), with)
			}
			v.State.Tasks = nil
		})
	})
}

package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// startless is a store that takes no start of a turn while it is broken.
type startless struct {
	*memory.Store
	broken atomic.Bool
}

func (s *startless) Append(l session.Lease, b session.Batch, done func(error)) {
	for i := range b.Entries {
		if b.Entries[i].Kind == protocol.KindTurnStarted && s.broken.Load() {
			done(session.ErrFull)
			return
		}
	}
	s.Store.Append(l, b, done)
}

func TestAContinuationThatCannotStartIsToldAndItsTaskIsToldToTheModelLater(t *testing.T) {
	for _, scope := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
			m := say(bgCalls("c1"), done())
			loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{jobs}, Policy: allowing()})
			if err != nil {
				t.Fatal(err)
			}
			store := &startless{Store: memory.New()}
			h := &house{t: t, store: store.Store, model: m}
			h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Policy: allowing()})
			s := h.draft()
			_, ch := ask(s, session.PromptRequest{Input: "start it", Scope: scope})
			job := <-jobs.Started
			synctest.Wait()
			store.broken.Store(true)
			job.Finish(protocol.TaskCompleted, 0)
			synctest.Wait()
			if o := <-ch; scope != (o.Outcome.Outcome == session.OutcomeFailed) || o.err != nil {
				t.Errorf("scope %v: the prompt was answered %+v", scope, o)
			}
			var told []string
			for _, e := range h.entries(s.ID) {
				if b, _ := protocol.Decode(&e); e.Kind == protocol.KindTaskContinuationFailed {
					told = append(told, b.(*protocol.TaskContinuationFailed).Error)
				}
			}
			if got := strings.Join(told, ", "); !strings.Contains(got, session.ErrFull.Error()) || len(told) != 1 || h.starts(s) != "user" {
				t.Errorf("scope %v: told %q, turns %s", scope, got, h.starts(s))
			}
			store.broken.Store(false)
			h.prompt(s, "and now?")
			synctest.Wait()
			if got := texts(m.requests[len(m.requests)-1]); strings.Count(got, "task_completed") != 1 || h.starts(s) != "user user" {
				t.Errorf("scope %v: turns %s; the model was given\n%s", scope, h.starts(s), got)
			}
			checkLog(t, h)
			h.close()
		})
	}
}

func TestTasksThatEndDuringATurnAreToldInTheNextOneAPersonsBeforeOneOfTheRuntime(t *testing.T) {
	for waiting, want := range map[bool]string{false: "user task", true: "user user user"} {
		synctest.Test(t, func(t *testing.T) {
			jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9)}
			m := say(bgCalls("c1", "c2"), done())
			play, let := m.play, make(chan struct{})
			m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
				if len(m.requests) == 2 {
					<-let
				}
				play(ctx, r, yield)
			}
			h := policyHouse(t, memory.New(), m, allowing(), "", jobs)
			s := h.draft()
			_, first := ask(s, session.PromptRequest{Input: "start two"})
			one, two := <-jobs.Started, <-jobs.Started
			synctest.Wait()
			var chs []chan ended
			if waiting {
				for _, in := range []string{"next", "last"} {
					_, ch := ask(s, session.PromptRequest{Input: in})
					chs = append(chs, ch)
				}
			}
			one.Finish(protocol.TaskCompleted, 0)
			two.Finish(protocol.TaskCompleted, 0)
			synctest.Wait()
			close(let)
			for _, ch := range append(chs, first) {
				if o := <-ch; o.Outcome.Outcome != session.OutcomeCompleted {
					t.Errorf("outcome %+v", o)
				}
			}
			synctest.Wait()
			if got := h.starts(s); got != want {
				t.Errorf("turns %s, want %s", got, want)
			}
			if got := texts(m.requests[2]); strings.Count(got, "make c1") != 1 || strings.Count(got, "make c2") != 1 || waiting && !strings.HasSuffix(got, "user: next\n") {
				t.Errorf("the turn behind the first one was given\n%s", got)
			}
			if got := texts(m.requests[len(m.requests)-1]); strings.Count(got, "task_completed") != 1 {
				t.Errorf("in the end the model was given\n%s", got)
			}
			checkLog(t, h)
			h.close()
		})
	}
}

func TestATaskThatWritesMuchIsToldAtMostTenTimesASecondByTheEndOfItsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &testkit.Jobs{Started: make(chan *testkit.Job, 9), Notify: protocol.NotifyManual}
		h := policyHouse(t, memory.New(), say(bgCalls("c1"), done()), allowing(), "", jobs)
		s := h.draft()
		h.prompt(s, "start it")
		job := <-jobs.Started
		all, began := "", time.Now()
		for i := range 500 { // 5 s
			line := fmt.Sprintf("é😀 line %d\n", i)
			all += line
			job.Write(line)
			time.Sleep(10 * time.Millisecond)
		}
		took := time.Since(began)
		time.Sleep(time.Second)
		synctest.Wait()
		perSecond, last := map[int64]int{}, ""
		for _, e := range h.entries(s.ID) {
			if e.Kind != protocol.KindTaskOutput {
				continue
			}
			var ev struct {
				Turn string `json:"turn_id"`
				Task protocol.Task
			}
			if err := json.Unmarshal(e.Event, &ev); err != nil || ev.Turn != "" {
				t.Fatalf("event %s, %v", e.Event, err)
			}
			perSecond[e.Time.Unix()]++
			if last = ev.Task.Stdout; protocol.CharLen(last) > 2000 || !strings.Contains(all, last) {
				t.Errorf("%d characters: %.40q …", protocol.CharLen(last), last)
			}
		}
		if len(perSecond) < int(took/time.Second) || !strings.HasSuffix(all, last) || protocol.CharLen(last) != 2000 {
			t.Errorf("told in %d seconds of %s, at last %d characters", len(perSecond), took, protocol.CharLen(last))
		}
		for at, n := range perSecond {
			if n > 10 {
				t.Errorf("%d times in second %d", n, at)
			}
		}
		job.Finish(protocol.TaskCompleted, 0)
		synctest.Wait()
		checkLog(t, h)
		h.close()
	})
}

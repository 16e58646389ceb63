package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// watched is a store that notes what is done about leases, and hears nothing of other processes when it is deaf.
type watched struct {
	session.Store
	deaf bool

	mu    sync.Mutex
	steps []string
	held  []func() // answers that are held back, in order
	holds bool
}

func (w *watched) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	l, err := w.Store.Acquire(ctx, id)
	w.note("acquire", err)
	return l, err
}

func (w *watched) Release(ctx context.Context, l session.Lease) error {
	w.note("release", nil)
	return w.Store.Release(ctx, l)
}

func (w *watched) Append(l session.Lease, b session.Batch, done func(error)) {
	what := "append"
	if b.Retake {
		what = "retake+" + what
	}
	if b.Release {
		what += "+release"
	}
	w.Store.Append(l, b, func(err error) {
		w.note(what, err)
		w.mu.Lock()
		w.held = append(w.held, func() { done(err) })
		w.mu.Unlock()
		w.answer()
	})
}

// hold keeps the answers to appends back until the returned function is called.
func (w *watched) hold() (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = true
	return func() {
		w.mu.Lock()
		w.holds = false
		w.mu.Unlock()
		w.answer()
	}
}

func (w *watched) answer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.holds && len(w.held) > 0 {
		w.held[0]()
		w.held = w.held[1:]
	}
}

func (w *watched) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	if !w.deaf {
		return w.Store.Watch(ctx)
	}
	bells := make(chan session.SessionID)
	go func() {
		<-ctx.Done()
		close(bells)
	}()
	return bells, nil
}

func (w *watched) note(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		what += " refused"
	}
	if n := len(w.steps); n == 0 || what != "append" || w.steps[n-1] != what {
		w.steps = append(w.steps, what)
	}
}

// since returns the steps after the last call; appends in a row are one.
func (w *watched) since() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	steps := strings.Join(w.steps, ", ")
	w.steps = nil
	return steps
}

// watchedHouse is a process on a backing whose leases are watched.
func watchedHouse(t *testing.T, backing *memory.Backing, name string, m *model) (*house, *watched) {
	t.Helper()
	h := newHouse(t, backing.Open(name), m)
	w := &watched{Store: h.store}
	loop, err := session.NewLoop(session.Loop{Models: m})
	if err != nil {
		t.Fatal(err)
	}
	h.all = session.NewSessions(session.Config{Store: w, Agent: loop, Models: m, Now: time.Now})
	return h, w
}

func TestAnIdleSessionTakesItsLeaseWithThePromptAndGivesItBackWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		h, w := watchedHouse(t, backing, "a", answering())
		other := backing.Open("b")
		s := h.draft()
		h.prompt(s, "one")
		if got := w.since(); got != "acquire, append, append+release" {
			t.Errorf("the first prompt: %s", got)
		}
		h.prompt(s, "two")
		if m, err := other.Session(context.Background(), s.ID); err != nil || m.Owner != "" { // when the answer is told, not some time after it
			t.Errorf("owner of an idle session is %q, %v", m.Owner, err)
		}
		if got := w.since(); got != "retake+append, append, append+release" {
			t.Errorf("a prompt of an idle session: %s", got)
		}
		x, err := s.SubmitExecution(session.ExecutionRequest{Provider: "mock", Input: "x", Config: json.RawMessage(`{"prefix":"","delayMs":0}`), Runner: session.Mock{}})(t.Context())
		if err != nil || x.Turn == "" {
			t.Fatal(x, err)
		}
		if got := w.since(); got != "retake+append, append, append+release" {
			t.Errorf("an execution of an idle session: %s", got)
		}
		renamed := make(chan error, 1)
		s.Rename("named", func(_ string, err error) { renamed <- err })
		if err := <-renamed; err != nil {
			t.Fatal(err)
		}
		if got := w.since(); got != "acquire, append, release" {
			t.Errorf("a change of an idle session: %s", got)
		}
		h.prompt(s, "three")
		if got := w.since(); got != "retake+append, append, append+release" {
			t.Errorf("a prompt after a change: %s", got)
		}
		checkLog(t, h)
		h.close()
		_ = other.Close()
	})
}

func TestWorkThatComesWhileTheLeaseIsGivenBackTakesItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := watchedHouse(t, memory.NewBacking(), "a", nil)
		end := make(chan struct{})
		h.all = session.NewSessions(session.Config{Store: w, Models: answering(), Now: time.Now, Agent: agentFunc(func(context.Context, *session.Turn) (string, error) {
			<-end
			return "end_turn", nil
		})})
		s := h.draft()
		_, first := ask(s, session.PromptRequest{Input: "one"})
		w.since()
		release := w.hold()
		close(end)
		if got := w.since(); got != "append+release" {
			t.Errorf("the end of the only turn: %s", got)
		}
		x := s.SubmitExecution(session.ExecutionRequest{Provider: "mock", Config: json.RawMessage(`{}`), Runner: session.Mock{}})
		if got := w.since(); got != "retake+append" {
			t.Errorf("an execution before that is stored: %s", got)
		}
		renamed := make(chan error, 1)
		s.Rename("named", func(_ string, err error) { renamed <- err })
		if got := w.since(); got != "" {
			t.Errorf("a change before it is known whether the lease is had: %s", got)
		}
		release()
		if o := <-first; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("the prompt: %+v", o)
		}
		if _, err := x(t.Context()); err != nil {
			t.Errorf("the execution: %v", err)
		}
		if err := <-renamed; err != nil {
			t.Errorf("the change: %v", err)
		}
		time.Sleep(time.Second)
		if m, err := h.store.Session(context.Background(), s.ID); err != nil || m.Owner != "" {
			t.Errorf("owner %q, %v", m.Owner, err)
		}
		if got := w.since(); strings.Contains(got, "acquire") || strings.Contains(got, "refused") {
			t.Errorf("steps %s", got)
		}
		checkLog(t, h)
		h.close()
	})
}

// What a batch that was to take the lease again is refused for is done anew, behind what the other process did, and in its order.
func TestWorkInASessionThatAnotherProcessHadMeanwhileIsDoneBehindItInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a, w := watchedHouse(t, backing, "a", answering())
		w.deaf = true
		b := newHouse(t, backing.Open("b"), answering())
		s := a.draft()
		a.prompt(s, "one of a")
		synctest.Wait() // it has looked once, as it does when it begins to listen
		s2 := b.open(s.ID)
		b.prompt(s2, "one of b")
		w.since()

		var told []session.TurnID
		_, ch := ask(s, session.PromptRequest{Input: "two of a", Started: func(turn session.TurnID) { told = append(told, turn) }})
		o := <-ch
		if o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted || len(told) == 0 || slices.ContainsFunc(told, func(turn session.TurnID) bool { return turn != o.Turn }) {
			t.Errorf("the prompt: %+v, told %v", o, told)
		}
		if got := w.since(); !strings.HasPrefix(got, "retake+append refused, acquire, append") {
			t.Errorf("steps %s", got)
		}
		var said []string
		for _, m := range a.wire(s) {
			if m.Role == session.RoleUser {
				said = append(said, *m.Content)
			}
		}
		if got := fmt.Sprint(said); got != "[one of a one of b two of a]" {
			t.Errorf("said: %s", got)
		}

		b.prompt(s2, "two of b")
		w.since()
		release := w.hold() // so that all are on their way before the first is refused
		var waits []func(context.Context) (session.Accepted, error)
		for i := range 5 {
			waits = append(waits, s.SubmitExecution(session.ExecutionRequest{
				Provider: "mock", Key: fmt.Sprint("k", i), Digest: "d", Input: fmt.Sprint(i), Config: json.RawMessage(`{}`), Runner: session.Mock{},
			}))
		}
		synctest.Wait()
		release()
		var last session.Seq
		for i, wait := range waits {
			x, err := wait(t.Context())
			if err != nil || x.Seq <= last {
				t.Errorf("execution %d: %+v behind %d, %v", i, x, last, err)
			}
			last = x.Seq
		}
		time.Sleep(time.Second)
		if got := w.since(); strings.Count(got, "acquire") != 1 || strings.Count(got, "refused") != 5 {
			t.Errorf("steps %s", got)
		}
		if m, err := b.store.Session(context.Background(), s.ID); err != nil || m.Owner != "" {
			t.Errorf("owner %q, %v", m.Owner, err)
		}
		checkLog(t, a)
		a.close()
		b.close()
	})
}

func TestAPromptInASessionThatAnotherProcessHasTakenIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a, w := watchedHouse(t, backing, "a", answering())
		w.deaf = true
		gate := make(chan struct{})
		slow := &model{play: func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			<-gate
			yield(finish(session.FinishStop), nil)
		}}
		b := newHouse(t, backing.Open("b"), slow)
		s := a.draft()
		a.prompt(s, "one of a")
		synctest.Wait() // it has looked once, as it does when it begins to listen
		_, ch := ask(b.open(s.ID), session.PromptRequest{Input: "one of b"})
		synctest.Wait()
		_, refused := ask(s, session.PromptRequest{Input: "two of a"})
		if o := <-refused; protocol.KindOf(o.err) != protocol.SessionBusy {
			t.Errorf("a prompt beside a living owner: %+v", o)
		}
		if _, err := s.SubmitExecution(session.ExecutionRequest{Provider: "mock", Config: json.RawMessage(`{}`), Runner: session.Mock{}})(t.Context()); protocol.KindOf(err) != protocol.SessionBusy {
			t.Errorf("an execution beside a living owner: %v", err)
		}
		close(gate)
		<-ch
		synctest.Wait()
		if o := a.prompt(s, "three of a"); o.Outcome != session.OutcomeCompleted {
			t.Errorf("once it is free: %+v", o)
		}
		checkLog(t, a)
		a.close()
		b.close()
	})
}

func TestAnEndThatCannotBeStoredKeepsTheLeaseUntilItCan(t *testing.T) {
	for _, surface := range []string{"prompt", "execution"} {
		t.Run(surface, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f := faultHouse(t, answering())
				s := h.draft()
				h.prompt(s, "a turn before")
				f.FailBatchAt(2, session.ErrFull) // the first takes the lease
				if surface == "prompt" {
					_, ch := ask(s, session.PromptRequest{Input: "go"})
					<-ch
				} else if _, err := s.SubmitExecution(session.ExecutionRequest{Provider: "mock", Config: json.RawMessage(`{"prefix":""}`), Runner: session.Mock{}})(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if m, err := h.store.Session(context.Background(), s.ID); err != nil || m.Owner == "" {
					t.Errorf("owner while the end is not stored: %q, %v", m.Owner, err)
				}
				f.Mend()
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if m, err := h.store.Session(context.Background(), s.ID); err != nil || m.Owner != "" {
					t.Errorf("owner once it is: %q, %v", m.Owner, err)
				}
				checkLog(t, h)
				h.close()
			})
		})
	}
}

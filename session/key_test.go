package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// heldLease is a store whose lease is asked for, but not had before the test says so.
type heldLease struct {
	session.Store
	gate chan struct{}
}

func (l *heldLease) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	<-l.gate
	return l.Store.Acquire(ctx, id)
}

// The key is looked up, then another process is asked the same and does it, then the lease is had.
func TestTheSameKeyFromTwoProcessesDoesTheWorkOnce(t *testing.T) {
	for _, digest := range []string{"d", "another"} {
		synctest.Test(t, func(t *testing.T) {
			backing := memory.NewBacking()
			m := answering()
			b := newHouse(t, backing.Open("b"), m)
			s2 := b.draft()
			b.prompt(s2, "a turn before")

			a := newHouse(t, backing.Open("a"), m)
			store := &heldLease{a.store, make(chan struct{})}
			loop, err := session.NewLoop(session.Loop{Models: m})
			if err != nil {
				t.Fatal(err)
			}
			a.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: time.Now})
			s := a.open(s2.ID)
			_, late := ask(s, session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: digest})
			synctest.Wait()
			_, first := ask(s2, session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"})
			o1 := <-first
			synctest.Wait()
			close(store.gate)
			o2 := <-late
			switch {
			case digest != "d":
				if protocol.KindOf(o2.err) != protocol.IdempotencyConflict {
					t.Errorf("other parameters: %+v, %v", o2.Outcome, o2.err)
				}
			case o1.err != nil || o2.err != nil || o1.Turn != o2.Turn || o2.Answer != "ok":
				t.Errorf("outcomes %+v %v, and %+v %v", o1.Outcome, o1.err, o2.Outcome, o2.err)
			}
			if len(m.requests) != 2 {
				t.Errorf("%d model requests", len(m.requests))
			}
			if o := a.prompt(s, "afterwards"); o.Outcome != session.OutcomeCompleted {
				t.Errorf("afterwards %+v", o)
			}
			checkLog(t, a)
			a.close()
			b.close()
		})
	}
}

// However late it is asked again, a prompt is answered in the request scope its turn was begun in: that is what its tasks are known by.
func TestAPromptOfARequestScopeThatIsAskedTwiceIsAnsweredTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		req := session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d", Scope: true}
		dead := newHouse(t, backing.Open("dead"), hanging())
		s0 := dead.draft()
		ask(s0, req)
		synctest.Wait()
		recorded := ""
		for _, e := range dead.entries(s0.ID) {
			if b, err := protocol.Decode(&e); err != nil {
				t.Fatal(err)
			} else if acc, ok := b.(*protocol.TurnAccepted); ok {
				recorded = acc.More.Scope
			}
		}
		dead.store.Kill()

		m := answering()
		a := newHouse(t, backing.Open("a"), m)
		s := a.open(s0.ID)
		_, c1 := ask(s, req) // goes on with the turn
		_, c2 := ask(s, req) // while it is being gone on with, or runs
		o1, o2 := <-c1, <-c2
		_, c3 := ask(s, req) // it has ended
		b := newHouse(t, backing.Open("b"), m)
		_, c4 := ask(b.open(s0.ID), req)
		for i, o := range []ended{o1, o2, <-c3, <-c4} {
			if o.err != nil || o.Turn != o1.Turn || o.Scope != recorded || recorded == "" || o.Answer != "ok" {
				t.Errorf("answer %d: %+v %v, begun in scope %q", i+1, o.Outcome, o.err, recorded)
			}
		}
		if len(m.requests) != 1 {
			t.Errorf("%d model requests after the first process", len(m.requests))
		}
		checkLog(t, a)
		a.close()
		b.close()
		dead.all.Shutdown(canceled())
		_ = dead.store.Close()
		synctest.Wait()
	})
}

func TestAKeyOfAnotherSurfaceIsAnotherKey(t *testing.T) {
	bubble(t, answering(), nil, func(h *house) {
		s := h.draft()
		_, c1 := ask(s, session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"})
		_, c2 := ask(s, session.PromptRequest{Input: "y", Surface: "acp", Key: "k", Digest: "e"})
		if o1, o2 := <-c1, <-c2; o1.err != nil || o2.err != nil || o1.Turn == o2.Turn {
			t.Errorf("outcomes %+v %v, and %+v %v", o1.Outcome, o1.err, o2.Outcome, o2.err)
		}
	})
}

// What a repeated key is answered with is the turn it was used for, also when others came behind that.
func TestAKeyWhoseTurnEndsWhileTheLeaseIsTakenIsAnsweredWithThatTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		dead := newHouse(t, backing.Open("dead"), hanging())
		s0 := dead.draft()
		req := session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"}
		ask(s0, req)
		synctest.Wait()
		dead.store.Kill()

		m := answering()
		a := newHouse(t, backing.Open("a"), m)
		store := &heldLease{a.store, make(chan struct{})}
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		a.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: time.Now})
		s := a.open(s0.ID)
		_, again := ask(s, req)
		_, behind := ask(s, session.PromptRequest{Input: "behind it"})
		synctest.Wait()
		b := newHouse(t, backing.Open("b"), m)
		s2 := b.open(s0.ID)
		fresh := b.prompt(s2, "closes it") // and is the newest turn
		synctest.Wait()
		close(store.gate)
		if o := <-again; o.err != nil || o.Outcome.Outcome != session.OutcomeFailed || o.Turn == fresh.Turn {
			t.Errorf("the repeated prompt: %+v %v", o.Outcome, o.err)
		}
		if o := <-behind; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("the prompt behind it: %+v %v", o.Outcome, o.err)
		}
		checkLog(t, a)
		a.close()
		b.close()
		dead.all.Shutdown(canceled())
		_ = dead.store.Close()
		synctest.Wait()
	})
}

package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func answering() *model { return say([]session.Chunk{text("ok"), finish(session.FinishStop)}) }

func TestADraftLeavesNothingUntilItIsUsed(t *testing.T) {
	bubble(t, answering(), nil, func(h *house) {
		s := h.draft()
		mode := "edit"
		done := make(chan error, 1)
		s.Change(session.Change{Mode: &mode}, func(_ session.Selection, applies string, err error) {
			if applies != "now" {
				t.Errorf("applies %q", applies)
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		s.Rename("My name", func(string, error) { done <- nil })
		<-done
		if _, err := h.store.Session(context.Background(), s.ID); err == nil {
			t.Error("the draft is in the store")
		}
		h.prompt(s, "now it is used, with a long text that makes no title")
		h.view(s, func(v *session.View) {
			if v.Sel.Mode != "edit" || v.Title != "My name" || v.Draft {
				t.Errorf("mode %q, title %q, draft %v", v.Sel.Mode, v.Title, v.Draft)
			}
		})
		synctest.Wait() // the lease is given back behind the answer
		m, err := h.store.Session(context.Background(), s.ID)
		if err != nil || m.Title != "My name" || !m.UserPrompt || m.Owner != "" {
			t.Errorf("stored row %+v, %v: an idle session is owned by nobody", m, err)
		}
	})
}

func TestTheTitleIsTheFirstFortyCharactersOfTheFirstText(t *testing.T) {
	bubble(t, answering(), nil, func(h *house) {
		s := h.draft()
		h.prompt(s, strings.Repeat("é", 50))
		h.prompt(s, "another")
		h.view(s, func(v *session.View) {
			if v.Title != strings.Repeat("é", 40) || v.Messages != 4 {
				t.Errorf("title %q, messages %d", v.Title, v.Messages)
			}
		})
	})
}

func TestAnIdempotencyKeyDoesTheWorkOnceAlsoAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		m := answering()
		a := newHouse(t, backing.Open("a"), m)
		s := a.draft()
		req := session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"}
		_, c1 := ask(s, req)
		_, c2 := ask(s, req)
		o1, o2 := <-c1, <-c2
		if o1.err != nil || o2.err != nil || o1.Turn != o2.Turn || len(m.requests) != 1 {
			t.Errorf("outcomes %+v, %+v after %d requests", o1, o2, len(m.requests))
		}
		other := req
		other.Digest = "e"
		_, c3 := ask(s, other)
		if o := <-c3; protocol.KindOf(o.err) != protocol.IdempotencyConflict {
			t.Errorf("other params: %+v", o)
		}
		a.close()
		b := newHouse(t, backing.Open("b"), m)
		s2 := b.open(s.ID)
		_, c4 := ask(s2, req)
		if o := <-c4; o.err != nil || o.Turn != o1.Turn || o.Outcome.Outcome != session.OutcomeCompleted || o.Answer != "ok" || o.Seq != o1.Seq {
			t.Errorf("after a restart %+v, first %+v", o, o1)
		}
		if len(m.requests) != 1 {
			t.Errorf("%d model requests", len(m.requests))
		}
		checkLog(t, b)
		b.close()
	})
}

func TestARepeatedPromptBesideANewOneIsAnsweredWithTheEndTheNewOneGaveItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		stuck := &model{play: func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			<-ctx.Done()
			yield(session.Chunk{}, context.Cause(ctx))
		}}
		a := newHouse(t, backing.Open("a"), stuck)
		s := a.draft()
		req := session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d"}
		ask(s, req)
		synctest.Wait()
		a.store.Kill()

		m := answering()
		b := newHouse(t, backing.Open("b"), m)
		s2 := b.open(s.ID)
		_, fresh := ask(s2, session.PromptRequest{Input: "y"})
		_, again := ask(s2, req)
		if o := <-fresh; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("the new prompt ended as %+v", o)
		}
		if o := <-again; o.err != nil || o.Outcome.Outcome != session.OutcomeFailed || o.Fault == nil || o.Fault.Type != protocol.FailTurn {
			t.Errorf("the repeated one ended as %+v", o)
		}
		if len(m.requests) != 1 {
			t.Errorf("%d model requests, want that of the new prompt alone", len(m.requests))
		}
		checkLog(t, b)
		b.close()
		a.all.Shutdown(canceled())
		_ = a.store.Close()
		synctest.Wait()
	})
}

func TestAForkHoldsTheMessagesBeforeItsPointAndNothingElse(t *testing.T) {
	m := say(append(callChunks("c1", "look", `{}`), finish(session.FinishCalls)), []session.Chunk{text("first"), finish(session.FinishStop)}, []session.Chunk{text("later"), finish(session.FinishStop)})
	bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
		s := h.draft()
		if _, err := s.Fork(context.Background(), ""); protocol.KindOf(err) != protocol.InvalidRequest {
			t.Errorf("fork of a draft: %v", err)
		}
		h.prompt(s, "one")
		h.prompt(s, "two")
		var second, answer string
		for _, m := range h.wire(s) {
			if m.Role == session.RoleUser {
				second = m.ID
			}
			if m.Role == session.RoleAssistant {
				answer = m.ID
			}
		}
		if _, err := s.Fork(context.Background(), answer); err == nil || !strings.Contains(err.Error(), "Fork point must be a user message.") {
			t.Errorf("fork before an answer: %v", err)
		}
		if _, err := s.Fork(context.Background(), "nope"); err == nil || !strings.Contains(err.Error(), "Fork message not found.") {
			t.Errorf("fork before nothing: %v", err)
		}
		f, err := s.Fork(context.Background(), second)
		if err != nil {
			t.Fatal(err)
		}
		var roles []string
		for _, m := range h.wire(f) {
			roles = append(roles, string(m.Role))
		}
		h.view(f, func(v *session.View) {
			if got := strings.Join(roles, " "); got != "system user assistant tool assistant" || v.HeadCursor != 0 || v.TurnState() != nil || v.Parent != s.ID || v.Messages != 4 {
				t.Errorf("fork has %s, head cursor %d, turn %+v, parent %s, %d messages", got, v.HeadCursor, v.TurnState(), v.Parent, v.Messages)
			}
		})
		before := len(m.requests)
		h.prompt(f, "three")
		msgs := m.requests[before].Messages
		checkHistory(t, msgs)
		if len(msgs) != 5 || msgs[4].Text != "three" {
			t.Errorf("the model of the fork is given %d messages", len(msgs))
		}
		f.Close()
	})
}

// busied is a store on which something happens while the lease is asked for.
type busied struct {
	session.Store
	meanwhile func()
}

func (b *busied) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	if f := b.meanwhile; f != nil {
		b.meanwhile = nil
		f()
	}
	return b.Store.Acquire(ctx, id)
}

func TestWhatAnotherProcessAppendsWhileTheLeaseIsRefusedIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		say := make(chan string)
		m := &model{play: func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			yield(text("one"), nil)
			yield(text(<-say), nil)
			<-ctx.Done()
			yield(session.Chunk{}, context.Cause(ctx))
		}}
		a := newHouse(t, backing.Open("a"), m)
		s := a.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()

		mem := backing.Open("b")
		store := &busied{Store: mem}
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		b := &house{t: t, store: mem, model: m}
		b.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: time.Now})
		s2 := b.open(s.ID)
		synctest.Wait()
		store.meanwhile = func() {
			say <- " two"
			time.Sleep(time.Second) // it is gathered, stored, and the bell has rung
			synctest.Wait()
		}
		_, busy := ask(s2, session.PromptRequest{Input: "y"})
		if o := <-busy; protocol.KindOf(o.err) != protocol.SessionBusy {
			t.Errorf("prompt beside a living owner: %+v", o)
		}
		synctest.Wait()
		b.view(s2, func(v *session.View) {
			if _, open := v.OpenMessage(); open != "one two" {
				t.Errorf("the open message is followed as %q", open)
			}
		})
		a.close()
		<-ch
		b.close()
	})
}

func TestAnotherProcessFollowsAndCancelsAndAnswersAndIsOtherwiseBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		m := &model{}
		m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			if len(m.requests) == 1 {
				for _, c := range append(callChunks("c1", "do", `{}`), finish(session.FinishCalls)) {
					yield(c, nil)
				}
				return
			}
			yield(text("going"), nil)
			<-ctx.Done()
			yield(session.Chunk{}, context.Cause(ctx))
		}
		ran := 0
		act := writeTool("do", func() string { ran++; return "did" })
		a := newHouse(t, backing.Open("a"), m, act)
		s := a.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()

		b := newHouse(t, backing.Open("b"), answering(), act)
		s2 := b.open(s.ID)
		rings := 0
		var action string
		b.view(s2, func(v *session.View) {
			v.Follow(func() { rings++ }, nil, nil)
			if lt := v.Live(true); lt == nil || len(lt.Approvals) != 1 || v.Hosted {
				t.Fatalf("live turn from the other process %+v", lt)
			}
			action = v.Live(true).Approvals[0].ActionID
		})
		_, busy := ask(s2, session.PromptRequest{Input: "y"})
		if o := <-busy; protocol.KindOf(o.err) != protocol.SessionBusy {
			t.Errorf("prompt beside a living owner: %+v", o)
		}
		done := make(chan error, 1)
		s2.ResolveApproval(action, "allow_once", func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Errorf("answer from the other process: %v", err)
		}
		synctest.Wait()
		if ran != 1 || rings == 0 {
			t.Errorf("the tool ran %d times, %d rings", ran, rings)
		}
		s2.ResolveApproval(action, "allow_once", func(err error) { done <- err })
		if err := <-done; protocol.KindOf(err) != protocol.ActionAlreadyResolved {
			t.Errorf("second answer: %v", err)
		}
		b.view(s2, func(v *session.View) {
			if _, open := v.OpenMessage(); open != "going" {
				t.Errorf("the open message is followed as %q", open)
			}
		})
		s2.Cancel(session.CancelRequest{}, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Errorf("cancel from the other process: %v", err)
		}
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCancelled {
			t.Errorf("outcome %+v", o)
		}
		synctest.Wait()
		if o := b.prompt(s2, "now it is free"); o.Outcome != session.OutcomeCompleted {
			t.Errorf("prompt after the owner is idle: %+v", o)
		}
		checkLog(t, b)
		b.close()
		a.close()
	})
}

// lateEars is a store whose doorbells are heard late.
type lateEars struct {
	session.Store
	gate chan struct{}
}

func (l lateEars) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	<-l.gate
	return l.Store.Watch(ctx)
}

func TestWhatAnotherProcessAppendsBeforeDoorbellsAreHeardIsFollowedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a := newHouse(t, backing.Open("a"), answering())
		s := a.draft()
		a.prompt(s, "one")
		own := backing.Open("b")
		ears := lateEars{own, make(chan struct{})}
		m := answering()
		loop, err := session.NewLoop(session.Loop{Models: m})
		if err != nil {
			t.Fatal(err)
		}
		b := &house{t: t, store: own, model: m}
		b.all = session.NewSessions(session.Config{Store: ears, Agent: loop, Models: m, Now: time.Now})
		s2 := b.open(s.ID)
		synctest.Wait()
		a.prompt(s, "two")
		synctest.Wait()
		close(ears.gate)
		synctest.Wait()
		var here, there session.Seq
		a.view(s, func(v *session.View) { there = v.Head })
		b.view(s2, func(v *session.View) { here = v.Head })
		if here != there {
			t.Errorf("followed to entry %d of %d", here, there)
		}
		b.close()
		a.close()
	})
}

func TestDeletingTakesTheBytesAndIsRefusedDuringATurn(t *testing.T) {
	gate := make(chan struct{})
	m := &model{}
	m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		<-gate
		yield(finish(session.FinishStop), nil)
	}
	synctest.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		if err := h.all.Delete(context.Background(), s.ID); protocol.KindOf(err) != protocol.TurnActive {
			t.Errorf("delete during a turn: %v", err)
		}
		close(gate)
		<-ch
		synctest.Wait()
		if err := h.all.Delete(context.Background(), s.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := h.all.Open(context.Background(), "20200101_000000_00000000"); protocol.KindOf(err) != protocol.SessionNotFound {
			t.Errorf("unknown session: %v", err)
		}
		_, gone := ask(s, session.PromptRequest{Input: "y"})
		if o := <-gone; protocol.KindOf(o.err) != protocol.SessionNotFound {
			t.Errorf("prompt in a deleted session: %+v", o)
		}
		h.close()
	})
}

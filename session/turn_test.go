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

func TestTextTurnHasTheContractsOrder(t *testing.T) {
	m := say([]session.Chunk{text("Hello"), text(" world"), {Kind: session.ChunkUsage, Usage: session.Usage{Input: 10, Output: 2}}, finish(session.FinishStop)})
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		o := h.prompt(s, "hi")
		if o.Outcome != session.OutcomeCompleted || o.Stop != "end_turn" || o.Answer != "Hello world" {
			t.Errorf("outcome %+v", o)
		}
		want := "session_created turn_accepted user_message turn_started context_built assistant_delta token_stats_updated assistant_message_completed turn_completed"
		es := h.entries(s.ID)
		if got := kinds(es); got != want {
			t.Errorf("log\n got %s\nwant %s", got, want)
		}
		if o.Seq != es[len(es)-1].Seq {
			t.Errorf("outcome at %d, terminal at %d", o.Seq, es[len(es)-1].Seq)
		}
		h.view(s, func(v *session.View) {
			if v.Title != "hi" || v.Messages != 2 || v.Draft || v.TurnState().Status != "completed" {
				t.Errorf("state: title %q, messages %d, draft %v, turn %+v", v.Title, v.Messages, v.Draft, v.TurnState())
			}
		})
	})
}

func TestToolTurnRecordsRequestStartResult(t *testing.T) {
	m := say(append(callChunks("c1", "look", `{"path":"a"}`), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
	ran := 0
	bubble(t, m, []session.Tool{readTool("look", func() string { ran++; return "seen" })}, func(h *house) {
		s := h.draft()
		h.prompt(s, "go")
		want := "session_created turn_accepted user_message turn_started context_built tool_input_started tool_input_delta tool_input_ended token_stats_updated tool_requested tool_call_started tool_result context_built assistant_delta token_stats_updated assistant_message_completed turn_completed"
		if got := kinds(h.entries(s.ID)); got != want {
			t.Errorf("log\n got %s\nwant %s", got, want)
		}
		if ran != 1 {
			t.Errorf("tool ran %d times", ran)
		}
		last := m.requests[1].Messages
		if r := last[len(last)-1]; r.Role != session.RoleTool || r.CallID != "c1" || !strings.Contains(r.Text, `"data":"seen"`) || r.Failed {
			t.Errorf("model was given %+v", r)
		}
	})
}

func TestCancelWhileStreamingKeepsTheTextAndEndsOnce(t *testing.T) {
	m := &model{}
	m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		yield(text("par"), nil)
		<-ctx.Done()
		yield(session.Chunk{}, context.Cause(ctx))
	}
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		acked := make(chan error, 2)
		s.Cancel(session.CancelRequest{}, func(err error) { acked <- err })
		if err := <-acked; err != nil {
			t.Fatal(err)
		}
		if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCancelled || o.Reason != protocol.ReasonUser {
			t.Errorf("outcome %+v", o)
		}
		if got := kinds(h.entries(s.ID)); !strings.HasSuffix(got, "assistant_delta cancel_requested assistant_message_completed turn_cancelled") {
			t.Errorf("log %s", got)
		}
		s.Cancel(session.CancelRequest{}, func(err error) { acked <- err })
		if err := <-acked; protocol.KindOf(err) != protocol.TurnNotActive {
			t.Errorf("cancel of nothing: %v", err)
		}
		m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
			yield(text("ok"), nil)
			yield(finish(session.FinishStop), nil)
		}
		h.prompt(s, "again")
		msgs := m.requests[len(m.requests)-1].Messages
		if msgs[1].Text != "par\n\n[This message was cut off here.]" {
			t.Errorf("the model is told %q", msgs[1].Text)
		}
	})
}

func TestPromptsWaitInLineAndTheNinthIsRefused(t *testing.T) {
	gate := make(chan struct{})
	m := &model{}
	m.play = func(ctx context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		select {
		case <-gate:
		case <-ctx.Done():
			yield(session.Chunk{}, context.Cause(ctx))
			return
		}
		yield(text("ok"), nil)
		yield(finish(session.FinishStop), nil)
	}
	synctest.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		var waits []chan ended
		var positions []int
		for i := range 9 {
			_, ch := ask(s, session.PromptRequest{Input: string(rune('a' + i)), Queued: func(p int) {
				if i == 8 {
					positions = append(positions, p)
				}
			}})
			waits = append(waits, ch)
		}
		_, ninth := ask(s, session.PromptRequest{Input: "z"})
		if o := <-ninth; protocol.KindOf(o.err) != protocol.SessionBusy {
			t.Errorf("ninth waiting prompt: %+v", o)
		}
		close(gate)
		for i, ch := range waits {
			if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
				t.Errorf("prompt %d: %+v", i, o)
			}
		}
		if len(positions) != 8 || positions[0] != 8 || positions[7] != 1 {
			t.Errorf("positions of the last: %v", positions)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestSteeringAndFollowUpAreDeliveredInTheSameTurn(t *testing.T) {
	gate := make(chan struct{})
	m := &model{}
	m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		if len(m.requests) == 1 {
			yield(text("first"), nil)
			<-gate
		} else {
			yield(text("more"), nil)
		}
		yield(finish(session.FinishStop), nil)
	}
	synctest.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		res := make(chan session.InputResult, 9)
		add := func(mode, in string) session.InputResult {
			s.Enqueue(mode, in, "", func(r session.InputResult, err error) {
				if err != nil {
					t.Error(err)
				}
				res <- r
			})
			return <-res
		}
		f1 := add(protocol.ModeFollowUp, "f1")
		add(protocol.ModeFollowUp, "f2")
		st := add(protocol.ModeSteering, " st ")
		s.Retrieve(protocol.ModeFollowUp, "", func(r session.InputResult, err error) { res <- r })
		if r := <-res; r.Input != "f2" || r.Pending != 1 {
			t.Errorf("retrieved %+v", r)
		}
		close(gate)
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCompleted {
			t.Errorf("outcome %+v", o)
		}
		var order []string
		for _, e := range h.entries(s.ID) {
			if b, _ := protocol.Decode(&e); b != nil {
				if d, ok := b.(*protocol.QueuedInputDelivered); ok {
					order = append(order, d.InputID)
				}
			}
		}
		if len(order) != 2 || order[0] != st.ID || order[1] != f1.ID {
			t.Errorf("delivered %v, want %s then %s", order, st.ID, f1.ID)
		}
		if len(m.requests) != 3 {
			t.Errorf("%d model requests, want 3", len(m.requests))
		}
		checkLog(t, h)
		h.close()
	})
}

func TestApprovalOutlivesItsProcessAndTheToolRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		ran := 0
		m := say(append(callChunks("c1", "do", `{}`), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
		act := writeTool("do", func() string { ran++; return "did" })
		a := newHouse(t, backing.Open("a"), m, act)
		s := a.draft()
		_, ch := ask(s, session.PromptRequest{Input: "x"})
		synctest.Wait()
		var action string
		a.view(s, func(v *session.View) {
			lt := v.Live(true)
			if lt == nil || len(lt.Approvals) != 1 || !v.TurnState().Waiting {
				t.Fatalf("live turn %+v", lt)
			}
			action = lt.Approvals[0].ActionID
		})
		a.close()
		if o := <-ch; o.Outcome.Outcome != session.OutcomeWaiting || o.Stop != "shutdown" {
			t.Errorf("outcome at the end of the process: %+v", o)
		}

		b := newHouse(t, backing.Open("b"), m, act)
		s2 := b.open(s.ID)
		b.view(s2, func(v *session.View) {
			if lt := v.Live(true); lt == nil || lt.Approvals[0].ActionID != action || v.Hosted {
				t.Errorf("after restart: %+v", lt)
			}
		})
		done := make(chan error, 1)
		s2.ResolveApproval(action, "nope", func(err error) { done <- err })
		if err := <-done; protocol.KindOf(err) != protocol.InvalidRequest {
			t.Errorf("unknown option: %v", err)
		}
		s2.ResolveApproval(action, "allow_once", func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s2.ResolveApproval(action, "allow_once", func(err error) { done <- err })
		if err := <-done; protocol.KindOf(err) != protocol.ActionAlreadyResolved {
			t.Errorf("second answer: %v", err)
		}
		if ran != 1 {
			t.Errorf("the tool ran %d times", ran)
		}
		if got := kinds(b.entries(s.ID)); strings.Count(got, "turn_started") != 1 || !strings.HasSuffix(got, "approval_requested approval_resolved tool_call_started tool_result context_built assistant_delta token_stats_updated assistant_message_completed turn_completed") {
			t.Errorf("log %s", got)
		}
		checkLog(t, b)
		b.close()
	})
}

func TestCrashedTurnIsClosedByTheNextPromptAndNothingRunsAgain(t *testing.T) {
	for _, way := range []string{"prompt", "resume", "cancel"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backing := memory.NewBacking()
				ran := 0
				hang := &tool{spec: writeTool("do", nil).spec, run: func(ctx context.Context, _ session.ToolCall, _ session.Progress) (session.ToolResult, error) {
					ran++
					<-ctx.Done()
					return session.ToolResult{}, context.Cause(ctx)
				}}
				hang.spec.Kind = "think" // needs no consent, may not run again
				first := say(append(append(callChunks("c1", "do", `{}`), callChunks("c2", "do", `{}`)...), finish(session.FinishCalls)))
				a := newHouse(t, backing.Open("a"), first, hang)
				s := a.draft()
				ask(s, session.PromptRequest{Input: "x"})
				synctest.Wait()
				a.store.Kill() // kill -9: nothing it does from now on is stored
				before := len(mustRead(t, backing, s.ID))

				m := say([]session.Chunk{text("ok"), finish(session.FinishStop)})
				quick := &tool{spec: hang.spec, run: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
					ran++
					return session.ToolResult{Data: "x"}, nil
				}}
				b := newHouse(t, backing.Open("b"), m, quick)
				s2 := b.open(s.ID)
				if n := len(b.entries(s.ID)); n != before {
					t.Errorf("opening wrote %d entries", n-before)
				}
				b.view(s2, func(v *session.View) {
					if ts := v.TurnState(); ts.Status != "running" || ts.Waiting || v.Live(true) != nil {
						t.Errorf("interrupted turn shows %+v, live %v", ts, v.Live(true))
					}
				})
				switch way {
				case "prompt":
					b.prompt(s2, "go on")
					if got := kinds(b.entries(s.ID)[before:]); !strings.HasPrefix(got, "tool_result tool_result turn_failed turn_accepted") {
						t.Errorf("log %s", got)
					}
					if ran != 1 {
						t.Errorf("tool ran %d times", ran)
					}
				case "resume":
					_, ch := ask(s2, session.PromptRequest{Resume: true})
					if o := <-ch; o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
						t.Fatalf("resume: %+v", o)
					}
					if got := kinds(b.entries(s.ID)[before:]); !strings.HasPrefix(got, "turn_started tool_result tool_call_started tool_result context_built") {
						t.Errorf("log %s", got)
					}
					if ran != 2 { // c1 is unknown and not run again, c2 never started and runs
						t.Errorf("tool ran %d times", ran)
					}
				case "cancel":
					done := make(chan error, 1)
					s2.Cancel(session.CancelRequest{}, func(err error) { done <- err })
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if got := kinds(b.entries(s.ID)[before:]); got != "cancel_requested tool_result tool_result turn_cancelled" {
						t.Errorf("log %s", got)
					}
				}
				b.prompt(s2, "next")
				for _, r := range m.requests {
					checkHistory(t, r.Messages)
				}
				checkLog(t, b)
				b.close()
				a.all.Shutdown(canceled())
				_ = a.store.Close()
				time.Sleep(10 * time.Second)
				synctest.Wait()
			})
		})
	}
}

func TestATurnThatWasBeingCancelledWhenItsProcessDiedEndsAsThatCancelSaid(t *testing.T) {
	for _, way := range []string{"resume", "the same key", "a prompt", "compact", "a second cancel"} {
		for given, want := range map[string]string{"": protocol.ReasonUser, "enough": "enough"} {
			t.Run(way+" "+want, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					backing := memory.NewBacking()
					let := make(chan struct{})
					deaf := writeTool("do", nil)
					deaf.spec.Kind = "think"
					deaf.run = func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
						<-let
						return session.ToolResult{}, nil
					}
					a := newHouse(t, backing.Open("a"), say(append(callChunks("c1", "do", `{}`), finish(session.FinishCalls))), deaf)
					s := a.draft()
					var turn session.TurnID
					asked := session.PromptRequest{Input: "x", Surface: "rind", Key: "k", Digest: "d", Started: func(id session.TurnID) { turn = id }}
					ask(s, asked)
					synctest.Wait()
					acked := make(chan error, 1)
					s.Cancel(session.CancelRequest{Reason: given, Given: given != ""}, func(err error) { acked <- err })
					if err := <-acked; err != nil {
						t.Fatal(err)
					}
					a.store.Kill()

					ran := 0
					b := newHouse(t, backing.Open("b"), say(done()), writeTool("do", func() string { ran++; return "" }))
					s2 := b.open(s.ID)
					var first, compacted ended
					switch way {
					case "resume":
						_, ch := ask(s2, session.PromptRequest{Resume: true})
						first = <-ch
					case "the same key":
						_, ch := ask(s2, asked)
						first = <-ch
					case "a prompt":
						b.prompt(s2, "on")
					case "compact":
						compacted = compactNow(s2)
					default:
						s2.Cancel(session.CancelRequest{Reason: "another"}, func(err error) { acked <- err })
						if err := <-acked; err != nil {
							t.Fatal(err)
						}
					}
					if (way == "resume" || way == "the same key") && (first.err != nil || first.Outcome.Outcome != session.OutcomeCancelled || first.Reason != want) {
						t.Errorf("outcome %+v", first)
					}
					if compacted.err != nil {
						t.Errorf("compact: %v", compacted.err)
					}
					b.prompt(s2, "and on")
					var ends []string
					for _, e := range b.entries(s.ID) {
						if e.Turn != turn {
							continue
						}
						switch body, _ := protocol.Decode(&e); body := body.(type) {
						case *protocol.TurnCancelled:
							ends = append(ends, body.Reason+"/"+body.More.Reason)
						case *protocol.ToolResult:
							ends = append(ends, body.Status)
						case *protocol.TurnStarted:
							ends = append(ends, body.Origin)
						}
					}
					if got := strings.Join(ends, " "); got != "user unknown "+want+"/"+given || ran > 0 {
						t.Errorf("the turn went %s, the tool ran %d times", got, ran)
					}
					checkLog(t, b)
					b.close()
					close(let)
					a.all.Shutdown(canceled())
					_ = a.store.Close()
					time.Sleep(10 * time.Second)
					synctest.Wait()
				})
			})
		}
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func mustRead(t *testing.T, b *memory.Backing, id session.SessionID) []session.Entry {
	t.Helper()
	st := b.Open("reader")
	defer st.Close()
	es, err := st.Read(context.Background(), id, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		t.Fatal(err)
	}
	return es
}

// checkHistory is a strict provider: every call has exactly one result in the messages right behind it.
func checkHistory(t *testing.T, msgs []session.Message) {
	t.Helper()
	for i := 0; i < len(msgs); i++ {
		if msgs[i].Role == session.RoleTool {
			t.Errorf("message %d: result without a call", i)
		}
		want := map[string]bool{}
		for _, c := range msgs[i].Calls {
			want[c.ID] = true
		}
		for n := len(want); n > 0; n-- {
			i++
			if i >= len(msgs) || msgs[i].Role != session.RoleTool || !want[msgs[i].CallID] {
				t.Errorf("message %d: a call has no result", i)
				return
			}
			delete(want, msgs[i].CallID)
		}
	}
}

package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// compactNow compacts and returns the outcome.
func compactNow(s *session.Session) ended {
	ch := make(chan ended, 1)
	s.Compact(func(o session.Outcome, err error) { ch <- ended{o, err} })
	return <-ch
}

func record(t *testing.T, raw json.RawMessage) protocol.Compaction {
	t.Helper()
	var rec protocol.Compaction
	if err := json.Unmarshal(raw, &rec); err != nil {
		t.Fatalf("record %s: %v", raw, err)
	}
	return rec
}

// texts joins role and text of the messages a request held.
func texts(r session.ModelRequest) string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Text)
	}
	return b.String()
}

func TestAManualCompactionReplacesTheModelsViewAndNothingElse(t *testing.T) {
	m := say(done(), append(callChunks("c1", "look", `{"path":"a.go"}`), finish(session.FinishCalls)), done(), []session.Chunk{text("what was done"), finish(session.FinishStop)}, done())
	bubble(t, m, []session.Tool{readTool("look", func() string { return "seen" })}, func(h *house) {
		s := h.draft()
		if o := compactNow(s); protocol.KindOf(o.err) != protocol.InvalidRequest || !strings.HasSuffix(o.err.Error(), "Not enough messages to compact. Send a message first.") {
			t.Errorf("a draft: %v", o.err)
		}
		h.prompt(s, "first words")
		h.prompt(s, "second words")
		before := h.wire(s)
		o := compactNow(s)
		if o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Fatalf("compact: %+v", o)
		}
		rec := record(t, o.Record)
		if rec.Strategy != protocol.CompactByModel || rec.Reason != protocol.CompactManual || rec.PolicyVersion != "compact_boundary_v3" || len(rec.ID) != 32 ||
			rec.Source.MessageStartIndex != 1 || rec.Source.MessageEndIndexExclusive != len(before) || strings.Join(rec.Source.ToolCallIDs, " ") != "c1" ||
			rec.HandoffMessage != (protocol.CompactionMessage{Role: "assistant", Content: "what was done"}) || !strings.Contains(rec.ContinuationUserMessage.Content, "second words") {
			t.Errorf("record %+v", rec)
		}
		es := h.entries(s.ID)
		if got := kinds(es); !strings.HasSuffix(got, "turn_completed turn_started token_stats_updated context_compacted turn_completed") {
			t.Errorf("log %s", got)
		}
		if again := compactNow(s); protocol.KindOf(again.err) != protocol.InvalidRequest {
			t.Errorf("again at once: %+v", again)
		}
		after := h.wire(s)
		if fmt.Sprint(len(before)) != fmt.Sprint(len(after)) || *after[1].Content != "first words" {
			t.Errorf("message mode had %d messages and has %d", len(before), len(after))
		}
		h.prompt(s, "third words")
		got := texts(m.requests[len(m.requests)-1])
		if strings.Contains(got, "first words") || strings.Contains(got, "seen") || !strings.Contains(got, "assistant: what was done\nuser: third words\n") {
			t.Errorf("the model was given\n%s", got)
		}
		// Another process sees the same.
		st := compactNow(s)
		if rec := record(t, st.Record); rec.Source.MessageStartIndex != len(before) || rec.Source.MessageEndIndexExclusive != len(before)+2 {
			t.Errorf("second source %+v", rec.Source)
		}
	})
}

func TestACompactionWithoutAModelKeepsWhatWasSaid(t *testing.T) {
	m := say(done())
	play := m.play
	broken := false
	m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
		if broken {
			yield(session.Chunk{}, &session.ModelError{Fault: session.FaultRejected, Status: 400, Message: "no such thing"})
			return
		}
		play(ctx, r, yield)
	}
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		h.prompt(s, "remember the number 4711")
		broken = true
		o := compactNow(s)
		if o.err != nil || o.Outcome.Outcome != session.OutcomeCompleted {
			t.Fatalf("compact: %+v", o)
		}
		rec := record(t, o.Record)
		if rec.Strategy != protocol.CompactWithout || rec.FallbackError != "no such thing" || !strings.Contains(rec.HandoffMessage.Content, "4711") {
			t.Errorf("record %+v", rec)
		}
		broken = false
		h.prompt(s, "on")
	})
}

func TestAFullWindowIsCompactedWithinTheTurnAndTheTurnGoesOn(t *testing.T) {
	long := strings.Repeat("words ", 30_000) // 45,000 tokens of a window of 100,000
	m := say(
		append(callChunks("c1", "look", `{}`), finish(session.FinishCalls)),
		append(callChunks("c2", "look", `{}`), finish(session.FinishCalls)),
		[]session.Chunk{text("summary of it all"), finish(session.FinishStop)},
		done(),
	)
	big := readTool("look", nil)
	big.run = func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
		return session.ToolResult{Data: "x", Attachments: []protocol.Part{{Kind: "text", Text: long}}}, nil
	}
	bubble(t, m, []session.Tool{big}, func(h *house) {
		s := h.draft()
		h.prompt(s, "look twice")
		got := kinds(h.entries(s.ID))
		if strings.Count(got, "context_compacted") != 1 ||
			!strings.HasSuffix(got, "tool_result context_built token_stats_updated context_compacted context_built assistant_delta token_stats_updated assistant_message_completed turn_completed") {
			t.Errorf("log %s", got)
		}
		if n := strings.Count(texts(m.requests[len(m.requests)-1]), "summary of it all"); n != 1 {
			t.Errorf("the last request holds the summary %d times:\n%.500s", n, texts(m.requests[len(m.requests)-1]))
		}
		for _, r := range m.requests {
			if err := session.CheckMessages(r.Messages); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAStepThatIsTooLongForTheModelIsCompactedOnceThenShortenedAndTriedFourTimesInAll(t *testing.T) {
	for _, takes := range []int{1, 2, 3, 9} { // requests of the step that are refused
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			m := say(done())
			refused := 0
			m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
				last := r.Messages[len(r.Messages)-1].Text
				switch {
				case strings.HasPrefix(last, "The conversation is about to be replaced"):
					_ = yield(text("summary"), nil) && yield(finish(session.FinishStop), nil)
				case len(m.requests) > 1 && refused < takes:
					refused++
					yield(session.Chunk{}, &session.ModelError{Fault: session.FaultContext, Status: 400, Message: "too long"})
				default:
					_ = yield(text("done"), nil) && yield(finish(session.FinishStop), nil)
				}
			}
			bubble(t, m, nil, func(h *house) {
				s := h.draft()
				h.prompt(s, "one")
				o := h.prompt(s, "two")
				if want := map[bool]string{true: session.OutcomeCompleted, false: session.OutcomeFailed}[takes <= 2]; o.Outcome != want {
					t.Errorf("outcome %+v", o)
				}
				if n := len(m.requests) - 1; n > 4 {
					t.Errorf("%d requests for the step", n)
				}
				if got := kinds(h.entries(s.ID)); strings.Count(got, "context_compacted") != 1 {
					t.Errorf("log %s", got)
				}
			})
		})
	}
}

func TestInputsDuringACompactionGetTheirSamplingAndACancelEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		m := say(done())
		m.play = func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			if last := r.Messages[len(r.Messages)-1].Text; strings.HasPrefix(last, "The conversation is about to be replaced") {
				select {
				case <-hold:
				case <-ctx.Done():
					yield(session.Chunk{}, context.Cause(ctx))
					return
				}
			}
			_ = yield(text("done"), nil) && yield(finish(session.FinishStop), nil)
		}
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		h.prompt(s, "one")
		ch := make(chan ended, 1)
		s.Compact(func(o session.Outcome, err error) { ch <- ended{o, err} })
		synctest.Wait()
		if o := compactNow(s); protocol.KindOf(o.err) != protocol.TurnActive {
			t.Errorf("a second one meanwhile: %v", o.err)
		}
		in := make(chan error, 1)
		s.Enqueue(protocol.ModeSteering, "and this", "", func(_ session.InputResult, err error) { in <- err })
		if err := <-in; err != nil {
			t.Fatal(err)
		}
		close(hold)
		if o := <-ch; o.err != nil || o.Record == nil {
			t.Errorf("outcome %+v", o)
		}
		if got := kinds(h.entries(s.ID)); !strings.HasSuffix(got, "turn_started input_accepted token_stats_updated context_compacted queued_input_delivered context_built assistant_delta token_stats_updated assistant_message_completed turn_completed") {
			t.Errorf("log %s", got)
		}
		hold = make(chan struct{})
		s.Compact(func(o session.Outcome, err error) { ch <- ended{o, err} })
		synctest.Wait()
		s.Cancel(session.CancelRequest{}, func(error) {})
		if o := <-ch; o.Outcome.Outcome != session.OutcomeCancelled || o.Record != nil {
			t.Errorf("cancelled: %+v", o)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestAPromptThatComesWhenTheWindowIsFullStaysAsItWasSaid(t *testing.T) {
	long := strings.Repeat("words ", 70_000) // more than the window of 100,000 tokens
	m := say([]session.Chunk{text(long), finish(session.FinishStop)}, []session.Chunk{text("summary"), finish(session.FinishStop)}, done())
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		h.prompt(s, "write much")
		h.prompt(s, "and now something else")
		if got := kinds(h.entries(s.ID)); strings.Count(got, "context_compacted") != 1 {
			t.Errorf("log %s", got)
		}
		if asked := texts(m.requests[1]); strings.Contains(asked, "something else") || !strings.Contains(asked, "about to be replaced") {
			t.Errorf("the summary was asked for with\n%.300s … %.300s", asked, asked[max(0, len(asked)-300):])
		}
		if got := texts(m.requests[2]); !strings.HasSuffix(got, "assistant: summary\nuser: and now something else\n") || strings.Contains(got, "words words") {
			t.Errorf("the model was given\n%.600s", got)
		}
		if wire := h.wire(s); len(wire) != 5 {
			t.Errorf("%d messages", len(wire))
		}
	})
}

package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// answer plays the chunks that the last message of a request asks for.
func answer(to func(last string) []session.Chunk) *model {
	m := &model{}
	m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
		for _, c := range to(r.Messages[len(r.Messages)-1].Text) {
			if !yield(c, nil) {
				return
			}
		}
	}
	return m
}

// filtered is an answer that the provider stops.
func filtered(last string) []session.Chunk {
	if strings.HasPrefix(last, "bad") {
		return []session.Chunk{text("no"), finish(session.FinishFilter)}
	}
	return []session.Chunk{text("answer to " + last), finish(session.FinishStop)}
}

// TestAForkGivesTheModelWhatItsParentGivesIt, also the fork of a fork.
func TestAForkGivesTheModelWhatItsParentGivesIt(t *testing.T) {
	for name, c := range map[string]struct {
		model *model
		said  func(h *house, s *session.Session)
		given string // to the model, and then "next"
	}{
		"a turn whose answer was filtered": {answer(filtered), func(h *house, s *session.Session) {
			h.prompt(s, "one")
			h.prompt(s, "bad")
			h.prompt(s, "two")
		}, "user: one\nassistant: answer to one\nuser: two\nassistant: answer to two\n"},
		"an execution beside the prompts": {answer(filtered), func(h *house, s *session.Session) {
			h.prompt(s, "one")
			g := &gated{let: make(chan struct{})}
			h.execute(s, beside(g))
			h.execute(s, beside(endless{}))
			h.prompt(s, "two")
			close(g.let)
			synctest.Wait()
		}, "user: one\nassistant: answer to one\nuser: two\nassistant: answer to two\nuser: go\n"},
		"a message that a compaction left as it was": {tooLongOnce(), func(h *house, s *session.Session) {
			h.prompt(s, "one")
			h.prompt(s, "two")
		}, "user: [The conversation up to here was replaced by the summary that follows. Go on from it.]\n\nThe person's last message, as it was said:\none\nassistant: summary of one\n" +
			"user: two\nassistant: answer to two\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, memory.New(), c.model)
				s := h.draft()
				c.said(h, s)
				f, err := s.Fork(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				ff, err := f.Fork(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				shown := said(h.wire(s))
				for what, s := range map[string]*session.Session{"the session": s, "its fork": f, "the fork of that": ff} {
					if got := said(h.wire(s)); got != shown {
						t.Errorf("%s shows\n%s\nwant\n%s", what, got, shown)
					}
					h.prompt(s, "next")
					r := c.model.requests[len(c.model.requests)-1]
					checkHistory(t, r.Messages)
					if got := texts(r); got != c.given+"user: next\n" {
						t.Errorf("the model of %s is given\n%s\nwant\n%s", what, got, c.given)
					}
				}
				h.close()
			})
		})
	}
}

// endless is a provider that returns when it is cancelled.
type endless struct{}

func (endless) Run(ctx context.Context, _ *session.Execution) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// said lists what a client shows.
func said(wire []session.Wire) string {
	var b strings.Builder
	for _, m := range wire[1:] {
		b.WriteString(string(m.Role) + ": " + *m.Content + "\n")
	}
	return b.String()
}

// tooLongOnce is a model that the second prompt is too long for, until it was compacted.
func tooLongOnce() *model {
	m, refused := &model{}, false
	m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
		switch last := r.Messages[len(r.Messages)-1].Text; {
		case strings.HasPrefix(last, "The conversation is about to be replaced"):
			_ = yield(text("summary of one"), nil) && yield(finish(session.FinishStop), nil)
		case last == "two" && !refused:
			refused = true
			yield(session.Chunk{}, &session.ModelError{Fault: session.FaultContext, Status: 400, Message: "too long"})
		default:
			_ = yield(text("answer to "+last), nil) && yield(finish(session.FinishStop), nil)
		}
	}
	return m
}

// TestAForkThatEndsWithinARefusedTurnLeavesItOutOfTheContextToo: it ends before an input that was given while the turn ran.
func TestAForkThatEndsWithinARefusedTurnLeavesItOutOfTheContextToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		m := &model{}
		m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			switch last := r.Messages[len(r.Messages)-1].Text; last {
			case "bad one":
				<-hold
				_ = yield(text("hm"), nil) && yield(finish(session.FinishStop), nil)
			default:
				for _, c := range filtered(last) {
					if !yield(c, nil) {
						return
					}
				}
			}
		}
		h := newHouse(t, memory.New(), m)
		s := h.draft()
		h.prompt(s, "one")
		_, ch := ask(s, session.PromptRequest{Input: "bad one"})
		synctest.Wait()
		input := ""
		s.Enqueue("follow_up", "bad two", "", func(r session.InputResult, err error) {
			if err != nil {
				t.Error(err)
			}
			input = r.ID
		})
		synctest.Wait()
		close(hold)
		if o := <-ch; o.Fault == nil || o.Fault.Type != protocol.FailFiltered {
			t.Fatalf("the turn ended as %+v", o)
		}
		h.prompt(s, "two")
		f, err := s.Fork(t.Context(), input)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := said(h.wire(f)), "user: one\nassistant: answer to one\nuser: bad one\nassistant: hm\n"; got != want {
			t.Errorf("the fork shows\n%s", got)
		}
		h.prompt(f, "next")
		if got := texts(m.requests[len(m.requests)-1]); got != "user: one\nassistant: answer to one\nuser: next\n" {
			t.Errorf("its model is given\n%s", got)
		}
		h.close()
	})
}

// TestARefusedTurnIsInNoSummary, by a model or without one, and takes no place of what is: neither in what is summarised nor behind it.
func TestARefusedTurnIsInNoSummary(t *testing.T) {
	for _, byModel := range []bool{true, false} {
		m, refused := &model{}, false
		var asked string
		m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
			switch last := r.Messages[len(r.Messages)-1].Text; {
			case strings.HasPrefix(last, "The conversation is about to be replaced"):
				asked = texts(r)
				if !byModel {
					yield(session.Chunk{}, &session.ModelError{Fault: session.FaultRejected, Status: 400, Message: "no"})
					return
				}
				_ = yield(text("summary of one"), nil) && yield(finish(session.FinishStop), nil)
			case last == "bad":
				yield(finish(session.FinishFilter), nil)
			case last == "two" && !refused:
				refused = true
				yield(session.Chunk{}, &session.ModelError{Fault: session.FaultContext, Status: 400, Message: "too long"})
			default:
				_ = yield(text("answer to "+last), nil) && yield(finish(session.FinishStop), nil)
			}
		}
		bubble(t, m, nil, func(h *house) {
			s := h.draft()
			for _, input := range []string{"one", "bad", "two"} {
				h.prompt(s, input)
			}
			if !strings.HasPrefix(asked, "user: one\nassistant: answer to one\nuser: The conversation is about") {
				t.Errorf("what is summarised is\n%s", asked)
			}
			last := m.requests[len(m.requests)-1]
			got := texts(last)
			if n := len(last.Messages); strings.Contains(got, "bad") || n != 3 || last.Messages[2].Text != "two" || !strings.Contains(got, "as it was said:\none\n") {
				t.Errorf("behind it the model is given\n%s", got)
			}
		})
	}
}

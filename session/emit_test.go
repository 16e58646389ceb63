package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// chatty says 1,000 pieces of text, whatever becomes of them.
type chatty struct {
	halfway func() // called before the 600th; may be nil
}

func (c *chatty) Run(_ context.Context, x *session.Execution) (string, error) {
	for i := range 1000 {
		if i == 600 && c.halfway != nil {
			time.Sleep(time.Second) // in the bubble: what was said is stored, or was refused
			c.halfway()
		}
		_ = x.Emit(session.EmitDelta, json.RawMessage(fmt.Sprintf(`{"text":"piece %d "}`, i)))
	}
	return "", nil
}

func TestTextOfAnExecutionThatCannotBeStoredFailsItAndOtherwiseNothingOfItIsMissing(t *testing.T) {
	for _, disk := range []string{"fine", "full", "full for a moment"} {
		synctest.Test(t, func(t *testing.T) {
			h, f := faultHouse(t, answering())
			s := h.draft()
			h.prompt(s, "a turn before")
			c := &chatty{}
			if disk == "full for a moment" {
				c.halfway = f.Mend
			}
			if disk != "fine" {
				f.FailAt(500, session.ErrFull)
			}
			a, err := s.SubmitExecution(session.ExecutionRequest{Provider: "p", Input: "go", Config: json.RawMessage(`{}`), Runner: c})(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			f.Mend()
			time.Sleep(5 * time.Second) // its end is tried again
			synctest.Wait()
			pieces, last := 0, protocol.Kind(0)
			for _, e := range h.entries(s.ID) {
				if e.Turn != a.Turn {
					continue
				}
				if last = e.Kind; e.Kind == protocol.KindAssistantDelta {
					pieces++
				}
			}
			switch {
			case disk == "fine" && (pieces != 1000 || last != protocol.KindTurnCompleted):
				t.Errorf("%d pieces are kept, the last entry is %v", pieces, last)
			case disk != "fine" && (pieces >= 500 || last == protocol.KindTurnCompleted):
				t.Errorf("disk %s: %d pieces are kept, the last entry is %v", disk, pieces, last)
			}
			checkLog(t, h)
			h.close()
		})
	}
}

func TestAnExecutionOfTheAgentAsksUnlessItsConfigurationSaysOtherwise(t *testing.T) {
	for config, want := range map[string]string{`{}`: "ask", `{"maxSteps":3}`: "ask", `{"approvals":"ask"}`: "ask", `{"approvals":"auto"}`: "full", `{"approvals":"never"}`: "ask"} {
		l, err := session.ReadLimits(json.RawMessage(config))
		if err != nil || l.Mode != want || l.Unattended != (config == `{"approvals":"never"}`) {
			t.Errorf("%s: %+v, %v", config, l, err)
		}
	}
}

// runner is a provider made of a function.
type runner func(ctx context.Context, x *session.Execution) (string, error)

func (r runner) Run(ctx context.Context, x *session.Execution) (string, error) { return r(ctx, x) }

func TestWhatAProviderSaysKeepsItsPlaceAmongItsOtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, memory.New(), answering())
		s := h.draft()
		provider := runner(func(_ context.Context, x *session.Execution) (string, error) {
			for i := range 5 {
				for j := range 20 {
					if err := x.Say(fmt.Sprintf("%d.%d ", i, j)); err != nil {
						return "", err
					}
				}
				if err := x.Emit(session.EmitEvent, json.RawMessage(`{"provider":"p","method":"m","params":{}}`)); err != nil {
					return "", err
				}
			}
			return "", nil
		})
		a, err := s.SubmitExecution(session.ExecutionRequest{Provider: "p", Config: json.RawMessage(`{}`), Runner: provider})(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		var got, want []string
		for i := range 5 {
			for j := range 20 {
				want = append(want, fmt.Sprintf("%d.%d ", i, j))
			}
			want = append(want, "event")
		}
		for _, e := range h.entries(s.ID) {
			b, err := protocol.Decode(&e)
			if err != nil {
				t.Fatal(err)
			}
			switch b := b.(type) {
			case *protocol.AssistantDelta:
				got = append(got, b.Text)
			case *protocol.ProviderEvent:
				got = append(got, "event")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("turn %s tells %q", a.Turn, got)
		}
		checkLog(t, h)
		h.close()
	})
}

func TestAProviderThatSaysMoreThanTheDiskTakesWaitsAndIsLetGoAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := watchedHouse(t, memory.NewBacking(), "a", answering())
		s := h.draft()
		h.prompt(s, "a turn before")
		begin, said, over := make(chan struct{}), 0, make(chan error, 1)
		provider := runner(func(_ context.Context, x *session.Execution) (string, error) {
			<-begin
			for {
				if err := x.Say(strings.Repeat("x", 1024)); err != nil {
					over <- err
					return "", err
				}
				said++
			}
		})
		a, err := s.SubmitExecution(session.ExecutionRequest{Provider: "p", Config: json.RawMessage(`{}`), Runner: provider})(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release := w.hold()
		close(begin)
		synctest.Wait()
		if said < 40 || said > 60 {
			t.Errorf("%d pieces of 1 KiB are on their way to a disk that takes none", said)
		}
		cancelled := s.SubmitCancel(a.Turn, nil)
		synctest.Wait()
		release()
		if err := cancelled(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-over; err == nil {
			t.Error("a piece behind the end is taken")
		}
		synctest.Wait()
		checkLog(t, h)
		h.close()
	})
}

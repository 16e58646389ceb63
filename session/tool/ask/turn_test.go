package ask_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/tool/ask"
)

// open is one process on store.
func open(t *testing.T, store *memory.Store, text string) *session.Sessions {
	t.Helper()
	models := peers.Scripted{Script: script.Must(text)}
	loop, err := session.NewLoop(session.Loop{Models: models, Tools: []session.Tool{ask.UserQuestion()}})
	if err != nil {
		t.Fatal(err)
	}
	return session.NewSessions(session.Config{Store: store, Agent: loop, Models: models, Now: time.Now})
}

func shutdown(t *testing.T, all *session.Sessions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := all.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// events are the events of a session from the first call on, each with what tells it from others.
func events(t *testing.T, store *memory.Store, id session.SessionID) string {
	t.Helper()
	entries, err := store.Read(context.Background(), id, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range entries {
		b, err := protocol.Decode(&entries[i])
		if err != nil {
			t.Fatal(err)
		}
		switch b := b.(type) {
		case *protocol.ToolCallStarted:
			out = append(out, "started")
		case *protocol.UserQuestionRequested:
			out = append(out, "asked "+b.Question)
		case *protocol.UserQuestionAnswered:
			out = append(out, "answered "+b.Answer)
		case *protocol.ToolResult:
			out = append(out, "result "+b.Status+" "+b.ErrorType)
			if b.ErrorType == "" {
				_, data, _ := strings.Cut(b.Result, `"data":`)
				out[len(out)-1] += data[:strings.Index(data, "}")+1]
			}
		case *protocol.TurnCompleted, *protocol.TurnCancelled, *protocol.TurnFailed:
			out = append(out, entries[i].Kind.String())
		}
	}
	return strings.Join(out, ", ")
}

const (
	asks    = `{"turns":[{"steps":[{"call":{"id":"c1","name":"ask_user_question","arguments":{"question":"Which?"}}}]},{"steps":[{"text":"Done."}]}]}`
	invalid = `{"turns":[{"steps":[{"call":{"id":"c1","name":"ask_user_question","arguments":{"question":"Which?","options":[{"label":"a"}]}}}]},` +
		`{"steps":[{"text":"Done."}]}]}`
)

func TestAQuestionInATurnComesInTheContractsOrder(t *testing.T) {
	answer := func(text string) func(*session.Session) {
		return func(s *session.Session) { s.AnswerQuestion("c1", text, func(error) {}) }
	}
	for _, c := range []struct {
		name, script string
		then         func(*session.Session)
		want         string
	}{
		{"answered", asks, answer(" this one\n"), `started, asked Which?, answered this one, result completed {"answer":"this one"}, turn_completed`},
		{"answered with nothing", asks, answer("  "), "started, asked Which?, answered , result failed UserQuestionEmptyAnswer, turn_completed"},
		{"cancelled", asks, func(s *session.Session) { s.Cancel(session.CancelRequest{}, func(error) {}) }, "started, asked Which?, answered , result failed UserQuestionEmptyAnswer, turn_cancelled"},
		{"no question", invalid, func(*session.Session) {}, "started, result rejected InvalidArguments, turn_completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				all := open(t, store, c.script)
				s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
				synctest.Wait()
				c.then(s)
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := events(t, store, s.ID); got != c.want {
					t.Errorf("it went\n%s\nwant\n%s", got, c.want)
				}
				shutdown(t, all)
				_ = store.Close()
			})
		})
	}
}

func TestAQuestionOutlivesTheProcessThatAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		all := open(t, store, asks)
		s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		outcome := make(chan session.Outcome, 1)
		s.Prompt(session.PromptRequest{Input: "go"}, func(o session.Outcome, _ error) { outcome <- o })
		synctest.Wait()
		shutdown(t, all)
		if o := <-outcome; o.Outcome != session.OutcomeWaiting {
			t.Errorf("outcome %q", o.Outcome)
		}
		id := s.ID
		all = open(t, store, asks)
		if s, err = all.Open(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		s.AnswerQuestion("c1", "that one", func(err error) { answered <- err })
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := `started, asked Which?, answered that one, result completed {"answer":"that one"}, turn_completed`
		if got := events(t, store, id); got != want {
			t.Errorf("it went\n%s\nwant\n%s", got, want)
		}
		shutdown(t, all)
		_ = store.Close()
	})
}

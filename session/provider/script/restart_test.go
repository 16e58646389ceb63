package script_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// play makes a Script the only model.
type play struct{ *script.Script }

func (p play) Default() session.Selection {
	return session.Selection{Provider: "script", Model: "m", Mode: "ask"}
}

func (p play) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: p.Script, Info: session.ModelInfo{Provider: "script", ID: "m"}, Scripted: true}, nil
}

func (p play) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

// look is a read-only tool.
type look struct{}

func (look) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "look", ReadOnly: true, Kind: "read", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (look) Run(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
	return session.ToolResult{Data: "seen"}, nil
}

// process is one life of the runtime on a store that outlives it.
type process struct {
	script *script.Script
	store  *memory.Store
	all    *session.Sessions
}

func begin(t *testing.T, backing *memory.Backing, name, text string) *process {
	t.Helper()
	p := &process{script: script.Must(text), store: backing.Open(name)}
	loop, err := session.NewLoop(session.Loop{Models: play{p.script}, Tools: []session.Tool{look{}}})
	if err != nil {
		t.Fatal(err)
	}
	p.all = session.NewSessions(session.Config{Store: p.store, Agent: loop, Models: play{p.script}})
	return p
}

func (p *process) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.all.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	_ = p.store.Close()
}

// prompt works a turn off and returns its answer.
func prompt(t *testing.T, s *session.Session, r session.PromptRequest) string {
	t.Helper()
	ended := make(chan session.Outcome, 1)
	s.Prompt(r, func(o session.Outcome, err error) {
		if err != nil {
			t.Errorf("prompt: %v", err)
		}
		ended <- o
	})
	o := <-ended
	if o.Outcome != session.OutcomeCompleted {
		t.Errorf("the turn ended as %s: %+v", o.Outcome, o.Fault)
	}
	return o.Answer
}

func TestAConversationGoesOnInAnotherProcess(t *testing.T) {
	const text = `{"turns":[
		{"steps":[{"fail":{"status":503}},{"expect":{"role":"user"}},{"call":{"name":"look"}}]},
		{"steps":[{"expect":{"toolResult":"seen"}},{"text":"first answer"}]},
		{"steps":[{"expect":{"user":"two"}},{"text":"begun, "},{"gate":"never"}]},
		{"steps":[{"expect":{"user":"two"}},{"text":"and ended"}]},
		{"steps":[{"expect":{"user":"three"}},{"echo":true}]}
	]}`
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		a := begin(t, backing, "a", text)
		s, err := a.all.Draft(t.Context(), session.DraftOptions{Workspace: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if got := prompt(t, s, session.PromptRequest{Input: "one"}); got != "first answer" {
			t.Errorf("answer %q", got)
		}
		s.Prompt(session.PromptRequest{Input: "two"}, func(session.Outcome, error) {})
		<-a.script.Reached("never")
		synctest.Wait()
		a.store.Kill() // in the middle of the answer

		b := begin(t, backing, "b", text)
		again, err := b.all.Open(t.Context(), s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := prompt(t, again, session.PromptRequest{Resume: true}); got != "and ended" {
			t.Errorf("the resumed turn answers %q", got)
		}
		if got := prompt(t, again, session.PromptRequest{Input: "three"}); got != "three" {
			t.Errorf("answer %q", got)
		}
		if n := len(b.script.Requests()); n != 2 {
			t.Errorf("the second process was asked %d times", n)
		}
		b.end(t)
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = a.all.Shutdown(gone) // a dead process does nothing more; its goroutines must end for the bubble
		_ = a.store.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
	})
}

package dispatcher

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// TestAWatchWhoseLastEventCannotBeMadeLosesNoneOfTheOthers: the whole output is read from the log, which may fail for a moment behind what was
// told of the same page.
func TestAWatchWhoseLastEventCannotBeMadeLosesNoneOfTheOthers(t *testing.T) {
	store := &pausing{Store: memory.NewBacking().Open("i")}
	models := peers.Scripted{Script: script.Must(`[{"text": "one "}, {"text": "two"}]`)}
	loop, err := session.NewLoop(session.Loop{Models: models})
	if err != nil {
		t.Fatal(err)
	}
	all := session.NewSessions(session.Config{Store: store, Agent: loop, Models: models})
	t.Cleanup(func() {
		_ = all.Shutdown(t.Context())
		_ = store.Close()
	})
	commands := executions.New(executions.Config{Sessions: all, Version: "1", Providers: []executions.Provider{executions.Agent("1", nil)}})
	meta, err := commands.Create(t.Context(), nil, "/w")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := commands.Start(t.Context(), &portable.StartExecution{ConversationID: meta.ConversationID, ProviderID: "agent", Input: "go"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := answer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run, err := commands.Find(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bell := make(chan struct{}, 1)
	var follower *session.Follower
	ring := func() {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
	if err := s.InspectNow(t.Context(), func(v *session.View) { follower = v.Follow(ring, nil, func() {}) }); err != nil {
		t.Fatal(err)
	}
	defer follower.Stop()
	for e.State != portable.Succeeded {
		if e, err = run.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e.State != portable.Succeeded {
			<-bell
		}
	}
	page, err := run.Part(t.Context(), 0, 1000, func([]byte) bool { return true })
	if err != nil || len(page.Events) < 4 {
		t.Fatalf("%d events, %v", len(page.Events), err)
	}

	c := newConn(New(Config{Sessions: all, Executions: commands}), strings.NewReader(""), io.Discard)
	w, err := c.watch(run, c.claim(run.ID, true))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.At = 0
	store.faults.Store(3)
	var told []byte
	faults := 0
	for range 10 { // as an outlet does, which throws a page away that comes with an error
		out, _, err := w.Page(told, func() session.Seq { return -1 })
		if err != nil {
			faults++
			continue
		}
		told = out
	}
	if faults == 0 {
		t.Error("nothing failed")
	}
	lines := strings.Split(strings.TrimSpace(string(told)), "\n")
	if len(lines) != len(page.Events) {
		t.Fatalf("%d of %d events:\n%s", len(lines), len(page.Events), told)
	}
	for i, line := range lines {
		if !strings.Contains(line, fmt.Sprintf(`"sequence":%d,`, i+1)) || !strings.Contains(line, page.Events[i].ID) {
			t.Errorf("line %d is not event %d: %s", i+1, i+1, line)
		}
	}
}

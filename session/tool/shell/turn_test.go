//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/tool/shell"
)

// anything is allowed.
type anything struct{}

func (anything) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	return session.Verdict{Effect: "allow"}, nil
}

func (anything) Remember(context.Context, string, json.RawMessage, bool) error { return nil }

func (anything) Rules(context.Context, string) ([]session.Rule, error) { return nil, nil }

func (anything) Revoke(context.Context, string, int64) (bool, error) { return false, nil }

// talk is a session with the tool.
type talk struct {
	t     *testing.T
	store session.Store
	all   *session.Sessions
	s     *session.Session
}

// talks begins one whose model calls bash once and says something, twice.
func (d *desk) talks(t *testing.T, a args) *talk {
	t.Helper()
	call := protocol.MustMarshal(map[string]any{"call": map[string]any{"id": "c1", "name": "bash", "arguments": a}})
	models := peers.Scripted{Mode: "full", Script: script.Must(`{"turns":[{"steps":[` + string(call) + `]},{"steps":[{"text":"It runs."}]},{"steps":[{"text":"It has ended."}]}]}`)}
	loop, err := session.NewLoop(session.Loop{Models: models, Tools: []session.Tool{shell.Bash(d.config)}, Policy: anything{}})
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t, store: memory.New()}
	k.all = session.NewSessions(session.Config{Store: k.store, Agent: loop, Models: models, Now: time.Now})
	t.Cleanup(func() {
		k.shutdown()
		_ = k.store.Close()
	})
	if k.s, err = k.all.Draft(t.Context(), session.DraftOptions{Workspace: d.root}); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *talk) shutdown() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := k.all.Shutdown(ctx); err != nil {
		k.t.Error(err)
	}
}

func (k *talk) prompt() chan error {
	done := make(chan error, 1)
	k.s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
	return done
}

// log is what the log says, in short.
func (k *talk) log() (lines []string) {
	k.t.Helper()
	entries, err := k.store.Read(context.Background(), k.s.ID, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		k.t.Fatal(err)
	}
	for i := range entries {
		b, err := protocol.Decode(&entries[i])
		if err != nil {
			k.t.Fatal(err)
		}
		switch b := b.(type) {
		case *protocol.ToolResult:
			var r struct{ Data told }
			if err := json.Unmarshal([]byte(b.Result), &r); err != nil {
				k.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("result %s %s %v", b.Status, r.Data.Status, r.Data.Task != "" && r.Data.Task == r.Data.Background))
		case *protocol.TaskUpdated:
			var r protocol.Task
			if err := json.Unmarshal(b.Task, &r); err != nil {
				k.t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("task %s %d %q %q %s", r.Status, r.ExitCode, r.Stdout, r.Stderr, r.Reason))
		case *protocol.UserMessage:
			if b.More.Origin == protocol.OriginTask {
				lines = append(lines, fmt.Sprintf("notice %v", strings.Contains(b.More.Text, `"untrusted_stdout":"end\n"`)))
			}
		case *protocol.AssistantMessageCompleted:
			lines = append(lines, "says "+b.Content)
		}
	}
	return lines
}

func TestASessionTellsTheModelWhenItsCommandHasEnded(t *testing.T) {
	d := newDesk(t)
	k := d.talks(t, args{"command": hold("go") + "; echo end; echo wrong >&2", "yield_time_ms": 20})
	if err := <-k.prompt(); err != nil {
		t.Fatal(err)
	}
	d.put(t, "app/go", "")
	testkit.Eventually(t, "the model was told", func() bool { return slices.Contains(k.log(), "says It has ended.") })
	got := slices.DeleteFunc(k.log(), func(l string) bool { return l == "says " })
	want := []string{
		`task running -1 "" "" `, "result completed running true", "says It runs.", `task completed 0 "end\n" "wrong\n" `, "notice true", "says It has ended.",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestASessionsTasksEndWithIt(t *testing.T) {
	d := newDesk(t)
	k := d.talks(t, args{"command": "trap '' TERM; touch up; sleep 351.25; sleep 351.25", "run_in_background": true})
	if err := <-k.prompt(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it runs", func() bool { return exists(filepath.Join(d.root, "up")) && len(sleeping(t, "351.25")) == 1 })
	d.config.Children.Refuse()
	k.shutdown()
	got := k.log()
	if !slices.Contains(got, `task starting -1 "" "" `) || !strings.HasPrefix(got[len(got)-1], "task cancelled ") || !strings.HasSuffix(got[len(got)-1], protocol.ReasonShutdown) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if pids := sleeping(t, "351.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}

package dispatcher_test

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/consent"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/tool/ask"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/plan"
)

// stage is what a transcript is played on: what the program is composed of, but for the store, which is in memory, and tools whose results
// tell of the machine.
type stage struct {
	root       string // $ROOT of the transcript; the workspace is ws in it
	script     string
	unattended bool // --no-user-question
}

// build unpacks the workspace of a transcript.
func (s *stage) build(t peers.T, ar *txtar.Archive) {
	t.Helper()
	if err := os.MkdirAll(s.workspace(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if !strings.HasPrefix(f.Name, "ws/") {
			continue
		}
		path := filepath.Join(s.root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *stage) workspace() string { return filepath.Join(s.root, "ws") }

// launch starts a process on the stage.
func (s *stage) launch(t peers.T, w *peers.World, instance string) *process {
	t.Helper()
	p := &process{tools: &tools{}, shell: newShell(s.workspace())}
	guide, home := session.PlainGuide("You work on code."), filepath.Join(s.root, "home")
	var policy session.Policy
	p.Process = w.Launch(t, instance, script.Must(s.script), peers.Setting{Listed: models, Loop: func(of *peers.Process) session.Loop {
		offered := []session.Tool{files.ReadFile(), files.WriteFile(nil), plan.UpdatePlan()}
		if strings.Contains(s.script, `"name": "bash"`) {
			offered = append(offered, p.shell)
		}
		if !s.unattended {
			offered = append(offered, ask.UserQuestion())
		}
		policy = consent.New(consent.Config{Rules: of.Store, Home: home, DataRoot: home})
		return session.Loop{Tools: offered, Policy: policy, Guide: guide, Unattended: s.unattended}
	}})
	p.d = dispatcher.New(dispatcher.Config{
		Sessions: p.All, Workspace: s.workspace(), Version: "0.0.0",
		Guide: guide, Policy: policy, Auth: keys{}, Folders: &folders{},
		Executions: executions.New(executions.Config{
			Sessions: p.All, Version: "0.0.0", Providers: []executions.Provider{executions.Agent("0.0.0", nil), executions.Mock("0.0.0"), executions.Script("0.0.0")},
		}),
		Setup: func() dispatcher.Setup { return dispatcher.Setup{SettingsFound: true} },
		Providers: func() []rindv2.Provider {
			return []rindv2.Provider{{ID: "play", Name: "play", Methods: []string{"api_key"}, Configured: true, Source: "none"}}
		},
	})
	return p
}

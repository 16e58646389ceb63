package consent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/consent"
	"github.com/rind-dev/rind/session/store/memory"
)

// place is a workspace with a policy over it.
type place struct {
	t       testing.TB
	root    string // the workspace, links resolved
	outside string // a folder beside it
	data    string
	store   *memory.Store
	policy  *consent.Policy
	now     time.Time
}

func newPlace(t testing.TB) *place {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, root: filepath.Join(top, "work"), outside: filepath.Join(top, "elsewhere"), data: filepath.Join(top, "data"), store: memory.New(), now: time.Now()}
	t.Cleanup(func() { _ = p.store.Close() })
	for name, content := range map[string]string{
		"work/README.md": "# Read me\n", "work/a.txt": "b\na\n", "work/b.txt": "c\n", "work/src/main.go": "package main\n\nfunc main() {}\n", "work/src/deep/x.go": "package deep\n",
		"work/guarded/.env": "KEY=1\n", "work/guarded/server.pem": "-----\n", "work/guarded/app.js": "1\n", "work/.env.example": "KEY=\n", "work/links/x": "", "work/flags/-onew": "x\n", "work/note": "n\n", "work/data.json": `{"a":[1,2]}`,
		"elsewhere/notes.txt": "n\n", "elsewhere/deep/y.txt": "y\n", "data/settings.json": "{}",
	} {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"links/way-out": p.outside, "inner": "src", "links/plain": "../guarded/.env", "links/note": filepath.Join(p.outside, "notes.txt")} {
		if err := os.Symlink(to, filepath.Join(p.root, link)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	p.policy = p.another()
	return p
}

// another is a policy on the same store, as another process has one.
func (p *place) another() *consent.Policy {
	return consent.New(consent.Config{Rules: p.store, Home: "/home/me", DataRoot: p.data, Temp: os.TempDir(), Now: func() time.Time { return p.now }})
}

func newStore(t testing.TB) *memory.Store {
	s := memory.New()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var specs = map[string]session.ToolSpec{
	"bash":       {Name: "bash", Kind: "execute"},
	"read_file":  {Name: "read_file", Kind: "read", ReadOnly: true},
	"write_file": {Name: "write_file", Kind: "edit"}, "edit_file": {Name: "edit_file", Kind: "edit"},
	"glob": {Name: "glob", Kind: "search", ReadOnly: true}, "grep": {Name: "grep", Kind: "search", ReadOnly: true},
	"fetch_web_page": {Name: "fetch_web_page", Kind: "fetch", ReadOnly: true}, "search_web": {Name: "search_web", Kind: "fetch", ReadOnly: true},
	"ask_user_question": {Name: "ask_user_question", Kind: "other"}, "update_plan": {Name: "update_plan", Kind: "think"}, "skill": {Name: "skill", Kind: "read", ReadOnly: true},
	"skill_create": {Name: "skill_create", Kind: "edit"}, "task_control": {Name: "task_control", Kind: "other"},
	"mcp_db_query": {Name: "mcp_db_query", Kind: "other"}, "mcp_db_list": {Name: "mcp_db_list", Kind: "other", ReadOnly: true},
}

type args map[string]any

func (p *place) judge(mode, tool string, a args) session.Verdict {
	p.t.Helper()
	return p.judgeBy(p.policy, mode, tool, a)
}

func (p *place) judgeBy(policy *consent.Policy, mode, tool string, a args) session.Verdict {
	p.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		p.t.Fatal(err)
	}
	spec, ok := specs[tool]
	if !ok {
		p.t.Fatalf("no tool %s", tool)
	}
	v, err := policy.Judge(context.Background(), mode, spec, session.ToolCall{ID: "c", Name: tool, Arguments: raw, Roots: []string{p.root}})
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *place) run(mode, command string) session.Verdict {
	p.t.Helper()
	return p.judge(mode, "bash", args{"command": command})
}

// remember answers a verdict for good.
func (p *place) remember(v session.Verdict, allow bool) {
	p.t.Helper()
	if v.Effect != "ask" || v.Rule == nil {
		p.t.Fatalf("nothing to remember of %+v", v)
	}
	if err := p.policy.Remember(context.Background(), p.root, v.Rule, allow); err != nil {
		p.t.Fatal(err)
	}
}

// patterns are what allowing a verdict for good would remember.
func patterns(v session.Verdict) string {
	var r struct {
		Pattern string
		Parts   []struct{ Pattern string }
	}
	_ = json.Unmarshal(v.Rule, &r)
	if len(r.Parts) == 0 {
		return r.Pattern
	}
	var all []string
	for _, p := range r.Parts {
		all = append(all, p.Pattern)
	}
	return strings.Join(all, " | ")
}

// short is a verdict in one word: reads, allow, ask, or the error type of a denial.
func short(v session.Verdict) string {
	switch {
	case v.Effect == "allow" && v.Reads:
		return "reads"
	case v.Effect == "deny":
		return v.ErrorType
	}
	return v.Effect
}

package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/demo"
)

// talk is a loop of a few lines: it asks the demo, runs what it calls, and asks again until it has nothing more to do.
type talk struct {
	t        *testing.T
	root     string
	tools    []session.Tool
	fake     func(session.Call) string // answers in place of tools
	messages []session.Message
	calls    []string // as "tool arguments", all so far
}

func newTalk(t *testing.T, root string) *talk {
	return &talk{t: t, root: root, tools: []session.Tool{readFile, glob, grep}}
}

func (k *talk) specs() []session.ToolSpec {
	var out []session.ToolSpec
	for _, tool := range k.tools {
		out = append(out, tool.Spec())
	}
	return out
}

// complete reads one completion into a message.
func (k *talk) complete() (session.Message, session.Finish, error) {
	k.t.Helper()
	m := session.Message{Role: session.RoleAssistant}
	if err := testkit.StrictHistory(k.messages); err != nil {
		k.t.Fatal(err)
	}
	var finish session.Finish
	var failed error
	synctest.Test(k.t, func(t *testing.T) { // the pauses between words take no time
		for c, err := range demo.New().Generate(t.Context(), session.ModelRequest{Messages: k.messages, Tools: k.specs()}) {
			if finish != "" || failed != nil {
				t.Fatal("a piece after the end")
			}
			failed = err
			switch c.Kind {
			case session.ChunkText:
				if strings.Count(strings.TrimSpace(c.Text), " ") > 0 {
					t.Errorf("%q is more than a word", c.Text)
				}
				m.Text += c.Text
			case session.ChunkCallEnd:
				m.Calls = append(m.Calls, session.Call{ID: c.CallID, Name: c.Name, Arguments: json.RawMessage(c.Text)})
			case session.ChunkFinish:
				finish = c.Finish
			}
		}
	})
	return m, finish, failed
}

// ask plays one prompt to its end and returns everything that was said.
func (k *talk) ask(prompt string) string {
	k.t.Helper()
	k.messages = append(k.messages, session.Message{Role: session.RoleUser, Text: prompt})
	said := ""
	for range 6 {
		m, finish, err := k.complete()
		if err != nil {
			k.t.Fatal(err)
		}
		k.messages = append(k.messages, m)
		said += m.Text + "\n"
		if (finish == session.FinishCalls) != (len(m.Calls) > 0) {
			k.t.Fatalf("finish %s with %d calls", finish, len(m.Calls))
		}
		if finish == session.FinishStop {
			return said
		}
		for _, c := range m.Calls {
			k.calls = append(k.calls, c.Name+" "+string(c.Arguments))
			k.messages = append(k.messages, session.Message{Role: session.RoleTool, CallID: c.ID, ToolName: c.Name, Text: k.run(c)})
		}
	}
	k.t.Fatalf("%q has no end; calls: %v", prompt, k.calls)
	return ""
}

func (k *talk) run(c session.Call) string {
	if k.fake != nil {
		return k.fake(c)
	}
	i := slices.IndexFunc(k.tools, func(t session.Tool) bool { return t.Spec().Name == c.Name })
	if i < 0 {
		k.t.Fatalf("the demo calls %s, which it was not offered", c.Name)
	}
	r, err := k.tools[i].Run(k.t.Context(), session.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Roots: []string{k.root}}, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	out := map[string]any{"ok": r.ErrorType == "", "tool": c.Name, "data": r.Data, "meta": r.Meta}
	if r.ErrorType != "" {
		out["error"], out["error_type"] = r.Error, r.ErrorType
	}
	j, err := json.Marshal(out)
	if err != nil {
		k.t.Fatal(err)
	}
	return string(j)
}

// folder writes files below a new folder.
func folder(t *testing.T, content map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range content {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var goProject = map[string]string{
	"README.md": "[![build](x.svg)](y)\n\n# Tide tables\n\nComputes [tides](http://x) for\nsmall harbours.\n\n## Use\n\nRun it.\n",
	"go.mod":    "module example.org/tide\n\ngo 1.26\n", "cmd/tide/main.go": "package main\n\nfunc main() { predictTide() } // TODO: units\n",
	"tide.go": "package tide\n\nfunc predictTide() {}\n", "tide_test.go": "package tide\n", "docs/notes.md": "notes\n",
}

func wants(t *testing.T, said string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(said, p) {
			t.Errorf("%q is missing in\n%s", p, said)
		}
	}
}

func TestItLooksAtTheFolderAndTellsWhatIsThere(t *testing.T) {
	k := newTalk(t, folder(t, goProject))
	said := k.ask("What is this project?")
	if !strings.HasPrefix(said, "This is rind's built-in demo: no AI") {
		t.Errorf("its first words do not say what it is: %q", said[:40])
	}
	wants(t, said, "6 files", "3 Go", "2 Markdown", "main language is Go", "tide_test.go looks like a test", "headed “Tide tables”", "“Computes tides for small harbours.”",
		"the Go module example.org/tide, for Go 1.26", "start programs: cmd/tide/main.go.", "TODO or FIXME stands in 1 line", "cmd/tide/main.go:3",
		"OPENAI_API_KEY", "rind config set baseUrl http://127.0.0.1:11434/v1", "rind doctor")
	if !slices.ContainsFunc(k.calls, func(c string) bool { return strings.HasPrefix(c, "read_file") }) {
		t.Errorf("calls = %v", k.calls)
	}
}

func TestTheSamePromptGetsTheSameWords(t *testing.T) {
	root := folder(t, goProject)
	if a, b := newTalk(t, root).ask("What is this?"), newTalk(t, root).ask("What is this?"); a != b {
		t.Errorf("two answers:\n%s\n%s", a, b)
	}
}

func TestItReadsManifestsOfOtherLanguages(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"node": {
			map[string]string{"package.json": `{"name":"shop","description":"Sells","main":"src/index.js","scripts":{"test":"x","build":"y"}}`, "src/index.js": "1", "src/a.test.js": "2"},
			[]string{"package named shop, “Sells”, which starts at src/index.js. Its scripts: build, test.", "start programs: src/index.js", "JavaScript"},
		},
		"rust":   {map[string]string{"Cargo.toml": "[dependencies]\nname = \"no\"\n[package]\nname = \"crab\"\n", "src/main.rs": "fn main(){}"}, []string{"the Rust package crab", "start programs: src/main.rs"}},
		"python": {map[string]string{"pyproject.toml": "[project]\nname = 'snake'\n", "snake/__main__.py": ""}, []string{"the Python project snake", "snake/__main__.py"}},
		"setext": {map[string]string{"readme.rst": "Title here\n==========\n\nSome words.\n"}, []string{"readme.rst is headed “Title here” and begins: “Some words.”"}},
	} {
		t.Run(name, func(t *testing.T) { wants(t, newTalk(t, folder(t, c.files)).ask("what's in here?"), c.want...) })
	}
}

func TestAnEmptyFolderIsSaidToBeEmpty(t *testing.T) {
	k := newTalk(t, t.TempDir())
	wants(t, k.ask("explain the code"), "no AI", "holds no files", "OPENAI_API_KEY")
	if len(k.calls) != 2 {
		t.Errorf("calls = %v, want the two lists only", k.calls)
	}
}

func TestASecondPromptDoesNotRepeatTheFirst(t *testing.T) {
	k := newTalk(t, folder(t, goProject))
	k.ask("What is this?")
	before := len(k.calls)
	said := k.ask("Write me a poem")
	wants(t, said, "Still the demo, no AI.", "takes a model", "OPENAI_API_KEY")
	if len(k.calls) != before {
		t.Errorf("further calls %v for something the folder has no answer to", k.calls[before:])
	}
	if strings.Contains(said, "Tide tables") || strings.Contains(said, "built-in") {
		t.Errorf("it repeats itself:\n%s", said)
	}
	said = k.ask("show tide.go, and where is predictTide() used?")
	wants(t, said, "tide.go has 3 lines and begins:", "      package tide", `"predictTide" stands in 2 lines`, "cmd/tide/main.go:3")
	if strings.Contains(strings.Join(k.calls[before:], "\n"), "glob") {
		t.Errorf("it lists the folder again: %v", k.calls[before:])
	}
	wants(t, k.ask(`does "small harbours" occur?`), `"small harbours" stands in 1 line`, "README.md:6")
	wants(t, k.ask("does `no such words` occur?"), "stands in no line")
	wants(t, k.ask("once more an overview please"), "6 files", "Tide tables")
}

func TestAGreetingMakesNoCalls(t *testing.T) {
	k := newTalk(t, folder(t, goProject))
	wants(t, k.ask("Hello!"), "built-in demo: no AI", "cannot converse", "OPENAI_API_KEY")
	if len(k.calls) > 0 {
		t.Errorf("calls = %v", k.calls)
	}
	wants(t, k.ask("what is in this folder?"), "Still the demo", "6 files")
}

func TestItMakesDoWithTheToolsItIsOffered(t *testing.T) {
	root := folder(t, goProject)
	for name, c := range map[string]struct {
		tools []session.Tool
		want  []string
	}{
		"none":    {nil, []string{"no AI", "no tool to look at files", "OPENAI_API_KEY"}},
		"no list": {[]session.Tool{readFile, grep}, []string{"no tool to list files", "Tide tables", "example.org/tide", "TODO"}},
		"list":    {[]session.Tool{glob}, []string{"6 files", "main language is Go"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, root)
			k.tools = c.tools
			said := k.ask("what is this?")
			wants(t, said, c.want...)
			if strings.Contains(said, "package.json") {
				t.Errorf("it tells of a file that is not there:\n%s", said)
			}
		})
	}
}

func TestAFailingToolIsToldAndNotTriedAgain(t *testing.T) {
	for name, text := range map[string]string{
		"refused": `{"ok":false,"tool":"x","error":"Not allowed\nhere.","error_type":"PermissionDenied"}`, "unknown": `{"ok":false}`, "garbage": `oops`,
		"other data": `{"ok":true,"data":7}`, "nothing": `{"ok":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t, t.TempDir())
			k.fake = func(session.Call) string { return text }
			said := k.ask("what is this?")
			wants(t, said, "could not be listed", "OPENAI_API_KEY")
			if seen := slices.Sorted(slices.Values(k.calls)); len(slices.Compact(seen)) != len(k.calls) {
				t.Errorf("a call was repeated: %v", k.calls)
			}
		})
	}
}

func TestAListThatWasCutIsSaidToBeCut(t *testing.T) {
	k := newTalk(t, t.TempDir())
	k.fake = func(c session.Call) string {
		switch {
		case strings.Contains(string(c.Arguments), "**"):
			return `{"ok":true,"data":[{"path":"a/a.py","size":10}],"meta":{"truncated":true}}`
		case c.Name == "glob":
			return `{"ok":true,"data":[{"path":"README","size":10}],"meta":{"truncated":false}}`
		case c.Name == "read_file":
			return fmt.Sprintf(`{"ok":true,"data":%q,"meta":{"total_lines":1,"truncated":false}}`, "     1\tPlain words.\n")
		}
		return `{"ok":true,"data":[],"meta":{"truncated":false}}`
	}
	wants(t, k.ask("what is this?"), "at least 1 file", "among those listed", "README begins: “Plain words.”", "stands in no line")
}

func TestAnInterruptedTurnGoesOnWhereItWas(t *testing.T) {
	k := newTalk(t, folder(t, goProject))
	k.ask("what is this?")
	last := len(k.messages) - 1
	k.messages[last].Text, k.messages[last].Interrupted = "- The folder", true
	before := len(k.calls)
	m, finish, err := k.complete()
	if err != nil || finish != session.FinishStop || len(m.Calls) > 0 || len(k.calls) != before {
		t.Fatalf("finish %q, calls %v, error %v: the results were known", finish, m.Calls, err)
	}
	wants(t, m.Text, "6 files")
}

func TestCancellingStopsItBetweenWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		r := session.ModelRequest{Messages: []session.Message{{Role: session.RoleUser, Text: "hi"}}}
		n, after := 0, 0
		var last error
		for _, err := range demo.New().Generate(ctx, r) {
			if last = err; n == 3 {
				after++
			} else if n++; n == 3 {
				cancel(cause)
			}
		}
		if !errors.Is(last, cause) || after != 1 {
			t.Errorf("%d pieces after cancel, the last an error %v; want the cause alone", after, last)
		}
	})
}

//go:build unix

package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const editorPages = "../../docs/editors"

// editorsScript asks for consent, then says what it did.
const editorsScript = `{"turns":[{"steps":[{"text":"I will. "},{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}},{"finish":"tool_calls"},{"text":"It is done."}]}]}`

// page reads an editor's page and its one snippet of a language.
func page(t *testing.T, name, language string) (text, snippet string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(editorPages, name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(b), -1)
	if len(found) != 1 || found[0][1] != language {
		t.Fatalf("%s has %d snippets, not one of %s", name, len(found), language)
	}
	return string(b), found[0][2]
}

// Each page says what to paste, what is seen then, the three commonest failures and what of it was run; the commands it names are there.
func TestEachEditorsPageSaysWhatToPasteToSeeAndToDoWhenItFails(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(editorPages, "*.md"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	root := rootCommand(&streams{})
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		at := -1
		for _, part := range []string{"\n## Paste this\n", "\n## See this\n", "\n## When it does not work\n", "\n## What was run\n"} {
			next := strings.Index(text, part)
			if next <= at {
				t.Errorf("%s: %q is missing or not in its place", path, strings.TrimSpace(part))
			}
			at = next
		}
		if n := len(regexp.MustCompile(`(?m)^\d\. \*\*`).FindAllString(text, -1)); n != 3 {
			t.Errorf("%s: %d failures", path, n)
		}
		for _, f := range regexp.MustCompile("`rind ([a-z -]+)[^`]*`").FindAllStringSubmatch(text, -1) {
			if cmd, _, err := root.Find(strings.Fields(f[1])); err != nil || cmd == root {
				t.Errorf("%s: %s: no such command", path, f[0])
			}
		}
	}
}

// What the pages and the registry tell an editor to start is started, with what they tell it: it speaks the protocol.
func TestTheCommandsOfTheEditorsPagesHoldASession(t *testing.T) {
	type command struct {
		Type, Command string
		Args          []string
		Env           map[string]string
	}
	read := func(name, list, agent string) command {
		t.Helper()
		_, snippet := page(t, name, "json")
		d := json.NewDecoder(strings.NewReader(snippet))
		d.DisallowUnknownFields()
		var all map[string]map[string]command
		if err := d.Decode(&all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(all) != 1 || len(all[list]) != 1 || all[list][agent].Command == "" {
			t.Fatalf("%s: %s has no agent %s: %+v", name, list, agent, all)
		}
		return all[list][agent]
	}
	zed, jetbrains, vscode := read("zed", "agent_servers", "rind"), read("jetbrains", "agent_servers", "Rind"), read("vscode", "acp.agents", "Rind")
	if zed.Type != "custom" || !filepath.IsAbs(jetbrains.Command) { // what these editors insist on
		t.Errorf("%+v %+v", zed, jetbrains)
	}
	for name, c := range map[string]command{"zed": zed, "jetbrains": jetbrains, "vscode": vscode} {
		t.Run(name, func(t *testing.T) {
			if filepath.Base(c.Command) != "rind" || c.Env == nil {
				t.Errorf("%+v", c)
			}
			root, ws := playing(t, editorsScript)
			e := &editor{Process: launched(t, root, ws, nil, c.Args...), t: t}
			e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
			asked := e.ask("session/prompt", promptOf(e.newSession(ws), "work"))
			permission, _ := e.permission()
			e.choose(permission, "allow_once")
			if l, _ := e.answer(asked); acpStop(l) != "end_turn" {
				t.Errorf("%s", l.raw)
			}
			e.leave()
		})
	}
}

// The message that every page prepares for comes, in the words the pages quote.
func TestWithoutAKeyTheEditorIsToldWhatThePagesQuote(t *testing.T) {
	root, ws := dataAndWorkspace(t, "")
	e := openEditor(t, root, ws)
	l, _ := e.answer(e.ask("session/new", map[string]any{"cwd": ws, "mcpServers": []any{}}))
	if l.Error == nil || l.Error.Code != -32000 {
		t.Fatalf("%s", l.raw)
	}
	files, _ := filepath.Glob(filepath.Join(editorPages, "*.md"))
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		quoted := regexp.MustCompile("An error that names `([^`]+)` and `([^`]+)`").FindStringSubmatch(string(text))
		if quoted == nil || !strings.Contains(l.Error.Message, quoted[1]) || !strings.Contains(l.Error.Message, quoted[2]) {
			t.Errorf("%s quotes %q of %q", path, quoted, l.Error.Message)
		}
	}
}

// onPath is a folder with the program in it, as an installed one is found.
func onPath(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "rind")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// headless runs an editor on a page's snippet with a script of testdata, and returns what that printed.
func headless(t *testing.T, name, language, script, editor string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(editor)
	if err != nil {
		t.Skipf("needs %s: %v", editor, err)
	}
	_, snippet := page(t, name, language)
	file := filepath.Join(t.TempDir(), "snippet")
	write(t, file, snippet)
	if script, err = filepath.Abs(filepath.Join("testdata", script)); err != nil {
		t.Fatal(err)
	}
	root, ws := playing(t, editorsScript)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, script)...)
	cmd.WaitDelay = time.Second
	cmd.Dir = ws
	cmd.Env = []string{
		"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "HOME=" + filepath.Dir(root), "PATH=" + onPath(t) + ":" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8",
		"SNIPPET=" + file, "WORKSPACE=" + ws,
	}
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			said = string(failed.Stderr)
		}
		t.Fatalf("%s: %v\n%s%s", editor, err, out, said)
	}
	if _, err := os.Stat(filepath.Join(ws, "made.txt")); err != nil {
		t.Errorf("the command that was consented to did not run: %v", err)
	}
	return strings.TrimSpace(string(out))
}

const heldSession = "end_turn|I will. It is done.|0"

func TestNeovimHoldsASessionByThePagesSnippet(t *testing.T) {
	t.Parallel()
	if out := headless(t, "neovim", "lua", "editor.lua", "nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-S"); out != heldSession {
		t.Errorf("%q", out)
	}
}

func TestEmacsHoldsASessionByThePagesSnippet(t *testing.T) {
	t.Parallel()
	if out := headless(t, "emacs", "elisp", "editor.el", "emacs", "-Q", "--batch", "-l"); out != heldSession {
		t.Errorf("%q", out)
	}
}

// The entry for registries has the fields docs/registry/README.md lists, no others, and what it says of the program is so.
func TestTheRegistryEntrySaysWhatIsSo(t *testing.T) {
	const dir = "../../docs/registry"
	text, err := os.ReadFile(filepath.Join(dir, "agent.json"))
	if err != nil {
		t.Fatal(err)
	}
	type archive struct {
		Archive, Cmd string
		Args         []string
	}
	var entry struct {
		ID, Name, Version, Description, Repository, License, Icon string
		Authors                                                   []string
		Distribution                                              struct{ Binary map[string]archive }
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&entry); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more behind the entry: %v", err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	license, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(entry.ID),
		!regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(entry.Version),
		entry.Description == "" || strings.HasSuffix(entry.Description, "."),
		!strings.HasPrefix(string(module), "module "+strings.TrimPrefix(entry.Repository, "https://")+"\n"),
		entry.License != "Apache-2.0" || !strings.Contains(string(license), "Apache License"),
		len(entry.Authors) == 0:
		t.Errorf("%+v", entry)
	}
	listed, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !strings.Contains(string(listed), "`"+name) {
			t.Errorf("the table lacks %s", name)
		}
	}
	targets := slices.Sorted(maps.Keys(entry.Distribution.Binary))
	if want := []string{"darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64", "windows-x86_64"}; !slices.Equal(targets, want) {
		t.Errorf("targets %v", targets)
	}
	for target, a := range entry.Distribution.Binary {
		cmd, end := "./rind", ".tar.gz"
		if strings.HasPrefix(target, "windows") {
			cmd, end = "./rind.exe", ".zip"
		}
		want := fmt.Sprintf("%s/releases/download/v%s/rind-%s-%s%s", entry.Repository, entry.Version, entry.Version, target, end)
		if a.Archive != want || a.Cmd != cmd || !slices.Equal(a.Args, []string{"acp"}) {
			t.Errorf("%s: %+v, want %s", target, a, want)
		}
	}
	checkIcon(t, filepath.Join(dir, entry.Icon))

	root, ws := dataAndWorkspace(t, "")
	e := &editor{Process: launched(t, root, ws, nil, entry.Distribution.Binary["linux-x86_64"].Args...), t: t}
	l, _ := e.call("initialize", map[string]any{"protocolVersion": 1})
	var info struct{ AgentInfo struct{ Name, Title string } }
	if err := json.Unmarshal(l.Result, &info); err != nil || info.AgentInfo.Name != entry.ID || info.AgentInfo.Title != entry.Name {
		t.Errorf("the program says %s", l.raw)
	}
	e.leave()
}

// checkIcon checks that an icon is 16 by 16 and takes its colour from the editor.
func checkIcon(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var svg struct {
		Width   int    `xml:"width,attr"`
		Height  int    `xml:"height,attr"`
		ViewBox string `xml:"viewBox,attr"`
	}
	if err := xml.Unmarshal(text, &svg); err != nil || svg.Width != 16 || svg.Height != 16 || svg.ViewBox != "0 0 16 16" {
		t.Errorf("%+v: %v", svg, err)
	}
	for _, colour := range regexp.MustCompile(`(?:fill|stroke)="([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		if colour[1] != "none" && colour[1] != "currentColor" {
			t.Errorf("a colour of its own: %s", colour[1])
		}
	}
}

package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/search"
)

// tree makes a workspace of files; names end in "/" for folders.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "w")
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

type args map[string]any

func run(t testing.TB, tool session.Tool, root string, a args) session.ToolResult {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), session.ToolCall{Name: tool.Spec().Name, Arguments: raw, Roots: []string{root}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// into reads the data of a result as a client does.
func into[T any](t testing.TB, res session.ToolResult) []T {
	t.Helper()
	if res.ErrorType != "" {
		t.Fatalf("%s: %s", res.ErrorType, res.Error)
	}
	raw, err := json.Marshal(res.Data)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) == 0 || raw[0] != '[' {
		t.Fatalf("data %s is no list", raw)
	}
	var out []T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

type entry struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

type hit struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func globbed(t testing.TB, root string, a args) []string {
	t.Helper()
	out := []string{}
	for _, e := range into[entry](t, run(t, search.Glob(), root, a)) {
		out = append(out, e.Path)
	}
	return out
}

func grepped(t testing.TB, root string, a args) []string {
	t.Helper()
	out := []string{}
	for _, m := range into[hit](t, run(t, search.Grep(nil), root, a)) {
		out = append(out, fmt.Sprintf("%s:%d:%s", m.Path, m.Line, m.Text))
	}
	return out
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

func TestGlobFindsByNameInTheOrderOfTheWalk(t *testing.T) {
	root := tree(t, map[string]string{
		"b.go": "12345", "a.txt": "", "src/x.go": "", "src/deep/y.go": "", "src/deep/y.txt": "", ".hidden/z.go": "", ".dot.go": "", ".git/config.go": "",
		"src/[odd]/n.go": "",
	})
	same(t, "all", globbed(t, root, args{"pattern": "**/*.go"}), ".dot.go", ".hidden/z.go", "b.go", "src/[odd]/n.go", "src/deep/y.go", "src/x.go")
	same(t, "top", globbed(t, root, args{"pattern": "*.go"}), ".dot.go", "b.go")
	same(t, "dot slash", globbed(t, root, args{"pattern": "./src/*.go"}), "src/x.go")
	same(t, "below path, named from the workspace", globbed(t, root, args{"pattern": "**/*.go", "path": "src"}), "src/[odd]/n.go", "src/deep/y.go", "src/x.go")
	same(t, "alternatives", globbed(t, root, args{"pattern": "src/**/*.{txt,md}"}), "src/deep/y.txt")
	same(t, "absolute", globbed(t, root, args{"pattern": filepath.ToSlash(root) + "/src/*.go"}), "src/x.go")
	same(t, "with a way up that stays inside", globbed(t, root, args{"pattern": "../*.go", "path": "src"}), ".dot.go", "b.go")
	same(t, "escaped", globbed(t, root, args{"pattern": `src/\[odd\]/*`}), "src/[odd]/n.go")
	same(t, "nothing", globbed(t, root, args{"pattern": "*.rs"}))
	same(t, "git itself", globbed(t, root, args{"pattern": ".git/**"}))
	if e := into[entry](t, run(t, search.Glob(), root, args{"pattern": "b.go"})); len(e) != 1 || e[0].Size != 5 {
		t.Errorf("b.go is %+v", e)
	}
}

func TestMoreThanMaxResultsIsSaid(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("f%02d.txt", i)] = "hit\nhit\n"
	}
	root := tree(t, files)
	for _, c := range []struct {
		tool session.Tool
		args args
		n    int
		more bool
	}{
		{search.Glob(), args{"pattern": "*", "max_results": 29}, 29, true},
		{search.Glob(), args{"pattern": "*", "max_results": 30}, 30, false},
		{search.Glob(), args{"pattern": "*"}, 30, false},
		{search.Grep(nil), args{"pattern": "hit", "max_results": 59}, 59, true},
		{search.Grep(nil), args{"pattern": "hit", "max_results": 60.0}, 60, false},
	} {
		res := run(t, c.tool, root, c.args)
		if got := into[any](t, res); len(got) != c.n || res.Meta["truncated"] != c.more {
			t.Errorf("%v: %d results, truncated %v", c.args, len(got), res.Meta["truncated"])
		}
	}
}

func TestIgnoredFilesAreLeftOutAsGitDoes(t *testing.T) {
	root := tree(t, map[string]string{
		".gitignore": "\uFEFF# comment\n*.log\n!keep.log\n/build/\nnode_modules/\ntmp/**\n!tmp/kept\nwith space \r\n\\#odd\ndocs/*.html\nq**/*\n/v**/t\n/w**/**/**\n",
		"a.log":      "x", "keep.log": "x", "build/out": "x", "src/build/in": "x", "node_modules/m/i.js": "x", "src/node_modules/n.js": "x", "tmp/gone": "x", "tmp/kept": "x",
		"with space": "x", "#odd": "x", "docs/i.html": "x", "docs/sub/i.html": "x",
		"sub/.gitignore": "*.txt\n!/deep/\n", "sub/a.txt": "x", "sub/deep/b.txt": "x", "sub/c.md": "x", "top.txt": "x",
		"quiet": "x", "vt": "x", "v1/a/t": "x", "v1/a/u": "x", "w1": "x", // stars behind a name, as git takes them
		".git/info/exclude": "secret-*\n", "secret-1": "x", "sub/secret-2": "x",
	})
	want := []string{
		".gitignore", "docs/sub/i.html", "keep.log", "src/build/in", "sub/.gitignore", "sub/c.md", "tmp/kept", "top.txt", "v1/a/u",
	}
	same(t, "glob", globbed(t, root, args{"pattern": "**"}), want...)
	var files []string
	for _, f := range want {
		if !strings.HasSuffix(f, ".gitignore") {
			files = append(files, f+":1:x")
		}
	}
	same(t, "grep", grepped(t, root, args{"pattern": "^x$"}), files...)
	same(t, "rules above the start hold", globbed(t, root, args{"pattern": "**", "path": "sub/deep"}))
	same(t, "an ignored folder that is named is searched", globbed(t, root, args{"pattern": "**/*.js", "path": "node_modules"}), "node_modules/m/i.js")
	same(t, "an ignored file that is named is searched", grepped(t, root, args{"pattern": "x", "path": "a.log"}), "a.log:1:x")
}

func TestGrepMatchesLineByLine(t *testing.T) {
	root := tree(t, map[string]string{
		"crlf.txt": "one end\r\ntwo end\r\n", "bom.txt": "\uFEFFfirst\n", "latin1": "caf\xe9 end\n", "binary": "end\x00", "late": strings.Repeat("y", 9000) + "\n\x00 end",
		"src/a.go": "func A() {}\nfunc B() {}", "src/a.md": "func of time\n", "empty": "", "blank": "\n\nend\n",
	})
	same(t, "line ends are no part of a line", grepped(t, root, args{"pattern": "end$", "path": "crlf.txt"}), "crlf.txt:1:one end", "crlf.txt:2:two end")
	same(t, "nor is a byte order mark", grepped(t, root, args{"pattern": "^first$"}), "bom.txt:1:first")
	same(t, "text that is no UTF-8", grepped(t, root, args{"pattern": "^caf"}), "latin1:1:caf\uFFFD end")
	same(t, "binary files are left out", grepped(t, root, args{"pattern": "end", "glob": "bi*"}))
	same(t, "the last line needs no end", grepped(t, root, args{"pattern": "B"}), "src/a.go:2:func B() {}")
	same(t, "a name alone filters in any folder", grepped(t, root, args{"pattern": "func", "glob": "*.md"}), "src/a.md:1:func of time")
	same(t, "a path filters from the folder on", grepped(t, root, args{"pattern": "func A", "glob": "src/*.go"}), "src/a.go:1:func A() {}")
	same(t, "other folders", grepped(t, root, args{"pattern": "func", "glob": "lib/**"}))
	same(t, "empty lines count", grepped(t, root, args{"pattern": "^$", "glob": "blank"}), "blank:1:", "blank:2:")
	same(t, "case", grepped(t, root, args{"pattern": "(?i)FUNC a"}), "src/a.go:1:func A() {}")
	for _, p := range []string{"(", "a{1001}", "[b-a]", strings.Repeat("x", 5000), "(?:a{1000}){1000}", strings.Repeat("(a|b){900}", 200)} {
		if res := run(t, search.Grep(nil), root, args{"pattern": p}); res.ErrorType != protocol.ErrInvalidArguments || strings.Contains(res.Error, "\n") {
			t.Errorf("%.20q: %s %.200s", p, res.ErrorType, res.Error)
		}
	}
}

func TestALongLineIsCutAroundItsMatch(t *testing.T) {
	root := tree(t, map[string]string{
		"mid": strings.Repeat("a", 100_000) + "NEEDLE" + strings.Repeat("b", 100_000) + "\n", "start": "NEEDLE" + strings.Repeat("b", 900), "wide": strings.Repeat("é", 400) + "NEEDLE",
		"huge": strings.Repeat("c", 3<<20) + "NEEDLE\nNEEDLE", "big": "x" + strings.Repeat("NEEDLE", 1000),
	})
	for _, m := range into[hit](t, run(t, search.Grep(nil), root, args{"pattern": "(NEEDLE)+"})) {
		if n := len([]rune(m.Text)); n > 500 || !strings.Contains(m.Text, "NEEDLE") {
			t.Errorf("%s:%d: %d characters, %.40q", m.Path, m.Line, n, m.Text)
		}
		if m.Path == "huge" && m.Line != 2 {
			t.Errorf("huge: line %d", m.Line)
		}
		if m.Path == "wide" && m.Text != strings.Repeat("é", 400)+"NEEDLE" {
			t.Errorf("a line of 406 characters was cut: %q", m.Text)
		}
		if m.Path == "mid" && (!strings.HasPrefix(m.Text, "…a") || !strings.HasSuffix(m.Text, "b…")) {
			t.Errorf("what is left out is not marked: %q", m.Text)
		}
	}
}

// Arguments are data: what looks like an option of another program is a pattern like any other (no program is started).
func TestArgumentsThatLookLikeOptionsAreLiteral(t *testing.T) {
	root := tree(t, map[string]string{"f": "see --help\n-needle here\n-- and -e\n--pre=x.sh\n-f/etc/passwd\n", "x.sh": "#!/bin/sh\ntouch marker\n"})
	for pattern, want := range map[string]string{
		"--help": "f:1:see --help", "-needle": "f:2:-needle here", "^-- ": "f:3:-- and -e", "-e$": "f:3:-- and -e", "--pre=x.sh": "f:4:--pre=x.sh",
		"-f/etc/passwd": "f:5:-f/etc/passwd",
	} {
		same(t, pattern, grepped(t, root, args{"pattern": pattern, "glob": "f"}), want)
	}
	same(t, "glob", grepped(t, root, args{"pattern": "x", "glob": "--pre=x.sh"}))
	if res := run(t, search.Grep(nil), root, args{"pattern": "x", "path": "--pre=x.sh", "glob": "--pre=x.sh"}); res.ErrorType != protocol.ErrNotFound {
		t.Errorf("path: %s %s", res.ErrorType, res.Error)
	}
	if _, err := os.Stat(filepath.Join(root, "marker")); err == nil {
		t.Error("x.sh was run")
	}
}

func TestLinksOutsideAreNotFollowedAndNamedOnesInsideAre(t *testing.T) {
	root := tree(t, map[string]string{"sub/in.txt": "needle\n", "../other/secret": "needle\n", "../lib/l.txt": "needle\n"})
	for name, target := range map[string]string{"out": "../other", "leak": "../other/secret", "alias": "sub", "one": "sub/in.txt", "loop": ".", "lib": "../lib"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	same(t, "each file once, under its own name", grepped(t, root, args{"pattern": "needle"}), "sub/in.txt:1:needle")
	same(t, "a named folder", grepped(t, root, args{"pattern": "needle", "path": "alias"}), "sub/in.txt:1:needle")
	same(t, "a named file", grepped(t, root, args{"pattern": "needle", "path": "one"}), "sub/in.txt:1:needle")
	for _, p := range []string{"out", "leak", "../other", "lib"} {
		if res := run(t, search.Grep(nil), root, args{"pattern": "needle", "path": p}); res.ErrorType != protocol.ErrPermissionDenied {
			t.Errorf("%s: %s", p, res.ErrorType)
		}
	}
	if res := run(t, search.Glob(), root, args{"pattern": "../other/*"}); res.ErrorType != protocol.ErrPermissionDenied {
		t.Errorf("a glob that leads outside: %q %v", res.ErrorType, res.Data)
	}
	lib := filepath.Join(filepath.Dir(root), "lib")
	for name, call := range map[string]session.ToolCall{
		"second root": {Roots: []string{root, lib}}, "consent": {Roots: []string{root}, Outside: []string{real(t, lib)}},
	} {
		call.Name, call.Arguments = "grep", json.RawMessage(`{"pattern":"needle","path":"lib"}`)
		res, err := search.Grep(nil).Run(t.Context(), call, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := into[hit](t, res); len(m) != 1 || m[0].Path != filepath.ToSlash(real(t, lib))+"/l.txt" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func real(t *testing.T, path string) string {
	t.Helper()
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A matcher that does not look at ctx takes minutes for one line.
func TestACancelledSearchComesBackAtOnce(t *testing.T) {
	line := strings.Repeat("ab", 512<<10)
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("f%d", i)] = line
	}
	root := tree(t, files)
	for _, pattern := range []string{"x", "(a|b|ab){900}x$", strings.Repeat("(a?b?){300}", 20) + "x"} {
		raw, err := json.Marshal(args{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled := make(chan time.Time, 1)
		time.AfterFunc(30*time.Millisecond, func() {
			cancelled <- time.Now()
			cancel(context.Canceled)
		})
		_, err = search.Grep(nil).Run(ctx, session.ToolCall{Name: "grep", Arguments: raw, Roots: []string{root}}, nil)
		if late := time.Since(<-cancelled); late > 20*time.Second {
			t.Errorf("%.20s came back after %v", pattern, late)
		} else if pattern != "x" && err == nil {
			t.Errorf("%.20s was not slow enough to be cancelled", pattern)
		}
	}
}

func TestAGlobThatBacktracksIsBounded(t *testing.T) {
	name := strings.Repeat("a", 200)
	root := tree(t, map[string]string{strings.Repeat(name[:40]+"/", 20) + name: ""})
	for _, p := range []string{
		strings.Repeat("**/", 40) + "b", strings.Repeat("*a", 90) + "b", strings.Repeat("{a,aa}", 8) + "**/b", "**/" + strings.Repeat("{a,*}", 8) + "b",
		strings.Repeat("{a,aa}", 9), "{{{{{{{{{{", strings.Repeat("?", 4097),
	} {
		began := time.Now()
		run(t, search.Glob(), root, args{"pattern": p})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%.30q took %v", p, took)
		}
	}
}

func BenchmarkGrepManySmallFiles(b *testing.B) {
	files := map[string]string{}
	text := strings.Repeat("func something(ctx context.Context) error { return nil }\n", 20)
	for i := range 50_000 {
		files[fmt.Sprintf("p%02d/q%02d/f%d.go", i%50, i/50%40, i)] = text
	}
	root := tree(b, files)
	for b.Loop() {
		if got := grepped(b, root, args{"pattern": `needle\d+`}); len(got) > 0 {
			b.Fatal(got)
		}
	}
}

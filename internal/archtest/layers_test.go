package archtest

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryPackageImportsOnlyWhatItsRoomMay(t *testing.T) {
	files, err := tree(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f file) bool { return f.dir == "protocol" }) {
		t.Fatal("the walk did not find the protocol package: it does not start at the module's root")
	}
	for _, b := range breaches(files) {
		t.Error(b)
	}
}

// topLevel is what may lie at the module's root beside dot files, so that every new thing finds its room inside.
var topLevel = []string{
	"cmd", "dispatcher", "session", "protocol", "fixtures", "internal", "docs", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
	"CONTRIBUTING.md",
}

// made are names that .gitignore knows and that a build leaves behind.
var made = []string{"rind", "rind.exe", "bin", "tmp"}

func TestTheTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".test") || slices.Contains(made, name) || slices.Contains(topLevel, name) {
			continue
		}
		t.Errorf("%s lies at the top level: everything new belongs inside one of %s", name, strings.Join(topLevel[:7], ", "))
	}
}

func TestEveryRowNamesOnlyRoomsThatHaveARow(t *testing.T) {
	for _, r := range rooms {
		for _, p := range r.ours {
			dir := strings.TrimSuffix(p, "/*")
			known := slices.ContainsFunc(rooms, func(o room) bool { return o.path == p || path.Dir(o.path) == dir })
			if !known {
				t.Errorf("the row of %s allows %s, which no row knows", r.path, p)
			}
		}
	}
}

func TestTheRulesCatchWhatTheyForbid(t *testing.T) {
	for _, c := range []struct {
		name, file, body, want string
	}{
		{"a package without a row", "session/brain/a.go", `package brain`, "has no row"},
		{"words that know the session", "protocol/a.go", `import _ "` + module + `/session"`, "does not name this room"},
		{"a session that knows a dialect", "session/a.go", `import _ "` + module + `/protocol/rindv2"`, "does not name this room"},
		{"a session that knows a store", "session/a.go", `import _ "` + module + `/session/store/sqlite"`, "does not name this room"},
		{"a codec that knows another", "protocol/acp/a.go", `import _ "` + module + `/protocol/rindv2"`, "does not name this room"},
		{"a tool that knows another", "session/tool/plan/a.go", `import _ "` + module + `/session/tool/files"`, "does not name this room"},
		{"a store that knows another", "session/store/sqlite/a.go", `import _ "` + module + `/session/store/memory"`, "does not name this room"},
		{"settings above the words", "session/settings/a.go", `import _ "` + module + `/session"`, "does not name this room"},
		{"a process started elsewhere", "session/tool/shell/a.go", `import _ "os/exec"`, "session/proc only"},
		{"HTTP served elsewhere", "dispatcher/a.go", `import web "net/http"; var s web.Server`, "http.Server"},
		{"SQLite outside its store", "session/store/memory/a.go", `import _ "modernc.org/sqlite"`, "does not name this dependency"},
		{"SQLite in another room's test", "session/a_test.go", `import _ "modernc.org/sqlite"`, "kept to the rooms"},
		{"jsonrpc2 in the dispatcher", "dispatcher/a.go", `import _ "github.com/sourcegraph/jsonrpc2"`, "does not name this dependency"},
		{"a model SDK in a tool", "session/tool/web/a.go", `import _ "charm.land/fantasy/providers/openai"`, "does not name this dependency"},
		{"cobra below cmd", "dispatcher/a.go", `import _ "github.com/spf13/cobra"`, "does not name this dependency"},
		{"a dependency of the words", "protocol/a.go", `import _ "golang.org/x/text/cases"`, "does not name this dependency"},
		{"a test suite in the binary", "cmd/rind/compose.go", `import x "` + module + `/session/store/storetest"; var _ = x.Y`, "for tests"},
		{"a command that names a store", "cmd/rind/prompt.go", `import x "` + module + `/session/store/sqlite"; var _ = x.Y`, "only compose.go"},
		{"a rule for another system", "session/a_windows.go", `import _ "os/exec"`, "session/proc only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(t, c.file, c.body)
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("breaches = %q, want exactly one that says %q", got, c.want)
			}
		})
	}
}

func TestTheRulesAllowWhatTheRoomsNeed(t *testing.T) {
	for _, c := range []struct{ name, file, body string }{
		{"composing a store", "cmd/rind/compose.go", `import x "` + module + `/session/store/sqlite"; var _ = x.Y`},
		{"a command that reads settings", "cmd/rind/config.go", `import x "` + module + `/session/settings"; var _ = x.Y`},
		{"a hosted agent that speaks ACP", "session/provider/acpagent/a.go", `import _ "` + module + `/protocol/acp"`},
		{"a test with the other side of its seam", "session/a_test.go", `import _ "` + module + `/session/store/memory"`},
		{"an HTTP client in a provider", "session/provider/openai/a.go", `import "net/http"; var c http.Client`},
		{"HTTP served in its room", "dispatcher/httpapi/a.go", `import "net/http"; var s http.Server`},
		{"a suite that uses the property library", "session/store/storetest/a.go", `import _ "pgregory.net/rapid"`},
		{"testdata is nobody's room", "session/testdata/x/a.go", `package x`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(t, c.file, c.body); len(got) > 0 {
				t.Errorf("breaches = %q, want none", got)
			}
		})
	}
}

func judge(t *testing.T, name, body string) []string {
	t.Helper()
	if !strings.HasPrefix(body, "package") {
		body = "package x; " + body
	}
	var root fs.FS = fstest.MapFS{name: {Data: []byte(body)}}
	files, err := tree(root)
	if err != nil {
		t.Fatal(err)
	}
	return breaches(files)
}

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dialers are the places in the code that can make a connection, with what they use for it and the row of docs/privacy.md that tells of
// it. A new one belongs here, and its row there: what is sent, to whom, how to turn it off.
var dialers = map[string]struct{ uses, row string }{
	"session/modelhttp/endpoint.go":  {"http.Client", "model"},
	"session/modelhttp/transport.go": {"http.Transport net.Dialer", "models"}, // and conversations
	"session/tool/mcp/http.go":       {"http.Client http.Transport net.Dialer", "mcp"},
	"session/tool/web/client.go":     {"http.Transport net.Dialer", "page"},
	"session/tool/web/search.go":     {"web.newClient", "search"},
	"cmd/rind/serve.go":              {"net.LookupHost", ""}, // of "localhost", before it listens there
	"session/tool/web/web.go":        {"net.DefaultResolver net.Resolver", "page"},
	"session/tool/web/fetch.go":      {"web.newClient", "page"},
}

// starters are the places that start programs, with the words of docs/privacy.md about them.
var starters = map[string]string{
	"session/keyring/keyring.go":            "secret-tool",
	"session/provider/acpagent/child.go":    "a hosted agent",
	"session/provider/acpagent/terminal.go": "the commands it has us run",
	"session/tool/mcp/stdio.go":             "MCP servers with a `command`",
	"session/tool/shell/command.go":         "commands of the tool `bash`",
	"session/tool/shell/sandbox_linux.go":   "commands of the tool `bash`", // tries whether bubblewrap works, with /bin/sh -c "exit 0"
	"cmd/rind/democrash.go":                 "",                            // rind itself, to be killed
	"cmd/rind/fixture.go":                   "",                            // what the person named on the command line
}

// connects are the names that lead to a connection, by import path. Listening is none.
var connects = map[string]*regexp.Regexp{
	"net":                    regexp.MustCompile(`^(Dial.*|Dialer|Resolver|DefaultResolver|Lookup.*|FileConn)$`),
	"net/http":               regexp.MustCompile(`^(Client|Transport|Get|Post|PostForm|Head|DefaultClient|DefaultTransport)$`),
	"crypto/tls":             regexp.MustCompile(`^(Dial.*|Dialer|Client)$`),
	"syscall":                regexp.MustCompile(`^(Connect|Socket|Sendto|Sendmsg)$`),
	"os/exec":                regexp.MustCompile(`^Command`),
	module + "/session/proc": regexp.MustCompile(`^Start$`),

	"golang.org/x/sys/unix": regexp.MustCompile(`^(Connect|Socket|Sendto|Sendmsg.*)$`),
	// Whatever is used of these.
	"net/rpc": regexp.MustCompile(``), "net/smtp": regexp.MustCompile(``), "log/syslog": regexp.MustCompile(``), "net/http/httputil": regexp.MustCompile(``),
}

const module = "github.com/rind-dev/rind"

// testRooms are packages that only tests import (internal/archtest holds them to it), and the example clients.
var testRooms = []string{"docs/clients", "fixtures", "internal", "session/provider/providertest", "session/store/storetest", "session/tool/tooltest"}

// TestEveryPlaceThatConnectsHasItsRowInThePrivacyPage reads the code: what can connect is in the table above, and its row in the page.
func TestEveryPlaceThatConnectsHasItsRowInThePrivacyPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "privacy.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	_, table, _ := strings.Cut(string(page), "| connection |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, r := range regexp.MustCompile(`(?m)^\| ([a-z]+) \|(.*)\|$`).FindAllStringSubmatch(table, -1) {
		rows[r[1]] = false
		if cells := strings.Split(r[2], " | "); len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("row %s does not say all: %q", r[1], cells)
		}
	}
	found, starts := placesThatConnect(t, root)
	for _, file := range slices.Sorted(maps.Keys(found)) {
		d, ok := dialers[file]
		uses := strings.Join(found[file], " ")
		switch {
		case !ok:
			t.Errorf("%s can connect (%s): tell of it in docs/privacy.md, and name it in dialers", file, uses)
		case d.uses != uses:
			t.Errorf("%s uses %s to connect, dialers says %s: does docs/privacy.md tell of all?", file, uses, d.uses)
		}
	}
	for file, d := range dialers {
		if found[file] == nil {
			t.Errorf("%s is in dialers and cannot connect", file)
		}
		if d.row == "" {
			continue
		}
		if _, ok := rows[d.row]; !ok {
			t.Errorf("%s belongs to a row %s, which docs/privacy.md does not have", file, d.row)
		}
		rows[d.row] = true
	}
	for row, used := range rows {
		if !used {
			t.Errorf("docs/privacy.md tells of %s, which nothing does", row)
		}
	}
	for _, file := range starts {
		if words, ok := starters[file]; !ok || !strings.Contains(string(page), words) {
			t.Errorf("%s starts programs: tell of them in docs/privacy.md, and name it in starters", file)
		}
	}
	for file := range starters {
		if !slices.Contains(starts, file) {
			t.Errorf("%s is in starters and starts nothing", file)
		}
	}
}

// placesThatConnect parses the program's own files, for all systems, and tells by file what of connects they use, and which of
// them start programs.
func placesThatConnect(t *testing.T, root string) (found map[string][]string, starts []string) {
	t.Helper()
	found = map[string][]string{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || slices.Contains(testRooms, rel) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		uses, starting := usedOf(file)
		if len(uses) > 0 {
			found[rel] = uses
		}
		if starting && !strings.HasPrefix(rel, "session/proc/") {
			starts = append(starts, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, starts
}

// usedOf tells what of connects a file uses, sorted, and whether it starts programs.
func usedOf(file *ast.File) (uses []string, starts bool) {
	imported := map[string]string{} // by the name in the file
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok || connects[imported[x.Name]] == nil || !connects[imported[x.Name]].MatchString(n.Sel.Name) {
				break
			}
			if path := imported[x.Name]; path == "os/exec" || path == module+"/session/proc" {
				starts = true
				break
			}
			uses = append(uses, imported[x.Name][strings.LastIndex(imported[x.Name], "/")+1:]+"."+n.Sel.Name)
		case *ast.CompositeLit: // what a program is started with, whoever starts it
			if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Spec" {
				if x, ok := of.X.(*ast.Ident); ok && imported[x.Name] == module+"/session/proc" {
					starts = true
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "newClient" && file.Name.Name == "web" { // the one client that two rows share
				uses = append(uses, "web.newClient")
			}
		}
		return true
	})
	slices.Sort(uses)
	return slices.Compact(uses), starts
}

// TestNoDependencyConnectsUnseen: of the modules in the program, those that could connect by themselves are known, with the reason why
// they do not.
func TestNoDependencyConnectsUnseen(t *testing.T) {
	known := map[string]string{
		"modernc.org/libc":       "is a C library for SQLite, which calls none of its functions for programs and sockets",
		"github.com/google/uuid": "reads the addresses of network cards, for a kind of id that is not used",
		"github.com/spf13/pflag": "has flags whose values are addresses",
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}`, ".")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		seen++
		if strings.HasPrefix(f[0], module) {
			continue // read by the test above
		}
		for _, i := range f[1:] {
			if slices.Contains([]string{"net", "net/http", "crypto/tls", "net/rpc", "net/smtp", "log/syslog", "os/exec"}, i) && known[f[0]] == "" {
				t.Errorf("%s uses %s: if it can connect or start programs, docs/privacy.md has to tell; if not, say here why", f[0], i)
			}
		}
	}
	if seen < 20 {
		t.Errorf("go list told of %d packages only: %s", seen, fmt.Sprintf("%.300s", out))
	}
}

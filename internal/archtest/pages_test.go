package archtest

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// proofs are the pages whose rows end with the tests that hold them, and how many cells a row has.
var proofs = []struct {
	page  string
	cells int
}{
	{"docs/decisions.md", 3},
	{"docs/cases.md", 4},
	{"docs/protocol/portable-rows.md", 2},
}

// TestEveryTestThatAPageNamesIsThere: a rule or a case whose test went away is not held by anything.
func TestEveryTestThatAPageNamesIsThere(t *testing.T) {
	root := os.DirFS("../..")
	known, err := declaredTests(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		text, err := fs.ReadFile(root, p.page)
		if err != nil {
			t.Fatal(err)
		}
		found := rows(string(text), p.cells)
		if len(found) < 40 {
			t.Errorf("%s: only %d rows were found", p.page, len(found))
		}
		above := false // whether a row above names tests, for "same"
		for _, cells := range found {
			if len(cells) != p.cells {
				t.Errorf("%s: %d cells, want %d, in the row of %q", p.page, len(cells), p.cells, cells[0])
				continue
			}
			for _, fault := range unproven(cells[p.cells-1], above, known) {
				t.Errorf("%s: %q %s", p.page, cells[0], fault)
			}
			above = true
		}
	}
}

// TestEveryCaseHasOneRow: the cases of docs/cases.md stand once each, in their order.
func TestEveryCaseHasOneRow(t *testing.T) {
	text, err := os.ReadFile("../../docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, cells := range rows(string(text), 4) {
		id := cells[0]
		if !regexp.MustCompile(`^H\d{3}$`).MatchString(id) {
			t.Errorf("%q is no number of a case", id)
		}
		if id <= last {
			t.Errorf("%s stands behind %s", id, last)
		}
		last = id
	}
}

// TestEveryRowOfThePortableProtocolHasItsTests: the page of its tests has the rows of section 15, each once and in their order.
func TestEveryRowOfThePortableProtocolHasItsTests(t *testing.T) {
	contract, err := os.ReadFile("../../docs/protocol/portable-2026-09-02.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/protocol/portable-rows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, checklist, ok := strings.Cut(string(contract), "\n## 15. ")
	if !ok {
		t.Fatal("the contract has no section 15")
	}
	var want, got []string
	for _, row := range regexp.MustCompile(`(?m)^([A-Z]\d\d)\+?(?: F)? \| `).FindAllStringSubmatch(checklist, -1) {
		want = append(want, row[1])
	}
	for _, cells := range rows(string(page), 2) {
		got = append(got, cells[0])
	}
	if len(want) < 130 || !slices.Equal(got, want) {
		t.Errorf("the contract has %d rows, the page %d:\n%q\n%q", len(want), len(got), want, got)
	}
}

// TestEveryPackageIsOnThePageOfTheArchitecture: the page is the way into the code. Of stores, providers and tools it names the folder only.
func TestEveryPackageIsOnThePageOfTheArchitecture(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(dir string) bool {
		for _, folder := range []string{"session/store", "session/provider", "session/tool"} {
			if strings.HasPrefix(dir, folder+"/") {
				dir = folder + "/…"
			}
		}
		return strings.Contains(string(page), "`"+dir+"`")
	}
	missing, found := map[string]bool{}, 0
	err = fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "testdata" || strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case strings.HasSuffix(base, ".go"):
			top, _, _ := strings.Cut(name, "/")
			if dir := path.Dir(name); slices.Contains([]string{"cmd", "protocol", "session", "dispatcher", "internal"}, top) {
				found++
				if !named(dir) {
					missing[dir] = true
				}
			}
		}
		return nil
	})
	if err != nil || found < 100 {
		t.Errorf("%d files were found (%v)", found, err)
	}
	for dir := range missing {
		t.Errorf("docs/architecture.md does not name %s", dir)
	}
}

func TestATestThatIsNotThereIsFound(t *testing.T) {
	known, err := declaredTests(fstest.MapFS{
		"a/b/x_test.go":     {Data: []byte("package b\nfunc TestOne(t *testing.T) {}\nfunc FuzzTwo(f *testing.F) {}\nfunc (s suite) TestNone() {}\n")},
		"a/suite/suite.go":  {Data: []byte("package suite\nvar all = []row{{\"ThreeHolds\", three}}\n")},
		"a/b/testdata/x.go": {Data: []byte("package x\nfunc TestFour(t *testing.T) {}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cell  string
		above bool
		fault string
	}{
		{"a/b TestOne", false, ""},
		{"a/b TestOne, FuzzTwo", false, ""},
		{"a/suite ThreeHolds, a/b TestOne", false, ""},
		{"same, and a/b TestOne", true, ""},
		{"a/b, all its tests", false, ""},
		{"none: nothing can be seen of it", false, ""},
		{"same", false, "there is none above"},
		{"", false, "names no test"},
		{"TestOne", false, "no package"},
		{"a/b TestGone", false, "no TestGone in a/b"},
		{"a/b TestOne, TestGone", false, "no TestGone in a/b"},
		{"a/b TestNone", false, "no TestNone in a/b"},
		{"a/b TestFour", false, "no TestFour in a/b"},
		{"a/c TestOne", false, "no TestOne in a/c"},
		{"a/c, all its tests", false, "no tests in a/c"},
	} {
		got := strings.Join(unproven(c.cell, c.above, known), "; ")
		if (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
			t.Errorf("%q: %q, want %q", c.cell, got, c.fault)
		}
	}
}

// rows are the trimmed cells of a page's rows. A bar behind a backslash belongs to its cell.
func rows(text string, cells int) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		var row []string
		for _, c := range strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|") {
			row = append(row, strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|")))
		}
		if len(row) == cells && row[cells-1] == "test" {
			continue // the head
		}
		all = append(all, row)
	}
	return all
}

// unproven says what is wrong with the last cell of a row: "DIR Test, Test, DIR Test", "same" for the row above, "DIR, all its tests" or "none: why".
func unproven(cell string, above bool, known map[string][]string) (faults []string) {
	if strings.HasPrefix(cell, "none: ") {
		return nil
	}
	if cell == "" {
		return []string{"names no test"}
	}
	dir := ""
	for _, piece := range strings.Split(cell, ", ") {
		words := strings.Fields(strings.TrimPrefix(piece, "and "))
		switch {
		case piece == "same":
			if !above {
				faults = append(faults, "is the same as a row above, and there is none above")
			}
			continue
		case piece == "all its tests":
			if len(known[dir]) == 0 {
				faults = append(faults, "names all tests of a folder, and there are no tests in "+dir)
			}
			continue
		case len(words) == 1 && strings.Contains(words[0], "/"):
			dir = words[0]
			continue
		case len(words) == 2:
			dir = words[0]
		case len(words) != 1:
			faults = append(faults, "names its tests in words: "+strconv.Quote(piece))
			continue
		}
		name := words[len(words)-1]
		switch {
		case dir == "" && !above:
			faults = append(faults, "names "+name+" and no package")
		case dir == "" && !anywhere(known, name):
			faults = append(faults, "names "+name+", which is nowhere")
		case dir != "" && !slices.Contains(known[dir], name):
			faults = append(faults, "names a test that is not there: no "+name+" in "+dir)
		}
	}
	return faults
}

// anywhere says whether some folder has a test of that name.
func anywhere(known map[string][]string, name string) bool {
	for _, names := range known {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// declaredTests are the test functions of each folder, and the names that the suites beside the tests give to theirs.
func declaredTests(root fs.FS) (map[string][]string, error) {
	known := map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "testdata" || strings.HasPrefix(base, ".")):
			return fs.SkipDir
		case d.IsDir() || base != "suite.go" && !strings.HasSuffix(base, "_test.go"):
			return nil
		}
		parsed, err := parse(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if path.Base(name) == "suite.go" {
			ast.Inspect(parsed, func(n ast.Node) bool {
				if row, ok := n.(*ast.CompositeLit); ok && len(row.Elts) > 0 {
					if lit, ok := row.Elts[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						s, _ := strconv.Unquote(lit.Value) // the parser accepted it
						known[dir] = append(known[dir], s)
					}
				}
				return true
			})
			return nil
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				known[dir] = append(known[dir], f.Name.Name)
			}
		}
		return nil
	})
	return known, err
}

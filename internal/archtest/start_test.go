package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestNothingIsCompiledAtTheStart: an expression at package level costs every start of the program, and an editor waits for it.
func TestNothingIsCompiledAtTheStart(t *testing.T) {
	root := os.DirFS("../..")
	for _, dir := range []string{"cmd", "dispatcher", "protocol", "session"} {
		err := fs.WalkDir(root, dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			parsed, err := parse(root, name)
			if err != nil {
				return err
			}
			for _, at := range compiled(parsed) {
				t.Errorf("%s: %s is compiled at the start of the program; use sync.OnceValue", name, at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestACompiledExpressionIsFound(t *testing.T) {
	for src, want := range map[string]int{
		`var a = regexp.MustCompile("a")`: 1,
		`var t = map[string]*regexp.Regexp{"a": regexp.MustCompile("a"), "b": regexp.MustCompile("b")}`: 2,
		`var a = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("a") })`:              0,
		`func f() { regexp.MustCompile("a") }`:                                                          0,
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := compiled(parsed); len(got) != want {
			t.Errorf("%s: found %q", src, got)
		}
	}
}

// compiled lists the calls of package regexp that the variables of a file make when the program starts.
func compiled(f *ast.File) (found []string) {
	for _, decl := range f.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		ast.Inspect(vars, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false // runs when it is called
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok {
					if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "regexp" {
						found = append(found, "regexp."+sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	return found
}

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// file is what the rules need to know of one Go file.
type file struct {
	name    string // slash path from the module root
	dir     string // its package, "." for the root
	test    bool
	imports []string
	blank   bool // imports packages only for go.mod's sake: every import is blank and nothing but an empty main is declared
	serving []string
}

// tree parses every Go file below root, whatever its build constraints, so that the rules hold for every operating system.
func tree(root fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base == "testdata" || base == "vendor" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		parsed, err := parse(root, name)
		if err != nil {
			return err
		}
		files = append(files, read(name, parsed))
		return nil
	})
	return files, err
}

func read(name string, parsed *ast.File) file {
	f := file{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), blank: len(parsed.Imports) > 0}
	local := "" // the name net/http has in this file
	for _, imp := range parsed.Imports {
		p, _ := strconv.Unquote(imp.Path.Value) // the parser accepted it
		f.imports = append(f.imports, p)
		f.blank = f.blank && imp.Name != nil && imp.Name.Name == "_"
		if p == "net/http" {
			local = "http"
			if imp.Name != nil {
				local = imp.Name.Name
			}
		}
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.blank = f.blank && d.Name.Name == "main" && d.Body != nil && len(d.Body.List) == 0
		case *ast.GenDecl:
			f.blank = f.blank && d.Tok == token.IMPORT
		}
	}
	if local != "" {
		f.serving = serving(parsed, local)
	}
	return f
}

// serving lists the names of net/http in a file by which one serves. A client needs none of them.
func serving(parsed *ast.File, local string) []string {
	names := []string{"Server", "ListenAndServe", "ListenAndServeTLS", "Serve", "ServeTLS", "Handle", "HandleFunc"}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				found = append(found, "http."+sel.Sel.Name)
			}
		}
		return true
	})
	return found
}

// breaches holds files against the table and says, one line each, what is wrong.
func breaches(files []file) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	missing := map[string]bool{}
	for _, f := range files {
		r, ok := roomOf(f.dir)
		if !ok {
			if !missing[f.dir] {
				missing[f.dir] = true
				say("%s: package %s has no row in internal/archtest/rooms_test.go: add one that says what it may import", f.name, f.dir)
			}
			continue
		}
		if f.blank && f.dir == "cmd/rind" {
			continue
		}
		for _, imp := range f.imports {
			if why := forbidden(r, f, imp); why != "" {
				say("%s: may not import %s: %s", f.name, imp, why)
			}
		}
		if !f.test && !r.serves {
			for _, name := range f.serving {
				say("%s: may not use %s: HTTP is served by dispatcher/httpapi only", f.name, name)
			}
		}
	}
	return out
}

// forbidden tells why file f of room r may not import imp, "" if it may.
func forbidden(r room, f file, imp string) string {
	inside, ours := strings.CutPrefix(imp, module+"/")
	switch {
	case imp == module:
		return "the module's root is no package"
	case ours:
		return forbiddenOurs(r, f, inside)
	case !strings.Contains(strings.SplitN(imp, "/", 2)[0], "."): // the standard library has no dot before its first slash
		if imp == "os/exec" && !f.test && !r.processes {
			return "processes are started by session/proc only"
		}
		return ""
	case f.test:
		if under(imp, guests) && !under(imp, r.third) {
			return "this dependency is kept to the rooms whose row names it"
		}
		return ""
	case !under(imp, r.third):
		return "the row of " + r.path + " does not name this dependency"
	}
	return ""
}

func forbiddenOurs(r room, f file, inside string) string {
	to, ok := roomOf(inside)
	switch {
	case f.test || inside == f.dir:
		return ""
	case ok && to.testOnly && !r.testOnly:
		return "that room is for tests"
	case !matches(inside, r.ours):
		return "the row of " + r.path + " does not name this room"
	case strings.HasPrefix(f.dir, "session/") && path.Dir(f.dir) == path.Dir(inside) && path.Dir(inside) != "session":
		return "siblings never import each other"
	case f.dir == "cmd/rind" && path.Base(f.name) != "compose.go" && matches(inside, composed):
		return "only compose.go names concrete stores, providers, tools and dialects"
	}
	return ""
}

// roomOf finds the row of a package: its own, else that of the folder it lies in.
func roomOf(dir string) (room, bool) {
	for _, want := range []string{dir, path.Dir(dir) + "/*"} {
		if i := slices.IndexFunc(rooms, func(r room) bool { return r.path == want }); i >= 0 {
			return rooms[i], true
		}
	}
	return room{}, false
}

func matches(dir string, patterns []string) bool {
	return slices.Contains(patterns, dir) || slices.Contains(patterns, path.Dir(dir)+"/*")
}

// under tells whether an import path is one of the modules or packages, lies below one, or is a later major version of one.
func under(imp string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return imp == p || strings.HasPrefix(imp, p+"/") })
}

// parse reads a source file.
func parse(root fs.FS, name string) (*ast.File, error) {
	src, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return parsed, nil
}

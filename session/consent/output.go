package consent

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// document is the text of a here-document.
func document(x *expander, r *syntax.Redirect) word {
	quoted := len(r.Word.Parts) != 1
	if !quoted {
		lit, ok := r.Word.Parts[0].(*syntax.Lit)
		quoted = !ok || strings.Contains(lit.Value, `\`)
	}
	if quoted {
		var b strings.Builder
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
		return word{text: b.String(), known: true}
	}
	return x.one(&syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: r.Hdoc.Parts}}})
}

// plainStop tells whether the word that ends a here-document reads the same for every shell, and for the parser: quoted, if at all, as a whole
// or at its beginning, and without escapes in the quotes.
func plainStop(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return stopWord().MatchString(strings.TrimPrefix(p.Value, `\`))
	case *syntax.SglQuoted:
		return !p.Dollar && stopWord().MatchString(p.Value)
	case *syntax.DblQuoted:
		if p.Dollar || len(p.Parts) != 1 {
			return false
		}
		lit, ok := p.Parts[0].(*syntax.Lit)
		return ok && stopWord().MatchString(lit.Value)
	}
	return false
}

var stopWord = lazily(`^[A-Za-z0-9_.:!-][A-Za-z0-9_.:! -]*$`)

// output is what a statement prints, as far as its words tell.
func (s *scanner) output(x *syntax.Stmt, st state) (string, bool) {
	if x == nil {
		return "", false
	}
	switch c := x.Cmd.(type) {
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return s.output(c.Y, st)
		}
		return s.outputs([]*syntax.Stmt{c.X, c.Y}, st)
	case *syntax.Block:
		return s.outputs(c.Stmts, st)
	case *syntax.Subshell:
		return s.outputs(c.Stmts, st)
	case *syntax.TimeClause:
		return s.output(c.Stmt, st)
	case *syntax.IfClause:
		return s.outputs(c.Then, st)
	case *syntax.WhileClause:
		return s.outputs(c.Do, st)
	case *syntax.ForClause:
		return s.outputs(c.Do, st)
	case *syntax.CallExpr:
		argv := s.expand(st).fields(c.Args)
		for len(argv) > 0 { // behind wrappers
			inner, _ := unwrap(argv)
			if len(inner) == 0 {
				break
			}
			argv = inner
		}
		if len(argv) == 1 && argv[0].text == "cat" {
			for _, r := range x.Redirs {
				switch {
				case r.Hdoc != nil && (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc):
					return document(s.expand(st), r).text, true
				case r.Op == syntax.WordHdoc:
					return s.expand(st).one(r.Word).text, true
				}
			}
		}
		return printed(argv)
	}
	return "", false
}

// outputs is what is known of the output of several.
func (s *scanner) outputs(list []*syntax.Stmt, st state) (string, bool) {
	var b strings.Builder
	any := false
	for _, x := range list {
		if out, ok := s.output(x, st); ok && b.Len() < mostBytes {
			any = true
			b.WriteString(out)
		}
	}
	return b.String(), any
}

package consent

import "mvdan.cc/sh/v3/syntax"

func (s *scanner) binary(c *syntax.BinaryCmd, st state) (ok, after []string) {
	switch c.Op {
	case syntax.AndStmt:
		okX, anyX := s.stmt(c.X, st)
		okY, anyY := s.stmt(c.Y, st.moved(okX))
		return okY, union(anyX, anyY)
	case syntax.OrStmt:
		okX, anyX := s.stmt(c.X, st)
		okY, anyY := s.stmt(c.Y, st.moved(anyX))
		return union(okX, okY), union(anyX, anyY)
	}
	s.stmt(c.X, st) // a pipe: in most shells both run in one of their own, in some the last does not
	next := st
	next.piped = true
	next.stdin, next.known = s.output(c.X, st)
	_, after = s.stmt(c.Y, next)
	return union(st.dirs, after), union(st.dirs, after)
}

func (s *scanner) branches(c *syntax.IfClause, st state) []string {
	if c == nil {
		return st.dirs
	}
	cond := s.stmts(c.Cond, st)
	st = st.moved(cond)
	then := s.stmts(c.Then, st)
	return union(then, s.branches(c.Else, st))
}

// looped is the state of something that may run again after it has changed folder.
func (s *scanner) looped(n syntax.Node, st state) state {
	if changesFolder(n) {
		return st.moved(union(st.dirs, []string{elsewhere}))
	}
	return st
}

func (s *scanner) forClause(c *syntax.ForClause, st state) (ok, after []string) {
	st = s.looped(c, st)
	iter, isWords := c.Loop.(*syntax.WordIter)
	if !isWords || c.Select {
		s.substitutions(c.Loop, st)
		s.emit(step{text: st.text(c), other: "arithmetic", dirs: st.dirs})
		s.stmts(c.Do, st)
		return st.dirs, st.dirs
	}
	for _, w := range iter.Items {
		s.substitutions(w, st)
	}
	items := s.expand(st).fields(iter.Items)
	s.named(iter.Items, c.Loop, st)
	name := iter.Name.Value
	if !ownName().MatchString(name) {
		s.emit(step{text: st.text(c.Loop), other: "variable", dirs: st.dirs})
	}
	for i := range min(max(len(items), 1), mostItems) {
		if i < len(items) {
			s.vars[name] = items[i].text
		}
		s.stmts(c.Do, st)
	}
	delete(s.vars, name)
	return st.dirs, st.dirs
}

// ownName are the names of variables that mean something only to the command itself. PATH, IFS and their like are in capitals.
var ownName = lazily(`^([a-z_][a-z0-9_]*|[A-Z])$`)

// named emits what is only named by a compound command, as if it were given to echo.
func (s *scanner) named(ws []*syntax.Word, n syntax.Node, st state) {
	p := step{argv: append([]word{{text: "echo", known: true}}, s.expand(st).fields(ws)...), text: st.text(n), dirs: st.dirs, start: st.start}
	p.literal = s.literal(p.argv, st)
	s.emit(p)
}

func (s *scanner) caseClause(c *syntax.CaseClause, st state) (ok, after []string) {
	s.substitutions(c.Word, st)
	s.named([]*syntax.Word{c.Word}, c.Word, st)
	all := st.dirs
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			s.substitutions(p, st)
		}
		s.named(item.Patterns, c, st) // a pattern may assign as well
		all = union(all, s.stmts(item.Stmts, st))
		st = st.moved(all) // ;& goes on with the next
	}
	return all, all
}

func (s *scanner) function(c *syntax.FuncDecl, st state) (ok, after []string) {
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	s.functions[name] = true
	if multiplies(c.Body, name) {
		s.bomb = name
	}
	s.emit(step{text: st.text(c), other: "function", dirs: st.dirs})
	in := s.looped(c.Body, st)
	in.function, in.exotic = true, true
	s.stmt(c.Body, in)
	return in.dirs, in.dirs
}

// multiplies finds a function that calls itself more than once and does not wait for it: a fork bomb.
func multiplies(body *syntax.Stmt, name string) bool {
	calls, apart := 0, false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && n.Args[0].Lit() == name {
				calls++
			}
		case *syntax.Stmt:
			apart = apart || n.Background
		case *syntax.BinaryCmd:
			apart = apart || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		}
		return true
	})
	return calls > 1 && apart
}

// test looks at [[ … ]]: words in it may be computed with, which can run what they hold.
func (s *scanner) test(c *syntax.TestClause, st state) {
	s.substitutions(c, st)
	argv := []word{{text: "[[", known: true}}
	x := s.expand(st)
	var visit func(n syntax.Node) bool
	visit = func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			argv = append(argv, x.one(n))
			return false
		case *syntax.UnaryTest:
			argv = append(argv, word{text: n.Op.String(), known: true})
		case *syntax.BinaryTest: // as it is written, so that what is compared stands on both sides
			syntax.Walk(n.X, visit)
			argv = append(argv, word{text: n.Op.String(), known: true})
			syntax.Walk(n.Y, visit)
			return false
		}
		return true
	}
	syntax.Walk(c.X, visit)
	s.emit(step{argv: argv, text: st.text(c), dirs: st.dirs, start: st.start, literal: s.literal(argv, st)})
}

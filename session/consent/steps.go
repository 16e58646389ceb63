package consent

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is taken apart. What is beyond them is not understood, and asks.
const (
	mostBytes    = 64 << 10
	mostNesting  = 300
	mostSteps    = 1000
	mostDepth    = 16 // commands within words of commands
	mostWrappers = 40
	mostItems    = 8 // of a loop that are tried
	mostDirs     = 4
)

// step is one part of a command: a program that is called, or something else that happens.
type step struct {
	argv  []word
	text  string   // as written
	dirs  []string // folders it may run in
	start bool     // dirs is the folder the command starts in
	// literal steps are known to the letter. plain ones have nothing beside their words, so that a rule may speak of them by themselves.
	literal, plain bool
	// within is a step found in a word or behind a wrapper of another, which asks for it. Looked at for what is never done, for secrets, and
	// for what was rejected.
	within bool
	by     int    // of a step behind a wrapper: 1 + the index of the wrapper's
	piped  bool   // its input comes from a part before it
	stdin  string // its input where that is known
	other  string // what happens instead of a call: "redirection", "function", …
	target word   // of a redirection
	writes bool   // it writes to target
}

// program is the name of what is called, "" when that is not known.
func (s *step) program() string {
	if len(s.argv) == 0 || s.argv[0].unclear() {
		return ""
	}
	return programName(s.argv[0].text)
}

// programName strips the folders of programs everybody has. Any other path stays: it is a program of its own.
func programName(name string) string {
	dir, base := path.Split(name)
	switch path.Base(dir) {
	case ".", "/":
		if dir == "" {
			return name
		}
	case "bin", "sbin":
		return base
	}
	return name
}

// scanner takes a command apart into steps.
type scanner struct {
	home, temp string
	vars       map[string]string
	functions  map[string]bool
	steps      []step
	bomb       string // the function that multiplies itself
	worst      string // what is never done, of text that is no command
	depth      int
	within     bool
	failed     error // why the command is not understood
}

var (
	errTooMuch = errors.New("it is too long or too deeply nested")
	errReturn  = errors.New("it holds a carriage return")
	errNul     = errors.New("it holds a NUL")
	errStop    = errors.New("its here-document ends with a word that shells take differently")
)

// state is where in a command something is.
type state struct {
	dirs     []string
	start    bool // dirs is the folder of the start
	src      string
	piped    bool
	stdin    string
	known    bool // stdin is
	function bool
	exotic   bool // in the background, or in something whose parts do not speak for themselves
	wrapped  int  // wrappers around it
	fed      bool // gets its input from a file or text in the command
}

func (s *scanner) scan(text string, st state) (after []string) {
	if strings.Contains(text, "\r") { // for a shell it is a letter, for the parser a blank, or nothing
		s.scan(strings.ReplaceAll(text, "\r", "\x7f"), st)
		defer func() {
			if s.failed == nil {
				s.failed = errReturn
			}
		}()
	}
	if strings.Contains(text, unknownText) && s.failed == nil {
		s.failed = errNul
	}
	text, ok := uncommented(text)
	if !ok && s.failed == nil {
		s.failed = errTooMuch
	}
	st.src = text
	list, err := parse(text)
	after = s.stmts(list, st)
	if err != nil && strings.Contains(text, "((") { // which a shell may take for two subshells
		if again := strings.ReplaceAll(text, "((", "( ("); len(again) <= mostBytes {
			list, _ := parse(again)
			st.src = again
			s.stmts(list, st)
		}
	}
	if err != nil && s.failed == nil {
		s.failed = err
	}
	return after
}

// nested scans a command that is a word of another.
func (s *scanner) nested(text string, st state) {
	if s.depth >= mostDepth {
		s.failed = errTooMuch
		return
	}
	was, failed := s.within, s.failed
	s.within = true
	s.depth++
	st.start = false
	s.scan(strings.ReplaceAll(text, unknownText, "${_}"), st)
	s.depth--
	s.within = was
	if failed == nil && s.failed != nil && !errors.Is(s.failed, errTooMuch) {
		s.failed = nil // it is no command, and the one it is in asks anyhow
		if s.worst == "" {
			s.worst = blunt(text)
		}
	}
}

// stmts walks a list and returns the folders it may leave one in.
func (s *scanner) stmts(list []*syntax.Stmt, st state) []string {
	for _, x := range list {
		_, after := s.stmt(x, st)
		st = st.moved(after)
	}
	return st.dirs
}

// moved is the state after a part that may have changed folder.
func (st state) moved(dirs []string) state {
	if !slices.Equal(dirs, st.dirs) {
		st.start = false
	}
	st.dirs = dirs
	return st
}

func (s *scanner) expand(st state) *expander {
	x := &expander{home: s.home, temp: s.temp, vars: s.vars, inFunction: st.function}
	if len(st.dirs) == 1 && !lost(st.dirs) {
		x.dir = st.dirs[0]
	}
	return x
}

func (s *scanner) emit(p step) {
	if len(s.steps) >= mostSteps {
		s.failed = errTooMuch
		return
	}
	p.within = p.within || s.within
	s.steps = append(s.steps, p)
}

// stmt walks one statement. It returns the folders one may be in when it succeeded, and whether it did or not.
func (s *scanner) stmt(x *syntax.Stmt, st state) (ok, after []string) {
	if s.failed != nil {
		return st.dirs, st.dirs
	}
	if x.Background || x.Coprocess || x.Disown {
		st.exotic = true
		s.emit(step{text: st.text(x), other: "background", dirs: st.dirs})
	}
	for _, r := range x.Redirs {
		st = s.redirect(r, st)
	}
	return s.command(x.Cmd, st)
}

func (st state) text(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(st.src)) {
		return st.src
	}
	return st.src[from:to]
}

// redirect looks at one redirection; the state it returns is that of the command it belongs to.
func (s *scanner) redirect(r *syntax.Redirect, st state) state {
	if r.N != nil && strings.Trim(r.N.Value, digits) != "" { // {fd}> sets a variable, which may be PATH
		s.emit(step{text: st.text(r), other: "variable", dirs: st.dirs})
		st.exotic = true
	}
	var w word
	if r.Word != nil {
		s.substitutions(r.Word, st)
		w = s.expand(st).one(r.Word)
		w.known = w.known && !w.digit
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		st.fed = true
		if !plainStop(r.Word) && s.failed == nil {
			s.failed = errStop
		}
		if r.Hdoc != nil {
			s.substitutions(r.Hdoc, st)
			doc := document(s.expand(st), r)
			st.stdin, st.known, st.exotic = doc.text, true, st.exotic || !doc.known
		}
		return st
	case syntax.WordHdoc:
		st.fed = true
		st.stdin, st.known, st.exotic = w.text+"\n", true, st.exotic || !w.known
		return st
	case syntax.DplIn, syntax.DplOut:
		if w.known && (w.text == "-" || strings.Trim(w.text, digits) == "" || strings.Trim(w.text, digits) == "-") {
			return st
		}
	}
	writes := r.Op != syntax.RdrIn && r.Op != syntax.DplIn
	if w.known && w.glob == "" && (w.text == "/dev/null" || writes && (w.text == "/dev/stdout" || w.text == "/dev/stderr")) {
		return st
	}
	st.fed, st.exotic = true, st.exotic || writes || !w.known || w.glob != ""
	s.emit(step{text: st.text(r), other: "redirection", dirs: st.dirs, target: w, writes: writes})
	return st
}

// command walks what a statement runs.
func (s *scanner) command(c syntax.Command, st state) (ok, after []string) {
	same := func() ([]string, []string) { return st.dirs, st.dirs }
	switch c := c.(type) {
	case nil:
		return same()
	case *syntax.CallExpr:
		return s.call(c, st)
	case *syntax.BinaryCmd:
		return s.binary(c, st)
	case *syntax.Block:
		d := s.stmts(c.Stmts, st)
		return d, d
	case *syntax.Subshell:
		s.stmts(c.Stmts, st)
		return same()
	case *syntax.IfClause:
		d := s.branches(c, st)
		return d, d
	case *syntax.WhileClause:
		st = s.looped(c, st)
		s.stmts(c.Do, st.moved(s.stmts(c.Cond, st)))
		return st.dirs, st.dirs
	case *syntax.ForClause:
		return s.forClause(c, st)
	case *syntax.CaseClause:
		return s.caseClause(c, st)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return s.stmt(c.Stmt, st)
		}
		return same()
	case *syntax.CoprocClause:
		unnamed(c)
		st.exotic = true
		s.emit(step{text: st.text(c), other: "background", dirs: st.dirs})
		s.stmt(c.Stmt, st)
		return same()
	case *syntax.FuncDecl:
		return s.function(c, st)
	case *syntax.TestClause:
		s.test(c, st)
		return same()
	case *syntax.DeclClause:
		s.declare(c, st)
		return same()
	default: // ((…)), let: they may assign
		s.substitutions(c, st)
		s.emit(step{text: st.text(c), other: "arithmetic", dirs: st.dirs})
		return same()
	}
}

// unnamed gives a simple command behind coproc its first word back, which the parser takes for a name where a pipe follows: bash knows names of
// compound commands only.
func unnamed(c *syntax.CoprocClause) {
	first := c.Stmt
	for {
		b, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		first = b.X
	}
	if call, ok := first.Cmd.(*syntax.CallExpr); ok && c.Name != nil {
		call.Args = append([]*syntax.Word{c.Name}, call.Args...)
		c.Name = nil
	}
}

func (s *scanner) declare(c *syntax.DeclClause, st state) {
	s.substitutions(c, st)
	s.assign(c.Args, st)
	s.emit(step{text: st.text(c), other: "variable", dirs: st.dirs})
}

// assign remembers variables whose value is known, for what is never done.
func (s *scanner) assign(as []*syntax.Assign, st state) {
	for _, a := range as {
		if a.Name == nil || a.Index != nil {
			continue
		}
		v := ""
		if a.Value != nil {
			v = s.expand(st).one(a.Value).text
		} else if a.Array != nil || a.Naked {
			delete(s.vars, a.Name.Value)
			continue
		}
		if a.Append {
			v = s.vars[a.Name.Value] + v
		}
		if len(v) <= 512 {
			s.vars[a.Name.Value] = v
		}
	}
}

// substitutions scans the commands in $(…), `…` and <(…) of a node, whose output or input goes into the command.
func (s *scanner) substitutions(n syntax.Node, st state) {
	if n == nil {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		var list []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.CmdSubst:
			list = n.Stmts
		case *syntax.ProcSubst:
			list = n.Stmts
		default:
			return s.failed == nil
		}
		was := s.within
		s.within = true
		in := st
		in.piped, in.known, in.exotic = false, false, true
		s.stmts(list, in)
		s.within = was
		return false
	})
}

// numbering are the programs to which any number is the same: they print it, or compare it.
var numbering = map[string]bool{"echo": true, "printf": true, "exit": true, "test": true, "[": true, "[[": true}

// literal tells whether a step is known to the letter.
func (s *scanner) literal(argv []word, st state) bool {
	return !st.exotic && !slices.ContainsFunc(argv, func(w word) bool { return !w.known || w.subst || w.digit && !numbering[argv[0].text] })
}

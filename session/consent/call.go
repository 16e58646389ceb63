package consent

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmless are variables that change how output looks, with values that can do nothing else. Any other may make a program run another.
var harmless = lazily(`^(LC_[A-Z]+|LANG|LANGUAGE|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|CI|GIT_OPTIONAL_LOCKS)=[A-Za-z0-9_.@:+-]*$|^TZ=([A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*)?$|^(GIT_PAGER|PAGER)=(cat)?$|^GIT_TERMINAL_PROMPT=0$`)

// call walks a simple command.
func (s *scanner) call(c *syntax.CallExpr, st state) (ok, after []string) {
	for _, w := range c.Args {
		s.substitutions(w, st)
	}
	x := s.expand(st)
	matter := false
	for _, a := range c.Assigns {
		s.substitutions(a, st)
		if a.Name == nil || a.Value == nil || a.Array != nil || a.Index != nil || a.Append {
			matter = true
			continue
		}
		v := x.one(a.Value)
		matter = matter || !v.known || !harmless().MatchString(a.Name.Value+"="+v.text)
	}
	if matter {
		s.emit(step{text: st.text(c), other: "variable", dirs: st.dirs})
		st.exotic = true
	}
	if len(c.Args) == 0 {
		s.assign(c.Assigns, st)
		return st.dirs, st.dirs
	}
	argv := x.fields(c.Args)
	p := step{argv: argv, text: st.text(c), dirs: st.dirs, start: st.start, piped: st.piped}
	p.literal = s.literal(argv, st)
	p.plain = p.literal && !st.fed
	if st.known {
		p.stdin = st.stdin
	}
	s.emit(p)
	if len(argv) == 0 {
		return st.dirs, st.dirs
	}
	s.inside(argv, st)
	return moves(argv, st, s.homeNow())
}

// homeNow is where cd leads by itself.
func (s *scanner) homeNow() string {
	if v, ok := s.vars["HOME"]; ok {
		return v
	}
	return s.home
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "ash": true, "mksh": true, "rbash": true, "fish": true, "csh": true, "tcsh": true, "yash": true}

// inside looks for commands within the words of a call: behind wrappers, in the text given to a shell.
func (s *scanner) inside(argv []word, st state) {
	if s.failed != nil {
		return
	}
	name := programName(argv[0].text)
	switch {
	case name == unknownText && len(argv) > 1: // a variable that may hold nothing
		s.behind(argv[1:], st, len(s.steps))
		return
	case name == "command" && len(argv) > 1 && (argv[1].text == "-v" || argv[1].text == "-V"):
		return
	case shells[name]:
		st.function = false
		if text, ok := shellText(argv); ok {
			s.nested(text, st)
		} else if st.known && takesStdin(argv) {
			s.nested(st.stdin, st)
		}
		return
	case name == "eval":
		s.nested(joined(argv[1:]), st)
		return
	case (name == "source" || name == ".") && len(argv) > 1 && argv[1].text == "/dev/stdin":
		if st.known {
			s.nested(st.stdin, st)
		}
		return
	case name == "trap" && len(argv) > 1:
		s.nested(argv[1].text, st)
		return
	case name == "alias":
		for _, w := range argv[1:] {
			if _, v, ok := strings.Cut(w.text, "="); ok {
				s.nested(v, st)
			}
		}
		return
	case name == "watch":
		s.nested(joined(afterFlags(argv[1:], "n", "--interval")), st)
		return
	case name == "su" || name == "script" || name == "runuser":
		for i, w := range argv[:len(argv)-1] {
			if i > 0 && (w.text == "-c" || w.text == "--command") || strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && strings.HasSuffix(w.text, "c") {
				s.nested(argv[i+1].text, st)
			}
		}
		return
	case name == "find":
		s.found(argv, st)
		return
	}
	inner, how := unwrap(argv)
	if how.script != "" {
		s.nested(how.script, st)
	}
	if len(inner) == 0 {
		return
	}
	if how.dir != nil {
		dirs, _ := moves([]word{{text: "cd"}, *how.dir}, st, "")
		st = st.moved(dirs)
	}
	if how.feeds && st.known {
		for _, f := range strings.Fields(st.stdin) {
			inner = append(inner[:len(inner):len(inner)], word{text: strings.Trim(f, `'"`)})
		}
	}
	if how.feeds {
		st.known = false
	}
	s.behind(inner, st, len(s.steps))
}

// behind looks at a command behind a wrapper, whose step is number by.
func (s *scanner) behind(inner []word, st state, by int) {
	if st.wrapped++; st.wrapped > mostWrappers {
		s.failed = errTooMuch
		return
	}
	p := step{argv: inner, text: joined(inner), dirs: st.dirs, within: true, by: by}
	if st.known {
		p.stdin = st.stdin
	}
	s.emit(p)
	s.inside(inner, st)
}

func joined(ws []word) string {
	texts := make([]string, len(ws))
	for i, w := range ws {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// shellText is the command a shell is given with -c.
func shellText(argv []word) (string, bool) {
	for i, w := range argv[1:] {
		switch {
		case w.text == "--":
			return "", false
		case strings.HasPrefix(w.text, "--"):
			if w.text == "--command" && i+2 < len(argv) {
				return argv[i+2].text, true
			}
		case strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "c"):
			for _, x := range argv[i+2:] { // further flags may stand between
				if !strings.HasPrefix(x.text, "-") && !strings.HasPrefix(x.text, "+") {
					return x.text, true
				}
			}
			return "", false
		case strings.HasPrefix(w.text, "-"), strings.HasPrefix(w.text, "+"), i > 0 && (argv[i].text == "-o" || argv[i].text == "-O" || argv[i].text == "+O"):
		default:
			return "", false // a script
		}
	}
	return "", false
}

// takesStdin tells whether a shell reads its commands from its input.
func takesStdin(argv []word) bool {
	for i, w := range argv[1:] {
		if w.text == "-s" || w.text == "-" || w.text == "/dev/stdin" {
			return true
		}
		if !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+") && !(i > 0 && (argv[i].text == "-o" || argv[i].text == "-O")) {
			return false
		}
	}
	return true
}

// wrapping is how a wrapper treats the command behind it.
type wrapping struct {
	script string // a command it takes as one text
	feeds  bool   // its input becomes arguments
	dir    *word  // where it starts it; nil for where it is itself
}

// wrapper describes a program that runs the command in its arguments.
type wrapper struct {
	valued   string   // letters of flags whose value is the next word
	long     []string // long flags whose value is the next word
	operands int      // words before the command
	assigns  bool     // NAME=value may stand before it
	feeds    bool
	chdir    string // the flag that names the folder to start it in; --chdir always does
}

var wrappers = map[string]wrapper{
	"sudo":        {valued: "ugphCcrtTURD", long: []string{"--user", "--group", "--prompt", "--host", "--chdir", "--chroot", "--role", "--type", "--close-from", "--command-timeout", "--other-user"}, assigns: true, chdir: "-D"},
	"doas":        {valued: "uCa"},
	"pkexec":      {long: []string{"--user"}},
	"env":         {valued: "uCaP", long: []string{"--unset", "--chdir", "--argv0"}, assigns: true, chdir: "-C"},
	"nice":        {valued: "n", long: []string{"--adjustment"}},
	"ionice":      {valued: "cnpPu", long: []string{"--class", "--classdata"}},
	"chrt":        {valued: "TPD", operands: 1},
	"taskset":     {operands: 1},
	"nohup":       {},
	"setsid":      {},
	"timeout":     {valued: "sk", long: []string{"--signal", "--kill-after"}, operands: 1},
	"gtimeout":    {valued: "sk", long: []string{"--signal", "--kill-after"}, operands: 1},
	"command":     {},
	"builtin":     {},
	"exec":        {valued: "a"},
	"time":        {valued: "fo", long: []string{"--format", "--output"}},
	"gtime":       {valued: "fo"},
	"stdbuf":      {valued: "ioe", long: []string{"--input", "--output", "--error"}},
	"unbuffer":    {},
	"xargs":       {valued: "aEdILnPs", long: []string{"--arg-file", "--delimiter", "--replace", "--max-lines", "--max-args", "--max-procs", "--max-chars", "--eof"}, feeds: true},
	"parallel":    {valued: "jaIN", feeds: true},
	"busybox":     {},
	"toybox":      {},
	"chroot":      {operands: 1},
	"unshare":     {},
	"nsenter":     {valued: "tSG"},
	"strace":      {valued: "eopsuEabIOPSX"},
	"ltrace":      {valued: "eopsu"},
	"flock":       {valued: "wE", operands: 1},
	"caffeinate":  {valued: "tw"},
	"systemd-run": {valued: "puM"},
	"fakeroot":    {},
	"eatmydata":   {},
	"faketime":    {valued: "f", operands: 1},
	"gosu":        {operands: 1},
	"su-exec":     {operands: 1},
	"setpriv":     {long: []string{"--reuid", "--regid", "--groups", "--inh-caps", "--ambient-caps", "--bounding-set", "--securebits", "--pdeathsig", "--selinux-label", "--apparmor-profile"}},
	"prlimit":     {valued: "p"},
	"linux32":     {},
	"linux64":     {},
	"cpulimit":    {valued: "lpe"},
	"chronic":     {},
	"ifne":        {},
	"torsocks":    {},
	"torify":      {},
	"proxychains": {valued: "f"}, "proxychains4": {valued: "f"},
	"xvfb-run":         {valued: "enfspl"},
	"dbus-run-session": {},
	"ssh-agent":        {valued: "aEOPt"},
	"systemd-inhibit":  {},
	"valgrind":         {},
	"perf":             {operands: 1},
	"firejail":         {},
	"dotenv":           {valued: "efv"},
	"cross-env":        {assigns: true},
}

// unwrap returns the command behind a wrapper, nothing when argv is none.
func unwrap(argv []word) ([]word, wrapping) {
	name := programName(argv[0].text)
	w, ok := wrappers[name]
	if !ok {
		return nil, wrapping{}
	}
	how := wrapping{feeds: w.feeds}
	rest := argv[1:]
	skipped := 0
	for len(rest) > 0 {
		t := rest[0].text
		switch {
		case t == "--":
			rest = rest[1:]
			if skipped < w.operands {
				continue
			}
			return rest, how
		case t == "-":
			rest = rest[1:]
		case strings.HasPrefix(t, "-"):
			rest = rest[1:]
			if name == "env" && (strings.HasPrefix(t, "-S") || strings.HasPrefix(t, "--split-string") || strings.HasPrefix(t, "-vS") || strings.HasPrefix(t, "-iS")) {
				_, v, joint := strings.Cut(t, "S")
				if strings.HasPrefix(t, "--") {
					_, v, joint = strings.Cut(t, "=")
				}
				if !joint || v == "" {
					v = joined(rest)
				} else {
					v += " " + joined(rest)
				}
				how.script = v
				return nil, how
			}
			flag, dir, joint := strings.Cut(t, "=")
			if joint && flag == "--chdir" {
				how.dir = &word{text: dir, known: true}
			}
			if takesNext(t, w) && len(rest) > 0 {
				if flag == "--chdir" || flag == w.chdir {
					how.dir = &rest[0]
				}
				rest = rest[1:]
			}
		case w.assigns && strings.Contains(t, "=") && !strings.HasPrefix(t, "=") && !strings.Contains(strings.SplitN(t, "=", 2)[0], "/"):
			rest = rest[1:]
		case skipped < w.operands:
			skipped++
			rest = rest[1:]
			if name == "flock" && len(rest) > 1 && rest[0].text == "-c" {
				how.script = rest[1].text
				return nil, how
			}
		default:
			return rest, how
		}
	}
	return nil, how
}

// takesNext tells whether the value of a flag is the word behind it.
func takesNext(flag string, w wrapper) bool {
	if strings.HasPrefix(flag, "--") {
		for _, l := range w.long {
			if flag == l {
				return true
			}
		}
		return false
	}
	i := strings.IndexAny(flag[1:], w.valued)
	return w.valued != "" && i >= 0 && i+2 == len(flag)
}

func afterFlags(ws []word, valued string, long ...string) []word {
	for len(ws) > 0 && strings.HasPrefix(ws[0].text, "-") {
		flag := ws[0].text
		ws = ws[1:]
		if takesNext(flag, wrapper{valued: valued, long: long}) && len(ws) > 0 {
			ws = ws[1:]
		}
	}
	return ws
}

// found looks at the commands find runs, once for the folders it starts in: {} may be any of them.
func (s *scanner) found(argv []word, st state) {
	starts, filtered := findStarts(argv)
	by := len(s.steps)
	for i := 1; i < len(argv); i++ {
		switch argv[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		var inner []word
		j := i + 1
		for ; j < len(argv) && argv[j].text != ";" && argv[j].text != "+"; j++ {
			w := argv[j]
			if strings.Contains(w.text, "{}") {
				if w.text == "{}" && !filtered {
					inner = append(inner, starts...)
					continue
				}
				w = word{text: strings.ReplaceAll(w.text, "{}", unknownText)}
			}
			inner = append(inner, w)
		}
		if len(inner) > 0 {
			s.behind(inner, st, by)
		}
		i = j
	}
}

// findStarts are the folders find starts in, and whether it picks files by more than their depth and type.
func findStarts(argv []word) (starts []word, filtered bool) {
	i := 1
	for ; i < len(argv) && !strings.HasPrefix(argv[i].text, "-") && argv[i].text != "(" && argv[i].text != "!"; i++ {
		starts = append(starts, argv[i])
	}
	if len(starts) == 0 {
		starts = []word{{text: "."}}
	}
	for ; i < len(argv); i++ {
		switch argv[i].text {
		case "-H", "-L", "-P", "-depth", "-d", "-xdev", "-mount", "-print", "-print0", "-delete", "-follow":
			if starts[0].text == "." && i == 1 { // flags before the folders
				for k := i + 1; k < len(argv) && !strings.HasPrefix(argv[k].text, "-"); k++ {
					if k == i+1 {
						starts = nil
					}
					starts = append(starts, argv[k])
					i = k
				}
			}
		case "-maxdepth", "-mindepth", "-type":
			i++
		case "-exec", "-execdir", "-ok", "-okdir":
			for i < len(argv) && argv[i].text != ";" && argv[i].text != "+" {
				i++
			}
		default:
			filtered = filtered || strings.HasPrefix(argv[i].text, "-") || argv[i].text == "!" || argv[i].text == "("
		}
	}
	return starts, filtered
}

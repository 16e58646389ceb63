package consent

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// reader is a program that only reads, as long as it is called as the row allows.
type reader struct {
	// no are flags with which it does more: letters count within a group, long ones also shortened.
	no []string
	// only, where it is set, is what every flag must match.
	only func() *regexp.Regexp
	// most operands; 0 is any number.
	most int
	// text is the number of operands before the paths that are text: patterns, filters; -1 for all.
	text int
	// instead are flags that give that text, so that no operand is it; their values are text unless they name a file.
	instead []string
	// names is true when it tells names, sizes and dates, not what files hold.
	names bool
	// check looks at the rest. globs: it holds whatever names a wildcard becomes.
	check func(args []word) bool
	globs bool
	why   string // what the row guards against
}

const (
	toStdout = "prints what it reads"
	asks     = "tells about the system or a name"
)

// readers are the programs known to only read. What is not here asks. go, npm, make, cargo and their like are not here: building runs
// code. Nor are env and printenv (the environment holds keys), awk and xargs (they run programs), less and man (so do they).
var readers = map[string]reader{
	"cat": {why: toStdout}, "tac": {why: toStdout}, "nl": {why: toStdout}, "rev": {why: toStdout}, "fold": {why: toStdout},
	"head": {why: toStdout}, "tail": {why: toStdout}, "cut": {why: toStdout}, "paste": {why: toStdout}, "comm": {why: toStdout},
	"join": {why: toStdout}, "expand": {why: toStdout}, "unexpand": {why: toStdout}, "fmt": {why: toStdout}, "column": {why: toStdout},
	"od": {why: toStdout}, "hexdump": {why: toStdout}, "strings": {why: toStdout}, "cmp": {why: toStdout}, "cksum": {why: toStdout},
	"md5sum": {why: toStdout}, "sha1sum": {why: toStdout}, "sha256sum": {why: toStdout}, "sha512sum": {why: toStdout}, "b2sum": {why: toStdout},
	"tr":     {text: -1, why: "its operands are sets of characters"},
	"wc":     {no: []string{"--files0-from"}, why: "--files0-from reads files that are named in a file"},
	"base64": {no: []string{"-o", "--output"}, why: "-o writes (macOS)"},
	"xxd":    {no: []string{"-r"}, most: 1, why: "a second operand is written; -r writes into the middle of files"},
	"uniq":   {most: 1, why: "a second operand is written"},
	"sort":   {no: []string{"-o", "--output", "-T", "--temporary-directory", "--compress-program", "--files0-from"}, why: "-o writes, --compress-program runs a program, --files0-from reads files that are named in a file"},
	"shuf":   {no: []string{"-o", "--output"}, why: "-o writes"},
	"diff":   {no: []string{"-l", "--paginate"}, why: "-l runs pr"},
	"jq":     {no: []string{"-f", "--from-file", "-L"}, text: 1, check: withoutEnvironment, why: "env and $ENV show the environment, which holds keys; import and include read files"},

	"grep":  {text: 1, instead: []string{"-e", "-f", "--regexp", "--file"}, why: toStdout},
	"egrep": {text: 1, instead: []string{"-e", "-f", "--regexp", "--file"}, why: toStdout},
	"fgrep": {text: 1, instead: []string{"-e", "-f", "--regexp", "--file"}, why: toStdout},
	"rg":    {no: []string{"--pre", "--hostname-bin", "-z", "--search-zip"}, text: 1, instead: []string{"-e", "-f", "--regexp", "--file", "--files"}, why: "--pre, --hostname-bin and -z run programs"},
	"sed":   {text: 1, instead: []string{"-e", "-ne", "--expression"}, globs: true, only: lazily(`^(-[nErsuz]+|--quiet|--silent|--regexp-extended|--separate|--unbuffered|--posix|-n?e|--expression(=.*)?)$`), check: sedPrints, why: "-i writes, the commands w and W write, e runs programs, r reads other files"},

	"ls": {names: true, why: asks}, "dir": {names: true, why: asks}, "vdir": {names: true, why: asks}, "stat": {names: true, why: asks},
	"du":   {names: true, no: []string{"--files0-from"}, why: "--files0-from reads files that are named in a file"},
	"df":   {names: true, why: asks},
	"tree": {names: true, no: []string{"-o", "-R", "--fromfile", "--fromtabfile"}, why: "-o writes, and so does -R with -H"},
	"file": {no: []string{"-C", "--compile", "-z", "-Z", "--uncompress", "-f", "--files-from", "-S"}, names: true, why: "-C writes, -z runs programs, -f reads files that are named in a file"},
	"find": {names: true, check: findsOnly, globs: true, why: "-exec, -ok and their like run programs, -delete deletes, -fprint and its like write"},
	"fd":   {names: true, no: []string{"-x", "-X", "--exec", "--exec-batch"}, text: 1, why: "-x runs programs"},

	"basename": {names: true, text: -1, why: asks}, "dirname": {names: true, text: -1, why: asks}, "realpath": {names: true, why: asks}, "readlink": {names: true, why: asks},
	"pwd": {text: -1, why: asks}, "echo": {names: true, text: -1, why: asks},
	"printf": {names: true, text: -1, no: []string{"-v"}, check: printsOnly, globs: true, why: "-v and %n set a variable"},
	"true":   {text: -1, why: asks}, "false": {text: -1, why: asks}, ":": {text: -1, why: asks}, "seq": {text: -1, why: asks}, "sleep": {text: -1, why: asks},
	"exit": {text: -1, most: 1, check: numbers, why: asks}, "break": {text: -1, most: 1, check: numbers, why: asks}, "continue": {text: -1, most: 1, check: numbers, why: asks},
	"test":   {names: true, check: tests, why: "-v computes with what it is given, which can run a command"},
	"[":      {names: true, check: tests, why: "-v computes with what it is given, which can run a command"},
	"[[":     {names: true, check: tests, globs: true, why: "-eq and -v compute with what they are given, which can run a command"},
	"date":   {only: lazily(`^-I[a-z]*$|^-[^sf-][^sf]*$|^--(date|iso-8601|reference|rfc-3339|utc|universal|rfc-email|debug|help|version)(=.*)?$`), text: -1, check: dateFormats, why: "-s and an operand that is no format set the clock, -f prints a file"},
	"whoami": {most: -1, why: asks}, "id": {text: -1, why: asks}, "uname": {most: -1, why: asks}, "arch": {most: -1, why: asks}, "nproc": {most: -1, why: asks},
	"uptime": {most: -1, why: asks}, "groups": {text: -1, why: asks}, "tty": {most: -1, why: asks},
	"hostname": {most: -1, only: lazily(`^-[fsiIdA]+$`), why: "an operand, -F and -b set the name"},
	"which":    {names: true, text: -1, why: asks}, "type": {names: true, text: -1, why: asks},
	"cd":  {names: true, check: movesOnly, why: "the folder it leads to is followed"},
	"set": {text: -1, check: strictness, why: "only -e, -u, -x and pipefail; operands would become the parameters"},

	"git":     {check: nil, why: "see gitReads"},
	"node":    {most: -1, only: lazily(`^(--version|-v)$`), why: "anything else runs code"},
	"python":  {most: -1, only: lazily(`^(--version|-V)$`), why: "anything else runs code"},
	"python3": {most: -1, only: lazily(`^(--version|-V)$`), why: "anything else runs code"},
	"gcc":     {most: -1, only: version, why: "anything else compiles"},
	"clang":   {most: -1, only: version, why: "anything else compiles"},
}

var version = lazily(`^--version$`)

// reads tells whether a call only reads, as its words say; where its paths lead is looked at elsewhere.
func reads(argv []word) bool {
	name, ok := readerName(argv)
	if !ok {
		return false
	}
	args := argv[1:]
	switch name {
	case "git":
		return gitReads(args)
	case "command":
		return len(args) > 1 && (args[0].text == "-v" || args[0].text == "-V")
	case "timeout", "nice":
		inner, _ := unwrap(argv)
		before := args[:len(args)-len(inner)]
		return len(inner) > 0 && !slices.ContainsFunc(before, func(w word) bool { return !limits().MatchString(w.text) }) && reads(inner)
	}
	row := readers[name]
	operands, over := 0, false
	for i, w := range args {
		t := w.text
		if w.glob != "" && (row.most != 0 || row.check != nil && !row.globs) {
			return false // it may become several words, and any
		}
		switch {
		case over || !strings.HasPrefix(t, "-") || t == "-":
			if i > 0 && !over && slices.Contains(row.instead, args[i-1].text) {
				continue
			}
			operands++
			over = over || row.most > 0 // xxd takes what comes behind one for another, whatever it looks like; so do all but GNU's programs
		case t == "--":
			over = true
		case row.text == -1 && row.no == nil && row.only == nil: // text that looks like a flag
		case !flagReads(t, row):
			return false
		}
	}
	if row.most < 0 && operands > 0 || row.most > 0 && operands > row.most {
		return false
	}
	if row.only != nil && row.most < 0 && len(args) == 0 && name != "hostname" {
		return false // an interpreter by itself reads a program from its input
	}
	return row.check == nil || row.check(args)
}

var limits = lazily(`^(-n|-k|-s|-[0-9]+|--adjustment=-?[0-9]+|--preserve-status|--foreground|-v|[0-9.]+[smhd]?|[A-Z]+)$`)

// readerName is the name of the program when it is the system's own.
func readerName(argv []word) (string, bool) {
	name := argv[0].text
	if dir, base := path.Split(name); dir == "/bin/" || dir == "/usr/bin/" {
		name = base
	}
	_, ok := readers[name]
	return name, ok || name == "command" || name == "timeout" || name == "nice"
}

func flagReads(t string, row reader) bool {
	if row.only != nil {
		return row.only().MatchString(t)
	}
	name, _, _ := strings.Cut(t, "=")
	for _, no := range row.no {
		switch {
		case strings.HasPrefix(no, "--"):
			if strings.HasPrefix(t, "--") && len(name) > 2 && strings.HasPrefix(no, name) {
				return false
			}
		case len(no) == 2:
			if !strings.HasPrefix(t, "--") && strings.Contains(t[1:], no[1:]) {
				return false
			}
		}
	}
	return true
}

// beyond are the words of jq that reach what is not its input. Behind a dot they are names of fields.
var beyond = lazily(`(^|[^.A-Za-z0-9_])(env|ENV|import|include)($|[^A-Za-z0-9_])`)

func withoutEnvironment(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return beyond().MatchString(w.text) })
}

// counts is the conversion of printf that stores how much was printed in a variable, which may be PATH.
var counts = lazily(`%[^%A-Za-z]*[hlLqjzt]*n`)

func printsOnly(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return counts().MatchString(strings.ReplaceAll(w.text, "%%", "")) }) && (len(args) == 0 || args[0].glob == "")
}

var findMore = []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"}

func findsOnly(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return slices.Contains(findMore, w.text) })
}

// numbers also refuses flags: break and exit compute nothing, but what is odd need not be guessed at.
func numbers(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return strings.Trim(w.text, "0123456789") != "" })
}

func tests(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return w.text == "-v" || w.text == "-R" || strings.ContainsAny(w.text, "$`") })
}

func dateFormats(args []word) bool {
	for i, w := range args {
		if !strings.HasPrefix(w.text, "+") && !strings.HasPrefix(w.text, "-") && !(i > 0 && (args[i-1].text == "-d" || args[i-1].text == "--date" || args[i-1].text == "-r")) {
			return false
		}
	}
	return true
}

func movesOnly(args []word) bool {
	n := 0
	for _, w := range args {
		if w.text != "--" && w.text != "-P" && w.text != "-L" {
			n++
			if w.text == "" || w.text[0] == '-' || w.glob != "" {
				return false
			}
		}
	}
	return n == 1
}

var strict = lazily(`^-[eux]*o?$|^\+[eux]+$`)

func strictness(args []word) bool {
	for i, w := range args {
		if i > 0 && strings.HasPrefix(args[i-1].text, "-") && strings.HasSuffix(args[i-1].text, "o") && slices.Contains([]string{"pipefail", "errexit", "nounset", "xtrace"}, w.text) {
			continue
		}
		if !strict().MatchString(w.text) || w.text == "-" {
			return false
		}
	}
	return len(args) > 0
}

// sedPrints reads a sed script: only addresses, printing, deleting and substitution, nothing that writes, runs, or reads other files.
func sedPrints(args []word) bool {
	script := false
	for i := 0; i < len(args); i++ {
		t := args[i].text
		text := ""
		switch {
		case t == "-e" || t == "-ne" || t == "--expression":
			if i++; i == len(args) {
				return false
			}
			text = args[i].text
		case strings.HasPrefix(t, "--expression="):
			text = strings.TrimPrefix(t, "--expression=")
		case strings.HasPrefix(t, "-") || script:
			continue
		default:
			text = t
		}
		script = true
		if args[i].glob != "" || !sedScript(text) {
			return false
		}
	}
	return script
}

// sedScript accepts a script made of harmless commands.
func sedScript(s string) bool {
	if strings.Contains(s, unknownText) {
		return false
	}
	i := 0
	skip := func(set string) {
		for i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
			i++
		}
	}
	until := func(end byte, pattern bool) bool { // moves behind end
		for ; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '\n':
				return false
			case '[': // what ends the pattern ends it not in there, for some
				if !pattern {
					continue
				}
				n := sedClass(s[i:], end)
				if n == 0 {
					return false
				}
				i += n - 1
			case end:
				i++
				return true
			}
		}
		return false
	}
	for {
		skip(" \t\n;{}")
		for i < len(s) && strings.IndexByte("0123456789$/,!+~ \tI", s[i]) >= 0 { // addresses
			if s[i] == '/' {
				i++
				if !until('/', true) {
					return false
				}
				continue
			}
			i++
		}
		if i >= len(s) {
			return true
		}
		c := s[i]
		i++
		switch {
		case c == '{' || c == '}':
			continue
		case strings.IndexByte("pPdDqQ=lnNgGhHx", c) >= 0:
			skip("0123456789 \t")
		case c == 's':
			if i >= len(s) || s[i] == '\\' || s[i] == '\n' || s[i] == '[' || s[i] >= 0x80 {
				return false
			}
			end := s[i]
			i++
			if !until(end, true) || !until(end, false) { // the pattern, what replaces it
				return false
			}
			skip("gpiIM0123456789")
		default:
			return false
		}
		if skip(" \t"); i < len(s) && strings.IndexByte(";\n}", s[i]) < 0 {
			return false
		}
	}
}

// sedClass is the length of the bracket expression s begins with; 0 where it does not close, or holds what not every sed takes for a part of
// it: the end of the pattern, a backslash.
func sedClass(s string, end byte) int {
	i := 1
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) && s[i] != end && s[i] != '\\' && s[i] != '\n' {
		if s[i] == ']' {
			return i + 1
		}
		if s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0 {
			n := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if n < 0 || strings.ContainsAny(s[i+2:i+2+n], "\\\n"+string(rune(end))) {
				return 0
			}
			i += n + 3
		}
		i++
	}
	return 0
}

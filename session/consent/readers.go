package consent

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// reader is a program that only reads, as long as it is called as the row allows.
type reader struct {
	// flags are those it is known to take and to only read with. Where they are not set, no is.
	flags *options
	// no are flags with which it does more: letters count within a group, long ones also shortened.
	no []string
	// only, where it is set, is what every flag must match.
	only func() *regexp.Regexp
	// most operands; 0 is any number.
	most int
	// text is the number of operands before the paths that are text: patterns, filters; -1 for all.
	text int
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

	namedInFiles = "some flags read files that are named in a file"
)

// readers are the programs known to only read. What is not here asks. go, npm, make, cargo and their like are not here: building runs
// code. Nor are env and printenv (the environment holds keys), awk and xargs (they run programs), less and man (so do they).
var readers = map[string]reader{
	"cat": {why: toStdout}, "tac": {why: toStdout}, "nl": {why: toStdout}, "rev": {why: toStdout}, "fold": {why: toStdout},
	"head": {why: toStdout}, "cut": {why: toStdout}, "paste": {why: toStdout}, "comm": {why: toStdout},
	"join": {why: toStdout}, "expand": {why: toStdout}, "unexpand": {why: toStdout}, "fmt": {why: toStdout}, "column": {why: toStdout},
	"od": {why: toStdout}, "hexdump": {why: toStdout}, "cmp": {why: toStdout},
	"cksum": {flags: sumFlags, why: namedInFiles}, "md5sum": {flags: sumFlags, why: namedInFiles}, "sha1sum": {flags: sumFlags, why: namedInFiles}, "sha224sum": {flags: sumFlags, why: namedInFiles}, "sha256sum": {flags: sumFlags, why: namedInFiles},
	"sha384sum": {flags: sumFlags, why: namedInFiles}, "sha512sum": {flags: sumFlags, why: namedInFiles}, "b2sum": {flags: sumFlags, why: namedInFiles},
	"strings": {flags: stringsFlags, check: noResponses, globs: true, why: "an operand with an @ names a file of flags and names"},
	"tail":    {flags: tailFlags, check: ends, globs: true, why: "-f, -F and --follow read for ever"},
	"tr":      {text: -1, why: "its operands are sets of characters"},
	"wc":      {flags: wcFlags, why: namedInFiles},
	"base64":  {flags: base64Flags, why: "-o writes (macOS)"},
	"xxd":     {check: dumps, why: "a second operand is written; -r writes into the middle of files"},
	"uniq":    {flags: uniqFlags, most: 1, why: "a second operand is written"},
	"sort":    {flags: sortFlags, why: "-o writes, --compress-program runs a program, --files0-from reads files that are named in a file"},
	"shuf":    {flags: shufFlags, why: "-o writes, -r goes on for ever"},
	"diff":    {flags: diffFlags, why: "-l runs pr"},
	"jq":      {flags: jqFlags, text: 1, check: withoutEnvironment, why: "env and $ENV show the environment, which holds keys; import, include and -f read files"},

	"grep": {flags: grepFlags, text: 1, why: toStdout}, "egrep": {flags: grepFlags, text: 1, why: toStdout}, "fgrep": {flags: grepFlags, text: 1, why: toStdout},
	"rg":  {flags: rgFlags, text: 1, why: "--pre, --hostname-bin and -z run programs"},
	"sed": {text: 1, globs: true, flags: sedFlags, check: sedPrints, why: "-i writes, the commands w and W write, e runs programs, r reads other files"},

	"ls": {names: true, why: asks}, "dir": {names: true, why: asks}, "vdir": {names: true, why: asks}, "stat": {names: true, why: asks},
	"du":   {names: true, no: []string{"--files0-from"}, why: "--files0-from reads files that are named in a file"},
	"df":   {names: true, why: asks},
	"tree": {names: true, flags: treeFlags, why: "-o writes, and so does -R with -H"},
	"file": {flags: fileFlags, names: true, why: "-C writes, -p sets times, -z and -Z run programs, -f reads files that are named in a file"},
	"find": {names: true, why: "-exec, -ok and their like run programs, which may be readers; -delete deletes, -fprint and its like write"},
	"fd":   {names: true, flags: fdFlags, text: 1, why: "-x, -X and -l run programs"},

	"basename": {names: true, text: -1, why: asks}, "dirname": {names: true, text: -1, why: asks}, "realpath": {names: true, why: asks}, "readlink": {names: true, why: asks},
	"pwd": {text: -1, why: asks}, "echo": {names: true, text: -1, why: asks},
	"printf": {names: true, text: -1, no: []string{"-v"}, check: printsOnly, globs: true, why: "-v and %n set a variable"},
	"true":   {text: -1, why: asks}, "false": {text: -1, why: asks}, ":": {text: -1, why: asks}, "seq": {text: -1, check: counted, why: "some numbers have no end"}, "sleep": {text: -1, check: waits, why: "some numbers have no end"},
	"exit": {text: -1, most: 1, check: numbers, why: asks}, "break": {text: -1, most: 1, check: numbers, why: asks}, "continue": {text: -1, most: 1, check: numbers, why: asks},
	"test":   {names: true, check: tests, why: "-v computes with what it is given, which can run a command"},
	"[":      {names: true, check: tests, why: "-v computes with what it is given, which can run a command"},
	"[[":     {names: true, check: testsWords, globs: true, why: "-eq and -v compute with what they are given, which can run a command"},
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
	case "find":
		return findsOnly(args)
	case "command":
		return len(args) > 1 && (args[0].text == "-v" || args[0].text == "-V")
	case "timeout", "nice":
		inner, _ := unwrap(argv)
		before := args[:len(args)-len(inner)]
		return len(inner) > 0 && !slices.ContainsFunc(before, func(w word) bool { return !limits().MatchString(w.text) }) && reads(inner)
	}
	row := readers[name]
	operands, over := 0, false
	if slices.ContainsFunc(args, func(w word) bool { return w.glob != "" }) && (row.most != 0 || row.check != nil && !row.globs) {
		return false // they may become several words, and any
	}
	if row.flags != nil {
		g := row.flags.read(args)
		if !g.ok {
			return false
		}
		operands, args = len(g.operands), nil
	}
	for _, w := range args {
		t := w.text
		switch {
		case over || !strings.HasPrefix(t, "-") || t == "-":
			operands++
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
	if row.only != nil && row.most < 0 && len(argv) == 1 && name != "hostname" {
		return false // an interpreter by itself reads a program from its input
	}
	return row.check == nil || row.check(argv[1:])
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
var beyond = lazily(`(^|[^.A-Za-z0-9_])(env|ENV|import|include|modulemeta|get_search_list)($|[^A-Za-z0-9_])`)

func withoutEnvironment(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return beyond().MatchString(w.text) })
}

// counts is the conversion of printf that stores how much was printed in a variable, which may be PATH.
var counts = lazily(`%[^%A-Za-z]*[hlLqjzt]*n`)

func printsOnly(args []word) bool {
	for i, w := range args {
		if counts().MatchString(strings.ReplaceAll(w.text, "%%", "")) || w.glob != "" && (i == 0 || i == 1 && args[0].text == "--") {
			return false
		}
	}
	return true
}

// ends refuses the old way to say that tail is to read for ever.
func ends(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool {
		return strings.HasPrefix(w.text, "+") && (strings.Contains(w.text, "f") || w.glob != "")
	})
}

// noResponses refuses an operand that names a file of more arguments, and a wildcard that may become one.
func noResponses(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool {
		return strings.HasPrefix(w.text, "@") || w.glob != "" && strings.IndexByte("*?[", w.glob[0]) >= 0
	})
}

var (
	finite = lazily(`^-?[0-9]{0,7}(\.[0-9]{1,7})?$`)
	moment = lazily(`^[0-9]{0,4}(\.[0-9]{1,7})?[sm]?$`)
	dumped = lazily(`^--?(a|autoskip|b|bits|C|capitalize|d|e|E|EBCDIC|h|i|include|p|ps|plain|postscript|u|v|version|(c|g|l|o|s)[+-]?[0-9][0-9a-fx]*)$`)
	dumps2 = lazily(`^--?(c|cols|g|groupsize|l|len|n|name|o|offset|R|s|seek)$`)
)

// counted tells whether there are only numbers, none of them endless, and what seq puts between them.
func counted(args []word) bool {
	for i, w := range args {
		if !finite().MatchString(w.text) && w.text != "-w" && w.text != "-s" && w.text != "-f" && !(i > 0 && (args[i-1].text == "-s" || args[i-1].text == "-f")) {
			return false
		}
	}
	return true
}

// waits tells whether there are only spans of time that end soon.
func waits(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return !moment().MatchString(w.text) })
}

// dumps reads the words of xxd, whose flags have names of one or more letters behind one dash or two, and end with the first operand.
func dumps(args []word) bool {
	for len(args) > 0 {
		switch t := args[0].text; {
		case t == "-" || !strings.HasPrefix(t, "-"):
			return len(args) == 1
		case dumped().MatchString(t):
		case dumps2().MatchString(t) && len(args) > 1:
			args = args[1:]
		default:
			return false
		}
		args = args[1:]
	}
	return true
}

// numbers also refuses flags: break and exit compute nothing, but what is odd need not be guessed at.
func numbers(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return strings.Trim(w.text, "0123456789") != "" })
}

var (
	integer  = lazily(`^[-+]?[0-9]+$`)
	compares = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
)

// tests refuses what a test may compute with: words beside a comparison of numbers that are none, and the names of variables. Some shells run
// what stands in an index; [[ assigns.
func tests(args []word) bool {
	for i, w := range args {
		switch {
		case w.text == "-v" || w.text == "-R" || strings.ContainsAny(w.text, "$`"):
			return false
		case w.text == "-t" && i+1 < len(args) && args[i+1].text != "]" && !integer().MatchString(args[i+1].text):
			return false
		case slices.Contains(compares, w.text):
			if i == 0 || i+1 >= len(args) || !integer().MatchString(args[i-1].text) || !integer().MatchString(args[i+1].text) {
				return false
			}
		}
	}
	return true
}

// testsWords is tests for [[. A shell that does not know it, as the one that stands in where there is no bash, takes "<" and ">" in it for
// redirections, "|" for a pipe, and what stands behind "&&" for a command.
func testsWords(args []word) bool {
	for i, w := range args {
		switch {
		case w.text == "<" || w.text == ">":
			return false
		case w.text == "&&" || w.text == "||":
			next := args[i+1:]
			if len(next) > 1 && next[0].text == "!" {
				next = next[1:]
			}
			if len(next) == 0 || !strings.HasPrefix(next[0].text, "-") {
				return false
			}
		case strings.ContainsAny(w.text, "|&;"):
			return false
		}
	}
	return tests(args)
}

func dateFormats(args []word) bool {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-d" || t == "--date" || t == "-r" || t == "--reference":
			if i++; i < len(args) && strings.HasPrefix(args[i].text, "-") && !integer().MatchString(args[i].text) {
				return false
			}
		case !strings.HasPrefix(t, "+") && !strings.HasPrefix(t, "-"), t == "--":
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
	g := sedFlags.read(args)
	var scripts []word
	for _, f := range g.flags {
		if slices.Contains(sedFlags.texts, f.name) {
			if f.late {
				return false // for some the operand is the script then
			}
			scripts = append(scripts, f.value)
		}
	}
	if len(scripts) == 0 && len(g.operands) > 0 {
		scripts = g.operands[:1]
	}
	return len(scripts) > 0 && !slices.ContainsFunc(scripts, func(w word) bool { return w.glob != "" || !sedScript(w.text) })
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

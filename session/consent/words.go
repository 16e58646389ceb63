package consent

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unknownText stands in a word for what only the running shell knows.
const unknownText = "\x00"

// word is a word of a command after what the shell does to it, as far as that can be told.
type word struct {
	text  string // unknownText for what is not known
	glob  string // as a pattern, its quoted characters escaped; "" when it holds no wildcard
	known bool   // exactly what is written: no variable, no substitution
	subst bool   // holds a command or process substitution
	digit bool   // holds $?, a number that is not known; text has a 0 there
}

func (w word) unclear() bool { return strings.Contains(w.text, unknownText) }

const (
	mostAlternatives = 256     // of one word with braces
	mostFields       = 1 << 16 // of one call
	mostParts        = 64      // of a word with braces
)

// expander turns words of the parser into words.
type expander struct {
	home, temp, dir string
	vars            map[string]string
	inFunction      bool // positional parameters may be there

	out  []word
	cur  word
	pat  strings.Builder // cur as a pattern
	txt  strings.Builder
	some bool // cur is a word even when it is empty
	wild bool
}

func (x *expander) fields(ws []*syntax.Word) []word {
	x.out = nil
	for _, w := range ws {
		if w != nil {
			for _, alt := range braces(w) {
				x.begin()
				x.cur.known = x.cur.known && !alt.sequence
				x.parts(alt.parts, false)
				x.end()
			}
		}
	}
	return x.out
}

// one is a word that does not become several.
func (x *expander) one(w *syntax.Word) word {
	fs := x.fields([]*syntax.Word{w})
	if len(fs) == 0 {
		return word{known: false}
	}
	f := fs[0]
	for _, more := range fs[1:] {
		f.text += " " + more.text
		f.known = f.known && more.known
		f.subst = f.subst || more.subst
		f.digit = f.digit || more.digit
	}
	return f
}

func (x *expander) begin() {
	x.cur = word{known: true}
	x.pat.Reset()
	x.txt.Reset()
	x.some, x.wild = false, false
}

func (x *expander) end() {
	x.cur.text = x.txt.String()
	if x.wild {
		x.cur.glob = loose(x.pat.String())
	}
	switch {
	case !x.some && x.cur.text == "":
	case len(x.out) < mostFields:
		x.out = append(x.out, x.cur)
	default:
		x.out[0].known = false // not all of them are here
	}
}

// loose is a shell's pattern as one of path.Match, which knows other brackets: they become any one character. It is "" when the pattern
// has no wildcards.
func loose(pattern string) string {
	if !strings.Contains(pattern, "[") {
		return pattern
	}
	var b strings.Builder
	wild := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			b.WriteByte(c)
			if i++; i < len(pattern) {
				b.WriteByte(pattern[i])
			}
		case '[':
			n := bracket(pattern[i:])
			if n == 0 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteByte('?')
			wild = true
			i += n - 1
		default:
			wild = wild || c == '*' || c == '?'
			b.WriteByte(c)
		}
	}
	if !wild {
		return ""
	}
	return b.String()
}

// bracket is the length of the bracket expression s begins with; 0 when it is none.
func bracket(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	for first := true; i < len(s); first = false {
		switch {
		case s[i] == '/':
			return 0
		case s[i] == ']' && !first:
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if end < 0 {
				return 0
			}
			i += end + 4
			continue
		case s[i] == '\\':
			i++
		}
		i++
	}
	return 0
}

// split ends the word where an unquoted value has a space.
func (x *expander) split() {
	known, subst, digit := x.cur.known, x.cur.subst, x.cur.digit
	x.end()
	x.begin()
	x.cur.known, x.cur.subst, x.cur.digit = known, subst, digit
}

// add adds text; quoted text has no wildcards.
func (x *expander) add(s string, quoted bool) {
	x.txt.WriteString(s)
	for _, c := range s {
		if strings.ContainsRune(`*?[]\`, c) {
			if quoted {
				x.pat.WriteByte('\\')
			} else if c != '\\' && c != ']' {
				x.wild = true
			}
		}
		x.pat.WriteRune(c)
	}
}

func (x *expander) unknown() {
	x.cur.known = false
	x.add(unknownText, true)
}

func (x *expander) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			x.literal(p.Value, quoted, i == 0 && !quoted && x.txt.Len() == 0, i+1 == len(parts))
		case *syntax.SglQuoted:
			x.some = true
			if p.Dollar {
				text := ansiC(p.Value)
				x.cur.known = x.cur.known && plainEscapes().MatchString(p.Value) && !strings.Contains(text, unknownText)
				x.add(text, true)
			} else {
				x.add(p.Value, true)
			}
		case *syntax.DblQuoted:
			x.some = true
			x.cur.known = x.cur.known && !p.Dollar // it is translated
			x.parts(p.Parts, true)
		case *syntax.ParamExp:
			x.param(p, quoted)
		case *syntax.CmdSubst:
			x.cur.subst = true
			if out, ok := said(x, p.Stmts); ok {
				x.cur.known = false
				x.value(strings.TrimRight(out, "\n"), quoted)
			} else {
				x.unknown()
			}
		case *syntax.ProcSubst:
			x.cur.subst = true
			x.unknown()
		case *syntax.ExtGlob:
			x.cur.known = false
			x.txt.WriteString(unknownText)
			x.pat.WriteByte('*')
			x.wild = true
		default: // arithmetic
			x.unknown()
		}
	}
}

// literal adds text of the source, where a backslash quotes.
func (x *expander) literal(s string, quoted, first, last bool) {
	if first && strings.HasPrefix(s, "~") {
		user, rest, slash := strings.Cut(s[1:], "/")
		if slash {
			rest = "/" + rest
		}
		switch {
		case !slash && !last: // "~"x: the name goes on in quotes, so it is no name
		case user == "" && x.home != "":
			x.add(x.home, true)
			s = rest
		case user == "+":
			x.cur.known = false
			x.add(x.dir, true)
			s = rest
		case user != "" && strings.IndexFunc(user, func(c rune) bool {
			return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}) < 0:
			x.add("/home/"+user, true) // somebody's home, wherever it is
			s = rest
		}
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			continue
		}
		next := s[i+1]
		if quoted && !strings.ContainsRune("$`\"\\\n", rune(next)) {
			continue
		}
		x.add(s[start:i], quoted)
		_, n := utf8.DecodeRuneInString(s[i+1:])
		if next != '\n' {
			x.some = true
			x.add(s[i+1:i+1+n], true)
		}
		i += n
		start = i + 1
	}
	if start < len(s) {
		x.add(s[start:], quoted)
	}
}

// value adds what a variable holds.
func (x *expander) value(v string, quoted bool) {
	if quoted {
		x.add(v, true)
		return
	}
	for i, f := range strings.FieldsFunc(v, func(c rune) bool { return c == ' ' || c == '\t' || c == '\n' }) {
		if i > 0 || v[0] == ' ' || v[0] == '\t' || v[0] == '\n' {
			x.split()
		}
		x.add(f, false)
	}
	if n := len(v); n > 0 && (v[n-1] == ' ' || v[n-1] == '\t' || v[n-1] == '\n') {
		x.split()
	}
}

func (x *expander) param(p *syntax.ParamExp, quoted bool) {
	if p.Param != nil && p.Param.Value == "?" && plainParam(p) && p.Exp == nil {
		x.cur.digit = true
		x.add("0", true)
		return
	}
	x.cur.known = false
	if p.Exp != nil && p.Exp.Word != nil && holdsSubst(p.Exp.Word) {
		x.cur.subst = true
	}
	if p.Param == nil || !plainParam(p) {
		x.unknown()
		return
	}
	name := p.Param.Value
	v, ok := x.vars[name]
	if !ok {
		switch name {
		case "HOME":
			v, ok = x.home, x.home != ""
		case "PWD":
			v, ok = x.dir, x.dir != ""
		case "TMPDIR":
			v, ok = x.temp, x.temp != ""
		case "IFS":
			v, ok = " ", true
		case "@", "*":
			v, ok = "", true // none, mostly: put in to split a name
		case "1", "2", "3", "4", "5", "6", "7", "8", "9":
			v, ok = "", !x.inFunction // a command line of its own has none
		}
	}
	if p.Exp != nil {
		switch p.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			if !ok && p.Exp.Word != nil {
				x.parts(p.Exp.Word.Parts, quoted)
				return
			}
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if p.Exp.Word != nil {
				x.parts(p.Exp.Word.Parts, quoted)
				return
			}
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		default:
			ok = false
		}
	}
	if !ok {
		x.unknown()
		return
	}
	x.value(v, quoted)
}

func plainParam(p *syntax.ParamExp) bool {
	return !p.Excl && !p.Length && !p.Width && !p.IsSet && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.NestedParam == nil && p.Flags == nil && len(p.Modifiers) == 0
}

func holdsSubst(w *syntax.Word) bool {
	found := false
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}

// said is what echo or printf with known words prints.
func said(x *expander, stmts []*syntax.Stmt) (string, bool) {
	if len(stmts) != 1 || len(stmts[0].Redirs) > 0 {
		return "", false
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Args) > 64 {
		return "", false
	}
	inner := &expander{home: x.home, temp: x.temp, dir: x.dir, vars: x.vars, inFunction: x.inFunction}
	return printed(inner.fields(call.Args))
}

// printed is what a call of echo or printf prints.
func printed(argv []word) (string, bool) {
	if len(argv) < 1 {
		return "", false
	}
	var texts []string
	for _, w := range argv[1:] {
		if w.unclear() {
			return "", false
		}
		texts = append(texts, w.text)
	}
	switch argv[0].text {
	case "echo":
		escapes := false
		for len(texts) > 0 && (texts[0] == "-n" || texts[0] == "-e" || texts[0] == "-ne" || texts[0] == "-en") {
			escapes = escapes || strings.Contains(texts[0], "e")
			texts = texts[1:]
		}
		out := strings.Join(texts, " ")
		if escapes {
			out = ansiC(out)
		}
		return out + "\n", true
	case "printf":
		if len(texts) == 0 {
			return "", false
		}
		format, args := ansiC(texts[0]), texts[1:]
		for strings.Contains(format, "%s") && len(args) > 0 {
			format = strings.Replace(format, "%s", args[0], 1)
			args = args[1:]
		}
		return format, true
	}
	return "", false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// plainEscapes is text of $'…' with no escapes but those every shell reads the same way: none that ends the text, or that depends on the locale.
var plainEscapes = lazily(`^([^\\]|\\[nt\\'"]|\\x[0-7][0-9a-fA-F]|\\[01][0-7][0-7]|\\u00[0-7][0-9a-fA-F])*$`)

// ansiC reads the escapes of $'…'.
func ansiC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		number := func(from, most, base int) {
			end := from
			for end < len(s) && end-from < most && strings.IndexByte("0123456789abcdef"[:base], lower(s[end])) >= 0 {
				end++
			}
			n, err := strconv.ParseUint(s[from:end], base, 32)
			switch {
			case err != nil:
				b.WriteByte(s[i])
				return
			case most > 3:
				b.WriteRune(rune(n))
			default:
				b.WriteByte(byte(n))
			}
			i = end - 1
		}
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a', 'b', 'f', 'v', 'e', 'E':
			b.WriteByte(' ')
		case 'x':
			number(i+1, 2, 16)
		case 'u':
			number(i+1, 4, 16)
		case 'U':
			number(i+1, 8, 16)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			number(i, 3, 8)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

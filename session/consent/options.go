package consent

import (
	"slices"
	"strings"
)

const digits = "0123456789"

// options are the flags a program is known to take. A word of a call is what the program takes it for, not what it looks like: behind -e stands
// a pattern, also where that is spelled "--" or "--include=x". A flag that is not here is not understood, and asks.
type options struct {
	bare string // letters that take no value
	take string // letters that do: the rest of the word, or the next one
	long string // "name" takes no value, "name=" does, "name?" only behind "=", "name:" only so too but needs one, "name==" takes the next two words
	// whole: long names are not shortened, and flags are flags wherever they stand: the program has its own way to read them.
	whole bool
	// stops: what stands behind the first operand is another, whatever it looks like. So do all but GNU's programs.
	stops bool
	// texts are the flags that give what the first operand is otherwise.
	texts []string
	// paths are the flags whose values name files.
	paths []string
}

// option is a flag that is given.
type option struct {
	name  string // in full: "-e", "--regexp"
	value word   // of it, if it takes one
	late  bool   // stands behind an operand, where some programs take it for another
}

// given is a call taken apart.
type given struct {
	flags    []option
	operands []word
	ok       bool // all of it is understood
}

func (g *given) has(names ...string) bool {
	return slices.ContainsFunc(g.flags, func(o option) bool { return slices.Contains(names, o.name) })
}

// files are the operands without the text that is the first of them, where no flag gives that.
func (g *given) files(o *options) []word {
	if g.has(o.texts...) {
		return g.operands
	}
	return g.operands[min(1, len(g.operands)):]
}

// read takes the words of a call apart.
func (o *options) read(args []word) given {
	g := given{ok: true}
	over := false
	i := 0
	next := func(name string) (v word) { // the value of a flag in a word of its own
		if i++; i >= len(args) {
			g.ok = false
			return v
		}
		v = args[i]
		if v.glob != "" || strings.HasPrefix(v.text, "-") && strings.Trim(v.text[1:], digits) != "" && !slices.Contains(o.texts, name) {
			g.ok = false // it becomes several, or looks like another flag: not every program takes it the same way
		}
		return v
	}
	for ; i < len(args); i++ {
		t := args[i].text
		f := option{late: len(g.operands) > 0}
		switch {
		case over || t == "-" || !strings.HasPrefix(t, "-"):
			g.operands = append(g.operands, args[i])
			over = over || o.stops
		case t == "--":
			over = true
		case strings.HasPrefix(t, "--"):
			name, rest, joint := strings.Cut(t[2:], "=")
			full, kind, known := o.named(name)
			f.name = "--" + full
			switch {
			case !known, joint && (kind == "" || kind == "=="), !joint && kind == ":":
				g.ok = false
			case joint:
				f.value = word{text: rest, known: true}
			case kind == "=":
				f.value = next(f.name)
			case kind == "==":
				next(f.name)
				f.value = next(f.name)
			}
			g.flags = append(g.flags, f)
		default:
			for k := 1; k < len(t); k++ {
				f.name = "-" + t[k:k+1]
				takes := strings.IndexByte(o.take, t[k]) >= 0
				switch {
				case !takes:
					g.ok = g.ok && strings.IndexByte(o.bare, t[k]) >= 0
				case k+1 < len(t):
					f.value = word{text: t[k+1:], known: true}
				default:
					f.value = next(f.name)
				}
				g.flags = append(g.flags, f)
				if takes {
					break
				}
			}
		}
	}
	return g
}

// named finds a long flag by its name, or by a beginning of it that means nothing else.
func (o *options) named(name string) (full, kind string, known bool) {
	for n := range strings.FieldsSeq(o.long) {
		bare := strings.TrimRight(n, "=?:")
		k := n[len(bare):]
		switch {
		case bare == name:
			return bare, k, true
		case o.whole || len(name) == 0 || !strings.HasPrefix(bare, name):
		case full == "":
			full, kind, known = bare, k, true
		default: // one of several: the program says so itself
			known = false
		}
	}
	return full, kind, known
}

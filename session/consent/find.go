package consent

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// findTests are the words of find's expression that only test and print, by the number of words behind them.
var findTests = [2]string{
	" -print -print0 -ls -depth -d -xdev -mount -x -follow -daystart -noleaf -empty -true -false -nouser -nogroup -readable -writable -executable -prune -quit -not -a -and -o -or -warn -nowarn -ignore_readdir_race -noignore_readdir_race -sparse ( ) ! , -help --help -version --version ",
	" -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -maxdepth -mindepth -newer -anewer -cnewer -mtime -atime -ctime -Btime -mmin -amin -cmin -Bmin -perm -user -group -uid -gid -links -inum -samefile -fstype -used -printf -regextype -context -flags ",
}

var (
	newerThan  = lazily(`^-newer[aBcm][aBcmt]$`)
	findBefore = lazily(`^(-[HLPEsxXd]|-O[0-3]|--)$`) // what may stand before the folders
)

// arity is the number of words that belong to a word of find's expression; -1 when that is not known to only test.
func arity(t string) int {
	switch {
	case strings.Contains(findTests[0], " "+t+" "):
		return 0
	case strings.Contains(findTests[1], " "+t+" ") || newerThan().MatchString(t):
		return 1
	}
	return -1
}

// finding is what a call of find says.
type finding struct {
	ok    bool     // it only tests, prints, and runs what is in runs
	tests []word   // its expression
	runs  [][]word // the commands of -exec
	links bool     // it follows links
}

// finds reads the words of a call of find.
func finds(args []word) finding {
	f := finding{ok: true}
	i := 0
	for ; i < len(args); i++ {
		t := args[i].text
		if findBefore().MatchString(t) {
			f.links = f.links || t == "-L"
		} else if strings.HasPrefix(t, "-") || t == "(" || t == "!" {
			break
		}
	}
	f.tests = args[i:]
	for i = 0; i < len(f.tests); i++ {
		w := f.tests[i]
		n := arity(w.text)
		switch {
		case w.text == "-exec":
			end := execEnd(f.tests, i)
			if end <= i+1 || end == len(f.tests) {
				f.ok = false
				return f
			}
			f.runs = append(f.runs, f.tests[i+1:end])
			i = end
		case n >= 0 && i+n < len(f.tests):
			f.links = f.links || w.text == "-follow"
			i += n
		case w.glob != "" || i > 0 && f.tests[i-1].glob != "": // a pattern that was not quoted: names, where it fits some
		default:
			f.ok = false
		}
	}
	return f
}

// tells reports whether what is run tells more of what is found than its name.
func (f *finding) tells() bool {
	return slices.ContainsFunc(f.runs, func(run []word) bool { name, ok := readerName(run); return !ok || !readers[name].names })
}

// execEnd is the index of the word that ends the command of an -exec.
func execEnd(tests []word, i int) int {
	for i++; i < len(tests) && tests[i].text != ";" && !(tests[i].text == "+" && tests[i-1].text == "{}"); i++ {
	}
	return i
}

// each are readers that take names of files behind their flags and look into nothing but those.
var each = []string{"cat", "head", "tail", "nl", "wc", "grep", "egrep", "fgrep", "sed", "cut", "sort", "stat", "ls", "file", "basename", "dirname", "realpath", "readlink", "md5sum", "sha1sum", "sha256sum", "cksum", "od", "echo"}

// findsOnly tells whether find runs nothing but readers, for what it found.
func findsOnly(args []word) bool {
	f := finds(args)
	return f.ok && !slices.ContainsFunc(f.runs, func(run []word) bool { return !readsEach(run) })
}

// readsEach tells whether a command of -exec only reads: a reader with {} among its files. What is found has a name that begins where find
// starts, so it is no flag.
func readsEach(run []word) bool {
	inner := make([]word, len(run))
	for i, w := range run {
		if w.text == "{}" {
			w = word{text: "./" + unknownText, glob: "./*", known: true}
		}
		if strings.Contains(w.text, "{}") {
			return false
		}
		inner[i] = w
	}
	name, ok := readerName(inner)
	if !ok || !slices.Contains(each, name) || !reads(inner) {
		return false
	}
	if name == "ls" && slices.ContainsFunc(inner[1:], func(w word) bool {
		return strings.HasPrefix(w.text, "--") || strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "LR")
	}) {
		return false // it goes on from there
	}
	if flags := readers[name].flags; flags == grepFlags {
		g := flags.read(inner[1:])
		return !deepGrep(&g) && (g.has(flags.texts...) || len(g.operands) > 0 && g.operands[0].glob == "")
	}
	return true
}

// among evaluates the expression of a find for one entry of a folder, as far as its name and type tell.
type among struct {
	tests   []word
	links   bool
	name    string
	kind    fs.FileMode
	reached bool // an -exec may be
}

// runsFor tells whether find may run a command for an entry.
func (f *finding) runsFor(e fs.DirEntry) bool {
	a := &among{tests: f.tests, links: f.links, name: e.Name(), kind: e.Type()}
	a.list(true)
	return a.reached || len(a.tests) > 0 // what is left was not understood
}

func (a *among) is(texts ...string) bool {
	return len(a.tests) > 0 && slices.Contains(texts, a.tests[0].text)
}

func (a *among) next() word {
	if len(a.tests) == 0 {
		return word{}
	}
	w := a.tests[0]
	a.tests = a.tests[1:]
	return w
}

// list, any, all and one evaluate a part of the expression. live: it may be come to. They tell whether it may be true, and whether it may be
// false.
func (a *among) list(live bool) (yes, no bool) {
	yes, no = a.any(live)
	for a.is(",") {
		a.next()
		yes, no = a.any(live)
	}
	return yes, no
}

func (a *among) any(live bool) (yes, no bool) {
	yes, no = a.all(live)
	for a.is("-o", "-or") {
		a.next()
		y, n := a.all(live && no)
		yes, no = yes || y, no && n
	}
	return yes, no
}

func (a *among) all(live bool) (yes, no bool) {
	yes, no = a.one(live)
	for len(a.tests) > 0 && !a.is("-o", "-or", ",", ")") {
		if a.is("-a", "-and") {
			a.next()
		}
		y, n := a.one(live && yes)
		yes, no = yes && y, no || n
	}
	return yes, no
}

func (a *among) one(live bool) (yes, no bool) {
	w := a.next()
	switch w.text {
	case "!", "-not":
		yes, no = a.one(live)
		return no, yes
	case "(":
		yes, no = a.list(live)
		a.next()
		return yes, no
	case "-exec":
		end := execEnd(append([]word{w}, a.tests...), 0)
		a.tests = a.tests[min(end, len(a.tests)):]
		a.reached = a.reached || live
	case "-name":
		if v := a.next(); v.glob == "" && !strings.ContainsAny(v.text, `[\`+unknownText) {
			fits, _ := path.Match(v.text, a.name)
			return fits, !fits
		}
	case "-type":
		v := a.next()
		link := a.kind&fs.ModeSymlink != 0
		if v.text == "f" && v.glob == "" && !(link && a.links) {
			return a.kind.IsRegular(), !a.kind.IsRegular()
		}
	default:
		for range arity(w.text) {
			a.next()
		}
	}
	return true, true
}

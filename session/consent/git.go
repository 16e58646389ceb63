package consent

import (
	"regexp"
	"slices"
	"strings"
)

// gitReader is a subcommand of git that only reads, as long as its flags are not among no.
type gitReader struct {
	no    []string
	check func(args []word) bool
}

// Flags that make git run programs or write, of everything that shows differences. --output-indicator-* and --oneline stay allowed:
// they are longer, not shorter.
var gitDiff = []string{"--output", "--ext-diff", "--textconv", "-O", "--show-signature"}

var gitReaders = map[string]gitReader{
	"status": {}, "rev-parse": {no: []string{"--parseopt"}}, "ls-files": {}, "ls-tree": {}, "describe": {}, "rev-list": {no: gitDiff}, "name-rev": {}, "merge-base": {},
	"for-each-ref": {check: unsigned}, "show-ref": {}, "count-objects": {}, "check-ignore": {}, "check-attr": {}, "cherry": {}, "version": {},
	"log": {no: gitDiff, check: unsigned}, "diff": {no: gitDiff}, "show": {no: gitDiff, check: unsigned}, "whatchanged": {no: gitDiff, check: unsigned},
	"diff-tree": {no: gitDiff}, "diff-index": {no: gitDiff}, "diff-files": {no: gitDiff},
	"shortlog": {no: gitDiff, check: unsigned},
	"blame":    {no: []string{"--textconv"}}, "annotate": {no: []string{"--textconv"}},
	"cat-file": {no: []string{"--textconv", "--filters"}},
	"grep":     {no: []string{"-O", "--open-files-in-pager", "--textconv", "--ext-grep"}},
	"branch":   {check: listsBranches}, "tag": {check: listsTags}, "remote": {check: listsRemotes}, "stash": {check: showsStash}, "reflog": {check: showsReflog},
	"worktree": {check: func(a []word) bool { return len(a) > 0 && a[0].text == "list" }},
	"config":   {check: func(a []word) bool { return len(a) == 2 && a[0].text == "--get" }},
}

// gitReads tells whether a call of git only reads. Of the flags before the subcommand only those that change nothing else are
// understood: -c would set a program to be run.
func gitReads(args []word) bool {
	sub, rest, ok := gitSub(args)
	if !ok {
		return false
	}
	row, ok := gitReaders[sub]
	if !ok {
		return false
	}
	for _, w := range rest {
		if w.text == "--" {
			break
		}
		if !strings.HasPrefix(w.text, "-") {
			continue
		}
		for _, no := range row.no {
			name, _, _ := strings.Cut(w.text, "=")
			switch {
			case strings.HasPrefix(no, "--"):
				if strings.HasPrefix(w.text, "--") && len(name) > 2 && strings.HasPrefix(no, name) {
					return false
				}
			case strings.HasPrefix(w.text, no), sub == "grep" && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, no[1:]):
				return false
			}
		}
	}
	return row.check == nil || row.check(rest)
}

// gitSub finds the subcommand; ok is false when a flag before it is not understood.
func gitSub(args []word) (sub string, rest []word, ok bool) {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-C":
			i++
		case t == "--no-pager", t == "-P", t == "--no-optional-locks", t == "--literal-pathspecs", t == "--no-replace-objects":
		case t == "--version" && len(args) == 1:
			return "version", nil, true
		case strings.HasPrefix(t, "-"):
			return "", nil, false
		default:
			return t, args[i+1:], true
		}
	}
	return "", nil, false
}

// unsigned refuses formats that make git check signatures, which runs a program.
func unsigned(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool {
		return strings.Contains(w.text, "%G") || strings.Contains(w.text, "%(signature") || strings.Contains(w.text, "%(*signature")
	})
}

var (
	branchFlags  = regexp.MustCompile(`^(-[arvqi]+|-l|--all|--remotes|--verbose|--list|--show-current|--no-color|--color(=.*)?|--column(=.*)?|--no-column|--sort=.*|--format=.*|--abbrev(=.*)?|--no-abbrev|--ignore-case|--(no-)?contains(=.*)?|--(no-)?merged(=.*)?|--points-at(=.*)?|--omit-empty)$`)
	branchTaking = regexp.MustCompile(`^(-l|--list|--(no-)?contains.*|--(no-)?merged.*|--points-at.*)$`)
	tagFlags     = regexp.MustCompile(`^(-l|--list|-n[0-9]*|-i|--sort=.*|--format=.*|--column(=.*)?|--no-column|--color(=.*)?|--(no-)?contains(=.*)?|--(no-)?merged(=.*)?|--points-at(=.*)?|--ignore-case|--omit-empty)$`)
	tagTaking    = regexp.MustCompile(`^(-l|--list|-n[0-9]*|--(no-)?contains.*|--(no-)?merged.*|--points-at.*)$`)
)

// lists tells whether all flags are of a list, and operands only where one of them takes some: without, an operand would be created.
func lists(args []word, flags, taking *regexp.Regexp) bool {
	takes, operands := false, false
	for _, w := range args {
		if !strings.HasPrefix(w.text, "-") {
			operands = true
			continue
		}
		if !flags.MatchString(w.text) {
			return false
		}
		takes = takes || taking.MatchString(w.text)
	}
	return (takes || !operands) && unsigned(args)
}

func listsBranches(args []word) bool { return lists(args, branchFlags, branchTaking) }
func listsTags(args []word) bool     { return lists(args, tagFlags, tagTaking) }

func listsRemotes(args []word) bool {
	return len(args) == 0 || len(args) == 1 && (args[0].text == "-v" || args[0].text == "--verbose") || len(args) == 2 && args[0].text == "get-url"
}

func showsStash(args []word) bool {
	if len(args) == 0 || args[0].text != "list" && args[0].text != "show" {
		return false
	}
	for _, w := range args[1:] {
		for _, no := range gitDiff {
			if name, _, _ := strings.Cut(w.text, "="); len(name) > 1 && (strings.HasPrefix(no, "--") && strings.HasPrefix(w.text, "--") && strings.HasPrefix(no, name) || no == "-O" && strings.HasPrefix(w.text, no)) {
				return false
			}
		}
	}
	return unsigned(args)
}

func showsReflog(args []word) bool {
	if len(args) > 0 && args[0].text != "show" && !strings.HasPrefix(args[0].text, "-") {
		return false
	}
	return showsStash(append([]word{{text: "show"}}, args...))
}

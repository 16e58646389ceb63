package consent

import (
	"regexp"
	"slices"
	"strings"
)

// gitTexts are flags whose values are no paths.
var gitTexts = []string{"--grep", "--author", "--committer", "--format", "--pretty", "--date", "--since", "--until", "--after", "--before", "--sort"}

// gitMore are flags that make git run programs, write, or read what is named in a file or its input. Most subcommands that know none of them show differences at some place, and then
// take them. --oneline and its like stay allowed: only what is shorter than a flag stands for it.
var gitMore = []string{"--output", "--ext-diff", "--textconv", "--filters", "-O", "--open-files-in-pager", "--show-signature", "--help", "--stdin", "--batch", "--batch-command", "--pathspec-from-file"}

// gitReaders are the subcommands that only read without those flags, and what else has to hold of their words.
var gitReaders = map[string]func(args []word) bool{
	"status": anyhow, "ls-files": anyhow, "ls-tree": anyhow, "describe": anyhow, "rev-list": unsigned, "name-rev": anyhow, "merge-base": anyhow, "for-each-ref": unsigned,
	"show-ref": anyhow, "count-objects": anyhow, "check-ignore": anyhow, "check-attr": anyhow, "cherry": anyhow, "version": anyhow, "log": unsigned, "diff": anyhow, "show": unsigned,
	"whatchanged": unsigned, "diff-tree": unsigned, "diff-index": anyhow, "diff-files": anyhow, "shortlog": unsigned, "blame": anyhow, "annotate": anyhow, "cat-file": anyhow,
	"grep": func(args []word) bool {
		return !slices.ContainsFunc(args, func(w word) bool { return group().MatchString(w.text) && strings.Contains(w.text, "O") })
	},
	"rev-parse": anyhow, "branch": listsBranches, "tag": listsTags, "remote": listsRemotes,
	"stash":    func(a []word) bool { return len(a) > 0 && (a[0].text == "list" || a[0].text == "show") && unsigned(a) },
	"reflog":   func(a []word) bool { return (numbered(a) || a[0].text == "show") && unsigned(a) },
	"worktree": func(a []word) bool { return len(a) > 0 && a[0].text == "list" },
	"config": func(a []word) bool {
		return (len(a) == 2 && a[0].text == "--get" || len(a) == 1) && setting().MatchString(a[len(a)-1].text) && !settingSecret().MatchString(a[len(a)-1].text)
	},
}

var (
	setting = lazily(`^[A-Za-z]+\.[A-Za-z0-9._/-]+$`)
	// settingSecret are settings that hold passwords, tokens and headers with them.
	settingSecret = lazily(`(?i)header|token|pass|secret|cookie|credential|oauth|auth|proxy|^url\.`)
	number        = lazily(`^(-n|-?[0-9]+|-n[0-9]+)$`)
)

// numbered tells whether there is nothing but how many to show.
func numbered(args []word) bool {
	return !slices.ContainsFunc(args, func(w word) bool { return !number().MatchString(w.text) })
}

var group = lazily(`^-[^-]`)

func anyhow([]word) bool { return true }

// gitReads tells whether a call of git only reads. Of the flags before the subcommand only those that change nothing else are
// understood: -c would set a program to be run.
func gitReads(args []word) bool {
	sub, rest, ok := gitSub(args)
	if !ok {
		return false
	}
	check, ok := gitReaders[sub]
	if !ok {
		return false
	}
	for _, w := range rest { // behind "--" too: that may be the value of a flag
		name, _, _ := strings.Cut(w.text, "=")
		for _, more := range gitMore {
			if strings.HasPrefix(more, "--") && len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(more, name) || !strings.HasPrefix(more, "--") && strings.HasPrefix(w.text, more) {
				return false
			}
		}
	}
	return check(rest)
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
	branchFlags  = lazily(`^(-[arvqi]+|-l|--all|--remotes|--verbose|--list|--show-current|--no-color|--color(=.*)?|--column(=.*)?|--no-column|--sort=.*|--format=.*|--abbrev(=.*)?|--no-abbrev|--ignore-case|--(no-)?contains(=.*)?|--(no-)?merged(=.*)?|--points-at(=.*)?|--omit-empty)$`)
	branchTaking = lazily(`^(--list|--(no-)?contains.*|--(no-)?merged.*|--points-at.*)$`)
	tagFlags     = lazily(`^(-l|--list|-n[0-9]*|-i|--sort=.*|--format=.*|--column(=.*)?|--no-column|--color(=.*)?|--(no-)?contains(=.*)?|--(no-)?merged(=.*)?|--points-at(=.*)?|--ignore-case|--omit-empty)$`)
	tagTaking    = lazily(`^(-l|--list|-n[0-9]*|--(no-)?contains.*|--(no-)?merged.*|--points-at.*)$`)
)

// lists tells whether all flags are of a list, and operands only where one of them takes some: without, an operand would be created.
func lists(args []word, flags, taking func() *regexp.Regexp) bool {
	takes, operands := false, false
	for _, w := range args {
		if !strings.HasPrefix(w.text, "-") {
			operands = true
			continue
		}
		if !flags().MatchString(w.text) {
			return false
		}
		takes = takes || taking().MatchString(w.text)
	}
	return (takes || !operands) && unsigned(args)
}

func listsBranches(args []word) bool { return lists(args, branchFlags, branchTaking) }
func listsTags(args []word) bool     { return lists(args, tagFlags, tagTaking) }

func listsRemotes(args []word) bool {
	return len(args) == 0 || len(args) == 1 && (args[0].text == "-v" || args[0].text == "--verbose") || len(args) == 2 && args[0].text == "get-url"
}

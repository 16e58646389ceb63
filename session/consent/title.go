package consent

import (
	"strings"
)

// Lengths of a title, in characters.
const (
	longTitle = 240
	longPart  = 80
)

// title says on one line what a command does, and what is notable of it.
func title(text string, j *judged) string {
	var notes []string
	note := func(n string) {
		for _, have := range notes {
			if have == n {
				return
			}
		}
		if len(notes) < 4 {
			notes = append(notes, n)
		}
	}
	if j.secret != "" {
		note("names the secret file " + oneLine(j.secret, longPart))
	}
	if j.outside != "" {
		note("starts outside the workspace, in " + oneLine(j.outside, longPart))
	}
	worst, rank := "", 0
	for i := range j.steps {
		st := &j.steps[i]
		if i < len(j.seen) && j.seen[i].outside != "" {
			note("outside the workspace: " + oneLine(j.seen[i].outside, longPart))
		}
		switch name := st.program(); {
		case name == "sudo" || name == "doas" || name == "su" || name == "pkexec":
			note("as another user")
		case st.other == "background":
			note("goes on in the background")
		case st.piped && (shells[name] || interpreters[name]) && len(st.argv) == 1:
			note("runs what it is given as a program")
		}
		if n := severity(st); n > rank && !j.reads[i] {
			worst, rank = st.text, n
		}
	}
	if j.unread {
		note("not understood, so look closely")
	}
	shown := j.place + text
	if len([]rune(shown)) > longTitle && worst != "" {
		note("among it: " + oneLine(worst, longPart))
	}
	out := "Run: " + oneLine(shown, longTitle)
	if len(notes) > 0 {
		out += " (" + strings.Join(notes, "; ") + ")"
	}
	return out
}

// severity orders the steps that ask, for the title of a command too long to be shown.
func severity(st *step) int {
	switch name := st.program(); {
	case st.other == "redirection", st.other == "background":
		return 2
	case st.other != "":
		return 1
	case name == "rm" || name == "dd" || name == "shred" || name == "mkfs" || name == "kill" || dangers[name] != nil:
		return 5
	case shells[name] || interpreters[name] || name == "eval" || name == "curl" || name == "wget" || name == "ssh":
		return 4
	case narrow[name]:
		return 3
	}
	return 2
}

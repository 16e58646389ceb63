package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// maxShownTitle bounds what is shown of the thing consent is asked for; what is left out is said.
const maxShownTitle = 4000

// question is an approval or a question a person has to answer.
type question struct {
	id      string // action id of an approval, tool call id of a question
	call    string // tool call id
	text    string
	options []protocol.Option // of an approval
	choices []protocol.Choice // of a question
	consent bool              // an approval
	sent    bool              // the person answered it here
}

func approvalOf(b *protocol.ApprovalRequested) *question {
	return &question{id: b.ActionID, call: b.ToolCallID, text: b.Title, options: b.Options, consent: true}
}

func questionOf(b *protocol.UserQuestionRequested) *question {
	return &question{id: b.ToolCallID, call: b.ToolCallID, text: b.Question, choices: b.Options}
}

// questionsOf are the questions of a turn that was open before we came.
func questionsOf(live *session.LiveTurn) []*question {
	var open []*question
	for _, a := range live.Approvals {
		open = append(open, &question{id: a.ActionID, call: a.ToolCallID, text: a.Title, options: a.Options, consent: true})
	}
	if q := live.Question; q != nil {
		open = append(open, &question{id: q.ToolCallID, call: q.ToolCallID, text: q.Question, choices: q.Options})
	}
	return open
}

// letters are the answers to an approval, by the kind of option they take.
var letters = []struct{ letter, word, kind, shown string }{
	{"y", "yes", "allow_once", "[y]es once"},
	{"a", "always", "allow_always", "[a]lways"},
	{"n", "no", "reject_once", "[n]o"},
	{"N", "never", "reject_always", "[N]ever"},
}

// show is the question as it stands before the person; the cursor stays behind it.
func (q *question) show(colour palette) string {
	text := unturned(strings.TrimSpace(q.text))
	if left := protocol.CharLen(text) - maxShownTitle; left > 0 {
		text = protocol.Prefix(text, maxShownTitle) + fmt.Sprintf("\n(… and %d more characters that are not shown)", left)
	}
	b := colour.bold(text) + "\n"
	if !q.consent {
		for i, c := range q.choices {
			b += fmt.Sprintf("  %d. %s", i+1, plainLine(c.Label))
			if c.Description != "" {
				b += colour.dim(" - " + plainLine(c.Description))
			}
			b += "\n"
		}
		if len(q.choices) > 0 {
			return b + "number or text: "
		}
		return b + "answer: "
	}
	return b + q.keys() + ": "
}

// keys are the answers that can be given.
func (q *question) keys() string {
	var shown []string
	for _, l := range letters {
		if q.option(l.kind) != "" {
			shown = append(shown, l.shown)
		}
	}
	if !q.numbered() {
		return strings.Join(shown, ", ")
	}
	shown = nil
	for i, o := range q.options {
		shown = append(shown, fmt.Sprintf("%d. %s", i+1, plainLine(o.Label)))
	}
	return strings.Join(shown, ", ")
}

// numbered reports whether the options are an agent's own, which letters do not tell apart.
func (q *question) numbered() bool {
	known := 0
	for _, l := range letters {
		if q.option(l.kind) != "" {
			known++
		}
	}
	return known != len(q.options)
}

// option is the id of the first option of a kind.
func (q *question) option(kind string) string {
	for _, o := range q.options {
		if o.Kind == kind {
			return o.ID
		}
	}
	return ""
}

// answer reads what the person typed: an option's id, or the text of an answer. False: it is none, ask again. Nothing but the exact words
// counts as consent.
func (q *question) answer(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if n, err := strconv.Atoi(line); err == nil {
		switch {
		case !q.consent && n >= 1 && n <= len(q.choices):
			return q.choices[n-1].Label, true
		case q.consent && q.numbered() && n >= 1 && n <= len(q.options):
			return q.options[n-1].ID, true
		}
	}
	if !q.consent {
		return line, line != ""
	}
	if q.numbered() {
		return "", false
	}
	for _, l := range letters {
		if line == l.letter || strings.EqualFold(line, l.word) || l.letter != "n" && l.letter != "N" && strings.EqualFold(line, l.letter) {
			id := q.option(l.kind)
			return id, id != ""
		}
	}
	return "", false
}

// again says why the line was no answer.
func (q *question) again() string {
	if !q.consent {
		return "An empty line is no answer; Ctrl-C gives up."
	}
	return "That is no answer to this: " + q.keys() + "."
}

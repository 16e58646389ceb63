package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Row is one line of a talk (docs/fixtures.md): a request "A> 1 method {params}", what is waited for of it, a directive "! words", what the
// server said "A< {…}", or else a note.
type Row struct {
	Text string // as it is written

	Conn   string // of a request and of what was said: a letter
	Said   string // what the server said, as it is named
	ID     string // of a request, as JSON
	Method string
	Params string // JSON with names in it; "" for none
	Waits  bool   // the request is answered before the talk goes on: "A>", not "A>>"

	Words []string // of a directive
}

// Rows reads a talk.
func Rows(talk string) ([]Row, error) {
	var rows []Row
	for i, text := range strings.Split(strings.TrimSuffix(talk, "\n"), "\n") {
		r := Row{Text: text}
		switch {
		case text == "", text[0] == '#':
		case text[0] == '!':
			if r.Words = strings.Fields(text[1:]); len(r.Words) == 0 {
				return nil, fmt.Errorf("line %d of the talk: a directive without words", i+1)
			}
		case len(text) > 3 && text[1:3] == "< ":
			r.Conn, r.Said = text[:1], text[3:]
		default:
			call, ok := strings.CutPrefix(text[1:], ">> ")
			if !ok {
				call, ok = strings.CutPrefix(text[1:], "> ")
				r.Waits = true
			}
			id, rest, ok2 := strings.Cut(call, " ")
			if !ok || !ok2 {
				return nil, fmt.Errorf("line %d of the talk is none: %q", i+1, text)
			}
			r.Conn, r.ID = text[:1], id
			r.Method, r.Params, _ = strings.Cut(rest, " ")
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Due are the lines that a talk says come on each connection before its next request or directive: those behind rows[at].
func Due(rows []Row, at int) map[string][]string {
	due := map[string][]string{}
	for _, r := range rows[at+1:] {
		switch {
		case r.Said != "":
			due[r.Conn] = append(due[r.Conn], r.Said)
		case r.Method != "" || r.Words != nil:
			return due
		}
	}
	return due
}

// Conn is one connection of a talk: what it was asked, and what it has said so far.
type Conn struct {
	methods map[string]string // by id
	said    []line
	events  int64
}

// line is a line of the server as far as its order needs it.
type line struct {
	raw      []byte
	Kind     string          `json:"kind"`
	Method   string          `json:"method"`
	ID       json.RawMessage `json:"request_id"`
	Sequence int64           `json:"sequence"`
	Turn     string          `json:"turn_id"`
	Error    json.RawMessage `json:"error"`
	Event    struct {
		Type string `json:"type"`
	} `json:"event"`
	Result struct {
		Turn    string `json:"turn_id"`
		Outcome string `json:"outcome"`
	} `json:"result"`
}

func (l *line) terminal() bool {
	switch l.Event.Type {
	case "turn_completed", "turn_failed", "turn_cancelled":
		return true
	}
	return false
}

// Asked notes a request.
func (c *Conn) Asked(id, method string) {
	if c.methods == nil {
		c.methods = map[string]string{}
	}
	c.methods[id] = method
}

// Said reports whether lines are all that is due: as many, and of a text at their end all of it. It notes nothing.
func (c *Conn) Said(lines [][]byte, due []string) bool {
	trial := *c
	got, _ := trial.Order(lines)
	if len(got) != len(due) || len(due) == 0 {
		return len(got) >= len(due)
	}
	last, want := got[len(got)-1], []byte(due[len(due)-1])
	for _, member := range []string{"text", "delta"} {
		if a, b := eventMember(last, member), eventMember(want, member); a != nil && len(a) < len(b) {
			return false
		}
	}
	return true
}

// Order brings lines, all that came between two rows of a talk, into the form a transcript keeps, whatever came first: answers that may
// overtake events stand first, each answer to a prompt right behind its turn's terminal, lines of executions behind those of their sessions, and
// pieces of one text are one. The error says what
// no order makes right: a sequence with a gap, an answer before its turn's terminal.
func (c *Conn) Order(lines [][]byte) ([][]byte, error) {
	var first, rest, executions []line
	var fault error
	from := len(c.said)
	for _, raw := range lines {
		l := line{raw: raw}
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, fmt.Errorf("no line of rind v2: %s", raw)
		}
		if l.Kind == "event" {
			if c.events++; l.Sequence != c.events && fault == nil {
				fault = fmt.Errorf("event %d has sequence %d: %s", c.events, l.Sequence, raw)
			}
		}
		c.said = append(c.said, l)
	}
	for i := from; i < len(c.said); i++ {
		l := c.said[i]
		method := ""
		if l.Kind == "response" {
			method = c.methods[string(l.ID)]
		}
		switch {
		case l.Method == "execution/event":
			executions = append(executions, l)
		case l.Event.Type == "prompt_queued", l.Kind == "response" && method != "session/prompt" && method != "session/replay" && method != "shutdown":
			first = append(first, l)
		case method == "session/prompt" && l.Error == nil && l.Result.Turn != "" && l.Result.Outcome != "waiting":
			if !ended(c.said[:i], l.Result.Turn) && fault == nil {
				fault = fmt.Errorf("answer before the terminal of its turn: %s", l.raw)
			}
			rest = behind(rest, l)
		default:
			rest = append(rest, l)
		}
	}
	var out [][]byte
	for _, l := range slices.Concat(first, rest, executions) {
		if n := len(out); n > 0 && Merges(out[n-1], l.raw) {
			out[n-1] = Joined(out[n-1], l.raw)
			continue
		}
		out = append(out, l.raw)
	}
	return out, fault
}

// ended reports whether a turn's terminal is among lines.
func ended(lines []line, turn string) bool {
	for i := range lines {
		if lines[i].Turn == turn && lines[i].terminal() {
			return true
		}
	}
	return false
}

// behind puts an answer behind its turn's terminal, where that is among lines: a next turn may have begun in between, or not.
func behind(lines []line, answer line) []line {
	for i := range lines {
		if lines[i].Turn == answer.Result.Turn && lines[i].terminal() {
			return append(lines[:i+1:i+1], append([]line{answer}, lines[i+1:]...)...)
		}
	}
	return append(lines, answer)
}

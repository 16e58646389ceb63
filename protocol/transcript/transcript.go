// Package transcript holds the form of golden wire transcripts (docs/fixtures.md): which parts of a line differ from run to run, and the names
// they get. Pure functions; no I/O, no goroutine.
package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/rind-dev/rind/protocol"
)

var (
	unstable  = lazily(`(\\?"([a-z_]+)\\?":\\?")?([0-9a-f]{64}|[0-9a-f]{32}|[0-9]{8}_[0-9]{6}_[0-9a-f]{8})\b`)
	times     = lazily(`[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|\+00:00)| [0-9]{2}:[0-9]{2}\b)`)
	lists     = lazily(`"(capabilities|methods)":\["[^\]]*\]`)
	live      = lazily(`^(\{"kind":"event","method":"[a-z/]+","sequence":)[0-9]+,`)
	shortened = lazily(`Resumed session \S+:`)
	commands  = lazily(`"commands":\[\{.*\}\],"providers"`)
	took      = lazily(`(\\?"(?:duration_ms|durationMs|elapsed_ms)\\?":)[0-9]+`)
	moments   = lazily(`(\\?"(?:started_at|finished_at)\\?":)[0-9.e+]+`)
	version   = lazily(`("version":)"[^"]*"`)
	sections  = lazily(`"((?:system|tools|user|assistant|results)_tokens)":[0-9]+`)
	estimated = lazily(`"(input_tokens|total_tokens|output_tokens|context_usage_percent)":[0-9.e-]+`)
	asOf      = lazily(`("as_of_sequence":)[0-9]+`)
	places    = lazily(`("start_cursor":[0-9]+,)?"(cursor|head_cursor|next_cursor|task_cursor|sequence)":([1-9][0-9]*)`)
	preamble  = lazily(`("id":"system","ts":"[^"]*","role":"system","content":)"(?:[^"\\]|\\.)*"`)
	offered   = lazily(`(There is no tool [^.]*\. Tools: )[^.]*\.`)
	liveUsage = lazily(`("files":\[[^\]]*\],"context_usage_percent":)[0-9.e-]+`)
	used      = lazily(`"((?:input|output|total)Tokens)":[0-9]+`)
	changed   = lazily(`"file-[0-9a-f]{16}"`)
	renamed   = lazily(`call_[0-9a-f]{24}\b`)
	quoted    = lazily(`"(<cursor[0-9]+>)"`)
	named     = lazily(`<[a-z_]+[0-9]+>`)
)

// Names gives the identifiers of one run stable names, by where they are seen first: <session1>, <turn2>, <event17>. The zero value is ready.
type Names struct {
	names  map[string]string // identifier to name
	ids    map[string]string // and back
	counts map[string]int
}

// Stable replaces what differs from run to run: identifiers by names; times, durations and the version by a word; a live event's sequence, which
// is checked elsewhere; of initialize's lists, the system prompt and the tools offered only that they are there is kept.
func (n *Names) Stable(line string) string {
	if n.names == nil {
		n.names, n.ids, n.counts = map[string]string{}, map[string]string{}, map[string]int{}
	}
	s := lists().ReplaceAllString(line, `"$1":["…"]`)
	s = commands().ReplaceAllString(s, `"commands":["…"],"providers"`)
	s = times().ReplaceAllString(s, "<time>")
	s = took().ReplaceAllString(s, `$1"<ms>"`)
	s = moments().ReplaceAllString(s, `$1"<unix>"`)
	s = version().ReplaceAllString(s, `$1"<version>"`)
	s = sections().ReplaceAllString(s, `"$1":"<n>"`) // estimates: they depend on the length of paths
	if strings.Contains(s, `"anchor":"estimate"`) {
		s = estimated().ReplaceAllString(s, `"$1":"<n>"`)
	}
	s = used().ReplaceAllString(s, `"$1":"<n>"`)
	s = changed().ReplaceAllString(s, `"file-<path>"`)
	s = liveUsage().ReplaceAllString(s, `$1"<n>"`)
	s = preamble().ReplaceAllString(s, `$1"…"`)
	s = offered().ReplaceAllString(s, "$1….")
	s = shortened().ReplaceAllString(s, "Resumed session <short>:")
	s = live().ReplaceAllString(s, "$1<n>,")
	s = asOf().ReplaceAllString(s, `$1"<n>"`)
	s = places().ReplaceAllStringFunc(s, func(m string) string { // how many pieces lie between depends on time
		g := places().FindStringSubmatch(m)
		if g[1] != "" { // offsets of a task's output
			return m
		}
		return `"` + g[2] + `":"` + n.name("cursor "+g[3], "cursor") + `"`
	})
	s = renamed().ReplaceAllStringFunc(s, func(m string) string { return n.name(m, "call") })
	return unstable().ReplaceAllStringFunc(s, func(m string) string {
		g := unstable().FindStringSubmatch(m)
		switch {
		case g[2] == "history_digest":
			return g[1] + "<digest>"
		case len(g[3]) == 64: // of a content, which is the same in every run
			return m
		}
		return g[1] + n.name(g[3], g[2])
	})
}

func (n *Names) name(id, member string) string {
	if name := n.names[id]; name != "" {
		return name
	}
	what := strings.TrimSuffix(member, "_id")
	switch {
	case what == "cursor", what == "call":
	case strings.Contains(id, "_"):
		what = "session"
	case what == "user_message":
		what = "message"
	case what == "":
		what = "id"
	}
	n.counts[what]++
	name := fmt.Sprintf("<%s%d>", what, n.counts[what])
	n.names[id], n.ids[name] = name, id
	return name
}

// Real puts identifiers in the place of their names, for a request written with them. A name not yet seen stays.
func (n *Names) Real(line string) string {
	line = quoted().ReplaceAllString(line, "$1") // a cursor is a number
	return named().ReplaceAllStringFunc(line, func(name string) string {
		if id := n.ids[name]; id != "" {
			return strings.TrimPrefix(id, "cursor ")
		}
		return name
	})
}

// IDs are the identifiers that were named what, as "session", in the order of their names.
func (n *Names) IDs(what string) []string {
	var ids []string
	for i := 1; ; i++ {
		id, ok := n.ids[fmt.Sprintf("<%s%d>", what, i)]
		if !ok {
			return ids
		}
		ids = append(ids, id)
	}
}

// piece is an event line as far as merging needs it.
type piece struct {
	Kind  string `json:"kind"`
	Turn  string `json:"turn_id"`
	Event struct {
		Type string `json:"type"`
		Call string `json:"tool_call_id"`
	} `json:"event"`
}

// Merges reports whether two neighbouring lines are pieces of one text, which a slower or faster run cuts elsewhere. Of such a run of pieces a
// transcript keeps the last line, with the text of all.
func Merges(a, b []byte) bool {
	var x, y piece
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x != y || x.Kind != "event" {
		return false
	}
	switch x.Event.Type {
	case "assistant_delta", "reasoning_delta", "tool_input_delta":
		return true
	}
	return false
}

// Joined is line b with the text of a before its own.
func Joined(a, b []byte) []byte {
	for _, member := range []string{"text", "delta"} {
		ta, tb := eventMember(a, member), eventMember(b, member)
		if ta == nil || tb == nil {
			continue
		}
		var sa, sb string
		if json.Unmarshal(ta, &sa) != nil || json.Unmarshal(tb, &sb) != nil {
			continue
		}
		joined := protocol.AppendString(nil, sa+sb) // as a runtime writes it that told both at once
		old := `"` + member + `":` + string(tb)
		if i := strings.LastIndex(string(b), old); i >= 0 {
			return []byte(string(b[:i]) + `"` + member + `":` + string(joined) + string(b[i+len(old):]))
		}
	}
	return b
}

// eventMember is a member of the event of an event line, raw.
func eventMember(line []byte, name string) json.RawMessage {
	var l struct {
		Event map[string]json.RawMessage `json:"event"`
	}
	if json.Unmarshal(line, &l) != nil {
		return nil
	}
	return l.Event[name]
}

// lazily compiles an expression with its first use: only recording and checking transcripts need them.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

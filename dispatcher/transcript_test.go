package dispatcher_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

var update = flag.Bool("update", false, "rewrite the transcripts of fixtures/transcripts")

// TestTranscriptsAreSpokenAsWrittenInBothEnvelopes plays fixtures/transcripts/*.txtar. A file has a script for the model, a talk, and the
// JSON-RPC codes of its errors. The talk holds, by connection (a letter):
//
//	A> 3 session/prompt {"input":"hi"}   a request; the connection is opened with its first one
//	A< {"kind":"response",…}             what the server writes to it until nothing moves any more
//	! open GATE, ! sleep 50ms            lets the script, or time, go on
//	! kill, ! process                    the process dies at once; another one begins, on the session it left
//	! eof A                              the client closes its end
//
// Between two of the client's lines, answers that may overtake events stand first, whatever came first; those to session/prompt and
// session/replay stand in their place, and so do events but prompt_queued, which belongs to no place of a log. That sequence counts
// from 1 without a gap, and that the answer to a prompt follows its turn's terminal, is checked on every run. Identifiers are named by where they are seen first, and may be used in requests by that name.
func TestTranscriptsAreSpokenAsWrittenInBothEnvelopes(t *testing.T) {
	files, err := filepath.Glob("../fixtures/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			script, talk, codes := section(ar, "script"), section(ar, "talk"), section(ar, "codes")
			got := map[string]*talker{}
			for _, name := range []string{"rind", "jsonrpc"} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						k := &talker{t: t, env: envelopes[name], script: script, names: map[string]string{}, ids: map[string]string{}, counts: map[string]int{}}
						k.play(talk)
						got[name] = k
					})
				})
			}
			if t.Failed() {
				return
			}
			if *update {
				for i := range ar.Files {
					switch ar.Files[i].Name {
					case "talk":
						ar.Files[i].Data = []byte(got["rind"].said.String())
					case "codes":
						ar.Files[i].Data = []byte(got["jsonrpc"].codes.String())
					}
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
					t.Fatal(err)
				}
				talk, codes = got["rind"].said.String(), got["jsonrpc"].codes.String()
			}
			for name, k := range got {
				if d := cmp.Diff(strings.Split(talk, "\n"), strings.Split(k.said.String(), "\n")); d != "" {
					t.Errorf("%s (-want +got, -update rewrites):\n%s", name, d)
				}
			}
			if d := cmp.Diff(codes, got["jsonrpc"].codes.String()); d != "" {
				t.Errorf("codes (-want +got):\n%s", d)
			}
		})
	}
}

func section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// talker plays a talk over one envelope and writes down what was said.
type talker struct {
	t      *testing.T
	env    rindv2.Envelope
	script string
	names  map[string]string // identifier to its name
	ids    map[string]string // and back
	counts map[string]int

	world   *world
	p       *process
	n       int
	conns   map[string]*client
	order   []string
	told    map[string]int
	methods map[string]string // by connection and id
	said    strings.Builder
	codes   strings.Builder
}

func (k *talker) play(talk string) {
	k.world = newWorld()
	k.begin("")
	for _, row := range strings.Split(strings.TrimSuffix(talk, "\n"), "\n") {
		if len(row) > 2 && row[1] == '<' {
			continue
		}
		k.said.WriteString(row + "\n")
		switch {
		case row == "" || row[0] == '#':
			continue
		case row[0] == '!':
			k.direct(strings.Fields(row[1:]))
		case len(row) > 3 && row[1] == '>':
			k.request(row[:1], row[3:])
		default:
			k.t.Fatalf("line of a talk: %q", row)
		}
		k.listen()
	}
	k.p.end()
	for _, id := range k.ids {
		if _, err := k.p.store.Session(context.Background(), session.SessionID(id)); err == nil {
			k.p.sound(id)
		}
	}
}

func (k *talker) begin(id string) {
	k.n++
	k.p = launch(k.t, k.world, fmt.Sprint("process", k.n), k.script, session.SessionID(id))
	k.conns, k.told, k.methods, k.order = map[string]*client{}, map[string]int{}, map[string]string{}, nil
}

func (k *talker) direct(words []string) {
	switch words[0] {
	case "open":
		k.p.play.Open(words[1])
	case "sleep":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			k.t.Fatal(err)
		}
		time.Sleep(d)
	case "kill":
		k.p.kill()
		k.conns, k.order = map[string]*client{}, nil
	case "process":
		k.begin(k.ids["<session1>"])
	case "eof":
		_ = k.conns[words[1]].hangUp()
	default:
		k.t.Fatalf("unknown directive %q", words)
	}
}

var nameUse = regexp.MustCompile(`<[a-z_]+[0-9]+>`)

func (k *talker) request(conn, row string) {
	c := k.conns[conn]
	if c == nil {
		c = k.p.connect(k.env)
		k.conns[conn] = c
		k.order = append(k.order, conn)
	}
	id, rest, _ := strings.Cut(row, " ")
	method, params, _ := strings.Cut(rest, " ")
	params = nameUse.ReplaceAllStringFunc(params, func(name string) string {
		if id := k.ids[name]; id != "" {
			return id
		}
		k.t.Errorf("nothing was named %s: %s", name, row)
		return name
	})
	k.methods[conn+id] = method
	c.ask(id, method, params)
}

// listen writes down what came.
func (k *talker) listen() {
	synctest.Wait()
	for _, conn := range k.order {
		lines := k.conns[conn].got()
		fresh := lines[k.told[conn]:]
		k.told[conn] = len(lines)
		gapFree(k.t, lines)
		var first, rest []*line
		for _, l := range fresh {
			m := k.methods[conn+l.id]
			if l.has("prompt_queued") || l.id != "" && m != "session/prompt" && m != "session/replay" && m != "rind/session/compact" && m != "shutdown" {
				first = append(first, l)
			} else {
				rest = append(rest, l)
			}
		}
		for _, l := range append(first, k.settled(conn, lines, rest)...) {
			fmt.Fprintf(&k.said, "%s< %s\n", conn, k.stable(l.raw))
			if l.err != nil {
				fmt.Fprintf(&k.codes, "%s %s %d\n", conn, l.id, l.err.Code)
			}
		}
	}
}

// settled puts the answers to prompts right behind the terminals of their turns, which they must follow: a next turn may begin in between,
// or not.
func (k *talker) settled(conn string, all, fresh []*line) []*line {
	var out []*line
	for _, l := range fresh {
		turn := l.text("turn_id")
		if k.methods[conn+l.id] != "session/prompt" || l.id == "" || l.err != nil || turn == "" || l.text("outcome") == "waiting" {
			out = append(out, l)
			continue
		}
		ends := func(e *line) bool { return e.turn == turn && terminal(e) }
		if end, answer := place(all, ends), place(all, func(e *line) bool { return e == l }); end < 0 || end > answer {
			k.t.Errorf("answer before the terminal of its turn: %s", l.raw)
		}
		at := place(out, ends)
		if at < 0 {
			out = append(out, l)
			continue
		}
		out = append(out[:at+1:at+1], append([]*line{l}, out[at+1:]...)...)
	}
	return out
}

func terminal(l *line) bool {
	return l.has("turn_completed") || l.has("turn_failed") || l.has("turn_cancelled")
}

var (
	unstable  = regexp.MustCompile(`(\\?"([a-z_]+)\\?":\\?")?([0-9a-f]{32}|[0-9]{8}_[0-9]{6}_[0-9a-f]{8})\b`)
	times     = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|\+00:00)`)
	lists     = regexp.MustCompile(`"(capabilities|methods)":\["[^\]]*\]`)
	live      = regexp.MustCompile(`^(\{"kind":"event","method":"[a-z/]+","sequence":)[0-9]+,`)
	shortened = regexp.MustCompile(`Resumed session \S+:`)
	commands  = regexp.MustCompile(`"commands":\[\{.*\}\],"providers"`)
)

// stable replaces identifiers by names and times by a word; of initialize's lists only that they are there is told.
func (k *talker) stable(s string) string {
	s = lists.ReplaceAllString(s, `"$1":["…"]`)
	s = commands.ReplaceAllString(s, `"commands":["…"],"providers"`)
	s = times.ReplaceAllString(s, "<time>")
	s = shortened.ReplaceAllString(s, "Resumed session <short>:")
	s = live.ReplaceAllString(s, "$1<n>,")
	return unstable.ReplaceAllStringFunc(s, func(m string) string {
		g := unstable.FindStringSubmatch(m)
		name := k.names[g[3]]
		if name == "" {
			what := strings.TrimSuffix(g[2], "_id")
			switch {
			case strings.Contains(g[3], "_"):
				what = "session"
			case what == "user_message":
				what = "message"
			case what == "":
				what = "id"
			}
			k.counts[what]++
			name = fmt.Sprintf("<%s%d>", what, k.counts[what])
			k.names[g[3]], k.ids[name] = name, g[3]
		}
		return g[1] + name
	})
}

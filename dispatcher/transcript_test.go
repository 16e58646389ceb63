package dispatcher_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/protocol/transcript"
	"github.com/rind-dev/rind/session"
)

var update = flag.Bool("update", false, "rewrite the transcripts of fixtures/transcripts")

// TestTranscriptsAreSpokenAsWrittenInBothEnvelopes plays fixtures/transcripts/*.txtar, which are fixtures (docs/fixtures.md) with one section
// more: codes, the JSON-RPC codes of their errors by connection and id. Connections share a process until the directive "process"; time
// passes only in "sleep 50ms"; and what only a stage in the same process can do is told it by more directives:
//
//	! open GATE          lets the script go on
//	! kill A             the process of A dies at once, with all its connections
//	! write CALL WORDS   the command of a call of bash writes a line
//	! exit CALL CODE     it ends
//
// What was said between two rows has the order of transcript.Conn.
func TestTranscriptsAreSpokenAsWrittenInBothEnvelopes(t *testing.T) {
	peers.Talks(t, "../fixtures/transcripts/*.txtar", *update, func(t *testing.T, ar *txtar.Archive) []peers.Spoken {
		rows, err := transcript.Rows(peers.Section(ar, "talk"))
		if err != nil {
			t.Fatal(err)
		}
		var spoken []peers.Spoken
		for _, name := range []string{"rind", "jsonrpc"} {
			root := t.TempDir()
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k := &talker{t: t, env: envelopes[name], stage: stage{root: root, script: peers.Section(ar, "script.json")}}
					k.stage.unattended = strings.Contains(peers.Section(ar, "flags"), "--no-user-question")
					k.stage.build(t, ar)
					k.play(rows)
					spoken = append(spoken, peers.Spoken{Section: "talk", By: name, Text: k.said.String()})
					if name == "jsonrpc" {
						spoken = append(spoken, peers.Spoken{Section: "codes", By: name, Text: k.codes.String()})
					}
				})
			})
		}
		return spoken
	})
}

// talker plays a talk over one envelope and writes down what was said.
type talker struct {
	t     *testing.T
	env   rindv2.Envelope
	stage stage
	names transcript.Names

	world *peers.World
	p     *process
	n     int
	conns map[string]*spoken
	order []string
	said  strings.Builder
	codes strings.Builder
}

// spoken is one connection of a talk.
type spoken struct {
	*client
	p     *process
	conn  transcript.Conn
	heard int
}

func (k *talker) play(rows []transcript.Row) {
	k.world = peers.NewWorld()
	k.conns = map[string]*spoken{}
	k.begin()
	for _, r := range rows {
		if r.Said != "" {
			continue
		}
		at := k.said.Len()
		switch {
		case r.Words != nil:
			k.direct(r.Words)
		case r.Method != "":
			k.request(r)
		}
		answered := k.listen(r)
		text := r.Text
		if r.Method != "" { // ">" promises that the answer is among what follows
			text = r.Conn + "> " + strings.TrimLeft(r.Text[1:], "> ")
			if !answered {
				text = r.Conn + ">> " + strings.TrimLeft(r.Text[1:], "> ")
			}
		}
		said := k.said.String()
		k.said.Reset()
		k.said.WriteString(said[:at] + text + "\n" + said[at:])
	}
	k.p.end()
	for _, id := range k.names.IDs("session") {
		if _, err := k.p.Store.Session(context.Background(), session.SessionID(id)); err == nil {
			k.p.Sound(id)
		}
	}
}

func (k *talker) begin() {
	k.n++
	k.p = k.stage.launch(k.t, k.world, fmt.Sprint("process", k.n))
}

func (k *talker) direct(words []string) {
	k.t.Helper()
	if words[0] == "process" {
		k.begin()
		return
	}
	if len(words) > 2 && words[0] == "write" {
		k.p.shell.job(k.t, words[1]).Write(strings.Join(words[2:], " ") + "\n")
		return
	}
	if len(words) == 3 && words[0] == "exit" {
		code, err := strconv.Atoi(words[2])
		if err != nil {
			k.t.Fatal(err)
		}
		status := protocol.TaskCompleted
		if code != 0 {
			status = protocol.TaskFailed
		}
		k.p.shell.job(k.t, words[1]).Finish(status, code)
		return
	}
	if len(words) != 2 {
		k.t.Fatalf("unknown directive %q", words)
	}
	c := k.conns[words[1]]
	switch {
	case words[0] == "open":
		k.p.Play.Open(words[1])
	case words[0] == "sleep":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			k.t.Fatal(err)
		}
		time.Sleep(d)
	case words[0] == "kill" && c != nil:
		c.p.kill() // nothing it says after this was said by the process that died
		k.order = slices.DeleteFunc(k.order, func(conn string) bool { return k.conns[conn].p == c.p })
	case words[0] == "eof" && c != nil:
		_ = c.hangUp()
	default:
		k.t.Fatalf("unknown directive %q", words)
	}
}

func (k *talker) request(r transcript.Row) {
	c := k.conns[r.Conn]
	if c == nil {
		c = &spoken{client: k.p.connect(k.env), p: k.p}
		k.conns[r.Conn] = c
		k.order = append(k.order, r.Conn)
	}
	params := k.names.Real(r.Params)
	if left := nameUse.FindString(params); left != "" {
		k.t.Errorf("nothing was named %s: %s", left, r.Text)
	}
	id := k.names.Real(r.ID) // an answer to a question of ours has its id
	c.conn.Asked(id, r.Method)
	c.ask(id, r.Method, params)
}

var nameUse = regexp.MustCompile(`<[a-z_]+[0-9]+>`)

// listen writes down what came, and reports whether it holds the answer to r.
func (k *talker) listen(r transcript.Row) (answered bool) {
	synctest.Wait()
	for _, conn := range k.order {
		c := k.conns[conn]
		lines := c.Got()
		var fresh [][]byte
		for _, l := range lines[c.heard:] {
			fresh = append(fresh, []byte(l.raw))
			answered = answered || conn == r.Conn && l.id != "" && l.id == r.ID
			if l.err != nil {
				fmt.Fprintf(&k.codes, "%s %s %d\n", conn, l.id, l.err.Code)
			}
		}
		c.heard = len(lines)
		ordered, err := c.conn.Order(fresh)
		if err != nil {
			k.t.Error(err)
		}
		for _, raw := range ordered {
			fmt.Fprintf(&k.said, "%s< %s\n", conn, k.names.Stable(strings.ReplaceAll(string(raw), filepath.ToSlash(k.stage.root), "$ROOT")))
		}
	}
	return answered
}

func terminal(l *line) bool {
	return l.has("turn_completed") || l.has("turn_failed") || l.has("turn_cancelled")
}

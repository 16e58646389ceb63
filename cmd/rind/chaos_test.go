//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// chaosScript answers with text, calls a read-only tool, and answers again, slowly enough to be killed anywhere.
func chaosScript() string {
	talk := `{"steps":[{"text":"This is a long answer that is told piece by piece, so that it can be cut anywhere at all. ","chunk":2,"delayMs":1},
		{"reasoning":"thinking about it","chunk":4,"delayMs":1},{"text":"And this is how it ends.","chunk":2,"delayMs":1}]}`
	tool := `{"match":"tool","steps":[{"text":"Looking at the file first. ","chunk":3,"delayMs":1},{"call":{"id":"c","name":"read_file","arguments":{"path":"a.txt"}}}]}`
	turns := strings.Repeat(tool+",", 30) + strings.TrimSuffix(strings.Repeat(talk+",", 100), ",")
	return `{"turns":[` + turns + `]}`
}

// wireLine is one line of the server.
type wireLine struct {
	Kind       string          `json:"kind"`
	Durability string          `json:"durability"`
	Sequence   int64           `json:"sequence"`
	Cursor     session.Seq     `json:"cursor"`
	TaskCursor session.Seq     `json:"task_cursor"`
	Event      json.RawMessage `json:"event"`
	RequestID  int             `json:"request_id"`
	Result     json.RawMessage `json:"result"`
	Error      json.RawMessage `json:"error"`
}

// server is a child of ours that serves rind v2.
type server struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan wireLine
	seen  []wireLine
	bytes atomic.Int64 // read from it so far
}

// serve starts a child on a data root, to be ended by Kill or by closing its input.
func serve(t *testing.T, root, kill string, args ...string) *server {
	t.Helper()
	env := []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "PATH=" + os.Getenv("PATH"), "RIND_TEST_KILL=" + kill}
	return spawn(t, os.Args[0], filepath.Join(root, "ws"), env, args...)
}

// spawn starts a program as an app-server.
func spawn(t *testing.T, program, dir string, env []string, args ...string) *server {
	t.Helper()
	cmd := exec.Command(program, append([]string{"app-server"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, cmd: cmd, in: in, lines: make(chan wireLine, 4096)}
	go func() {
		defer close(s.lines)
		r := bufio.NewReader(out)
		for {
			b, err := r.ReadBytes('\n')
			if err != nil {
				return // what is cut off was not received
			}
			s.bytes.Add(int64(len(b)))
			var l wireLine
			if json.Unmarshal(b, &l) != nil {
				t.Errorf("line is no JSON: %.200s", b)
				return
			}
			s.lines <- l
		}
	}()
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *server) send(id int, method string, params any) {
	_, _ = s.in.Write(append(protocol.MustMarshal(map[string]any{"kind": "request", "request_id": id, "method": method, "params": params}), '\n'))
}

// until reads lines up to one that f takes; false when the server ended, or nothing came in time.
func (s *server) until(limit time.Duration, f func(wireLine) bool) bool {
	deadline := time.After(limit)
	for {
		select {
		case l, ok := <-s.lines:
			if !ok {
				return false
			}
			s.seen = append(s.seen, l)
			if f(l) {
				return true
			}
		case <-deadline:
			return false
		}
	}
}

// reply waits for the answer to a request.
func (s *server) reply(id int) (wireLine, bool) {
	var got wireLine
	ok := s.until(30*time.Second, func(l wireLine) bool {
		got = l
		return l.Kind == "response" && l.RequestID == id
	})
	return got, ok
}

func (s *server) kill() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	for l := range s.lines {
		s.seen = append(s.seen, l)
	}
	_ = s.cmd.Wait()
}

// end closes the input and waits for a clean exit.
func (s *server) end() error {
	_ = s.in.Close()
	for l := range s.lines {
		s.seen = append(s.seen, l)
	}
	return s.cmd.Wait()
}

// chaosRoot makes a data root whose model is the script, and a workspace.
func chaosRoot(t *testing.T, script string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"script.json": script, "ws/a.txt": "hello\n",
		"settings.json": fmt.Sprintf(`{"provider":"s","approvalMode":"full","providers":{"s":{"type":"script","model":"script","script":%q}}}`, filepath.Join(root, "script.json")),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// killPoints are where a write may be cut off by name; "" is a random moment instead.
var killPoints = []string{"before-begin", "after-insert", "before-commit", "after-commit", "before-ack"}

// TestChaosKillAtAnyMomentLosesNothing kills a server in streaming and tool turns, at random moments and at named points of a write, and
// goes on with the same session in the next: everything received is in the log as it was received, each turn ends once, and the
// scripted model, which refuses a broken history, accepts every request. `make chaos` repeats it to 200 kills.
func TestChaosKillAtAnyMomentLosesNothing(t *testing.T) {
	root := chaosRoot(t, chaosScript())
	var id string
	told := witness{received: map[session.Seq]string{}}
	const rounds = 20
	for round := range rounds {
		kill := ""
		if round%4 == 3 {
			kill = fmt.Sprintf("%s:%d", killPoints[rand.IntN(len(killPoints))], 1+rand.IntN(12))
		}
		args := []string{}
		if id != "" {
			args = []string{"--session", id}
		}
		s := serve(t, root, kill, args...)
		s.send(1, "initialize", map[string]any{"client_capabilities": []string{}})
		l, ok := s.reply(1)
		if !ok && kill == "" {
			t.Fatalf("round %d: initialize was not answered", round)
		}
		var r struct {
			ID string `json:"session_id"`
		}
		if err := json.Unmarshal(l.Result, &r); ok && err != nil {
			t.Fatal(err)
		}
		params := map[string]any{"input": []string{"use a tool", "just talk"}[rand.IntN(2)]}
		if rand.IntN(3) == 0 && id != "" {
			params = map[string]any{"resume": true}
		}
		s.send(2, "session/prompt", params)
		moment := time.Duration(rand.IntN(120)) * time.Millisecond
		if kill != "" {
			moment = 2 * time.Second
		}
		s.until(moment, func(l wireLine) bool {
			return l.Kind == "response" && l.RequestID == 2 && kill == "" && rand.IntN(2) == 0
		})
		s.kill()
		told.take(s.seen)
		if len(told.received) > 0 && id == "" { // a draft that was shown nothing is not kept
			id = r.ID
		}
	}

	s := serve(t, root, "", "--session", id)
	s.send(1, "initialize", map[string]any{})
	if _, ok := s.reply(1); !ok {
		t.Fatal("the last server does not answer")
	}
	s.send(2, "session/prompt", map[string]any{"input": "just talk"})
	l, ok := s.reply(2)
	if !ok || !strings.Contains(string(l.Result), `"outcome":"completed"`) {
		t.Fatalf("the session is not usable after %d kills: %s %s", rounds, l.Result, l.Error)
	}
	if err := s.end(); err != nil {
		t.Errorf("last server: %v", err)
	}
	told.take(s.seen)
	checkChaos(t, root, session.SessionID(id), &told)
}

// witness is what a client was told of a session by one process after the other.
type witness struct {
	received map[session.Seq]string // durable events by cursor, of the conversation and of tasks
	shown    []string               // text, in one piece for each turn and process
}

// take notes what one process told.
func (w *witness) take(lines []wireLine) {
	texts := map[session.TurnID]string{}
	for _, l := range lines {
		if l.Kind != "event" {
			continue
		}
		if l.Durability == "durable" {
			w.received[max(l.Cursor, l.TaskCursor)] = string(l.Event)
		}
		var e struct {
			Type string         `json:"type"`
			Turn session.TurnID `json:"turn_id"`
			Text string         `json:"text"`
		}
		if json.Unmarshal(l.Event, &e) == nil && e.Type == "assistant_delta" {
			texts[e.Turn] += e.Text
		}
	}
	for _, s := range texts {
		w.shown = append(w.shown, s)
	}
}

// checkChaos compares the log of a session whose turns have ended with what was told of it, and returns it.
func checkChaos(t *testing.T, root string, id session.SessionID, told *witness) []session.Entry {
	t.Helper()
	store, err := openStore(filepath.Join(root, "sessions", "rind.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	if h, err := store.Health(ctx); err != nil || h.Integrity != "ok" {
		t.Errorf("integrity: %s, %v", h.Integrity, err)
	}
	es, err := store.Read(ctx, id, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.SoundLog(es); err != nil {
		t.Error(err)
	}
	var all strings.Builder
	kept := map[session.Seq]string{}
	for i := range es {
		kept[es[i].Seq] = string(es[i].Event)
		switch b, _ := protocol.Decode(&es[i]); b := b.(type) {
		case *protocol.AssistantDelta:
			all.WriteString(b.Text)
		case *protocol.TurnFailed:
			if b.ErrorType == protocol.FailRejected {
				t.Errorf("the model refused a history: %s", b.Error)
			}
		}
	}
	for cursor, event := range told.received {
		if kept[cursor] != event {
			t.Errorf("event %d was received as\n%s\nand is kept as\n%s", cursor, event, kept[cursor])
		}
	}
	for _, text := range told.shown {
		if !strings.Contains(all.String(), text) {
			t.Errorf("text was shown and is not kept: %q", text)
		}
	}
	if len(told.received) < 20 {
		t.Errorf("only %d durable events were received: the kills came too early to show anything", len(told.received))
	}
	return es
}

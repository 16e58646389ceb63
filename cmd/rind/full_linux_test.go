package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// smallDisk mounts a file system of so many bytes, to the end of the test.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("rind", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file until nothing more goes, and leaves so many bytes free.
func fill(t *testing.T, path string, free int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block, n := make([]byte, 4096), int64(0)
	for {
		w, err := f.Write(block)
		n += int64(w)
		if err != nil {
			break
		}
	}
	if err := f.Truncate(max(0, n-free)); err != nil {
		t.Fatal(err)
	}
}

// TestADiskThatFillsUpInTheMiddleOfATurnLosesNothingAndIsGoneOnFrom lets turns write until the file system of the data root is full, several
// times over. The turn fails with a word about the disk, nothing was told that is not kept, what is stored can still be read, and the same
// process goes on as soon as there is room; a process that starts on the full disk answers too.
func TestADiskThatFillsUpInTheMiddleOfATurnLosesNothingAndIsGoneOnFrom(t *testing.T) {
	root := smallDisk(t, 8<<20)
	ballast := filepath.Join(root, "ballast")
	text := strings.Repeat("This is one of the sentences that fill the disk, and it is told in pieces. ", 700)
	fillRoot(t, root, fmt.Sprintf(`{"turns":[{"steps":[{"repeat":{"times":1000,"steps":[{"text":%q,"chunk":1500},{"finish":"stop"}]}}]}]}`, text))

	s := serve(t, root, "")
	id := 0
	call := func(method string, params any) wireLine {
		t.Helper()
		id++
		s.send(id, method, params)
		l, ok := s.reply(id)
		if !ok {
			t.Fatalf("%s was not answered", method)
		}
		return l
	}
	prompt := func() (outcome, message string) {
		t.Helper()
		l := call("session/prompt", map[string]any{"input": "talk"})
		var fault struct {
			Message string `json:"message"`
		}
		if l.Error != nil {
			if err := json.Unmarshal(l.Error, &fault); err != nil {
				t.Fatal(err)
			}
			return "refused", fault.Message
		}
		r := struct {
			Outcome string `json:"outcome"`
			Error   any    `json:"error"`
		}{Error: &fault}
		if err := json.Unmarshal(l.Result, &r); err != nil {
			t.Fatal(err)
		}
		return r.Outcome, fault.Message
	}
	l := call("initialize", map[string]any{})
	var opened struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(l.Result, &opened); err != nil {
		t.Fatal(err)
	}
	if outcome, m := prompt(); outcome != "completed" {
		t.Fatalf("with room: %s %s", outcome, m)
	}
	for round := range 4 {
		fill(t, ballast, int64(50_000*(round+1)))
		failed := false
		for range 60 {
			outcome, message := prompt()
			if outcome == "completed" {
				continue
			}
			failed = true
			if !strings.Contains(message, "free some space") || strings.Contains(message, "\n") {
				t.Errorf("round %d: %s %q does not say what to do", round, outcome, message)
			}
			break
		}
		if !failed {
			t.Fatal("the disk did not become full")
		}
		if l := call("session/replay", map[string]any{"after_cursor": 0, "limit": 10}); l.Error != nil {
			t.Errorf("round %d: what is stored cannot be read on a full disk: %s", round, l.Error)
		}
		if outcome, message := prompt(); outcome == "completed" || !strings.Contains(message, "free some space") {
			t.Errorf("round %d: a second prompt on the full disk: %s %q", round, outcome, message)
		}
		other := serve(t, root, "", "--session", opened.ID)
		other.send(1, "initialize", map[string]any{})
		if l, ok := other.reply(1); !ok || l.Error != nil {
			t.Errorf("round %d: a process that starts on the full disk: %s", round, l.Error)
		}
		if err := other.end(); err != nil {
			t.Errorf("round %d: end of a process on the full disk: %v", round, err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(10 * time.Second)
		for outcome, message := "", ""; outcome != "completed"; {
			if outcome, message = prompt(); outcome != "completed" && time.Now().After(end) {
				t.Fatalf("round %d: once there is room: %s %s", round, outcome, message)
			}
		}
	}
	if err := s.end(); err != nil {
		t.Errorf("end: %v", err)
	}
	told := witness{received: map[session.Seq]string{}}
	told.take(s.seen)
	checkChaos(t, root, session.SessionID(opened.ID), &told)
}

// TestAShutdownThatCannotStoreTheEndOfATurnSaysSoAndExitsWith1: and the next process closes the turn.
func TestAShutdownThatCannotStoreTheEndOfATurnSaysSoAndExitsWith1(t *testing.T) {
	root := smallDisk(t, 4<<20)
	ballast := filepath.Join(root, "ballast")
	fillRoot(t, root, fmt.Sprintf(`{"turns":[{"steps":[{"repeat":{"times":100,"steps":[{"text":%q,"chunk":1500},{"finish":"stop"}]}}]}]}`, strings.Repeat("a sentence ", 5000)))
	s := serve(t, root, "")
	call := func(s *server, id int, method string, params any) wireLine {
		t.Helper()
		s.send(id, method, params)
		l, ok := s.reply(id)
		if !ok {
			t.Fatalf("%s was not answered", method)
		}
		return l
	}
	var opened struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(call(s, 1, "initialize", map[string]any{}).Result, &opened); err != nil {
		t.Fatal(err)
	}
	completed := func(l wireLine) bool { return strings.Contains(string(l.Result), `"outcome":"completed"`) }
	call(s, 2, "session/prompt", map[string]any{"input": "talk"})
	fill(t, ballast, 50_000)
	for id := 3; completed(call(s, id, "session/prompt", map[string]any{"input": "talk"})); id++ {
		if id == 60 {
			t.Fatal("the disk did not become full")
		}
	}
	if l := call(s, 100, "shutdown", nil); !strings.Contains(string(l.Error), `"type":"ShutdownFailed"`) {
		t.Errorf("shutdown was answered %s%s", l.Result, l.Error)
	}
	if exit, ok := errors.AsType[*exec.ExitError](s.end()); !ok || exit.ExitCode() != exitFailed {
		t.Errorf("it ended with %v", exit)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = serve(t, root, "", "--session", opened.ID)
	call(s, 1, "initialize", map[string]any{})
	if l := call(s, 2, "session/prompt", map[string]any{"input": "talk"}); !completed(l) {
		t.Errorf("the next process: %s%s", l.Result, l.Error)
	}
	if err := s.end(); err != nil {
		t.Errorf("its end: %v", err)
	}
}

// Section 2, row 13, and section 3: on a full disk nothing is started and the server is not ready, and what is stored can still be read. Once there is
// room it is ready again by itself, and takes what it is sent.
func TestAServerOnAFullDiskIsNotReadyUntilThereIsRoom(t *testing.T) {
	root := smallDisk(t, 3<<20)
	ballast := filepath.Join(root, "ballast")
	s := serveHTTP(t, root)
	defer func() { s.kill() }()
	const gone = `{"code":"UNAVAILABLE","message":"Storage is unavailable"}`
	c := s.id(201, "POST", "/v1/conversations", "")
	ended := s.start(c, "mock", "")
	s.until(ended, "succeeded")
	for round := range 3 {
		s.text(200, "GET", "/readyz", "")
		fill(t, ballast, 0)
		for n := 0; ; n++ { // until the log, which has room within itself, is full too
			if status, err := s.ask("POST", "/v1/conversations", "", nil); err != nil || status != 201 && status != 503 || n == 2000 {
				t.Fatalf("round %d: POST number %d: %d, %v", round, n, status, err)
			} else if status == 503 {
				break
			}
		}
		for range 3 {
			for _, ask := range [][]string{{"GET", "/readyz"}, {"POST", "/v1/conversations"}} {
				if text := s.text(503, ask[0], ask[1], ""); text != gone {
					t.Errorf("round %d: %s: %s", round, ask, text)
				}
			}
		}
		s.text(200, "GET", "/healthz", "")
		s.text(200, "GET", "/v1/executions/"+ended+"/events", "")
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		s.text(200, "GET", "/readyz", "")
		s.id(201, "POST", "/v1/conversations", "")
		more := s.start(c, "mock", "")
		s.until(more, "succeeded")
	}
}

// fillRoot makes root a data root whose model is the script, and a workspace in it.
func fillRoot(t *testing.T, root, script string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(root, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	play := filepath.Join(root, "script.json")
	for name, text := range map[string]string{
		"script.json": script, "ws/a.txt": "hello\n",
		"settings.json": string(protocol.MustMarshal(map[string]any{
			"provider": "s", "providers": map[string]any{"s": map[string]any{"type": "script", "model": "script", "script": play, "contextWindow": 10_000_000}},
		})),
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// acpPatience is how long a line that must come may take on a machine that has much else to do.
const acpPatience = 2 * time.Minute

// editor is what an ACP client is to us: a process of its own, driven by lines over pipes.
type editor struct {
	*testkit.Process
	t    *testing.T
	next int
}

// acpLine is a line of the agent.
type acpLine struct {
	raw     string
	JSONRPC string
	ID      json.RawMessage
	Method  string
	Params  struct {
		SessionID string
		Update    acpUpdate
		ToolCall  struct{ ToolCallID string }
		Options   []struct{ OptionID, Kind string }
		Meta      map[string]string `json:"_meta"`
	}
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// acpUpdate is the part of a session/update that tests look at.
type acpUpdate struct {
	SessionUpdate, ToolCallID, Status, Title string
	Content                                  json.RawMessage
}

func (u *acpUpdate) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(u.Content, &c)
	return c.Text
}

// playing makes a data folder whose model is a script, and a workspace.
func playing(t *testing.T, script string) (root, ws string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	write(t, path, script)
	return dataAndWorkspace(t, fmt.Sprintf(`{"provider":"play","providers":{"play":{"type":"script","model":"scripted","script":%q}}}`, path))
}

// launched starts the program with a command line, on a data folder and in a workspace; env is added to what it needs.
func launched(t *testing.T, root, ws string, env []string, args ...string) *testkit.Process {
	t.Helper()
	path, own := program(t)
	all := []string{"RIND_HOME=" + root, "HOME=" + filepath.Dir(root), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	return testkit.Start(t, testkit.ProcessOptions{Dir: ws, Env: append(append(all, own...), env...)}, path, args...)
}

// openEditor starts rind acp and initializes it.
func openEditor(t *testing.T, root, ws string, args ...string) *editor {
	t.Helper()
	e := &editor{Process: launched(t, root, ws, nil, append([]string{"acp"}, args...)...), t: t}
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	return e
}

func (e *editor) send(message map[string]any) {
	e.t.Helper()
	message["jsonrpc"] = "2.0"
	line, err := json.Marshal(message)
	if err == nil {
		err = e.WriteLine(string(line))
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// ask sends a request and returns its id.
func (e *editor) ask(method string, params any) string {
	e.t.Helper()
	e.next++
	e.send(map[string]any{"id": e.next, "method": method, "params": params})
	return fmt.Sprint(e.next)
}

func (e *editor) tell(method string, params any) {
	e.t.Helper()
	e.send(map[string]any{"method": method, "params": params})
}

// until returns the next line that match takes, and those before it. Anything that is no JSON-RPC 2.0 object fails the test.
func (e *editor) until(what string, match func(l *acpLine) bool) (found *acpLine, before []*acpLine) {
	e.t.Helper()
	end := time.Now().Add(acpPatience)
	for {
		raw, err := e.ReadLine(time.Until(end))
		if err != nil {
			var heard []string
			for _, l := range before {
				heard = append(heard, l.raw)
			}
			e.t.Fatalf("%s: %v; heard:\n%s\nstandard error: %s", what, err, strings.Join(heard, "\n"), e.Stderr())
		}
		l := readACP(e.t, raw)
		if match(l) {
			return l, before
		}
		before = append(before, l)
	}
}

func readACP(t *testing.T, raw string) *acpLine {
	t.Helper()
	l := &acpLine{raw: raw}
	if err := json.Unmarshal([]byte(raw), l); err != nil || l.JSONRPC != "2.0" {
		t.Fatalf("a line that is not the protocol's: %.300q (%v)", raw, err)
	}
	return l
}

// answer waits for the answer to a request.
func (e *editor) answer(id string) (*acpLine, []*acpLine) {
	e.t.Helper()
	return e.until("the answer to request "+id, func(l *acpLine) bool { return l.Method == "" && string(l.ID) == id })
}

// call is ask and answer; an error fails the test.
func (e *editor) call(method string, params any) (*acpLine, []*acpLine) {
	e.t.Helper()
	l, before := e.answer(e.ask(method, params))
	if l.Error != nil {
		e.t.Fatalf("%s: %s", method, l.raw)
	}
	return l, before
}

// newSession makes a session in a folder.
func (e *editor) newSession(cwd string) string {
	e.t.Helper()
	l, _ := e.call("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}})
	var r struct{ SessionID string }
	if json.Unmarshal(l.Result, &r) != nil || r.SessionID == "" {
		e.t.Fatalf("session/new: %s", l.raw)
	}
	return r.SessionID
}

// load loads a session and returns the answer and what was told before it.
func (e *editor) load(id, cwd string) (*acpLine, []*acpLine) {
	e.t.Helper()
	return e.call("session/load", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}})
}

// promptOf are the params of a prompt that says one thing.
func promptOf(id, text string) map[string]any {
	return map[string]any{"sessionId": id, "prompt": []any{map[string]any{"type": "text", "text": text}}}
}

// permission waits until the agent asks for consent.
func (e *editor) permission() (*acpLine, []*acpLine) {
	e.t.Helper()
	return e.until("a request for permission", func(l *acpLine) bool { return l.Method == "session/request_permission" })
}

func (e *editor) choose(asked *acpLine, option string) {
	e.t.Helper()
	e.send(map[string]any{"id": asked.ID, "result": map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}}})
}

// leave closes the input, and checks that the process ends well and that all it still said is the protocol's.
func (e *editor) leave() []*acpLine {
	e.t.Helper()
	e.CloseStdin()
	var lines []*acpLine
	for _, raw := range e.Rest(acpPatience) {
		lines = append(lines, readACP(e.t, raw))
	}
	if code := e.Wait(acpPatience); code != exitOK {
		e.t.Errorf("exit code %d; standard error: %s", code, e.Stderr())
	}
	return lines
}

func acpStop(l *acpLine) string {
	var r struct{ StopReason string }
	_ = json.Unmarshal(l.Result, &r)
	return r.StopReason
}

// acpSaid adds up the text of one kind of chunk.
func acpSaid(lines []*acpLine, kind string) string {
	var text strings.Builder
	for _, l := range lines {
		if u := &l.Params.Update; u.SessionUpdate == kind {
			text.WriteString(u.text())
		}
	}
	return text.String()
}

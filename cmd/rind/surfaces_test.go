//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol/portable"
)

// surface is a process of the program that a test talks to in lines.
type surface struct {
	*testkit.Process
	t    *testing.T
	next int
	told []wireText // event lines, in order
}

// wireText is a line of rind v2.
type wireText struct {
	Kind      string          `json:"kind"`
	Method    string          `json:"method"`
	RequestID int             `json:"request_id"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Execution string          `json:"execution_id"`
	Turn      string          `json:"turn_id"`
	Event     json.RawMessage `json:"event"`
}

// take reads lines up to one that f takes.
func (s *surface) take(f func(l *wireText) bool) *wireText {
	s.t.Helper()
	var l wireText
	s.Until(30*time.Second, func(text string) bool {
		l = wireText{}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			s.t.Fatalf("no line: %s", text)
		}
		if l.Kind == "event" {
			s.told = append(s.told, l)
		}
		return f(&l)
	})
	return &l
}

// call asks and returns the result.
func (s *surface) call(method string, params any) map[string]json.RawMessage {
	s.t.Helper()
	s.next++
	line, err := json.Marshal(map[string]any{"kind": "request", "request_id": s.next, "method": method, "params": params})
	if err == nil {
		err = s.WriteLine(string(line))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	l := s.take(func(l *wireText) bool { return l.Kind == "response" && l.RequestID == s.next })
	m := map[string]json.RawMessage{}
	if l.Error != nil || json.Unmarshal(l.Result, &m) != nil {
		s.t.Fatalf("%s: %s%s", method, l.Error, l.Result)
	}
	return m
}

func plainText(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// seek waits for an event line that f takes, which may have come while an answer was waited for.
func (s *surface) seek(f func(l *wireText) bool) *wireText {
	s.t.Helper()
	for i := range s.told {
		if f(&s.told[i]) {
			return &s.told[i]
		}
	}
	return s.take(f)
}

// follow begins to follow an execution and returns its events up to the first of a type.
func (s *surface) follow(id, until string) []portable.Event {
	s.t.Helper()
	var all []portable.Event
	if err := json.Unmarshal(s.call("rind/execution/events", map[string]any{"execution_id": id, "follow": true})["events"], &all); err != nil {
		s.t.Fatal(err)
	}
	return s.more(id, all, until)
}

// more goes on with what is followed.
func (s *surface) more(id string, all []portable.Event, until string) []portable.Event {
	s.t.Helper()
	for len(all) == 0 || all[len(all)-1].Type != until {
		var e portable.Event
		s.seek(func(l *wireText) bool {
			e = portable.Event{}
			return l.Method == "execution/event" && l.Execution == id && json.Unmarshal(l.Event, &e) == nil && e.Sequence == int64(len(all)+1)
		})
		all = append(all, e)
	}
	return all
}

// webSide is the HTTP side.
type webSide struct {
	t           *testing.T
	base, token string
}

func (w *webSide) do(method, path, body, accept string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func (w *webSide) json(method, path, body string, to any) http.Header {
	w.t.Helper()
	resp := w.do(method, path, body, "")
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 || json.Unmarshal(text, to) != nil {
		w.t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
	}
	return resp.Header
}

func (w *webSide) events(id string) []portable.Event {
	w.t.Helper()
	var list portable.EventList
	w.json(http.MethodGet, "/v1/executions/"+id+"/events", "", &list)
	return list.Events
}

// stream reads an event stream to its end.
func (w *webSide) stream(id string) <-chan []portable.Event {
	resp := w.do(http.MethodGet, "/v1/executions/"+id+"/events", "", "text/event-stream")
	out := make(chan []portable.Event, 1)
	go func() { // ends with the stream
		defer resp.Body.Close()
		var all []portable.Event
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e portable.Event
				if json.Unmarshal([]byte(data), &e) == nil {
					all = append(all, e)
				}
			}
		}
		out <- all
	}()
	return out
}

func sameEvents(t *testing.T, name string, want, got []portable.Event) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s: %d events, want the %d that others have", name, len(got), len(want))
	}
}

// N18, N19, N20 with four processes on one data folder: whatever started an execution, everything else sees the same of it, and may answer and
// cancel.
func TestEditorsAndHTTPSeeAnswerAndCancelTheSameExecutions(t *testing.T) {
	root := chaosRoot(t, `{"steps":[
		{"text":"I write it. ","chunk":4,"delayMs":2},{"call":{"id":"w1","name":"write_file","arguments":{"path":"new.txt","content":"one\n"}}},{"finish":"tool_calls"},
		{"text":"It is written.","chunk":3,"delayMs":2}]}`)
	settings := fmt.Sprintf(`{"provider":"s","providers":{"s":{"type":"script","model":"script","script":%q}}}`, filepath.Join(root, "script.json"))
	if err := os.WriteFile(filepath.Join(root, "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	o := testkit.ProcessOptions{Dir: filepath.Join(root, "ws"), Env: []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "PATH=" + os.Getenv("PATH")}}
	open := func() *surface {
		s := &surface{Process: testkit.Start(t, o, os.Args[0], "app-server"), t: t}
		s.call("initialize", map[string]any{"client_capabilities": []string{"rind/approvals"}})
		return s
	}
	a, b := open(), open()
	server := testkit.Start(t, o, os.Args[0], "serve", "--port", "0")
	base := strings.TrimPrefix(server.Line(30*time.Second), "rind HTTP listening on ")
	token, err := os.ReadFile(filepath.Join(root, "http-token"))
	if err != nil {
		t.Fatal(err)
	}
	w := &webSide{t, base, strings.TrimSpace(string(token))}
	defer http.DefaultClient.CloseIdleConnections()

	// Started on lines; streamed over HTTP from another process; answered from a second editor.
	made := a.call("rind/conversation/create", map[string]any{})
	var conv portable.Conversation
	if err := json.Unmarshal(made["conversation"], &conv); err != nil {
		t.Fatal(err)
	}
	id := plainText(a.call("rind/execution/start", map[string]any{"conversationId": conv.ID, "providerId": "agent", "input": "write it"})["id"])
	sse := w.stream(id)
	fromB := b.follow(id, "action.required")
	var ask portable.Action
	if err := json.Unmarshal(fromB[len(fromB)-1].Data, &ask); err != nil {
		t.Fatal(err)
	}
	fromA := a.follow(id, "action.required")
	b.call("rind/action/respond", map[string]any{"execution_id": id, "action_id": ask.ID, "response": map[string]any{"approved": true}})
	fromB, fromA = b.more(id, fromB, "run.completed"), a.more(id, fromA, "run.completed")
	all := w.events(id)
	sameEvents(t, "follow where it runs", all, fromA)
	sameEvents(t, "follow from another editor", all, fromB)
	sameEvents(t, "event stream", all, <-sse)
	var x portable.Execution
	w.json(http.MethodGet, "/v1/executions/"+id, "", &x)
	replay := b.call("session/replay", map[string]any{"session_id": plainText(made["session_id"]), "after_cursor": 0})
	for _, part := range []string{`"type":"approval_requested","`, `"outcome":"allowed"`, `"content":"I write it. "`, `"content":"It is written."`, `"type":"turn_completed"`, strings.TrimPrefix(id, "exec_")} {
		if !strings.Contains(string(replay["events"]), part) {
			t.Errorf("the replay lacks %s", part)
		}
	}
	if x.State != "succeeded" || *x.FinalOutput != "I write it. \n\nIt is written." {
		t.Errorf("over HTTP it is %+v", x)
	}

	// Cancelled over HTTP while the editor's process runs it.
	id = plainText(a.call("rind/execution/start", map[string]any{"conversationId": conv.ID, "providerId": "mock", "input": "x", "config": map[string]any{"requestInput": true}})["id"])
	fromA = a.follow(id, "action.required")
	w.json(http.MethodPost, "/v1/executions/"+id+":cancel", `{"reason":"not needed"}`, &x)
	fromA = a.more(id, fromA, "run.cancelled")
	sameEvents(t, "the cancelled one", w.events(id), fromA)
	if x.State != "cancelled" || string(fromA[len(fromA)-1].Data) != `{"reason":"not needed"}` {
		t.Errorf("cancelled: %+v, %s", x, fromA[len(fromA)-1].Data)
	}

	// Started over HTTP; watched and answered by an editor in its own words.
	if err := os.Remove(filepath.Join(root, "ws", "new.txt")); err != nil {
		t.Fatal(err)
	}
	w.json(http.MethodPost, "/v1/conversations", "", &conv)
	sid := w.json(http.MethodGet, "/v1/conversations/"+conv.ID, "", &conv).Get("Rind-Session-Id")
	a.call("session/subscribe", map[string]any{"session_id": sid})
	w.json(http.MethodPost, "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"agent","input":"write it"}`, conv.ID), &x)
	sse = w.stream(x.ID)
	l := a.seek(func(l *wireText) bool {
		return l.Turn == strings.TrimPrefix(x.ID, "exec_") && strings.Contains(string(l.Event), `"type":"approval_requested"`)
	})
	var asked struct {
		ID string `json:"action_id"`
	}
	if err := json.Unmarshal(l.Event, &asked); err != nil {
		t.Fatal(err)
	}
	a.call("rind/approval/respond", map[string]any{"session_id": sid, "action_id": asked.ID, "option_id": "allow_once"})
	a.seek(func(l *wireText) bool {
		return l.Turn == strings.TrimPrefix(x.ID, "exec_") && strings.Contains(string(l.Event), `"type":"turn_completed"`)
	})
	sameEvents(t, "stream of what an editor answered", w.events(x.ID), <-sse)
	sameEvents(t, "and its follow", w.events(x.ID), b.follow(x.ID, "run.completed"))
	if text, err := os.ReadFile(filepath.Join(root, "ws", "new.txt")); string(text) != "one\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

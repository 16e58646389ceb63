package dispatcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var envelopes = map[string]rindv2.Envelope{"rind": rindv2.Rind, "jsonrpc": rindv2.JSONRPC}

// onBoth runs f in a bubble for each envelope.
func onBoth(t *testing.T, f func(t *testing.T, env rindv2.Envelope)) {
	t.Helper()
	for name, env := range envelopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, env) })
		})
	}
}

// models are what the script's provider lists.
var models = []session.ModelInfo{
	{Provider: "play", ID: "m-2", Name: "Second", API: "script"}, {Provider: "play", ID: "m-1", Name: "First", API: "script", Window: 100_000},
}

// tools are what scripts may call: look reads, touch needs consent and counts, ask asks a person, stay runs until it is cancelled.
type tools struct{ touched atomic.Int32 }

func (ts *tools) all() []session.Tool {
	return []session.Tool{
		&peers.Tool{Called: "look", Kind: "read", Reads: true, Does: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: "seen"}, nil
		}},
		&peers.Tool{Called: "touch", Kind: "edit", Does: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: fmt.Sprintf("touched %d", ts.touched.Add(1))}, nil
		}},
		peers.Asks("ask", protocol.Choice{Label: "red (Recommended)", Description: "warm"}, protocol.Choice{Label: "blue", Description: "cold"}),
		peers.Stays(),
	}
}

// process is one process of the runtime: sessions, a dispatcher and its connections, over a store others may share.
type process struct {
	*peers.Process
	tools   *tools
	shell   *shell // of a stage
	d       *dispatcher.RuntimeDispatcher
	clients []*client
}

// launch starts a process; id names its --session.
func launch(t peers.T, w *peers.World, instance, text string, id session.SessionID) *process {
	t.Helper()
	return launchWith(t, w, instance, text, id)
}

// launchWith is launch with further tools.
func launchWith(t peers.T, w *peers.World, instance, text string, id session.SessionID, more ...session.Tool) *process {
	t.Helper()
	return launchAround(t, w, instance, text, id, nil, more...)
}

// launchAround is launchWith on a store with which something goes wrong.
func launchAround(t peers.T, w *peers.World, instance, text string, id session.SessionID, around func(session.Store) session.Store, more ...session.Tool) *process {
	t.Helper()
	p := &process{tools: &tools{}}
	p.Process = w.Launch(t, instance, script.Must(text), peers.Setting{Listed: models, Around: around, Loop: func(*peers.Process) session.Loop {
		return session.Loop{Tools: append(p.tools.all(), more...)}
	}})
	p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Session: id})
	return p
}

// end closes the connections as a client does that goes away, and waits for what that ends.
func (p *process) end() {
	p.T.Helper()
	for _, c := range p.clients {
		c.hangUp()
	}
	p.End()
}

// kill is kill -9: nothing under way is stored. Its goroutines are ended so that the bubble can.
func (p *process) kill() {
	p.T.Helper()
	p.Store.Kill()
	p.end()
}

// line is a line of the server, read from either envelope into the words of rind v2.
type line struct {
	raw       string // as rind v2 writes it
	id        string // raw id of a response
	result    json.RawMessage
	err       *fault
	method    string // of an event
	seq       int64
	durable   bool
	session   string
	turn      string
	cursor    int64
	task      int64 // task_cursor
	eventType string
	event     json.RawMessage
	question  string          // raw id of a request of ours
	asks      json.RawMessage // its params
}

type fault struct {
	Type    string
	Message string
	Code    int `json:"-"` // of JSON-RPC
}

func (l *line) has(name string) bool { return l.eventType == name }

// text is a string field of the event or the result.
func (l *line) text(field string) string {
	from := l.event
	if from == nil {
		from = l.result
	}
	m := map[string]json.RawMessage{}
	_ = json.Unmarshal(from, &m)
	var s string
	_ = json.Unmarshal(m[field], &s)
	return s
}

// listOf is a list of strings of a result.
func listOf(t peers.T, l *line, field string) []string {
	t.Helper()
	m := map[string]json.RawMessage{}
	var list []string
	if json.Unmarshal(l.result, &m) != nil || json.Unmarshal(m[field], &list) != nil {
		t.Fatalf("%s is no list of texts: %s", field, l.raw)
	}
	return list
}

// members splits an object; it does not keep their order.
func members(b []byte) (map[string]json.RawMessage, error) {
	m := map[string]json.RawMessage{}
	err := json.Unmarshal(b, &m)
	return m, err
}

// toRind writes a JSON-RPC line as the rind v2 line it stands for (docs/protocol/jsonrpc.md), and returns the error code.
func toRind(b []byte) (_ []byte, code int, _ error) {
	m, err := members(b)
	if err != nil {
		return nil, 0, err
	}
	if string(m["jsonrpc"]) != `"2.0"` {
		return nil, 0, fmt.Errorf("no JSON-RPC 2.0 line: %s", b)
	}
	switch {
	case m["id"] != nil && m["method"] != nil: // a request of ours
		return []byte(fmt.Sprintf(`{"kind":"request","request_id":%s,"method":%s,"params":%s}`, m["id"], m["method"], m["params"])), 0, nil
	case m["result"] != nil:
		return []byte(fmt.Sprintf(`{"kind":"response","request_id":%s,"result":%s}`, m["id"], m["result"])), 0, nil
	case m["error"] != nil:
		var e struct {
			Code    int
			Message json.RawMessage
			Data    json.RawMessage
		}
		if err := json.Unmarshal(m["error"], &e); err != nil {
			return nil, 0, err
		}
		data, err := members(e.Data)
		if err != nil {
			return nil, 0, err
		}
		head := fmt.Sprintf(`{"type":%s`, data["type"])
		rest, ok := strings.CutPrefix(string(e.Data), head)
		if !ok {
			return nil, 0, fmt.Errorf("data of an error does not begin with its type: %s", e.Data)
		}
		return []byte(fmt.Sprintf(`{"kind":"response","request_id":%s,"error":%s,"message":%s%s}`, m["id"], head, e.Message, rest)), e.Code, nil
	}
	return []byte(fmt.Sprintf(`{"kind":"event","method":%s,%s`, m["method"], m["params"][1:])), 0, nil
}

func readLine(env rindv2.Envelope, b []byte) (*line, error) {
	code := 0
	if env == rindv2.JSONRPC {
		var err error
		if b, code, err = toRind(b); err != nil {
			return nil, err
		}
	}
	var w struct {
		Kind    string
		ID      json.RawMessage `json:"request_id"`
		Result  json.RawMessage
		Error   *fault
		Method  string
		Params  json.RawMessage
		Seq     int64  `json:"sequence"`
		Dur     string `json:"durability"`
		Session string `json:"session_id"`
		Turn    string `json:"turn_id"`
		Cursor  int64
		Task    int64 `json:"task_cursor"`
		Event   json.RawMessage
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("%w in %s", err, b)
	}
	l := &line{
		raw: string(b), result: w.Result, err: w.Error, method: w.Method, seq: w.Seq, durable: w.Dur == "durable",
		session: w.Session, turn: w.Turn, cursor: w.Cursor, task: w.Task, event: w.Event,
	}
	switch w.Kind {
	case "response":
		l.id = string(w.ID)
	case "request":
		l.method, l.question, l.asks = "", string(w.ID), w.Params
	}
	if l.err != nil {
		l.err.Code = code
	}
	l.eventType = l.text("type")
	if l.event == nil {
		l.eventType = ""
	}
	return l, nil
}

// client is one connection.
type client struct {
	*peers.Wire[*line]
	p    *process
	env  rindv2.Envelope
	next int
}

// connect opens a connection that reads what it is told.
func (p *process) connect(env rindv2.Envelope) *client { return p.dial(env, false) }

// connectDeaf opens a connection that reads nothing until it is to Hear.
func (p *process) connectDeaf(env rindv2.Envelope) *client { return p.dial(env, true) }

func (p *process) dial(env rindv2.Envelope, deaf bool) *client {
	p.T.Helper()
	serve := func(in io.Reader, out io.Writer) error {
		return p.d.Serve(context.Background(), in, out, dispatcher.Options{})
	}
	c := &client{p: p, env: env, Wire: peers.Dial(p.T, serve, func(b []byte) (*line, error) { return readLine(env, b) }, deaf)}
	p.clients = append(p.clients, c)
	return c
}

// settle waits until nothing moves any more, without letting time pass, and returns everything written so far.
func (c *client) settle() []*line {
	synctest.Wait()
	return c.Got()
}

// ask sends a request with an id given as JSON.
func (c *client) ask(id, method, params string) {
	if params == "" {
		params = "{}"
	}
	if c.env == rindv2.JSONRPC && method == rindv2.MethodAuthPrompt { // an answer to a request of ours
		c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, params))
		return
	}
	if c.env == rindv2.JSONRPC {
		c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", id, method, params))
		return
	}
	c.Send(fmt.Sprintf(`{"kind":"request","request_id":%s,"method":%q,"params":%s}`+"\n", id, method, params))
}

// send sends a request and returns its id.
func (c *client) send(method, params string) string {
	c.next++
	id := fmt.Sprint(c.next)
	c.ask(id, method, params)
	return id
}

// await returns the first line that matches, waiting for it.
func (c *client) await(what string, match func(*line) bool) *line {
	c.T.Helper()
	at, ok := c.Find(0, match)
	if !ok {
		c.T.Fatalf("%s did not come; lines:\n%s", what, c.dump())
	}
	return c.Got()[at]
}

func (c *client) dump() string {
	var b strings.Builder
	for _, l := range c.Got() {
		b.WriteString(l.raw)
		b.WriteByte('\n')
	}
	return b.String()
}

// response waits for the answer to a request.
func (c *client) response(id string) *line {
	c.T.Helper()
	return c.await("answer to "+id, func(l *line) bool { return l.id == id })
}

// event waits for the first event of a type.
func (c *client) event(name string) *line {
	c.T.Helper()
	return c.await("event "+name, func(l *line) bool { return l.has(name) })
}

// call sends a request and returns its result; an error fails the test.
func (c *client) call(method, params string) *line {
	c.T.Helper()
	l := c.response(c.send(method, params))
	if l.err != nil {
		c.T.Fatalf("%s %s: %+v", method, params, *l.err)
	}
	return l
}

// refused sends a request that must fail, and checks how.
func (c *client) refused(method, params, kind, message string) {
	c.T.Helper()
	l := c.response(c.send(method, params))
	if l.err == nil || l.err.Type != kind || l.err.Message != message {
		c.T.Errorf("%s %s: got %s, want %s %q", method, params, l.raw, kind, message)
	}
}

// hello initializes a connection of a newer client and returns its session.
func (c *client) hello() string {
	c.T.Helper()
	return c.call("initialize", `{"client_capabilities":["rind/approvals"]}`).text("session_id")
}

// hangUp closes the input, waits for the end of Serve and returns its error.
func (c *client) hangUp() error { return c.HangUp() }

// events are the event lines among lines.
func events(lines []*line) []*line {
	var out []*line
	for _, l := range lines {
		if l.method != "" {
			out = append(out, l)
		}
	}
	return out
}

// gapFree checks that the sequence of a connection counts from 1.
func gapFree(t peers.T, lines []*line) {
	t.Helper()
	for i, l := range events(lines) {
		if l.seq != int64(i+1) {
			t.Fatalf("event %d has sequence %d: %s", i+1, l.seq, l.raw)
		}
	}
}

// place is the index of a line.
func place(lines []*line, match func(*line) bool) int {
	for i, l := range lines {
		if match(l) {
			return i
		}
	}
	return -1
}

// told joins the text of assistant_delta events of a turn ("" for any).
func told(lines []*line, turn string) string {
	var b strings.Builder
	for _, l := range lines {
		if l.has("assistant_delta") && (turn == "" || l.turn == turn) {
			b.WriteString(l.text("text"))
		}
	}
	return b.String()
}

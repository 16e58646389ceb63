package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// models are what the script's provider lists.
var models = []session.ModelInfo{{Provider: "play", ID: "m-1", Name: "First", Efforts: []string{"low", "high"}}, {Provider: "play", ID: "m-2", Name: "Second"}}

// tools are what scripts may call: touch needs consent, changes a file and counts, ask asks a person, stay runs until it is cancelled.
func tools(touched *atomic.Int32) []session.Tool {
	children := proc.NewChildren(filepath.Join(os.TempDir(), "rind-no-children"))
	children.Refuse() // no process runs in a bubble: bash says that it did not start one
	return []session.Tool{
		files.ReadFile(), files.EditFile(nil), shell.Bash(shell.Config{Children: children}),
		&peers.Tool{Called: "touch", Kind: "edit", Does: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			before, after := "old", "new"
			ch := protocol.FileChange{FilePath: "/w/a.txt"}
			ch.More.OldText, ch.More.NewText = &before, &after
			return session.ToolResult{Data: fmt.Sprintf("touched %d", touched.Add(1)), Changes: []protocol.FileChange{ch}}, nil
		}},
		peers.Asks("ask_user_question", protocol.Choice{Label: "red"}, protocol.Choice{Label: "blue"}),
		peers.Asks("ask_open"),
		&peers.Tool{Called: "update_plan", Kind: "think", Does: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: "ok"}, nil
		}},
		&peers.Tool{Called: "where", Kind: "read", Reads: true, Does: func(_ context.Context, c session.ToolCall, _ session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: strings.Join(c.Roots, " ")}, nil
		}},
		peers.Stays(),
	}
}

// process is one process of the runtime, over a store others may share.
type process struct {
	*peers.Process
	touched atomic.Int32
	d       *acp.Dispatcher
	clients []*client
}

func launch(t *testing.T, w *peers.World, instance, text string) *process {
	t.Helper()
	return launchWith(t, w, instance, text, acp.Config{})
}

// launchWith is launch with more of a configuration than sessions and version.
func launchWith(t *testing.T, w *peers.World, instance, text string, cfg acp.Config) *process {
	t.Helper()
	return launchModels(t, w, instance, text, cfg, func(m peers.Scripted) session.Models { return m })
}

// launchModels is launchWith with other models in the place of the script.
func launchModels(t *testing.T, w *peers.World, instance, text string, cfg acp.Config, with func(peers.Scripted) session.Models) *process {
	t.Helper()
	p, play := &process{}, script.Must(text)
	p.Process = w.Launch(t, instance, play, peers.Setting{
		Models: with(peers.Scripted{Script: play, Listed: models}),
		Loop:   func(*peers.Process) session.Loop { return session.Loop{Tools: tools(&p.touched)} },
	})
	cfg.Sessions, cfg.Version = p.All, "0.0.0"
	p.d = acp.New(cfg)
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

// kill is kill -9: nothing under way is stored.
func (p *process) kill() {
	p.T.Helper()
	p.Store.Kill()
	p.end()
}

// heard is a line of the agent.
type heard struct {
	raw    string
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		Update    update
		ToolCall  struct{ ToolCallID string }
		RequestID json.RawMessage
		Meta      map[string]string `json:"_meta"`
	}
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

type update struct {
	SessionUpdate string
	MessageID     string
	ToolCallID    string
	Status        string
	CurrentModeID string
	Content       json.RawMessage
}

func (u *update) text() string {
	var c struct{ Text string }
	_ = json.Unmarshal(u.Content, &c)
	return c.Text
}

// client is the editor's end of a connection.
type client struct {
	*peers.Wire[*heard]
	at   int // lines the test has looked at
	next int
}

func (p *process) connect() *client {
	p.T.Helper()
	serve := func(in io.Reader, out io.Writer) error { return p.d.Serve(context.Background(), in, out) }
	c := &client{Wire: peers.Dial(p.T, serve, hear, false)}
	p.clients = append(p.clients, c)
	return c
}

func hear(line []byte) (*heard, error) {
	h := &heard{raw: string(line)}
	return h, json.Unmarshal(line, h)
}

// start is connect and initialize.
func (p *process) start(caps string) *client {
	p.T.Helper()
	c := p.connect()
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+caps+`}`)
	return c
}

func (c *client) hangUp() { _ = c.HangUp() }

func (c *client) send(line string) { c.Send(line + "\n") }

// ask sends a request and returns its id.
func (c *client) ask(method, params string) string {
	c.T.Helper()
	c.next++
	id := fmt.Sprint(c.next)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

func (c *client) tell(method, params string) {
	c.T.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// until returns the next line that matches, and all that were passed over.
func (c *client) until(what string, match func(h *heard) bool) (*heard, []*heard) {
	c.T.Helper()
	at, ok := c.Find(c.at, match)
	if !ok {
		c.T.Fatalf("%s never came; heard:\n%s", what, c.heardSince(c.at))
	}
	lines := c.Got()
	passed := lines[c.at:at]
	c.at = at + 1
	return lines[at], passed
}

func (c *client) heardSince(from int) string {
	var out []string
	for _, h := range c.Got()[from:] {
		out = append(out, h.raw)
	}
	return strings.Join(out, "\n")
}

// answer waits for the answer to a request.
func (c *client) answer(id string) (*heard, []*heard) {
	c.T.Helper()
	return c.until("answer "+id, func(h *heard) bool { return h.Method == "" && string(h.ID) == id })
}

// call is ask and answer; an error fails the test.
func (c *client) call(method, params string) (*heard, []*heard) {
	c.T.Helper()
	h, passed := c.answer(c.ask(method, params))
	if h.Error != nil {
		c.T.Fatalf("%s: %s", method, h.raw)
	}
	return h, passed
}

// refused is call for what must be answered with a code.
func (c *client) refused(code int, method, params string) {
	c.T.Helper()
	h, _ := c.answer(c.ask(method, params))
	if h.Error == nil || h.Error.Code != code {
		c.T.Errorf("%s %s: %s, want %d", method, params, h.raw, code)
	}
}

// fresh makes a session and returns its id.
func (c *client) fresh() string {
	c.T.Helper()
	h, passed := c.call("session/new", `{"cwd":"/w","mcpServers":[]}`)
	var r struct{ SessionID string }
	_ = json.Unmarshal(h.Result, &r)
	for _, p := range passed {
		if p.Params.SessionID == r.SessionID {
			c.T.Errorf("before its answer: %s", p.raw)
		}
	}
	return r.SessionID
}

func prompting(id, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)
}

func named(id string) string { return fmt.Sprintf(`{"sessionId":%q}`, id) }

func loading(id string) string { return fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[]}`, id) }

// permission waits for a request for consent.
func (c *client) permission() (*heard, []*heard) {
	c.T.Helper()
	return c.until("permission", func(h *heard) bool { return h.Method == "session/request_permission" })
}

func (c *client) choose(h *heard, option string) {
	c.T.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, h.ID, option))
}

func stopOf(h *heard) string {
	var r struct{ StopReason string }
	_ = json.Unmarshal(h.Result, &r)
	return r.StopReason
}

// said adds up the text of one kind of chunk.
func said(lines []*heard, kind string) string {
	out := ""
	for _, h := range lines {
		if h.Params.Update.SessionUpdate == kind {
			out += h.Params.Update.text()
		}
	}
	return out
}

// calls is the last status of each call told of.
func calls(lines []*heard) map[string]string {
	out := map[string]string{}
	for _, h := range lines {
		if u := h.Params.Update; u.Status != "" && u.ToolCallID != "" {
			out[u.ToolCallID] = u.Status
		}
	}
	return out
}

// config is what a test adds to.
func config() acp.Config { return acp.Config{} }

package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come, in the time of its bubble: nothing real passes.
const patience = 30 * time.Second

// scripted makes a script the only model, under two names.
type scripted struct{ *script.Script }

func (m scripted) Default() session.Selection {
	return session.Selection{Provider: "play", Model: "m-1", Mode: "ask"}
}

func (m scripted) Select(_ context.Context, sel session.Selection) (session.Selected, error) {
	return session.Selected{Model: m.Script, Info: session.ModelInfo{Provider: "play", ID: sel.Model, Window: 100_000}}, nil
}

func (m scripted) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return []session.ModelInfo{{Provider: "play", ID: "m-1", Name: "First", Efforts: []string{"low", "high"}}, {Provider: "play", ID: "m-2", Name: "Second"}}, "", nil
}

type tool struct {
	spec session.ToolSpec
	run  func(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error)
}

func (t *tool) Spec() session.ToolSpec { return t.spec }
func (t *tool) Run(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error) {
	return t.run(ctx, c, p)
}

// tools are what scripts may call: touch needs consent, changes a file and counts, ask asks a person, stay runs until it is cancelled.
func tools(touched *atomic.Int32) []session.Tool {
	object := json.RawMessage(`{"type":"object"}`)
	children := proc.NewChildren(filepath.Join(os.TempDir(), "rind-no-children"))
	children.Refuse() // no process runs in a bubble: bash says that it did not start one
	return []session.Tool{
		files.ReadFile(), files.EditFile(nil), shell.Bash(shell.Config{Children: children}),
		&tool{session.ToolSpec{Name: "touch", Description: "d", Kind: "edit", Schema: object}, func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			before, after := "old", "new"
			ch := protocol.FileChange{FilePath: "/w/a.txt"}
			ch.More.OldText, ch.More.NewText = &before, &after
			return session.ToolResult{Data: fmt.Sprintf("touched %d", touched.Add(1)), Changes: []protocol.FileChange{ch}}, nil
		}},
		&tool{session.ToolSpec{Name: "ask_user_question", Description: "d", Kind: "think", Schema: object}, func(ctx context.Context, _ session.ToolCall, p session.Progress) (session.ToolResult, error) {
			a, err := p.Ask(ctx, "Which colour?", []protocol.Choice{{Label: "red"}, {Label: "blue"}})
			return session.ToolResult{Data: map[string]string{"answer": a}}, err
		}},
		&tool{session.ToolSpec{Name: "update_plan", Description: "d", Kind: "think", Schema: object}, func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: "ok"}, nil
		}},
		&tool{session.ToolSpec{Name: "where", Description: "d", Kind: "read", ReadOnly: true, Schema: object}, func(_ context.Context, c session.ToolCall, _ session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: strings.Join(c.Roots, " ")}, nil
		}},
		&tool{session.ToolSpec{Name: "stay", Description: "d", Kind: "think", Schema: object}, func(ctx context.Context, _ session.ToolCall, _ session.Progress) (session.ToolResult, error) {
			<-ctx.Done()
			return session.ToolResult{}, context.Cause(ctx)
		}},
	}
}

// process is one process of the runtime, over a store others may share.
type process struct {
	t       *testing.T
	play    *script.Script
	touched atomic.Int32
	store   *memory.Store
	all     *session.Sessions
	d       *acp.Dispatcher
	clients []*client
}

// world is what the processes of a test share.
type world struct {
	*memory.Backing
	ids testkit.IDs
}

func newWorld() *world { return &world{Backing: memory.NewBacking()} }

func (w *world) launch(t *testing.T, instance, text string) *process {
	t.Helper()
	return w.launchWith(t, instance, text, acp.Config{})
}

// launchWith is launch with more of a configuration than sessions and version.
func (w *world) launchWith(t *testing.T, instance, text string, cfg acp.Config) *process {
	t.Helper()
	return w.launchModels(t, instance, text, cfg, func(m scripted) session.Models { return m })
}

// launchModels is launchWith with other models in the place of the script.
func (w *world) launchModels(t *testing.T, instance, text string, cfg acp.Config, with func(scripted) session.Models) *process {
	t.Helper()
	p := &process{t: t, play: script.Must(text), store: w.Open(instance)}
	models := with(scripted{p.play})
	loop, err := session.NewLoop(session.Loop{Models: models, Tools: tools(&p.touched)})
	if err != nil {
		t.Fatal(err)
	}
	p.all = session.NewSessions(session.Config{Store: p.store, Agent: loop, Models: models, IDs: &w.ids})
	cfg.Sessions, cfg.Version = p.all, "0.0.0"
	p.d = acp.New(cfg)
	return p
}

// end closes the connections as a client does that goes away, and waits for what that ends.
func (p *process) end() {
	p.t.Helper()
	for _, c := range p.clients {
		c.hangUp()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.all.Shutdown(ctx); err != nil {
		p.t.Errorf("end of the process: %v", err)
	}
	_ = p.store.Close()
}

// kill is kill -9: nothing under way is stored.
func (p *process) kill() {
	p.t.Helper()
	p.store.Kill()
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
	t     *testing.T
	in    *io.PipeWriter
	ended chan struct{}

	mu    sync.Mutex
	lines []*heard
	more  chan struct{}
	gate  chan struct{} // full: nothing is read
	at    int           // lines the test has looked at
	next  int
}

func (p *process) connect() *client {
	p.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: p.t, in: inW, ended: make(chan struct{}), more: make(chan struct{}, 1), gate: make(chan struct{}, 1)}
	p.clients = append(p.clients, c)
	go func() {
		_ = p.d.Serve(context.Background(), inR, outW)
		_ = outW.Close()
		_ = inR.Close()
	}()
	go func() {
		defer close(c.ended)
		in := bufio.NewReaderSize(outR, 1<<20)
		for {
			c.gate <- struct{}{}
			<-c.gate
			b, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			h := &heard{raw: strings.TrimSuffix(string(b), "\n")}
			if err := json.Unmarshal(b, h); err != nil {
				c.t.Errorf("no JSON line: %s", b)
			}
			c.mu.Lock()
			c.lines = append(c.lines, h)
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
		}
	}()
	return c
}

// start is connect and initialize.
func (p *process) start(caps string) *client {
	p.t.Helper()
	c := p.connect()
	c.call("initialize", `{"protocolVersion":1,"clientCapabilities":`+caps+`}`)
	return c
}

func (c *client) hangUp() {
	_ = c.in.Close()
	<-c.ended
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("send %s: %v", line, err)
	}
}

// ask sends a request and returns its id.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	c.next++
	id := fmt.Sprint(c.next)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

func (c *client) tell(method, params string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// until returns the next line that matches, and all that were passed over.
func (c *client) until(what string, match func(h *heard) bool) (*heard, []*heard) {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	from := c.at
	for {
		c.mu.Lock()
		for c.at < len(c.lines) {
			h := c.lines[c.at]
			c.at++
			if match(h) {
				passed := c.lines[from : c.at-1]
				c.mu.Unlock()
				return h, passed
			}
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-timer.C:
			c.t.Fatalf("%s never came; heard:\n%s", what, c.heardSince(from))
		}
	}
}

func (c *client) heardSince(from int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, h := range c.lines[from:] {
		out = append(out, h.raw)
	}
	return strings.Join(out, "\n")
}

// answer waits for the answer to a request.
func (c *client) answer(id string) (*heard, []*heard) {
	c.t.Helper()
	return c.until("answer "+id, func(h *heard) bool { return h.Method == "" && string(h.ID) == id })
}

// call is ask and answer; an error fails the test.
func (c *client) call(method, params string) (*heard, []*heard) {
	c.t.Helper()
	h, passed := c.answer(c.ask(method, params))
	if h.Error != nil {
		c.t.Fatalf("%s: %s", method, h.raw)
	}
	return h, passed
}

// refused is call for what must be answered with a code.
func (c *client) refused(code int, method, params string) {
	c.t.Helper()
	h, _ := c.answer(c.ask(method, params))
	if h.Error == nil || h.Error.Code != code {
		c.t.Errorf("%s %s: %s, want %d", method, params, h.raw, code)
	}
}

// fresh makes a session and returns its id.
func (c *client) fresh() string {
	c.t.Helper()
	h, passed := c.call("session/new", `{"cwd":"/w","mcpServers":[]}`)
	var r struct{ SessionID string }
	_ = json.Unmarshal(h.Result, &r)
	for _, p := range passed {
		if p.Params.SessionID == r.SessionID {
			c.t.Errorf("before its answer: %s", p.raw)
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
	c.t.Helper()
	return c.until("permission", func(h *heard) bool { return h.Method == "session/request_permission" })
}

func (c *client) choose(h *heard, option string) {
	c.t.Helper()
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

package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef0123"

// model is a model whose answers are written by the test: one function per request, the last one repeats.
type model struct {
	mu      sync.Mutex
	asked   []session.ModelRequest
	replies []func(ctx context.Context, yield func(session.Chunk, error) bool)
}

func (m *model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	m.mu.Lock()
	m.asked = append(m.asked, r)
	play := m.replies[min(len(m.asked), len(m.replies))-1]
	m.mu.Unlock()
	return func(yield func(session.Chunk, error) bool) { play(ctx, yield) }
}

func (m *model) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

func (m *model) Default() session.Selection {
	return session.Selection{Provider: "test", Model: "m-1", Mode: "ask"}
}

func (m *model) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Provider: "test", ID: "m-1", Window: 100_000}}, nil
}

func (m *model) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

// heldUntil says a word once hold is closed.
func heldUntil(hold <-chan struct{}) func(context.Context, func(session.Chunk, error) bool) {
	return func(ctx context.Context, yield func(session.Chunk, error) bool) {
		select {
		case <-hold:
		case <-ctx.Done():
			yield(session.Chunk{}, context.Cause(ctx))
			return
		}
		saying("held")(ctx, yield)
	}
}

func saying(texts ...string) func(context.Context, func(session.Chunk, error) bool) {
	return func(_ context.Context, yield func(session.Chunk, error) bool) {
		for _, t := range texts {
			if !yield(session.Chunk{Kind: session.ChunkText, Text: t}, nil) {
				return
			}
		}
		yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
	}
}

func calling(text, tool, args string) func(context.Context, func(session.Chunk, error) bool) {
	return func(_ context.Context, yield func(session.Chunk, error) bool) {
		_ = yield(session.Chunk{Kind: session.ChunkText, Text: text}, nil) &&
			yield(session.Chunk{Kind: session.ChunkCallStart, CallID: "call_1", Name: tool}, nil) &&
			yield(session.Chunk{Kind: session.ChunkCallEnd, CallID: "call_1", Name: tool, Text: args}, nil) &&
			yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishCalls}, nil)
	}
}

// asking is a policy that asks, but in the mode that asks nobody.
type asking struct{ session.Policy }

func (asking) Judge(_ context.Context, mode string, spec session.ToolSpec, _ session.ToolCall) (session.Verdict, error) {
	if mode == "full" || spec.Kind == "think" {
		return session.Verdict{Effect: "allow"}, nil
	}
	return session.Verdict{Effect: "ask", Title: spec.Name}, nil
}

// act is a tool that needs consent and counts its runs.
type act struct {
	mu      sync.Mutex
	runs    int
	changes func() []protocol.FileChange // what it says it changed; may be nil
}

// changes are what the tool of a process says, by its sessions; an option sets them.
var changes sync.Map

func (*act) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "act", Description: "acts", Kind: "execute", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (a *act) Run(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs++
	r := session.ToolResult{Data: "acted"}
	if a.changes != nil {
		r.Changes = a.changes()
	}
	return r, nil
}

func (a *act) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs
}

// place is one process: a server on a socket over a store.
type place struct {
	t     *testing.T
	base  string
	all   *session.Sessions
	store session.Store
	api   *Server
	ln    net.Listener
	tool  *act
	model *model
	http  *http.Client
	token string
}

type option func(*Config)

// commands are those of a process with our own providers, and more.
func commands(all *session.Sessions, more ...executions.Provider) *executions.Commands {
	own := []executions.Provider{executions.Agent("1", nil), executions.Mock("1"), executions.Script("1"), executions.Fixture("1")}
	return executions.New(executions.Config{Sessions: all, Providers: append(own, more...), Version: "1", Keep: true})
}

// serve runs a server over store until the test ends, or stop is called.
func serve(t *testing.T, store session.Store, m *model, options ...option) *place {
	t.Helper()
	tool := &act{}
	loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{tool, peers.Asks("which")}, Policy: asking{}})
	if err != nil {
		t.Fatal(err)
	}
	all := session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})
	all.SetExecutions(session.ExecutionOptions{Cleanup: 200 * time.Millisecond})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Sessions: all, Workspace: "/w", Workspaces: map[string]string{"other": "/other"}, Token: secret, Port: ln.Addr().(*net.TCPAddr).Port,
		Commands: commands(all), Hosts: []string{"rind.test"}, Origins: []string{"https://app.test"},
		Buffer: 16 << 10, // a reader that stops is noticed after little
	}
	for _, o := range options {
		o(&cfg)
	}
	if f, ok := changes.LoadAndDelete(all); ok {
		tool.changes = f.(func() []protocol.FileChange)
	}
	if err := cfg.Commands.Recover(context.Background(), time.Hour); err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, base: "http://" + ln.Addr().String(), all: all, store: store, api: New(cfg), ln: ln, tool: tool, model: m, token: cfg.Token}
	p.http = &http.Client{Transport: &http.Transport{}}
	served := make(chan error, 1)
	go func() { served <- p.api.Serve(ln) }()
	t.Cleanup(func() {
		p.stop()
		if err := <-served; err != nil {
			t.Errorf("served: %v", err)
		}
	})
	return p
}

// stop ends the process in good order. Idempotent.
func (p *place) stop() {
	_ = p.ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.all.Shutdown(ctx); err != nil && !errors.Is(err, session.ErrUnstored) { // some tests see to it that it cannot be
		p.t.Errorf("shutdown: %v", err)
	}
	p.http.CloseIdleConnections() // the server waits a while for those that were never used
	bye, over := context.WithTimeout(context.Background(), 10*time.Second)
	defer over()
	p.api.End(bye)
	p.http.CloseIdleConnections()
}

type answered struct {
	status int
	header http.Header
	body   []byte
	closes bool // the connection
}

func (a *answered) member(name string) string {
	var m map[string]any
	_ = json.Unmarshal(a.body, &m)
	s, _ := m[name].(string)
	return s
}

// request makes a request as this place takes it.
func (p *place) request(ctx context.Context, method, path, body string) *http.Request {
	p.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, in)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// do sends a request; headers are pairs, "" removes one.
func (p *place) do(method, path, body string, headers ...string) *answered {
	p.t.Helper()
	r := p.request(context.Background(), method, path, body)
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return &answered{resp.StatusCode, resp.Header, data, resp.Close}
}

// must is do with an expected status.
func (p *place) must(status int, method, path, body string, headers ...string) *answered {
	p.t.Helper()
	a := p.do(method, path, body, headers...)
	if a.status != status {
		p.t.Fatalf("%s %s: %d, want %d: %s", method, path, a.status, status, a.body)
	}
	return a
}

func (p *place) conversation() string {
	p.t.Helper()
	return p.must(201, "POST", "/v1/conversations", "").member("id")
}

func (p *place) start(conversation, provider, input, more string) string {
	p.t.Helper()
	in, _ := json.Marshal(input)
	return p.must(202, "POST", "/v1/executions", `{"conversationId":"`+conversation+`","providerId":"`+provider+`","input":`+string(in)+more+`}`).member("id")
}

func (p *place) events(id string) []portable.Event {
	p.t.Helper()
	var l portable.EventList
	if err := json.Unmarshal(p.must(200, "GET", "/v1/executions/"+id+"/events", "").body, &l); err != nil {
		p.t.Fatal(err)
	}
	return l.Events
}

// follow reads a stream until its end; each event is handed to see, which may be nil.
func (p *place) follow(id string, headers []string, see func(portable.Event)) []portable.Event {
	p.t.Helper()
	events, err := p.read(id, headers, see)
	if err != nil {
		p.t.Fatal(err)
	}
	return events
}

// read is follow for any goroutine.
func (p *place) read(id string, headers []string, see func(portable.Event)) (out []portable.Event, _ error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", p.base+"/v1/executions/"+id+"/events", nil)
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		return nil, fmt.Errorf("stream: %d %s", resp.StatusCode, resp.Header)
	}
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("stream: %w after %d events", err, len(out))
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var e portable.Event
			if err := json.Unmarshal(data, &e); err != nil {
				return out, err
			}
			out = append(out, e)
			if see != nil {
				see(e)
			}
		}
	}
}

// until follows an execution until an event of a type and returns it.
func (p *place) until(id, kind string) (found portable.Event) {
	p.t.Helper()
	defer func() {
		if p.t.Failed() {
			p.t.Logf("its events: %s", types(p.events(id)))
		}
	}()
	testkit.Eventually(p.t, kind+" is among the events", func() bool {
		for _, e := range p.events(id) {
			if e.Type == kind || types([]portable.Event{e}) == kind {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// becomes waits until an execution is in a state.
func (p *place) becomes(id, state string) {
	p.t.Helper()
	testkit.Eventually(p.t, "it is "+state, func() bool { return p.state(id) == state })
}

// streamless waits until no stream is open.
func (p *place) streamless() {
	p.t.Helper()
	testkit.Eventually(p.t, "all streams are closed", func() bool { return p.api.traffic.open() == 0 })
}

// types lists events in words; a provider.event is told by its method, repeats are folded.
func types(events []portable.Event) string {
	var out []string
	for _, e := range events {
		word := e.Type
		if word == "provider.event" {
			var d struct {
				Method string `json:"method"`
			}
			_ = json.Unmarshal(e.Data, &d)
			word = d.Method
		}
		if len(out) == 0 || out[len(out)-1] != word {
			out = append(out, word)
		}
	}
	return strings.Join(out, " ")
}

func mocking(t *testing.T, options ...option) *place {
	t.Helper()
	return serve(t, memory.New(), &model{replies: []func(context.Context, func(session.Chunk, error) bool){saying("ok")}}, options...)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// patience is how long a test waits for what must be shown.
const patience = 20 * time.Second

// display gathers what a person would see.
type display struct {
	mu      sync.Mutex
	text    bytes.Buffer
	read    int // up to here it was expected
	changed chan struct{}
}

func newDisplay() *display { return &display{changed: make(chan struct{}, 1)} }

func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
	return d.text.Write(p)
}

// expect waits for want behind what was expected before, and returns what stands before it.
func (d *display) expect(t *testing.T, want string) string {
	t.Helper()
	limit := time.After(patience)
	for {
		d.mu.Lock()
		rest := d.text.String()[d.read:]
		i := strings.Index(rest, want)
		if i >= 0 {
			d.read += i + len(want)
		}
		d.mu.Unlock()
		if i >= 0 {
			return rest[:i]
		}
		select {
		case <-d.changed:
		case <-limit:
			t.Fatalf("%q was not shown; since the last: %q", want, tail(rest))
		}
	}
}

func (d *display) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func tail(s string) string {
	if len(s) > 2000 {
		return "…" + s[len(s)-2000:]
	}
	return s
}

// chatRuntime is a process of the runtime with tools of the tests' own: touch needs consent, ask asks a person, stay runs until cancelled.
type chatRuntime struct {
	store   *memory.Store
	all     *session.Sessions
	d       *dispatcher.RuntimeDispatcher
	touched int
	mu      sync.Mutex
}

type chatTool struct {
	name, kind string
	run        func(ctx context.Context, p session.Progress) (session.ToolResult, error)
}

func (c *chatTool) Spec() session.ToolSpec {
	return session.ToolSpec{Name: c.name, Description: "d", Kind: c.kind, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (c *chatTool) Run(ctx context.Context, _ session.ToolCall, p session.Progress) (session.ToolResult, error) {
	return c.run(ctx, p)
}

func (r *chatRuntime) tools() []session.Tool {
	return []session.Tool{
		&chatTool{"touch", "edit", func(context.Context, session.Progress) (session.ToolResult, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.touched++
			return session.ToolResult{Data: fmt.Sprintf("touched %d", r.touched), Changes: []protocol.FileChange{
				{FilePath: "a.txt", Lines: []protocol.DiffLine{{Kind: "added", Text: "x"}, {Kind: "added", Text: "y"}, {Kind: "removed", Text: "z"}}},
			}}, nil
		}},
		&chatTool{"ask", "think", func(ctx context.Context, p session.Progress) (session.ToolResult, error) {
			a, err := p.Ask(ctx, "Which colour?", []protocol.Choice{{Label: "red (Recommended)", Description: "warm"}, {Label: "blue", Description: "cold"}})
			return session.ToolResult{Data: map[string]string{"answer": a}}, err
		}},
		&chatTool{"update_plan", "think", func(context.Context, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: "Plan updated"}, nil
		}},
		&chatTool{"stay", "think", func(ctx context.Context, _ session.Progress) (session.ToolResult, error) {
			<-ctx.Done()
			return session.ToolResult{}, context.Cause(ctx)
		}},
	}
}

func launchChat(t *testing.T, back *memory.Backing, instance, text string, unattended bool, id session.SessionID) *chatRuntime {
	t.Helper()
	r := &chatRuntime{store: back.Open(instance)}
	models := peers.Scripted{Script: script.Must(text), Listed: []session.ModelInfo{{Provider: "play", ID: "m-1", Name: "First", API: "script"}}}
	loop, err := session.NewLoop(session.Loop{
		Models: models, Tools: r.tools(), Unattended: unattended,
		Pause: func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.all = session.NewSessions(session.Config{Store: r.store, Agent: loop, Models: models})
	r.d = dispatcher.New(dispatcher.Config{Sessions: r.all, Workspace: "/w", Version: "0", Session: id})
	return r
}

func (r *chatRuntime) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.all.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	_ = r.store.Close()
}

// person sits before a conversation.
type person struct {
	t *testing.T
	*display
	r     *chatRuntime
	keys  *io.PipeWriter
	sigs  chan os.Signal
	ended chan error
}

// converse starts a conversation of a person at a terminal, or of piped prompts.
func converse(t *testing.T, r *chatRuntime, attended bool, prompt string) *person {
	t.Helper()
	in, keys := io.Pipe()
	p := &person{t: t, display: newDisplay(), r: r, keys: keys, sigs: make(chan os.Signal, 1), ended: make(chan error, 1)}
	talk := newTalk(&streams{in, p.display, p.display}, attended, p.sigs)
	go func() {
		p.ended <- talk.hold(t.Context(), &chosen{}, prompt, func(in io.Reader, out io.Writer) error {
			return r.d.Serve(context.Background(), in, out, dispatcher.Options{Envelope: envelope("rind")})
		})
		_ = in.Close()
	}()
	return p
}

func (p *person) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, line+"\n"); err != nil {
		p.t.Fatalf("type %q: %v", line, err)
	}
}

// ends waits for the end and its exit code.
func (p *person) ends(code int) {
	p.t.Helper()
	select {
	case err := <-p.ended:
		got := exitOK
		if e, ok := errors.AsType[*exit](err); ok {
			got = e.code
		} else if err != nil {
			p.t.Fatalf("ended with %v", err)
		}
		if got != code {
			p.t.Errorf("ended with %d (%v), want %d; shown: %q", got, err, code, tail(p.all()))
		}
	case <-time.After(patience):
		p.t.Fatalf("did not end; shown: %q", tail(p.all()))
	}
	p.r.close(p.t)
}

// atTerminal runs f with a person at a terminal before a runtime that plays text.
func atTerminal(t *testing.T, text string, f func(p *person)) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	f(converse(t, launchChat(t, memory.NewBacking(), "i", text, false, ""), true, ""))
}

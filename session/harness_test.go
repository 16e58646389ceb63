package session_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// model answers completions by calling play, which yields chunks until it returns.
type model struct {
	play     func(ctx context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool)
	requests []session.ModelRequest
}

func (m *model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	m.requests = append(m.requests, r)
	return func(yield func(session.Chunk, error) bool) { m.play(ctx, r, yield) }
}

func (m *model) Default() session.Selection {
	return session.Selection{Provider: "test", Model: "m-1", Mode: "ask"}
}

func (m *model) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Provider: "test", ID: "m-1", Window: 100_000}}, nil
}

func (m *model) List(context.Context, bool) ([]session.ModelInfo, string, error) { return nil, "", nil }

func text(s string) session.Chunk { return session.Chunk{Kind: session.ChunkText, Text: s} }

func finish(f session.Finish) session.Chunk {
	return session.Chunk{Kind: session.ChunkFinish, Finish: f}
}

func callChunks(id, name, args string) []session.Chunk {
	return []session.Chunk{
		{Kind: session.ChunkCallStart, CallID: id, Name: name},
		{Kind: session.ChunkCallDelta, CallID: id, Text: args},
		{Kind: session.ChunkCallEnd, CallID: id, Name: name, Text: args},
	}
}

// say plays fixed replies, one per request; the last one repeats.
func say(replies ...[]session.Chunk) *model {
	m := &model{}
	m.play = func(_ context.Context, _ session.ModelRequest, yield func(session.Chunk, error) bool) {
		i := min(len(m.requests), len(replies)) - 1
		for _, c := range replies[i] {
			if !yield(c, nil) {
				return
			}
		}
	}
	return m
}

// tool is a Tool made of a function.
type tool struct {
	spec session.ToolSpec
	run  func(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error)
}

func (t *tool) Spec() session.ToolSpec { return t.spec }
func (t *tool) Run(ctx context.Context, c session.ToolCall, p session.Progress) (session.ToolResult, error) {
	return t.run(ctx, c, p)
}

func readTool(name string, run func() string) *tool {
	return &tool{
		spec: session.ToolSpec{Name: name, Description: "d", Kind: "read", ReadOnly: true, Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)},
		run: func(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
			return session.ToolResult{Data: run()}, nil
		},
	}
}

func writeTool(name string, run func() string) *tool {
	w := readTool(name, run)
	w.spec.Kind, w.spec.ReadOnly = "execute", false
	return w
}

// house is one process: sessions over a store.
type house struct {
	t     *testing.T
	store *memory.Store
	all   *session.Sessions
	model *model
}

func newHouse(t *testing.T, store *memory.Store, m *model, tools ...session.Tool) *house {
	t.Helper()
	loop, err := session.NewLoop(session.Loop{Models: m, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: store, model: m}
	h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: time.Now})
	return h
}

func (h *house) close() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.all.Shutdown(ctx); err != nil {
		h.t.Errorf("shutdown: %v", err)
	}
	_ = h.store.Close()
}

func (h *house) draft() *session.Session {
	h.t.Helper()
	s, err := h.all.Draft(context.Background(), session.DraftOptions{Workspace: "/w"})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) open(id session.SessionID) *session.Session {
	h.t.Helper()
	s, err := h.all.Open(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

type ended struct {
	session.Outcome
	err error
}

// ask starts a prompt; its outcome comes through the channel.
func ask(s *session.Session, r session.PromptRequest) (*session.Prompt, chan ended) {
	ch := make(chan ended, 1)
	p := s.Prompt(r, func(o session.Outcome, err error) { ch <- ended{o, err} })
	return p, ch
}

func (h *house) prompt(s *session.Session, input string) session.Outcome {
	h.t.Helper()
	_, ch := ask(s, session.PromptRequest{Input: input})
	o := <-ch
	if o.err != nil {
		h.t.Fatalf("prompt %q: %v", input, o.err)
	}
	return o.Outcome
}

// entries reads the whole log.
func (h *house) entries(id session.SessionID) []session.Entry {
	h.t.Helper()
	es, err := h.store.Read(context.Background(), id, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		h.t.Fatal(err)
	}
	return es
}

// kinds lists the kinds of a log, direct repeats of deltas folded.
func kinds(es []session.Entry) string {
	var out []string
	for _, e := range es {
		name := e.Kind.String()
		if n := len(out); n > 0 && out[n-1] == name && strings.HasSuffix(name, "delta") {
			continue
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func (h *house) view(s *session.Session, f func(v *session.View)) {
	h.t.Helper()
	if err := s.InspectNow(context.Background(), f); err != nil {
		h.t.Fatal(err)
	}
}

// wire lists the messages of a session.
func (h *house) wire(s *session.Session) (out []session.Wire) {
	h.t.Helper()
	if err := s.RecallNow(context.Background(), func(r *session.Recalled) { out = r.Wire() }); err != nil {
		h.t.Fatal(err)
	}
	return out
}

// bubble runs f in a synctest bubble with one process on a store of its own.
func bubble(t *testing.T, m *model, tools []session.Tool, f func(h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, memory.New(), m, tools...)
		f(h)
		checkLog(t, h)
		h.close()
	})
}

// checkLog asserts the invariants of docs/protocol/rind-v2.md section 5 on every session of the store.
func checkLog(t *testing.T, h *house) {
	t.Helper()
	page, _, err := h.store.Sessions(context.Background(), session.Query{Limit: 200, All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page {
		if err := testkit.SoundLog(h.entries(m.ID)); err != nil {
			t.Errorf("log of %s: %v\n%s", m.ID, err, kinds(h.entries(m.ID)))
		}
	}
}

package acpagent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/store/memory"
)

// quick are bounds that tests can wait for, and long ones where a busy machine would be taken for a bad agent.
var quick = times{
	initialize: 20 * time.Second, open: 20 * time.Second, quiet: 50 * time.Millisecond, cancel: 20 * time.Second, shutdown: 200 * time.Millisecond,
	idle: time.Minute, stall: time.Minute, late: 100 * time.Millisecond, window: time.Minute, blocked: 10 * time.Second,
	progress: 20 * time.Millisecond, closing: 200 * time.Millisecond,
}

// house is one process with hosted agents.
type house struct {
	t        testing.TB
	dir      string
	store    *memory.Store
	hosts    *Hosts
	all      *session.Sessions
	children *proc.Children
	spec     Spec
	closed   bool
}

type fixedModels struct{}

func (fixedModels) Default() session.Selection {
	return session.Selection{Provider: "double", Model: OwnModel, Mode: "ask"}
}

func (fixedModels) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{}, nil
}

func (fixedModels) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return nil, "", nil
}

// Turn and Hosts make the house the agent of its sessions.
func (h *house) Turn(ctx context.Context, t *session.Turn) (string, error) {
	return h.hosts.Turn(ctx, h.spec, t)
}

func (h *house) Hosts(session.Selection) (string, bool) { return h.spec.Provider, true }

func (h *house) Hosted(id session.SessionID, _ session.Selection) (session.HostedAgent, bool) {
	return h.hosts.About(id, h.spec), true
}

func open(t testing.TB, store *memory.Store, modes string, change ...func(*Config)) *house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: dir, store: store, children: proc.NewChildren("")}
	h.spec = Spec{Provider: "double", Command: os.Args[0], Env: map[string]string{"ACP_DOUBLE": modes}, FS: true, Terminal: true}
	cfg := Config{
		Children: h.children, times: quick, Log: slog.New(slog.DiscardHandler),
		Environ: func() []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir} },
	}
	for _, f := range change {
		f(&cfg)
	}
	h.hosts = New(cfg)
	h.all = session.NewSessions(session.Config{Store: store, Agent: h, Models: fixedModels{}, Forgot: h.hosts.Forget, OnEnd: h.children.Refuse})
	h.hosts.Attach(h.all)
	t.Cleanup(h.close)
	return h
}

func (h *house) close() {
	if h.closed {
		return
	}
	h.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.all.Shutdown(ctx); err != nil {
		h.t.Errorf("shutdown: %v", err)
	}
	h.hosts.Close()
	if err := h.children.KillAll(); err != nil {
		h.t.Error(err)
	}
	page, _, err := h.store.Sessions(context.Background(), session.Query{Limit: 100, All: true})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range page {
		if err := testkit.SoundLog(h.entries(m.ID)); err != nil {
			h.t.Errorf("log: %v\n%s", err, h.kinds(m.ID))
		}
	}
}

func (h *house) draft(mode string) *session.Session {
	h.t.Helper()
	s, err := h.all.Draft(context.Background(), session.DraftOptions{Workspace: h.dir, Selection: session.Selection{Mode: mode}})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) entries(id session.SessionID) []session.Entry {
	h.t.Helper()
	es, err := h.store.Read(context.Background(), id, 0, 1<<20, protocol.ViewAll)
	if err != nil {
		h.t.Fatal(err)
	}
	return es
}

func (h *house) bodies(id session.SessionID) []protocol.Body {
	h.t.Helper()
	es := h.entries(id)
	out := make([]protocol.Body, 0, len(es))
	for i := range es {
		b, err := protocol.Decode(&es[i])
		if err != nil {
			h.t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// find lists the bodies of one type.
func find[B protocol.Body](h *house, id session.SessionID) []B {
	h.t.Helper()
	var out []B
	for _, b := range h.bodies(id) {
		if b, ok := b.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

func (h *house) kinds(id session.SessionID) string {
	var out []string
	for _, e := range h.entries(id) {
		name := e.Kind.String()
		if n := len(out); n > 0 && out[n-1] == name && strings.HasSuffix(name, "delta") {
			continue
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

type ended struct {
	session.Outcome
	err error
}

func (h *house) ask(s *session.Session, input string) chan ended {
	ch := make(chan ended, 1)
	s.Prompt(session.PromptRequest{Input: input}, func(o session.Outcome, err error) { ch <- ended{o, err} })
	return ch
}

func (h *house) await(ch chan ended) session.Outcome {
	h.t.Helper()
	select {
	case o := <-ch:
		if o.err != nil {
			h.t.Fatal(o.err)
		}
		return o.Outcome
	case <-time.After(3 * time.Minute): // ten megabytes take most of one under -race on a busy machine
		h.t.Fatal("the turn does not end")
	}
	return session.Outcome{}
}

func (h *house) prompt(s *session.Session, input string) session.Outcome {
	h.t.Helper()
	return h.await(h.ask(s, input))
}

// until waits for something of the session.
func (h *house) until(s *session.Session, what string, f func(v *session.View) bool) {
	h.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		ok := false
		if err := s.InspectNow(context.Background(), func(v *session.View) { ok = f(v) }); err != nil {
			h.t.Fatal(err)
		}
		if ok {
			return
		}
	}
	h.t.Fatalf("no %s:\n%s", what, h.kinds(s.ID))
}

// action waits for what the person is asked.
func (h *house) action(s *session.Session) *session.Action {
	h.t.Helper()
	var a *session.Action
	h.until(s, "action", func(v *session.View) bool {
		if v.Serial != nil && len(v.Serial.Actions) > 0 {
			c := *v.Serial.Actions[0]
			a = &c
		}
		return a != nil
	})
	return a
}

func (h *house) resolve(s *session.Session, action, option string) {
	h.t.Helper()
	done := make(chan error, 1)
	s.ResolveApproval(action, option, func(err error) { done <- err })
	if err := <-done; err != nil {
		h.t.Fatal(err)
	}
}

// Package peers is what the tests of connections and of whole turns have in common, whatever the dialect: processes of a runtime over a store in memory, what
// their model and their tools do, the client's end of a connection, and the playing of transcripts. For tests only.
//
// Goroutines: two for each Wire, which end with its connection; End and HangUp wait for them.
package peers

import (
	"context"
	"errors"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/store/memory"
)

// Patience is how long a test waits for what must come, in the time of its bubble: nothing real passes.
const Patience = 30 * time.Second

// T is what a test, or one round of a property test, fails with.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// World is what the processes of a test share: the stored sessions, and identifiers that grow, so that sorted lists are the same in every run.
type World struct {
	*memory.Backing
	IDs testkit.IDs
}

// NewWorld makes a world without sessions.
func NewWorld() *World { return &World{Backing: memory.NewBacking()} }

// Process is one process of the runtime, but for its connections.
type Process struct {
	T     T
	Play  *script.Script // its model
	Store *memory.Store
	All   *session.Sessions
}

// Setting is what a process is made of besides its model.
type Setting struct {
	Models session.Models // in the place of the script; nil for the script, which lists what Listed holds
	Listed []session.ModelInfo
	Loop   func(p *Process) session.Loop     // tools, and what else differs
	Around func(session.Store) session.Store // what goes wrong with the store; nil: nothing
}

// Launch starts a process of the world whose model plays a script.
func (w *World) Launch(t T, instance string, play *script.Script, s Setting) *Process {
	t.Helper()
	p := &Process{T: t, Play: play, Store: w.Open(instance)}
	models := s.Models
	if models == nil {
		models = Scripted{Script: play, Listed: s.Listed}
	}
	parts := s.Loop(p)
	parts.Models = models
	loop, err := session.NewLoop(parts)
	if err != nil {
		t.Fatal(err)
	}
	store := session.Store(p.Store)
	if s.Around != nil {
		store = s.Around(store)
	}
	p.All = session.NewSessions(session.Config{
		Store: store, Agent: loop, Models: models, Policy: parts.Policy, Guide: parts.Guide, IDs: &w.IDs,
	})
	return p
}

// End ends what is left when all connections are gone.
func (p *Process) End() {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := p.All.Shutdown(ctx); err != nil && !errors.Is(err, session.ErrUnstored) { // some tests see to it that it cannot be
		p.T.Errorf("end of the process: %v", err)
	}
	_ = p.Store.Close()
}

// Turn lets the model answer one prompt in a new session of a workspace, and returns what the log then holds.
func (p *Process) Turn(workspace string) []protocol.Body {
	p.T.Helper()
	s, err := p.All.Draft(context.Background(), session.DraftOptions{Workspace: workspace})
	if err != nil {
		p.T.Fatal(err)
	}
	defer s.Close()
	done := make(chan error, 1)
	s.Prompt(session.PromptRequest{Input: "go"}, func(_ session.Outcome, err error) { done <- err })
	if err := <-done; err != nil {
		p.T.Fatal(err)
	}
	var bodies []protocol.Body
	for _, e := range p.Entries(string(s.ID)) {
		b, err := protocol.Decode(&e)
		if err != nil {
			p.T.Fatal(err)
		}
		bodies = append(bodies, b)
	}
	return bodies
}

// Entries reads the whole log of a session.
func (p *Process) Entries(id string) []session.Entry {
	p.T.Helper()
	es, err := p.Store.Read(context.Background(), session.SessionID(id), 0, 1<<20, protocol.ViewAll)
	if err != nil {
		p.T.Fatal(err)
	}
	return es
}

// Sound checks the log of a session whose turns have ended.
func (p *Process) Sound(id string) {
	p.T.Helper()
	if err := testkit.SoundLog(p.Entries(id)); err != nil {
		p.T.Errorf("log of %s: %v", id, err)
	}
}

package undo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/undo"
)

// step is one call the model makes: of write_file or edit_file with arguments, or of a command, which is a function.
type step struct {
	tool string
	args map[string]any
	run  func() *protocol.Touched
}

func write(path, content string) step {
	return step{tool: "write_file", args: map[string]any{"path": path, "content": content}}
}

func edit(path, before, after string) step {
	return step{tool: "edit_file", args: map[string]any{"path": path, "old_str": before, "new_str": after}}
}

func command(run func() *protocol.Touched) step { return step{tool: "command", run: run} }

// desk is a workspace, and processes that let a model work in it, turn by turn, through the real loop and tools.
type desk struct {
	t       testing.TB
	root    string
	backing *memory.Backing
	id      session.SessionID
	outputs func(session.SessionID) string
	kept    session.Images
	process *process
}

// process is one process over the store.
type process struct {
	store *memory.Store
	all   *session.Sessions
	undo  *undo.Undo

	left int         // steps the turn that runs has still to take
	draw func() step // the next of them
	run  func() *protocol.Touched
}

// inOrder takes steps one after the other.
func inOrder(steps []step) func() step {
	return func() step {
		next := steps[0]
		steps = steps[1:]
		return next
	}
}

func newDesk(t testing.TB, content map[string]string) *desk {
	t.Helper()
	return newDeskWith(t, content, nil)
}

// newDeskWith is newDesk with images of its own.
func newDeskWith(t testing.TB, content map[string]string, im session.Images) *desk {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, root: filepath.Join(top, "w"), backing: memory.NewBacking()}
	d.outputs = func(id session.SessionID) string { return filepath.Join(top, "outputs", string(id)) }
	if d.kept = im; im == nil {
		d.kept = images.New(d.outputs, images.Options{})
	}
	if err := os.Mkdir(d.root, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range content {
		d.put(path, text)
	}
	d.process = d.start("first", d.kept)
	return d
}

// start starts a process whose tools keep what they replace in im.
func (d *desk) start(name string, im session.Images, more ...session.Tool) *process {
	d.t.Helper()
	p := &process{store: d.backing.Open(name)}
	loop, err := session.NewLoop(session.Loop{
		Models: p, Policy: consent{}, Tools: append(more, files.WriteFile(im), files.EditFile(im), &commands{p}),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	p.all = session.NewSessions(session.Config{Store: p.store, Agent: loop, Models: p, Now: time.Now})
	p.undo = undo.New(undo.Config{Store: p.store, Images: im, Keep: true, Secret: func(path string) bool { return filepath.IsAbs(path) && filepath.Base(path) == ".env" }})
	d.t.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = p.all.Shutdown(ctx)
	_ = p.store.Close()
}

// Generate implements session.Model: a call for each step, then an answer.
func (p *process) Generate(context.Context, session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		chunks := []session.Chunk{{Kind: session.ChunkText, Text: "Done."}, {Kind: session.ChunkFinish, Finish: session.FinishStop}}
		if p.left > 0 {
			s := p.draw()
			p.run = s.run
			id := fmt.Sprintf("call_%d", p.left)
			args := s.args
			if args == nil {
				args = map[string]any{"n": p.left}
			}
			p.left--
			chunks = []session.Chunk{
				{Kind: session.ChunkCallStart, CallID: id, Name: s.tool},
				{Kind: session.ChunkCallEnd, CallID: id, Name: s.tool, Text: string(protocol.MustMarshal(args))},
				{Kind: session.ChunkFinish, Finish: session.FinishCalls},
			}
		}
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (p *process) Default() session.Selection {
	return session.Selection{Provider: "test", Model: "m", Mode: "full"}
}

func (p *process) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: p, Info: session.ModelInfo{Provider: "test", ID: "m", Window: 1 << 30}}, nil
}

func (p *process) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return nil, "", nil
}

// consent allows everything, also the path a call names, wherever it lies.
type consent struct{ session.Policy }

func (consent) Judge(_ context.Context, _ string, _ session.ToolSpec, call session.ToolCall) (session.Verdict, error) {
	var args struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(call.Arguments, &args)
	return session.Verdict{Effect: "allow", Outside: []string{args.Path}}, nil
}

// commands runs the commands of a script.
type commands struct{ p *process }

func (*commands) Spec() session.ToolSpec {
	return session.ToolSpec{Name: "command", Description: "d", Kind: "execute", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (s *commands) Run(context.Context, session.ToolCall, session.Progress) (session.ToolResult, error) {
	return session.ToolResult{Data: "ok", Touched: s.p.run()}, nil
}

// prompt starts a turn of n steps in p; the outcome comes through the channel.
func (d *desk) prompt(p *process, n int, draw func() step) <-chan session.Outcome {
	d.t.Helper()
	p.left, p.draw = n, draw
	var s *session.Session
	var err error
	if d.id == "" {
		s, err = p.all.Draft(context.Background(), session.DraftOptions{Workspace: d.root})
	} else {
		s, err = p.all.Open(context.Background(), d.id)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.id = s.ID
	ch := make(chan session.Outcome, 1)
	s.Prompt(session.PromptRequest{Input: "go on"}, func(o session.Outcome, err error) {
		if err != nil {
			o.Outcome = err.Error()
		}
		s.Close()
		ch <- o
	})
	return ch
}

// turn lets the model take those steps, each of which must succeed, and returns the turn's id.
func (d *desk) turn(steps ...step) session.TurnID {
	d.t.Helper()
	return d.turnOf(len(steps), inOrder(steps))
}

// turnOf is turn with n steps that are drawn one by one, just before they are taken.
func (d *desk) turnOf(n int, draw func() step) session.TurnID {
	d.t.Helper()
	head := d.head()
	o := <-d.prompt(d.process, n, draw)
	if o.Outcome != session.OutcomeCompleted {
		d.t.Fatalf("the turn ended %v", o)
	}
	entries, err := d.process.store.Read(context.Background(), d.id, head, 1<<20, protocol.ViewFacts)
	if err != nil {
		d.t.Fatal(err)
	}
	done := 0
	for i := range entries {
		if entries[i].Turn != o.Turn {
			continue // of a turn that this one closed
		}
		if b, err := protocol.Decode(&entries[i]); err != nil {
			d.t.Fatal(err)
		} else if r, ok := b.(*protocol.ToolResult); ok {
			if done++; r.Status != protocol.ToolCompleted {
				d.t.Fatalf("%s: %s", r.ToolCallID, r.Result)
			}
		}
	}
	if done != n {
		d.t.Fatalf("%d of %d steps were taken", done, n)
	}
	d.idle()
	return o.Turn
}

// idle waits until the process has given the session's lease back, which it does right after a turn.
func (d *desk) idle() {
	d.t.Helper()
	testkit.Eventually(d.t, "the lease is given back", func() bool {
		m, err := d.process.store.Session(context.Background(), d.id)
		if err != nil {
			d.t.Fatal(err)
		}
		return !m.OwnerAlive
	})
}

func (d *desk) head() session.Seq {
	if d.id == "" {
		return 0
	}
	m, err := d.process.store.Session(context.Background(), d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	return m.Head
}

// undone undoes a turn, as told it by a list like "a restored, b/c changed_since".
func (d *desk) undone(turn session.TurnID, want string) session.TurnID {
	d.t.Helper()
	u, err := d.process.undo.Undo(context.Background(), d.id, turn)
	if err != nil {
		d.t.Fatalf("undo %s: %v", turn, err)
	}
	if got := fates(u); got != want {
		d.t.Errorf("undo %s: %s\nwant %s", turn, got, want)
	}
	return u.Turn
}

func fates(u session.Undone) string {
	out := []string{}
	for _, f := range u.Files {
		out = append(out, f.Path+" "+f.Status)
	}
	return strings.Join(out, ", ")
}

func (d *desk) refused(p *process, turn session.TurnID, kind protocol.ErrorKind) {
	d.t.Helper()
	u, err := p.undo.Undo(context.Background(), d.id, turn)
	if err == nil || protocol.KindOf(err) != kind {
		d.t.Errorf("undo %q: %v, %v, want %s", turn, u, err, kind)
	}
}

func (d *desk) at(path string) string { return filepath.Join(d.root, filepath.FromSlash(path)) }

func (d *desk) put(path, text string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(d.at(path)), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.at(path), []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// get is what a file holds; "-" where there is none.
func (d *desk) get(path string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// tree is every file of the workspace with its mode and content.
func (d *desk) tree() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := "link"
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(data)
		}
		rel, err := filepath.Rel(d.root, path)
		out[filepath.ToSlash(rel)] = fmt.Sprintf("%v %s", info.Mode(), text)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// same compares two trees and names what differs.
func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	all := map[string]bool{}
	for path := range got {
		all[path] = true
	}
	for path := range want {
		all[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if got[path] != want[path] {
			t.Errorf("%s: %s is %.80q, want %.80q", what, path, got[path], want[path])
		}
	}
}

// change is a command that makes content of the files named; nil removes one. It keeps what was there, as the shell does.
func (d *desk) change(content map[string][]byte) step {
	return command(func() *protocol.Touched {
		t := &protocol.Touched{}
		for _, path := range slices.Sorted(maps.Keys(content)) {
			touch := protocol.Touch{Path: filepath.ToSlash(d.at(path)), Kind: "modified"}
			before, err := os.ReadFile(d.at(path))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				touch.Kind = "created"
			case err != nil:
				d.t.Error(err)
			default:
				if touch.Before, err = d.kept.Keep(context.Background(), d.id, before); err != nil {
					d.t.Error(err)
				}
			}
			if after := content[path]; after == nil {
				touch.Kind = "removed"
				err = os.Remove(d.at(path))
			} else {
				touch.After = protocol.Digest(after)
				if err = os.MkdirAll(filepath.Dir(d.at(path)), 0o755); err == nil {
					err = os.WriteFile(d.at(path), after, 0o644)
				}
			}
			if err != nil {
				d.t.Error(err)
			}
			t.Files = append(t.Files, touch)
		}
		return t
	})
}

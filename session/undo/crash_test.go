package undo_test

import (
	"context"
	"sync"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/undo"
)

// dying is a session.Images whose process dies right after it kept something: what it does from then on is not stored.
type dying struct {
	session.Images
	die func()
}

func (d *dying) Keep(ctx context.Context, id session.SessionID, data []byte) (string, error) {
	digest, err := d.Images.Keep(ctx, id, data)
	d.die()
	return digest, err
}

func TestACrashBetweenKeepingAndWritingLeavesTheFileAndOlderTurnsUndoable(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1", "b": "1"})
	d.turn(write("a", "2"))
	d.process.stop()
	im := &dying{Images: d.kept}
	ctx, cancel := context.WithCancel(context.Background())
	d.process = d.start("dies", im)
	im.die = func() {
		d.process.store.Kill()
		cancel()
		panic("the process is dead") // nothing behind it happens any more
	}
	<-d.prompt(d.process, 1, inOrder([]step{write("a", "3")}))
	<-ctx.Done()
	d.process = d.start("next", d.kept)
	if got := d.get("a"); got != "2" {
		t.Fatalf("a is %q", got)
	}
	d.refused(d.process, "", protocol.SessionBusy) // the turn is still open
	d.turn(write("b", "2"))
	d.undone("", "b restored")
	d.undone("", "a restored")
	if d.get("a") != "1" || d.get("b") != "1" {
		t.Errorf("%q %q", d.get("a"), d.get("b"))
	}
}

// lastWords is a tool whose process dies after it worked, before its result is stored.
type lastWords struct {
	session.Tool
	die func()
}

func (l *lastWords) Run(ctx context.Context, call session.ToolCall, p session.Progress) (session.ToolResult, error) {
	res, err := l.Tool.Run(ctx, call, p)
	if call.Name == "write_file" {
		l.die()
	}
	return res, err
}

func TestAWriteWhoseResultWasLostIsNotTakenForATurnsAndNotOverwritten(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1"})
	d.turn(write("a", "2"))
	d.process.stop()
	p := &process{store: d.backing.Open("dies")}
	loop, err := session.NewLoop(session.Loop{Models: p, Policy: consent{}, Tools: []session.Tool{&lastWords{files.WriteFile(d.kept), p.store.Kill}}})
	if err != nil {
		t.Fatal(err)
	}
	p.all = session.NewSessions(session.Config{Store: p.store, Agent: loop, Models: p})
	<-d.prompt(p, 1, inOrder([]step{write("a", "3")}))
	p.stop()
	d.process = d.start("next", d.kept)
	d.turn() // closes it: outcome unknown
	d.undone("", "a changed_since")
	if got := d.get("a"); got != "3" {
		t.Errorf("a is %q", got)
	}
	if data, err := d.kept.Image(t.Context(), d.id, digest("2")); err != nil || string(data) != "2" {
		t.Errorf("its content from before: %q, %v", data, err)
	}
}

func TestTwoProcessesThatUndoAtOnceDoNoHarm(t *testing.T) {
	for range 10 {
		d := newDesk(t, map[string]string{"a": "1", "b": "1", "c": "1"})
		start := d.tree()
		d.turn(write("a", "2"), write("b", "2"), write("c", "2"), write("d", "2"))
		var wg sync.WaitGroup
		for _, name := range []string{"one", "two"} {
			store := d.backing.Open(name)
			defer store.Close()
			im := images.New(d.outputs, images.Options{})
			u := undo.New(undo.Config{Store: store, Images: im, Keep: true, Lease: true})
			wg.Go(func() {
				if _, err := u.Undo(context.Background(), d.id, ""); err != nil && protocol.KindOf(err) != protocol.SessionBusy {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if same(t, "after both", d.tree(), start); t.Failed() {
			return
		}
	}
}

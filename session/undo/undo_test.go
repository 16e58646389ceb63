package undo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/undo"
)

func TestUndoStepsBackTurnByTurn(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "one\n", "crlf": "\uFEFFx\r\nword\r\n"})
	start := d.tree()
	first := d.turn(edit("a", "one", "two"), write("new/deep/b", "b"), edit("crlf", "word", "term"), edit("a", "two", "three"))
	d.turn() // says something, writes nothing
	second := d.turn(write("a", "four\n"), write("c", "c"))
	if got := d.undone("", "a restored, c restored"); got != second || d.get("a") != "three\n" || d.get("c") != "-" {
		t.Errorf("undid %s: a is %q, c is %q", got, d.get("a"), d.get("c"))
	}
	if got := d.undone("", "a restored, new/deep/b restored, crlf restored"); got != first {
		t.Errorf("undid %s, want %s", got, first)
	}
	same(t, "in the end", d.tree(), start)
	if info, err := os.Stat(d.at("new/deep")); err != nil || !info.IsDir() {
		t.Errorf("folders stay: %v", err)
	}
	if got := d.undone("", ""); got != "" {
		t.Errorf("undid %s when nothing was left", got)
	}
	d.undone(second, "a changed_since, c restored") // named: what is as before counts as put back
}

func TestATurnThatTookBackAnOlderOneIsUndoneOnce(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "one"})
	d.turn(write("a", "two"))
	d.turn(write("a", "one"))
	d.turn(write("a", "two"))
	for _, want := range []string{"one", "two", "one"} {
		d.undone("", "a restored")
		if got := d.get("a"); got != want {
			t.Fatalf("a is %q, want %q", got, want)
		}
	}
	if got := d.undone("", ""); got != "" {
		t.Errorf("undid %s again", got)
	}
	d.turn(write("a", "new"))
	d.undone("", "a restored")
	if got := d.get("a"); got != "one" {
		t.Errorf("a is %q", got)
	}
}

func TestWhatSomebodyChangedSinceIsLeftAlone(t *testing.T) {
	content := map[string]string{
		"edited": "1", "gone": "1", "folder": "1", "link": "1", "inlink": "1", "touched": "1", "fine": "1", "sub/below": "1",
	}
	d := newDesk(t, content)
	var steps []step
	for path := range content {
		steps = append(steps, write(path, "2"))
	}
	steps = append(steps, write("made", "2"), write("madeedited", "2"))
	id := d.turn(steps...)
	outside := filepath.Join(filepath.Dir(d.root), "outside")
	for _, err := range []error{
		os.WriteFile(d.at("edited"), []byte("3"), 0o600),
		os.WriteFile(d.at("madeedited"), []byte("3"), 0o600),
		os.Remove(d.at("gone")),
		os.Remove(d.at("folder")), os.Mkdir(d.at("folder"), 0o755),
		os.WriteFile(outside, []byte("2"), 0o600),
		os.Mkdir(outside+"dir", 0o755), os.WriteFile(outside+"dir/below", []byte("2"), 0o600),
		os.Remove(d.at("link")), os.Symlink(outside, d.at("link")),
		os.WriteFile(d.at("other"), []byte("2"), 0o600), os.Remove(d.at("inlink")), os.Symlink("other", d.at("inlink")),
		os.RemoveAll(d.at("sub")), os.Symlink(outside+"dir", d.at("sub")),
		os.WriteFile(d.at("touched"), []byte("2"), 0o600), // the same again is no change
	} {
		if err != nil {
			t.Skip(err)
		}
	}
	for _, act := range []bool{false, true, true} {
		tell := d.process.undo.Plan
		if act {
			tell = d.process.undo.Undo
		}
		u, err := tell(context.Background(), d.id, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range u.Files {
			want := session.FileChangedSince
			switch f.Path {
			case "fine", "touched", "made":
				want = session.FileRestored
			}
			if f.Status != want {
				t.Errorf("%s is %s, want %s (%s)", f.Path, f.Status, want, f.Reason)
			}
			if strings.Contains(f.Reason, "\n") {
				t.Errorf("reason %q", f.Reason)
			}
		}
		if !act && (d.get("fine") != "2" || d.get("made") != "2") {
			t.Error("a plan wrote something")
		}
	}
	for path, want := range map[string]string{"edited": "3", "madeedited": "3", "gone": "-", "other": "2", "fine": "1", "touched": "1", "made": "-"} {
		if got := d.get(path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{outside, outside + "dir/below"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != "2" {
			t.Errorf("outside: %q, %v", data, err)
		}
	}
}

func TestAFileThatSomebodyElseChangedWhileTheTurnRanIsLeftAlone(t *testing.T) {
	between := func(blind bool) string {
		d := newDesk(t, map[string]string{"a": "1"})
		d.turn(write("a", "2"), command(func() *protocol.Touched {
			d.put("a", "somebody else's")
			return &protocol.Touched{Unknown: blind}
		}), write("a", "3"))
		want := "a changed_since"
		if blind { // the command may have done it
			want = "a restored"
		}
		d.undone("", want)
		return d.get("a")
	}
	if got := between(false); got != "3" {
		t.Errorf("a is %q", got)
	}
	if got := between(true); got != "1" {
		t.Errorf("after a command whose changes cannot be told a is %q", got)
	}
}

func TestWhatCommandsChangedIsPutBackWhereItCanBeTold(t *testing.T) {
	d := newDesk(t, map[string]string{"mod": "\x00\x01", "rm": "gone", "unkept": "1", "big": "1", "both": "1"})
	start := d.tree()
	unkept := command(func() *protocol.Touched {
		d.put("unkept", "2")
		d.put("big", "2")
		return &protocol.Touched{Files: []protocol.Touch{
			{Path: filepath.ToSlash(d.at("unkept")), Kind: "modified", After: digest("2")},
			{Path: filepath.ToSlash(d.at("big")), Kind: "modified", Before: digest("1")},
		}}
	})
	d.turn(d.change(map[string][]byte{"mod": {0, 2}, "rm": nil, "made/x": []byte("x")}), write("both", "2"), d.change(map[string][]byte{"both": nil, "made/x": []byte("y")}), unkept)
	d.undone("", "made/x restored, mod restored, rm restored, both restored, unkept not_kept, big not_kept")
	d.put("unkept", "1")
	d.put("big", "1")
	same(t, "in the end", d.tree(), start)
}

func digest(s string) string { return protocol.Digest([]byte(s)) }

func TestAnImageThatIsMissingOrDamagedIsNotKept(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1", "b": "1b", "c": "1c"})
	id := d.turn(write("a", "2"), write("b", "2"), write("c", "2"))
	before := filepath.Join(filepath.Dir(d.root), "outputs", string(d.id), "before")
	if err := os.Remove(filepath.Join(before, digest("1"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(before, digest("1b")), []byte("xx"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.undone(id, "a not_kept, b not_kept, c restored")
	if d.get("a") != "2" || d.get("b") != "2" || d.get("c") != "1c" {
		t.Errorf("%q %q %q", d.get("a"), d.get("b"), d.get("c"))
	}
}

func TestWhatUndoOverwritesIsKept(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1"})
	d.turn(write("a", "two"), write("b", "new"))
	d.undone("", "a restored, b restored")
	for _, text := range []string{"two", "new"} {
		if data, err := d.kept.Image(t.Context(), d.id, digest(text)); err != nil || string(data) != text {
			t.Errorf("%q: %q, %v", text, data, err)
		}
	}
}

func TestKeepingWhatIsOverwrittenMakesNoRoomWithWhatIsToBeRestored(t *testing.T) {
	d := newDesk(t, map[string]string{})
	text := func(of string) string { return strings.Repeat(of, 300) }
	var steps, later []step
	for _, name := range []string{"a", "b", "c", "d"} {
		d.put(name, text(name))
		steps = append(steps, write(name, text(strings.ToUpper(name))))
	}
	d.put("e", text("0"))
	for i := range 9 {
		later = append(later, write("e", text(fmt.Sprint(i+1))))
	}
	small := images.New(d.outputs, images.Options{MaxSession: 4000})
	d.process.stop()
	d.process = d.start("small", small)
	id := d.turn(steps...)
	d.turn(later...)
	d.undone(id, "a restored, b restored, c restored, d restored")
	for _, name := range []string{"a", "b", "c", "d"} {
		if d.get(name) != text(name) {
			t.Errorf("%s is %q", name, d.get(name))
		}
	}
}

func TestUndoKeepsTheModeTheFileHas(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	d := newDesk(t, map[string]string{"run.sh": "1"})
	d.turn(write("run.sh", "2"))
	if err := os.Chmod(d.at("run.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	d.undone("", "run.sh restored")
	if info, err := os.Stat(d.at("run.sh")); err != nil || info.Mode().Perm() != 0o751 || d.get("run.sh") != "1" {
		t.Errorf("%v %v %q", info.Mode(), err, d.get("run.sh"))
	}
}

func TestAFileThatHoldsCredentialsComesBackForItsOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permission bits here")
	}
	d := newDesk(t, map[string]string{".env": "KEY=1", "a": "1"})
	d.turn(d.change(map[string][]byte{".env": nil, "a": nil}))
	d.undone("", ".env restored, a restored")
	for name, open := range map[string]bool{".env": false, "a": true} {
		if info, err := os.Stat(d.at(name)); err != nil || info.Mode().Perm()&0o044 != 0 != open {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestAFileOutsideIsPutBackWhereConsentWasGivenForIt(t *testing.T) {
	d := newDesk(t, nil)
	out := filepath.Join(filepath.Dir(d.root), "out")
	if err := os.WriteFile(out, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(d.root), "other")
	if err := os.WriteFile(other, []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	slash := filepath.ToSlash(out)
	d.turn(write(out, "2"), command(func() *protocol.Touched { // nobody consented to this one
		return &protocol.Touched{Files: []protocol.Touch{{Path: filepath.ToSlash(other), Kind: "created", After: digest("2")}}}
	}))
	d.undone("", slash+" restored, "+filepath.ToSlash(other)+" changed_since")
	if data, err := os.ReadFile(out); err != nil || string(data) != "1" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := os.ReadFile(other); err != nil || string(data) != "2" {
		t.Errorf("a file outside that no tool of ours wrote: %q, %v", data, err)
	}
}

func TestATurnIsNamedByItsIDOrABeginningThatNoOtherHas(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1"})
	first := d.turn(write("a", "2"))
	second := d.turn(write("a", "3"))
	quiet := d.turn()
	if first[:8] == second[:8] {
		t.Skip("that happens once in four thousand million")
	}
	d.undone(second[:8], "a restored")
	d.undone("exec_"+first, "a restored")
	if got := d.undone(quiet, ""); got != quiet {
		t.Errorf("a turn that wrote nothing: %q", got)
	}
	d.refused(d.process, first[:3], protocol.InvalidRequest)
	d.refused(d.process, "nope", protocol.NotFound)
	d.refused(d.process, session.TurnID(strings.Repeat("0", 32)), protocol.NotFound)
	d.refused(d.process, first+"0", protocol.NotFound)
	if _, err := d.process.undo.Undo(t.Context(), "20200101_000000_00000000", ""); protocol.KindOf(err) != protocol.SessionNotFound {
		t.Errorf("another session: %v", err)
	}
	if err := os.Rename(d.root, d.root+"moved"); err != nil {
		t.Fatal(err)
	}
	d.refused(d.process, "", protocol.RequestFailed)
}

func TestUndoIsRefusedWhileATurnRunsHereOrElsewhereOrWasLeftOpen(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1"})
	d.turn(write("a", "2"))
	running, goOn := make(chan bool), make(chan bool)
	ended := d.prompt(d.process, 1, inOrder([]step{command(func() *protocol.Touched {
		close(running)
		<-goOn
		return nil
	})}))
	<-running
	other := d.start("second", d.kept)
	d.refused(d.process, "", protocol.SessionBusy)
	d.refused(other, "", protocol.SessionBusy)
	if _, diffs, err := other.undo.Diff(t.Context(), d.id, ""); err != nil || len(diffs) != 1 {
		t.Errorf("a diff harms nobody: %v, %v", diffs, err)
	}
	d.process.store.Kill()
	d.refused(other, "", protocol.SessionBusy) // interrupted
	close(goOn)
	<-ended
	d.process = other
	d.turn() // closes it
	d.undone("", "a restored")
}

func TestWithALeaseNoTurnStartsMeanwhileAndItIsGivenBack(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1"})
	d.turn(write("a", "2"))
	store := d.backing.Open("command line")
	defer store.Close()
	owners := 0
	im := &watched{Images: d.kept, image: func() error {
		if m, err := store.Session(context.Background(), d.id); err != nil || !m.OwnerAlive || m.Owner != "command line" {
			t.Errorf("while it works the owner is %q, %v", m.Owner, err)
		}
		owners++
		return nil
	}}
	u := undo.New(undo.Config{Store: store, Images: im, Keep: true, Lease: true})
	if got, err := u.Undo(t.Context(), d.id, ""); err != nil || fates(got) != "a restored" || owners == 0 {
		t.Errorf("%v, %v", got, err)
	}
	if m, err := store.Session(t.Context(), d.id); err != nil || m.OwnerAlive {
		t.Errorf("afterwards the owner is %q, %v", m.Owner, err)
	}
}

func TestAFaultOfTheMachineIsToldPerFileAndUndoCanBeTriedAgain(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1a", "b": "1b", "c": "1c"})
	id := d.turn(write("a", "2a"), write("b", "2b"), write("c", "2c"))
	full := true
	im := &watched{Images: d.kept, keep: func(data []byte) error {
		if full && string(data) == "2b" {
			return session.ErrFull
		}
		return nil
	}}
	d.process.undo = undo.New(undo.Config{Store: d.process.store, Images: im, Keep: true})
	u, err := d.process.undo.Undo(t.Context(), d.id, "")
	if err != nil || fates(u) != "a restored, b not_kept, c restored" || !strings.Contains(u.Files[1].Reason, "disk is full") {
		t.Errorf("%+v, %v", u, err)
	}
	if d.get("a") != "1a" || d.get("b") != "2b" || d.get("c") != "1c" {
		t.Errorf("%q %q %q", d.get("a"), d.get("b"), d.get("c"))
	}
	full = false
	if got := d.undone("", "a restored, b restored, c restored"); got != id || d.get("b") != "1b" {
		t.Errorf("undid %s, b is %q", got, d.get("b"))
	}
}

func TestUndoEndsWithItsContextAndLeavesNothingHalf(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1a", "b": "1b"})
	d.turn(write("a", "2a"), write("b", "2b"))
	ctx, cancel := context.WithCancel(t.Context())
	im := &watched{Images: d.kept, keep: func(data []byte) error {
		if string(data) == "2b" {
			cancel()
			return ctx.Err()
		}
		return nil
	}}
	u := undo.New(undo.Config{Store: d.process.store, Images: im, Keep: true})
	if got, err := u.Undo(ctx, d.id, ""); !errors.Is(err, context.Canceled) || fates(got) != "a restored" {
		t.Errorf("%v, %v", got, err)
	}
	if d.get("a") != "1a" || d.get("b") != "2b" {
		t.Errorf("%q %q", d.get("a"), d.get("b"))
	}
	d.undone("", "a restored, b restored")
}

// watched is a session.Images that a test can look at, and let fail.
type watched struct {
	session.Images
	keep  func(data []byte) error
	image func() error
}

func (w *watched) Keep(ctx context.Context, id session.SessionID, data []byte) (string, error) {
	if w.keep != nil {
		if err := w.keep(data); err != nil {
			return "", err
		}
	}
	return w.Images.Keep(ctx, id, data)
}

func (w *watched) Image(ctx context.Context, id session.SessionID, digest string) ([]byte, error) {
	if w.image != nil {
		if err := w.image(); err != nil {
			return nil, err
		}
	}
	return w.Images.Image(ctx, id, digest)
}

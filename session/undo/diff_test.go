package undo_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func (d *desk) diffs(turn session.TurnID) map[string]session.FileDiff {
	d.t.Helper()
	got, list, err := d.process.undo.Diff(context.Background(), d.id, turn)
	if err != nil || turn != "" && got != turn {
		d.t.Fatalf("diff of %q: %q, %v", turn, got, err)
	}
	out := map[string]session.FileDiff{}
	for _, f := range list {
		out[f.Path] = f
	}
	if len(out) != len(list) {
		d.t.Errorf("a file stands twice: %v", list)
	}
	return out
}

func TestDiffShowsWhatATurnMadeOfEachFileAsAWhole(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1\n2\n3\n", "bin": "\x00", "rm": "x\n", "crlf": "1\r\n2\r\n", "back": "1\n"})
	id := d.turn(edit("a", "1", "one"), edit("a", "3", "three"), write("new/b", "b"), write("empty", ""), edit("crlf", "2", "two"),
		write("back", "2\n"), write("back", "1\n"), d.change(map[string][]byte{"bin": {0, 1}, "rm": nil, "brief": []byte("x")}), d.change(map[string][]byte{"brief": nil}))
	want := map[string]session.FileDiff{
		"a":     {Diff: "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n-1\n+one\n 2\n-3\n+three\n", Kept: true},
		"new/b": {Diff: "--- /dev/null\n+++ b/new/b\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n", Kept: true, Created: true},
		"empty": {Diff: "--- /dev/null\n+++ b/empty\n", Kept: true, Created: true},
		"crlf":  {Diff: "--- a/crlf\n+++ b/crlf\n@@ -1,2 +1,2 @@\n 1\r\n-2\r\n+two\r\n", Kept: true},
		"bin":   {Kept: true, Reason: "Binary files differ."},
		"rm":    {Diff: "--- a/rm\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", Kept: true, Removed: true},
	}
	check := func(when string) {
		t.Helper()
		got := d.diffs(id)
		for path, w := range want {
			w.Path = path
			if got[path] != w {
				t.Errorf("%s: %+v\nwant %+v", when, got[path], w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d files, want %d", when, len(got), len(want))
		}
	}
	check("as the turn left it")
	d.put("a", "the user's") // what the turn wrote is in its entry
	check("after the user changed a file")
	d.turn(write("crlf", "x"), write("new/b", "y"))
	check("after a later turn")
	if got := d.diffs(""); len(got) != 2 || !strings.Contains(got["crlf"].Diff, "+x") {
		t.Errorf("the newest: %v", got)
	}
	d.undone("", "crlf restored, new/b restored")
	if got := d.diffs(""); len(got) != 2 {
		t.Errorf("the newest is the newest also when it was undone: %v", got)
	}
	check("after an undo")
}

func TestDiffSaysWhatItCannotShow(t *testing.T) {
	long := strings.Repeat("a line of a long file\n", 4000) // more than a change carries whole
	lines := func(of string, n int) string { return strings.Repeat(strings.Repeat(of, 2000)+"\n", n) }
	d := newDesk(t, map[string]string{"lost": long, "since": long, "wide": lines("x", 400), "huge": lines("y", 1100)})
	id := d.turn(write("lost", "2"), write("since", strings.ToUpper(long)), write("wide", lines("z", 400)), write("huge", lines("z", 1100)),
		command(func() *protocol.Touched {
			return &protocol.Touched{Files: []protocol.Touch{{Path: filepath.ToSlash(d.at("other")), Kind: "modified", After: digest("x")}}}
		}))
	if err := os.Remove(filepath.Join(d.outputs(d.id), "before", digest(long))); err != nil {
		t.Fatal(err)
	}
	d.put("since", "the user's")
	got := d.diffs(id)
	for path, want := range map[string]string{
		"lost": "not kept", "since": "not kept", "wide": "too long to be shown", "huge": "too long to be compared", "other": "not kept",
	} {
		if f := got[path]; f.Diff != "" || !strings.Contains(f.Reason, want) || strings.Contains(f.Reason, "\n") {
			t.Errorf("%s: %.100q, %q, want %q", path, f.Diff, f.Reason, want)
		}
	}
	if got["wide"].Kept != true || got["lost"].Kept {
		t.Errorf("kept: %v %v", got["wide"].Kept, got["lost"].Kept)
	}
	_, _, err := d.process.undo.Diff(t.Context(), d.id, "0123456789")
	if protocol.KindOf(err) != protocol.NotFound {
		t.Errorf("no such turn: %v", err)
	}
	e := newDesk(t, nil)
	e.turn()
	if turn, diffs, err := e.process.undo.Diff(t.Context(), e.id, ""); turn != "" || diffs != nil || err != nil {
		t.Errorf("a session that wrote nothing: %q %v %v", turn, diffs, err)
	}
}

func TestDiffsTakeLinesOnlyFromTheContentsBeforeAndAfter(t *testing.T) {
	w := newWriter(t, 5, nil)
	before := w.d.tree()
	id := w.turn(15)
	after := w.d.tree()
	for path, f := range w.d.diffs(id) {
		if f.Diff == "" {
			continue
		}
		var minus, plus []string
		for _, line := range strings.SplitAfter(f.Diff, "\n")[2:] {
			switch {
			case strings.HasPrefix(line, "-"):
				minus = append(minus, strings.TrimRight(line[1:], "\r\n"))
			case strings.HasPrefix(line, "+"):
				plus = append(plus, strings.TrimRight(line[1:], "\r\n"))
			}
		}
		for _, x := range []struct {
			lines []string
			text  string
		}{{minus, before[path]}, {plus, after[path]}} {
			for _, line := range x.lines {
				if !bytes.Contains([]byte(x.text), []byte(line)) {
					t.Errorf("%s: line %q is not in %q", path, line, x.text)
				}
			}
		}
	}
}

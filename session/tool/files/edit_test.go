package files_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/files"
)

// file is the one element of meta.files.
func file(t testing.TB, res session.ToolResult) map[string]any {
	t.Helper()
	if res.ErrorType != "" || res.Data != "Successfully modified 1 file." {
		t.Fatalf("%v, %s: %s", res.Data, res.ErrorType, res.Error)
	}
	list, _ := res.Meta["files"].([]map[string]any)
	if len(list) != 1 {
		t.Fatalf("meta %v", res.Meta)
	}
	return list[0]
}

func TestAnEditChangesOnlyItsBytes(t *testing.T) {
	for _, c := range []struct{ name, before, old, new, after string }{
		{"LF", "a\nword\nb\n", "word", "term", "a\nterm\nb\n"},
		{"CRLF", "a\r\nword\r\nb\r\n", "word", "term", "a\r\nterm\r\nb\r\n"},
		{"CRLF over lines", "a\r\nword\r\nb\r\n", "a\nword\nb", "a\nterm\nand\nb", "a\r\nterm\r\nand\r\nb\r\n"},
		{"CRLF, a line more", "a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"},
		{"CRLF, a line less", "a\r\nword\r\nb\r\n", "word\n", "", "a\r\nb\r\n"},
		{"CRLF, no final newline", "a\r\nword", "word", "x\ny", "a\r\nx\r\ny"},
		{"BOM and CRLF", "\uFEFFword\r\nb\r\n", "word\nb", "term\nb", "\uFEFFterm\r\nb\r\n"},
		{"mixed ends", "a\nb\r\nword\nc\r\nd\n", "b\nword\nc\nd", "b\nterm\nc\nd", "a\nb\r\nterm\nc\r\nd\n"},
		{"mixed, new line by LF", "a\r\nb\nc\n", "b", "b\nx", "a\r\nb\nx\nc\n"},
		{"bare CR", "a\rword\rb", "word", "term", "a\rterm\rb"},
		{"CR meant as such", "a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"},
		{"no final newline", "a\nword", "word", "term", "a\nterm"},
		{"final newline taken", "a\nword\n", "word\n", "word", "a\nword"},
		{"empty result", "word", "word", "", ""},
		{"accents", "naïve café\n", "café", "cafè", "naïve cafè\n"},
		{"regular expression signs", "a.*b(c)\n", ".*b(", "$1", "a$1c)\n"},
		{"only white space", "\tx\n  y\n", "  y", "\ty", "\tx\n\ty\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorkspace(t, map[string]string{"f": c.before})
			f := file(t, w.run(t, files.EditFile(nil), args{"path": "f", "old_str": c.old, "new_str": c.new}))
			if got := w.get(t, "f"); got != c.after {
				t.Errorf("it holds %q, want %q", got, c.after)
			}
			if back := patched(t, c.before, f["diff"].(string)); back != c.after {
				t.Errorf("the diff makes %q of it:\n%s", back, f["diff"])
			}
		})
	}
}

// patched applies a unified diff, as strictly as patch does.
func patched(t testing.TB, before, diff string) string {
	t.Helper()
	old := strings.SplitAfter(before, "\n")
	var out strings.Builder
	at := 0
	rows := strings.SplitAfter(diff, "\n")
	if len(rows) < 3 {
		return before
	}
	for i, row := range rows[2:] {
		if row == "" || row[0] == '\\' {
			continue
		}
		text := row[1:]
		if next := rows[2+i+1:]; len(next) > 0 && strings.HasPrefix(next[0], `\ No newline`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch row[0] {
		case '@':
			var from int
			if _, err := fmt.Sscanf(row, "@@ -%d", &from); err != nil {
				t.Fatalf("hunk %q: %v", row, err)
			}
			for ; at < from-1; at++ {
				out.WriteString(old[at])
			}
		case '+':
			out.WriteString(text)
		case ' ', '-':
			if at >= len(old) || old[at] != text {
				t.Fatalf("the diff has %q where the file does not", text)
			}
			if row[0] == ' ' {
				out.WriteString(text)
			}
			at++
		}
	}
	return out.String() + strings.Join(old[at:], "")
}

func TestAnEditKeepsModeAndLink(t *testing.T) {
	w := newWorkspace(t, map[string]string{"run.sh": "#!/bin/sh\necho word\n"})
	if err := os.Chmod(w.at("run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.sh", w.at("alias")); err != nil {
		t.Skip(err)
	}
	f := file(t, w.run(t, files.EditFile(nil), args{"path": "alias", "old_str": "word", "new_str": "term"}))
	file(t, w.run(t, files.WriteFile(nil), args{"path": "alias", "content": "#!/bin/sh\n"}))
	if info, err := os.Lstat(w.at("alias")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
	if info, err := os.Lstat(w.at("run.sh")); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o755 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if f["path"] != "run.sh" || w.get(t, "run.sh") != "#!/bin/sh\n" {
		t.Errorf("%v, %q", f["path"], w.get(t, "run.sh"))
	}
}

func TestWhatCannotBeEditedStaysAsItIs(t *testing.T) {
	content := map[string]string{
		"f": "one\ntwo two\n  three\n", "utf16": "\xff\xfew\x00o\x00", "latin1": "caf\xe9 word\n", "binary": "word\x00", "aaa": "aaa", "crlf": "x\r\ny\r\n", "sub/f": "",
	}
	w := newWorkspace(t, content)
	w.put(t, "huge", "word")
	if err := os.Truncate(w.at("huge"), 11<<20); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 10<<20+1)
	for _, c := range []struct {
		args         args
		status, kind string
		says         string
	}{
		{args{"path": "f", "old_str": "four", "new_str": "x"}, "failed", "NotFound", "old_str"},
		{args{"path": "f", "old_str": "     1\tone", "new_str": "x"}, "failed", "NotFound", "line numbers"},
		{args{"path": "f", "old_str": "two two\nthree", "new_str": "x"}, "failed", "NotFound", "white space"},
		{args{"path": "f", "old_str": "two", "new_str": "x"}, "failed", "NotUnique", "2 times (lines 2, 2)"},
		{args{"path": "aaa", "old_str": "aa", "new_str": "x"}, "failed", "NotUnique", "2 times"},
		{args{"path": "crlf", "old_str": "\n", "new_str": "x"}, "failed", "NotUnique", "lines 1, 2"},
		{args{"path": "f", "old_str": "", "new_str": "x"}, "rejected", "InvalidArguments", "empty"},
		{args{"path": "f", "old_str": "one", "new_str": "one"}, "rejected", "InvalidArguments", "same"},
		{args{"path": "f", "old_str": "one"}, "rejected", "InvalidArguments", "new_str"},
		{args{"path": "f", "old_str": "one", "new_str": big}, "rejected", "TooLarge", "10485760"},
		{args{"path": "nope", "old_str": "a", "new_str": "b"}, "unavailable", "NotFound", "nope"},
		{args{"path": "sub", "old_str": "a", "new_str": "b"}, "rejected", "InvalidArguments", "folder"},
		{args{"path": "utf16", "old_str": "w", "new_str": "b"}, "rejected", "InvalidArguments", "UTF-16"},
		{args{"path": "latin1", "old_str": "word", "new_str": "b"}, "rejected", "InvalidArguments", "UTF-8"},
		{args{"path": "binary", "old_str": "word", "new_str": "b"}, "rejected", "InvalidArguments", "binary"},
		{args{"path": "huge", "old_str": "word", "new_str": "b"}, "rejected", "TooLarge", "10485760"},
		{args{"path": "../f", "old_str": "word", "new_str": "b"}, "rejected", "PermissionDenied", "outside"},
		{args{"path": "f", "content": big}, "rejected", "TooLarge", "10485761"},
		{args{"path": "latin1", "content": "new"}, "rejected", "InvalidArguments", "UTF-8"},
		{args{"path": "utf16", "content": "new"}, "rejected", "InvalidArguments", "UTF-16"},
		{args{"path": "sub", "content": "new"}, "rejected", "InvalidArguments", "folder"},
		{args{"path": "new/", "content": "new"}, "rejected", "InvalidArguments", "folder"},
		{args{"path": "f/below", "content": "new"}, "rejected", "InvalidArguments", "below a file"},
		{args{"content": "new"}, "rejected", "InvalidArguments", "path is missing"},
		{args{"path": "f"}, "rejected", "InvalidArguments", "content is missing"},
		{args{"path": "f", "file_path": "g", "content": "x"}, "rejected", "InvalidArguments", "file_path"},
		{args{"path": "../esc", "content": "x"}, "rejected", "PermissionDenied", "esc"},
	} {
		tool := files.WriteFile(nil)
		if _, edit := c.args["old_str"]; edit {
			tool = files.EditFile(nil)
		}
		res := w.run(t, tool, c.args)
		refused(t, res, c.status, c.kind, c.says)
		if len(res.Changes) > 0 {
			t.Errorf("%v tells of changes", c.args)
		}
	}
	for name, text := range content {
		if got := w.get(t, name); got != text {
			t.Errorf("%s holds %q now", name, got)
		}
	}
	if left, err := filepath.Glob(w.at(".rind-*")); err != nil || left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFileMakesOrReplacesAFileAndTellsIt(t *testing.T) {
	w := newWorkspace(t, map[string]string{"old.go": "a\nb\nc\n", "crlf.txt": "\uFEFFa\r\nb\r\n", "mixed": "a\r\nb\n"})
	res := w.run(t, files.WriteFile(nil), args{"file_path": "x/y.md", "content": "one\ntwo"})
	f := file(t, res)
	if f["path"] != "x/y.md" || f["created"] != true || f["added_lines"] != 2 || f["removed_lines"] != 0 || f["size_bytes"] != 7 {
		t.Errorf("%v", f)
	}
	if d := f["diff"].(string); !strings.HasPrefix(d, "--- /dev/null\n+++ b/x/y.md\n@@") {
		t.Errorf("diff %q", d)
	}
	ch := res.Changes[0]
	if ch.FilePath != filepath.ToSlash(w.at("x/y.md")) || !ch.More.Created || ch.More.Before != "" || ch.More.After != hash("one\ntwo") || ch.More.MIME != "text/markdown" {
		t.Errorf("%+v", ch)
	}

	res = w.run(t, files.WriteFile(nil), args{"path": w.at("old.go"), "content": "a\nB\nc\nd\n"})
	f, ch = file(t, res), res.Changes[0]
	if f["path"] != "old.go" || f["created"] != false || f["added_lines"] != 2 || f["removed_lines"] != 1 || w.get(t, "old.go") != "a\nB\nc\nd\n" {
		t.Errorf("%v", f)
	}
	want := []protocol.DiffLine{{Kind: "removed", Text: "b"}, {Kind: "added", Text: "B"}, {Kind: "added", Text: "d"}}
	if len(ch.Lines) != 3 || ch.Lines[0] != want[0] || ch.Lines[1] != want[1] || ch.Lines[2] != want[2] {
		t.Errorf("lines %v", ch.Lines)
	}
	if ch.More.Added != 2 || ch.More.Removed != 1 || ch.More.Created || ch.More.Before != hash("a\nb\nc\n") || ch.More.After != hash("a\nB\nc\nd\n") {
		t.Errorf("%+v", ch.More)
	}

	res = w.run(t, files.WriteFile(nil), args{"path": "old.go", "content": "a\nB\nc\nd\n"})
	if f := file(t, res); f["diff"] != "" || f["added_lines"] != 0 || len(res.Changes) > 0 {
		t.Errorf("the same text again: %v %v", f, res.Changes)
	}
	file(t, w.run(t, files.WriteFile(nil), args{"path": "crlf.txt", "content": "x\ny\n"}))
	if got := w.get(t, "crlf.txt"); got != "\uFEFFx\r\ny\r\n" {
		t.Errorf("mark and line ends became %q", got)
	}
	file(t, w.run(t, files.WriteFile(nil), args{"path": "mixed", "content": "x\ny\n"}))
	if got := w.get(t, "mixed"); got != "x\ny\n" {
		t.Errorf("a file without a style holds %q", got)
	}
	if f := file(t, w.run(t, files.WriteFile(nil), args{"path": "nothing", "content": ""})); f["created"] != true || w.get(t, "nothing") != "" {
		t.Errorf("an empty file: %v", f)
	}
}

func TestWhatIsToldOfALargeChangeIsBounded(t *testing.T) {
	w := newWorkspace(t, map[string]string{"lines": count(200_000)})
	res := w.run(t, files.WriteFile(nil), args{"path": "lines", "content": strings.ReplaceAll(count(190_000), "line", "row")})
	f, ch := file(t, res), res.Changes[0]
	if f["removed_lines"] != 200_000 || f["added_lines"] != 190_000 || len(ch.Lines) != 120 || len(f["diff"].(string)) > 70_000 {
		t.Errorf("%v %v %d lines, diff of %d bytes", f["removed_lines"], f["added_lines"], len(ch.Lines), len(f["diff"].(string)))
	}
	res = w.run(t, files.WriteFile(nil), args{"path": "wide", "content": strings.Repeat(strings.Repeat("é", 5000)+"\n", 5)})
	chars := 0
	for _, l := range res.Changes[0].Lines {
		chars += len([]rune(l.Text))
	}
	if chars > 12_000 || len(res.Changes[0].Lines) != 2 {
		t.Errorf("%d characters in %d lines", chars, len(res.Changes[0].Lines))
	}
}

// The oracle replaces in the text as models see it, without CRs, and compares without them; what lies outside the passage must be there
// byte for byte.
func TestRandomEditsChangeNothingElse(t *testing.T) {
	w := newWorkspace(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		raw := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "é", " ", "\n", "\r\n", "\r\n", "x\r\n", "y\n"}), 1, 30).Draw(rt, "file"), "")
		view := strings.ReplaceAll(raw, "\r\n", "\n")
		runes := []rune(view)
		from := rapid.IntRange(0, len(runes)-1).Draw(rt, "from")
		to := rapid.IntRange(from+1, len(runes)).Draw(rt, "to")
		old := string(runes[from:to])
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "\n", "new"}), 0, 6).Draw(rt, "new"), "")
		w.put(t, "f", raw)
		res := w.run(t, files.EditFile(nil), args{"path": "f", "old_str": old, "new_str": text})
		if res.ErrorType == protocol.ErrNotUnique || old == text {
			return
		}
		if res.ErrorType != "" {
			rt.Fatalf("%q in %q: %s", old, raw, res.Error)
		}
		got := w.get(t, "f")
		if want := strings.Replace(view, old, text, 1); strings.ReplaceAll(got, "\r\n", "\n") != want {
			rt.Fatalf("%q -> %q in %q gave %q", old, text, raw, got)
		}
		lines := func(s string) []string { return strings.SplitAfter(s, "\n") }
		keep := strings.Count(string(runes[:from]), "\n")
		for i := range keep {
			if lines(raw)[i] != lines(got)[i] {
				rt.Fatalf("%q -> %q in %q changed line %d: %q", old, text, raw, i, got)
			}
		}
		tail := strings.Count(string(runes[to:]), "\n")
		a, b := lines(raw), lines(got)
		for i := range tail {
			if a[len(a)-1-i] != b[len(b)-1-i] {
				rt.Fatalf("%q -> %q in %q changed the end: %q", old, text, raw, got)
			}
		}
	})
}

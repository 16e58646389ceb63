package files_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/tool/files"
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func count(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFileShowsNumberedLinesPageByPage(t *testing.T) {
	long := count(2500)
	w := newWorkspace(t, map[string]string{
		"three": "a\nb\n\n", "noend": "a\nb", "crlf": "a\r\nb\r\n", "bom": "\uFEFFa\n\uFEFFb\n", "long": long, "empty": "", "newline": "\n", "cr": "a\rb\n", "latin1": "caf\xe9\n",
		"edge": strings.Repeat("é", 2000) + "\r\n",
	})
	for _, c := range []struct {
		args  args
		data  string // "" is not looked at
		first string
		last  string
		total int
		next  any
	}{
		{args: args{"path": "three"}, data: "     1\ta\n     2\tb\n     3\t\n", total: 3},
		{args: args{"path": "noend"}, data: "     1\ta\n     2\tb\n", total: 2},
		{args: args{"path": "crlf"}, data: "     1\ta\n     2\tb\n", total: 2},
		{args: args{"path": "bom"}, data: "     1\ta\n     2\t\uFEFFb\n", total: 2},
		{args: args{"path": "cr"}, data: "     1\ta\rb\n", total: 1},
		{args: args{"path": "latin1"}, data: "     1\tcaf\uFFFD\n", total: 1},
		{args: args{"path": "newline"}, data: "     1\t\n", total: 1},
		{args: args{"path": "empty"}, data: "(the file is empty)", total: 0},
		{args: args{"path": "edge"}, data: "     1\t" + strings.Repeat("é", 2000) + "\n", total: 1},
		{args: args{"path": "long"}, first: "     1\tline 1\n", last: "  1000\tline 1000\n", total: 2500, next: 1001},
		{args: args{"path": "long", "offset": 1001}, first: "  1001\t", last: "  2000\tline 2000\n", total: 2500, next: 2001},
		{args: args{"path": "long", "offset": 2001.0}, first: "  2001\t", last: "  2500\tline 2500\n", total: 2500},
		{args: args{"path": "long", "offset": 2500, "limit": 1}, data: "  2500\tline 2500\n", total: 2500},
		{args: args{"path": "long", "offset": 2499, "limit": 1}, data: "  2499\tline 2499\n", total: 2500, next: 2500},
		{args: args{"path": "long", "limit": 2000}, first: "     1\t", last: "  2000\tline 2000\n", total: 2500, next: 2001},
		{args: args{"path": "long", "limit": 9999}, last: "  2000\tline 2000\n", total: 2500, next: 2001},
		{args: args{"path": "long", "offset": 2501}, data: "(the file has 2500 lines; there is none from line 2501 on)", total: 2500},
		{args: args{"path": "long", "offset": 1 << 52}, first: "(the file has 2500 lines", total: 2500},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			res := w.run(t, files.ReadFile(), c.args)
			data, _ := res.Data.(string)
			switch {
			case res.ErrorType != "":
				t.Fatal(res.Error)
			case c.data != "" && data != c.data:
				t.Errorf("data %q, want %q", data, c.data)
			case !strings.HasPrefix(data, c.first) || !strings.HasSuffix(data, c.last):
				t.Errorf("data %.40q … %q", data, data[max(0, len(data)-40):])
			}
			want := map[string]any{
				"total_lines": c.total, "next_offset": c.next, "truncated": c.next != nil, "sha256": hash(w.get(t, c.args["path"].(string))),
			}
			if fmt.Sprint(res.Meta) != fmt.Sprint(want) {
				t.Errorf("meta %v, want %v", res.Meta, want)
			}
		})
	}
}

func TestPagesOfALongFileAddUpToIt(t *testing.T) {
	text := strings.Repeat(strings.Repeat("w", 1900)+"\n", 700) // more than one call may show
	w := newWorkspace(t, map[string]string{"f": text})
	var got strings.Builder
	offset, calls := 1, 0
	for {
		res := w.run(t, files.ReadFile(), args{"path": "f", "offset": offset, "limit": 2000})
		for row := range strings.Lines(res.Data.(string)) {
			_, line, _ := strings.Cut(row, "\t")
			got.WriteString(line)
		}
		calls++
		next, more := res.Meta["next_offset"].(int)
		if !more {
			break
		}
		offset = next
	}
	if got.String() != text || calls < 2 || calls > 10 {
		t.Errorf("%d calls gave %d of %d bytes", calls, got.Len(), len(text))
	}
}

func TestUTF16IsReadAsText(t *testing.T) {
	encode := func(text string, big bool) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune("\uFEFF" + text)) {
			lo, hi := byte(u), byte(u>>8)
			if big {
				lo, hi = hi, lo
			}
			b.WriteByte(lo)
			b.WriteByte(hi)
		}
		return b.String()
	}
	text := "größe\r\n\U0001F980 krab\r\n"
	w := newWorkspace(t, map[string]string{
		"le": encode(text, false), "be": encode(text, true), "odd": encode("ab", false) + "x", "lone": encode("a", false) + "\x00\xd8" + "b\x00",
		"big": encode(strings.Repeat(strings.Repeat("ä", 1500)+"\n", 100), false),
	})
	for path, want := range map[string]string{
		"le": "     1\tgröße\n     2\t\U0001F980 krab\n", "be": "     1\tgröße\n     2\t\U0001F980 krab\n", "odd": "     1\tab\uFFFD\n", "lone": "     1\ta\uFFFDb\n",
	} {
		if res := w.run(t, files.ReadFile(), args{"path": path}); res.Data != want || res.Meta["sha256"] != hash(w.get(t, path)) {
			t.Errorf("%s: %q, %s", path, res.Data, res.Error)
		}
	}
	if res := w.run(t, files.ReadFile(), args{"path": "big", "limit": 2}); res.Meta["total_lines"] != 100 || strings.Count(res.Data.(string), "ä") != 3000 {
		t.Errorf("big: %v %s", res.Meta, res.Error)
	}
}

func TestWhatReadFileCannotShowIsSaidClearly(t *testing.T) {
	w := newWorkspace(t, map[string]string{
		"binary": "\x7fELF\x00\x01", "late": strings.Repeat("text\n", 3000) + "\x00\n", "wide": "short\n" + strings.Repeat("x", 2001) + "\nshort\n",
		"line": strings.Repeat("y", 20<<20), "sub/f": "x", "many": strings.Repeat("\xf0\x9f\xa6\x80", 2001),
	})
	read := files.ReadFile()
	refused(t, w.run(t, read, args{"path": "binary"}), protocol.ToolRejected, protocol.ErrInvalidArguments, "binary", "6 bytes")
	refused(t, w.run(t, read, args{"path": "late", "offset": 3000}), protocol.ToolRejected, protocol.ErrInvalidArguments, "binary")
	refused(t, w.run(t, read, args{"path": "wide"}), protocol.ToolFailed, protocol.ErrLineTooLong, "Line 2", "2000")
	refused(t, w.run(t, read, args{"path": "many"}), protocol.ToolFailed, protocol.ErrLineTooLong)
	refused(t, w.run(t, read, args{"path": "line"}), protocol.ToolFailed, protocol.ErrLineTooLong, "grep")
	refused(t, w.run(t, read, args{"path": "nope"}), protocol.ToolUnavailable, protocol.ErrNotFound, "nope")
	refused(t, w.run(t, read, args{"path": "sub"}), protocol.ToolRejected, protocol.ErrInvalidArguments, "folder")
	refused(t, w.run(t, read, args{"path": "."}), protocol.ToolRejected, protocol.ErrInvalidArguments, "folder")
	refused(t, w.run(t, read, args{"path": "../x"}), protocol.ToolRejected, protocol.ErrPermissionDenied, filepath.ToSlash(filepath.Dir(string(w)))+"/x")
	for _, a := range []args{{"path": "wide", "limit": 1}, {"path": "wide", "offset": 3}} {
		if res := w.run(t, read, a); res.ErrorType != "" || res.Meta["total_lines"] != 3 {
			t.Errorf("%v: lines beside the long one: %s %v", a, res.Error, res.Meta)
		}
	}
	gone := workspace(w.at("nowhere"))
	refused(t, gone.run(t, read, args{"path": "x"}), protocol.ToolUnavailable, protocol.ErrNotFound, "workspace folder")
}

func TestHugeFilesAreReadInBoundedTime(t *testing.T) {
	w := newWorkspace(t, map[string]string{"text": count(3), "zeros": ""})
	for name, size := range map[string]int64{"text": 1 << 40, "zeros": 1 << 40} {
		if err := os.Truncate(w.at(name), size); err != nil {
			t.Skipf("no sparse files here: %v", err)
		}
	}
	began := time.Now()
	refused(t, w.run(t, files.ReadFile(), args{"path": "zeros"}), protocol.ToolRejected, protocol.ErrInvalidArguments, "binary")
	refused(t, w.run(t, files.ReadFile(), args{"path": "text"}), protocol.ToolRejected, protocol.ErrInvalidArguments, "binary")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	f, err := os.OpenFile(w.at("text"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(count(40_000)) // text first, then a hole: what a log looks like that a crash cut short
	if e := f.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	began = time.Now()
	res := w.run(t, files.ReadFile(), args{"path": "text", "offset": 30_000, "limit": 2})
	if res.Data != " 30000\tline 30000\n 30001\tline 30001\n" || res.Meta["next_offset"] != 30_002 || res.Meta["truncated"] != true || res.Meta["total_lines"] != nil {
		t.Errorf("%q %v %s", res.Data, res.Meta, res.Error)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestImagesAreAttached(t *testing.T) {
	images := map[string]string{
		"p.png": "\x89PNG\r\n\x1a\n\x00data", "j.bin": "\xff\xd8\xff\xe0\x00", "g.gif": "GIF89a\x00", "w.webp": "RIFF\x10\x00\x00\x00WEBPVP8 \x00",
	}
	mimes := map[string]string{"p.png": "image/png", "j.bin": "image/jpeg", "g.gif": "image/gif", "w.webp": "image/webp"}
	w := newWorkspace(t, images)
	for name, data := range images {
		res := w.run(t, files.ReadFile(), args{"path": name})
		if len(res.Attachments) != 1 || res.Meta["sha256"] != hash(data) {
			t.Fatalf("%s: %+v", name, res)
		}
		if a := res.Attachments[0]; a.Kind != "image" || a.MIME != mimes[name] || string(a.Data) != data {
			t.Errorf("%s: %+v", name, a)
		}
	}
	w.put(t, "huge.png", images["p.png"])
	if err := os.Truncate(w.at("huge.png"), 6<<20); err != nil {
		t.Fatal(err)
	}
	refused(t, w.run(t, files.ReadFile(), args{"path": "huge.png"}), protocol.ToolFailed, protocol.ErrTooLarge)
	w.put(t, "lie.png", "only text\n")
	if res := w.run(t, files.ReadFile(), args{"path": "lie.png"}); res.Data != "     1\tonly text\n" {
		t.Errorf("a text named like an image: %+v", res)
	}
}

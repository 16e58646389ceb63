//go:build unix

package shell_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/tool/shell"
)

func TestOutputIsMadeTextOnceAndSaysSo(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		command, out string
		lossy        bool
	}{
		{`printf 'a\tb\r\nc\n'`, "a\tb\r\nc\n", false},
		{`printf 'na\303\257ve \342\202\254 \360\237\230\200'`, "naïve € 😀", false},
		{`printf 'x\377y\000z\177\010'`, "x\uFFFDyz", true},
		{`printf '\033[31mred\033[0m \033]0;title\007bar\033]8;;http://x\033\\link\033(B'`, "red barlink", true},
		{`printf '\302\2331mbold'`, "bold", true},
		{`printf '\033]never ended\nnext'`, "\nnext", true},
		{`printf '\033[\033[1mx\033'`, "x", true},
		{`printf '\342\202'`, "\uFFFD", true},
		{`printf '\342'; sleep 0.05; printf '\202'; sleep 0.05; printf '\254'`, "€", false},
		{`printf '10%%\r50%%\r100%%\n'`, "10%\r50%\r100%\n", false},
	} {
		data, res := d.run(t, c.command)
		if data.Stdout != c.out || (res.Meta["lossy"] == true) != c.lossy {
			t.Errorf("%s: %q, meta %v", c.command, data.Stdout, res.Meta)
		}
	}
	data, res := d.run(t, `head -c 4096 /dev/urandom; printf '\000\033[31m\377'`)
	if strings.ContainsFunc(data.Stdout, func(r rune) bool { return r < 0x20 && !strings.ContainsRune("\t\n\r", r) || r == 0x7f }) || res.Meta["lossy"] != true {
		t.Errorf("%q", data.Stdout)
	}
}

// numbers is the output of seq.
func numbers(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		b.WriteString(strconv.Itoa(n))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestLongOutputKeepsHeadAndTailAndTheRestIsInAFile(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		command, all         string
		startsWith, endsWith string
		stream               func(told) string
	}{
		{"seq 1 100000", numbers(1, 100_000), "1\n2\n3\n", "99999\n100000\n", func(d told) string { return d.Stdout }},
		{"seq 1 3000", numbers(1, 3000), "1\n", "\n3000\n", func(d told) string { return d.Stdout }},
		{"seq 1 100000 >&2; sleep 0.2; echo end", numbers(1, 100_000) + "end\n", "1\n", "100000\n", func(d told) string { return d.Stderr }},
		{`head -c 50000 /dev/zero | tr '\0' '"'`, strings.Repeat(`"`, 50_000), `"""`, `"""`, func(d told) string { return d.Stdout }},
		{`for i in $(seq 20000); do printf '\342\202\254'; done`, strings.Repeat("€", 20_000), "€€", "€€", func(d told) string { return d.Stdout }},
	} {
		t.Run(c.command, func(t *testing.T) {
			data, res := d.run(t, c.command)
			text := c.stream(data)
			if !strings.HasPrefix(text, c.startsWith) || !strings.HasSuffix(text, c.endsWith) || !strings.Contains(text, "bytes left out") || !utf8.ValidString(text) {
				t.Errorf("%.40q … %.40q", text, text[max(0, len(text)-40):])
			}
			whole := protocol.MustMarshal(map[string]any{"data": res.Data, "meta": res.Meta})
			if len(whole) > 24<<10 || strings.Count(text, "\n") > 1900 {
				t.Errorf("%d bytes, %d lines: the model gets 25 KiB and 2000 lines", len(whole), strings.Count(text, "\n"))
			}
			if len(whole) < 9000 && strings.Count(text, "\n") < 1500 {
				t.Errorf("%d bytes: more could be shown", len(whole))
			}
			path, _ := res.Meta["output_path"].(string)
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != d.outputs {
				t.Fatalf("%v %v", info, err)
			}
			file, err := os.ReadFile(path)
			if err != nil || string(file) != c.all {
				t.Errorf("the file has %d bytes, want %d: %v", len(file), len(c.all), err)
			}
			if res.Meta["truncated"] != true || res.Meta["total_bytes"] != int64(len(c.all)) || res.Meta["lossy"] != nil {
				t.Errorf("meta %v", res.Meta)
			}
		})
	}
}

func TestWhatIsLeftOutIsCounted(t *testing.T) {
	d := newDesk(t)
	for _, n := range []int{30_000, 100_000, 128 << 10, 128<<10 + 1, 200_000, 1_000_000} {
		data, _ := d.run(t, fmt.Sprintf("yes | tr -d '\\n' | head -c %d", n))
		head, rest, ok := strings.Cut(data.Stdout, "\n[… ")
		count, tail, ok2 := strings.Cut(rest, " bytes left out …]\n")
		left, err := strconv.Atoi(count)
		if !ok || !ok2 || err != nil || len(head)+left+len(tail) != n {
			t.Errorf("%d bytes: %d + %s + %d", n, len(head), count, len(tail))
		}
	}
}

func TestOutputThatFitsIsWholeAndMakesNoFile(t *testing.T) {
	d := newDesk(t)
	data, res := d.run(t, "seq 1 1500; seq 1 100 >&2")
	if data.Stdout != numbers(1, 1500) || data.Stderr != numbers(1, 100) || res.Meta["truncated"] != false || res.Meta["total_lines"] != int64(1600) {
		t.Errorf("%v", res.Meta)
	}
	if files, _ := os.ReadDir(d.outputs); len(files) != 0 {
		t.Errorf("%v", files)
	}
	d.config.Outputs = func(_ protocol.SessionID) string { return filepath.Join(d.put(t, "file", ""), "x") } // cannot be made
	data, res = d.run(t, "seq 1 100000")
	if data.Status != "completed" || res.Meta["truncated"] != true || res.Meta["output_path"] != nil {
		t.Errorf("%+v", res.Meta)
	}
}

// residentKB is the memory of a process in use, in KiB.
func residentKB(t testing.TB, field string) (kb int) {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("this system does not say how much memory is used")
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), field+":"); ok {
			_, _ = fmt.Sscan(rest, &kb)
		}
	}
	return kb
}

func TestEndlessOutputCostsBoundedMemoryAndDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	d := newDesk(t)
	before := residentKB(t, "VmRSS")
	most := 0
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, residentKB(t, "VmRSS"))
			}
		}
	}()
	began := time.Now()
	data, res := d.run(t, "yes | head -c 300000000; echo END >&2; exit 3")
	close(stop)
	<-done
	if data.Status != "failed" || data.ExitCode != 3 || data.Stderr != "END\n" || res.Meta["total_bytes"] != int64(300_000_004) || res.Meta["output_incomplete"] != true {
		t.Errorf("%+v", res.Meta)
	}
	if grown := most - before; grown > 64<<10 {
		t.Errorf("the memory grew by %d KiB", grown)
	}
	info, err := os.Stat(res.Meta["output_path"].(string))
	if err != nil || info.Size() > 33<<20 {
		t.Errorf("%v %v", info, err)
	}
	t.Logf("%v, memory +%d KiB", time.Since(began).Round(time.Millisecond), most-before)
}

// FuzzTextIsCleanHoweverItIsCut holds the cleaner against what it promises, and pieces against the whole.
func FuzzTextIsCleanHoweverItIsCut(f *testing.F) {
	for _, s := range []string{"", "a\x1b[31mb", "\x1b]0;t\x07x", "\xe2\x82\xac\xff", "\x1b]x\ny", "\x1b\x1b[[", "\xc2\x9b1mx\xc2", "\x1bPq\x1b\\z", "a\r\nb\x00", "\x1b( "} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		whole, lossy := shell.Clean(data)
		if !utf8.ValidString(whole) {
			t.Fatalf("%q is not UTF-8", whole)
		}
		for _, r := range whole {
			if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q holds %U", whole, r)
			}
		}
		if !lossy && whole != string(data) {
			t.Fatalf("%q became %q in silence", data, whole)
		}
		var pieces [][]byte
		for n := int(size%7) + 1; len(data) > 0; data = data[min(n, len(data)):] {
			pieces = append(pieces, data[:min(n, len(data))])
		}
		if got, l := shell.Clean(pieces...); got != whole || l != lossy {
			t.Fatalf("in pieces: %q, at once: %q", got, whole)
		}
		if again, _ := shell.Clean([]byte(whole)); again != whole {
			t.Fatalf("%q is cleaned again, to %q", whole, again)
		}
	})
}

func BenchmarkACommand(b *testing.B) {
	for _, mode := range []string{shell.ModeOff, shell.ModeAuto} {
		b.Run("sandbox "+mode, func(b *testing.B) {
			d := newDesk(b)
			d.config.Mode = mode
			raw, _ := json.Marshal(args{"command": "true"})
			tool := shell.Bash(d.config)
			for b.Loop() {
				if _, err := tool.Run(context.Background(), d.asked(raw), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

//go:build unix

package shell_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/shell"
)

func inFile(t testing.TB) func() (*os.File, error) {
	dir := t.TempDir()
	return func() (*os.File, error) { return os.CreateTemp(dir, "output-*") }
}

func noFile() (*os.File, error) { return nil, errors.New("there is no room") }

// model is what was written to a record.
type model struct {
	text   []byte
	pieces []piece
	ends   [2]string // of each stream
}

type piece struct {
	stream     int // 1 is standard error
	start, end int64
}

func (m *model) add(stream int, text string) {
	start := int64(len(m.text))
	m.text = append(m.text, text...)
	m.pieces = append(m.pieces, piece{stream, start, int64(len(m.text))})
	m.ends[stream] += text
}

// between is what each stream has between two places.
func (m *model) between(start, next int64) (out, err string) {
	var parts [2]string
	for _, p := range m.pieces {
		if from, to := max(p.start, start), min(p.end, next); from < to {
			parts[p.stream] += string(m.text[from:to])
		}
	}
	return parts[0], parts[1]
}

// ending is the end of a stream.
func (m *model) ending(stream, characters int) string {
	text := m.ends[stream]
	at := len(text)
	for ; characters > 0 && at > 0; characters-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}

func TestAnyPartOfTheOutputIsToldAsItCame(t *testing.T) {
	for name, create := range map[string]func() (*os.File, error){"in a file": inFile(t), "in memory": noFile} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rec := shell.NewRecord(create)
				defer rec.Close()
				job, m := rec.Job(), &model{}
				for range rapid.IntRange(1, 10).Draw(rt, "pieces") {
					stream := rapid.IntRange(0, 1).Draw(rt, "stream")
					piece := strings.Repeat(rapid.SampledFrom([]string{"a", "é\n", "€", "😀x", "0123456789\n"}).Draw(rt, "text"), rapid.SampledFrom([]int{1, 3, 500, 30_000}).Draw(rt, "times"))
					rec.Write(stream == 1, []byte(piece))
					m.add(stream, piece)
					if rapid.IntRange(0, 3).Draw(rt, "store") == 0 {
						rec.Store()
					}
					from := int64(rapid.IntRange(-5, len(m.text)+5).Draw(rt, "from"))
					most := rapid.SampledFrom([]int{-1, 0, 1, 2, 7, 2000, 50_000, 1 << 40}).Draw(rt, "most")
					holds(rt, job, m, from, most, name == "in a file")
				}
			})
		})
	}
}

// holds checks one read.
func holds(t *rapid.T, job session.Job, m *model, from int64, most int, all bool) {
	out, err, start, next := job.Output(from, most)
	at := min(max(from, 0), int64(len(m.text)))
	for at < int64(len(m.text)) && !utf8.RuneStart(m.text[at]) {
		at++
	}
	if start < at || next < start || next > int64(len(m.text)) || all && start != at {
		t.Fatalf("from %d of %d: %d to %d", from, len(m.text), start, next)
	}
	wantOut, wantErr := m.between(start, next)
	if out != wantOut || err != wantErr {
		t.Fatalf("%d to %d: %.40q %.40q, want %.40q %.40q", start, next, out, err, wantOut, wantErr)
	}
	if n := utf8.RuneCountInString(out + err); n > max(most, 0) || !utf8.ValidString(out) || !utf8.ValidString(err) {
		t.Fatalf("%d characters of at most %d, or half ones", n, most)
	}
	if next == start && start < int64(len(m.text)) && most > 0 {
		t.Fatalf("from %d of %d nothing was read", from, len(m.text))
	}
	if sum := job.Sum(); sum.Bytes != int64(len(m.text)) || sum.Incomplete && all {
		t.Fatalf("%+v, want %d bytes", sum, len(m.text))
	}
	if n := min(most, 16_000); n >= 0 { // 64 KiB of each are kept
		if out, err = job.Tail(n); out != m.ending(0, n) || err != m.ending(1, n) {
			t.Fatalf("tails of %d: %.40q %.40q", n, out, err)
		}
	}
}

func TestStreamsThatTakeTurnsEndlesslyCostBoundedMemory(t *testing.T) {
	rec := shell.NewRecord(inFile(t))
	defer rec.Close()
	rec.Store()
	const turns = 60_000
	for range turns {
		rec.Write(false, []byte("o"))
		rec.Write(true, []byte("e"))
	}
	job := rec.Job()
	if out, err, _, next := job.Output(0, 10); out != "oeoeoeoeoe" || err != "" || next != 10 {
		t.Errorf("%q %q: the oldest counts as one piece", out, err)
	}
	if out, err, start, _ := job.Output(2*turns-10, 10); out != "ooooo" || err != "eeeee" || start != 2*turns-10 {
		t.Errorf("%q %q from %d", out, err, start)
	}
}

func TestAFileThatIsFullEndsWithACharacter(t *testing.T) {
	rec := shell.NewRecord(inFile(t))
	defer rec.Close()
	mebi := []byte(strings.Repeat("€", 1<<20/3) + "x") // 1 MiB
	rec.Write(false, []byte("yy"))                     // so that the bound is in the middle of one
	for range 33 {
		rec.Write(false, mebi)
	}
	job := rec.Job()
	if out, _, start, next := job.Output(0, 1<<40); start != 0 || next != int64(len(out)) || len(out) < 50_000 || len(out) > 1<<20 {
		t.Errorf("%d to %d: what is read at once is bounded", start, next)
	}
	from := int64(32<<20 - 1001)
	out, _, start, next := job.Output(from, 5000)
	if start < from || start > from+2 || next > 32<<20 || next < 32<<20-2 || strings.Trim(out, "€xy") != "" {
		t.Errorf("%d to %d: %.20q … %q", start, next, out, out[max(0, len(out)-6):])
	}
	out, _, start, _ = job.Output(next, 10)
	if end := int64(33 << 20); start < end-130<<10 || start > end-60<<10 || strings.Trim(out, "€xy") != "" {
		t.Errorf("the rest begins at %d: %q", start, out)
	}
	text, err := os.ReadFile(job.Sum().Path)
	if err != nil || !utf8.Valid(text) || !strings.HasSuffix(string(text), "not kept …]\n") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestAFileThatIsGoneIsSkippedOver(t *testing.T) {
	rec := shell.NewRecord(inFile(t))
	defer rec.Close()
	rec.Store()
	rec.Write(false, []byte("0123456789"))
	job := rec.Job()
	path := job.Sum().Path
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	if out, _, start, next := job.Output(2, 100); out != "23" || start != 2 || next != 4 {
		t.Errorf("%q %d %d", out, start, next)
	}
	for _, spoil := range []func(string) error{func(string) error { return nil }, os.Remove} {
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		if out, _, start, next := job.Output(4, 100); out != "" || start != 10 || next != 10 {
			t.Errorf("%q %d %d", out, start, next)
		}
	}
	if out, _ := job.Tail(3); out != "789" {
		t.Errorf("%q", out)
	}
}

func TestOfOutputWithoutAFileTheBeginningAndTheEndAreKept(t *testing.T) {
	d := newDesk(t)
	d.config.Outputs = func(session.SessionID) string { return filepath.Join(d.put(t, "file", ""), "x") } // cannot be made
	job, r := d.task(t, args{"command": "seq 1 200000; echo end >&2", "yield_time_ms": 0})
	await(t, job)
	sum := job.Sum()
	if r.res.Meta["output_path"] != nil || sum.Path != "" || !sum.Incomplete || sum.Lines != 200_001 || sum.Bytes != int64(len(numbers(1, 200_000)))+4 {
		t.Errorf("%+v %v", sum, r.res.Meta)
	}
	var pieces []string
	gaps := 0
	for from := int64(0); from < sum.Bytes; {
		out, _, start, next := job.Output(from, 50_000)
		if start != from {
			gaps++
			pieces = append(pieces, "")
		}
		if len(pieces) == 0 {
			pieces = append(pieces, "")
		}
		pieces[len(pieces)-1] += out
		from = next
	}
	all := numbers(1, 200_000)
	if gaps != 1 || len(pieces[0]) < 60_000 || len(pieces[1]) < 60_000 || !strings.HasPrefix(all, pieces[0]) || !strings.HasSuffix(all, pieces[1]) {
		t.Errorf("%d gaps, %d pieces", gaps, len(pieces))
	}
	if out, errs := job.Tail(7); out != "200000\n" || errs != "end\n" {
		t.Errorf("%q %q", out, errs)
	}
}

func TestOutputIsReadWhileItIsWritten(t *testing.T) {
	d := newDesk(t)
	job, _ := d.task(t, args{"command": "for i in 1 2 3 4 5 6 7 8; do seq 1 4000; seq 1 4000 >&2; done; printf '\\342\\202\\254%.0s' $(seq 5000)", "yield_time_ms": 0})
	var wg sync.WaitGroup
	want := strings.Repeat(numbers(1, 4000), 8)
	for _, size := range []int{1000, 3333, 50_000} {
		wg.Go(func() {
			var out, errs strings.Builder
			for from, ended := int64(0), false; ; {
				o, e, start, next := job.Output(from, size)
				if start != from {
					t.Errorf("from %d it began at %d", from, start)
				}
				out.WriteString(o)
				errs.WriteString(e)
				job.Sum()
				job.Tail(100)
				if from == next && ended {
					break
				}
				if from == next {
					select {
					case <-job.Done():
						ended = true
					case <-time.After(time.Millisecond):
					}
				}
				from = next
			}
			if out.String() != want+strings.Repeat("€", 5000) || errs.String() != want {
				t.Errorf("in pieces of %d: %d and %d bytes, want %d", size, out.Len(), errs.Len(), len(want))
			}
		})
	}
	wg.Wait()
}

func TestBothStreamsComeBackInTheOrderInWhichTheyCame(t *testing.T) {
	d := newDesk(t)
	var command strings.Builder
	for i := range 10 {
		fmt.Fprintf(&command, "echo line %d >&%d; %s; ", i, 1+i%2, hold(fmt.Sprintf("s%d", i)))
	}
	job, _ := d.task(t, args{"command": command.String(), "yield_time_ms": 0})
	var inOrder strings.Builder
	from := int64(0)
	for i := range 10 {
		line := fmt.Sprintf("line %d\n", i)
		testkit.Eventually(t, line, func() bool { return job.Sum().Bytes == int64(len(line)*(i+1)) })
		out, errs, _, next := job.Output(from, 100)
		if i%2 == 0 && (out != line || errs != "") || i%2 == 1 && (errs != line || out != "") {
			t.Errorf("%d: %q %q", i, out, errs)
		}
		from = next
		inOrder.WriteString(line)
		d.put(t, fmt.Sprintf("app/s%d", i), "")
	}
	await(t, job)
	if text, err := os.ReadFile(job.Sum().Path); err != nil || string(text) != inOrder.String() {
		t.Errorf("%q %v", text, err)
	}
	if out, errs, start, next := job.Output(5, 20); out != "0\nline 2\n" || errs != "line 1\nline" || start != 5 || next != 25 {
		t.Errorf("%q %q", out, errs)
	}
}

func TestATaskThatNeverStopsWritingCostsBoundedMemoryAndDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100 MB")
	}
	d := newDesk(t)
	const size = 100_000_000
	before, most := residentKB(t, "VmRSS"), 0
	job, _ := d.task(t, args{"command": fmt.Sprintf("yes 012345678 | head -c %d", size), "yield_time_ms": 0})
	for from, ended := int64(0), false; !ended; {
		select {
		case <-job.Done():
			ended = true
		case <-time.After(5 * time.Millisecond):
		}
		_, _, _, from = job.Output(from, 50_000)
		job.Tail(2000)
		most = max(most, residentKB(t, "VmRSS"))
	}
	if grown := most - before; grown > 32<<10 {
		t.Errorf("the memory grew by %d KiB", grown)
	}
	sum := job.Sum()
	info, err := os.Stat(sum.Path)
	if err != nil || info.Size() > 33<<20 || sum.Bytes != size || sum.Lines != size/10 || !sum.Incomplete {
		t.Errorf("%+v, %v %v", sum, info, err)
	}
	for _, from := range []int64{0, 1 << 20, 32<<20 - 15, 32 << 20, size / 2, size - 15, size, size + 5} {
		out, _, start, next := job.Output(from, 20)
		switch {
		case from < 32<<20 && start != from, from >= 32<<20 && from < size/2+1 && (start < size-128<<10 || start > size-64<<10), from > size && start != size, next-start != int64(len(out)):
			t.Errorf("from %d: %d to %d", from, start, next)
		}
		for i := range len(out) {
			if out[i] != "012345678\n"[(start+int64(i))%10] {
				t.Fatalf("from %d: %q at %d", from, out, start)
			}
		}
		if len(out) == 0 && from < size {
			t.Errorf("from %d there is nothing", from)
		}
	}
}

package record

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
)

const canary = `sk-"CANARY"&7f3a`

// asChild names the variable under which the test binary writes to a standard error that nobody reads, then says so on standard output.
const asChild = "RECORD_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		l := New(Options{Debug: os.Stderr})
		for i := range 200 {
			l.Logger().Info("line", "i", i)
			l.debug.flush(longestWait)
		}
		l.Close()
		fmt.Println("alive")
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, o Options) (*Log, string) {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "logs", "rind.log")
	}
	l := New(o)
	t.Cleanup(l.Close)
	return l, o.Path
}

// wrote closes the log and gives what lies in its file.
func wrote(t *testing.T, l *Log, path string) string {
	t.Helper()
	l.queue.flush(20 * time.Second) // the end of a log waits for a moment only
	l.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestNothingIsMadeBeforeTheFirstLineAndOthersMayNotReadIt(t *testing.T) {
	l, path := open(t, Options{})
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Fatal("the folder is there before the first line")
	}
	l.Logger().Debug("below the level")
	l.queue.flush(20 * time.Second)
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Fatal("a line below the level made the folder")
	}
	l.Logger().Info("first", "n", 1)
	if got := wrote(t, l, path); !strings.Contains(got, `"msg":"first","n":1`) {
		t.Errorf("file = %q", got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", p, info.Mode().Perm(), err, want)
		}
	}
}

type hidden struct{ Key string }

func TestNoSecretReachesTheFileWhereverItStands(t *testing.T) {
	l, path := open(t, Options{})
	l.Add(canary, "ab", "")
	log := l.Logger()
	log.Info("message " + canary)
	log.Info("attribute", "a", canary)
	log.Info("part of one", "a", "https://u:"+canary+"@host/")
	log.Info("key", canary, 1)
	log.Info("error", "a", fmt.Errorf("refused: %s", canary))
	log.Info("struct", "a", hidden{canary})
	log.Info("bytes", "a", json.RawMessage(`"`+canary+`"`))
	log.Info("cut", "a", strings.Repeat("x", longestText-5)+canary)
	log.With("a", canary).WithGroup(canary).Info("with", slog.Group(canary, "b", canary))
	body, _ := json.Marshal(canary)
	log.Info("as JSON", "a", string(body))
	log.Info("as basic authentication", "a", base64.StdEncoding.EncodeToString([]byte(canary)))
	l.ErrorID(&protocol.Error{Kind: protocol.ProviderError, Message: canary, Cause: errors.New(canary)}, slog.String("a", canary))
	got := wrote(t, l, path)
	for _, form := range []string{"CANARY", base64.StdEncoding.EncodeToString([]byte(canary))} {
		if strings.Contains(got, form) {
			t.Errorf("the file holds %s:\n%s", form, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 12 {
		t.Errorf("%d lines, want 12", n)
	}
	if strings.Contains(l.Redact("crab"), Redacted) {
		t.Error("a text of two bytes was taken for a secret")
	}
}

func TestAnErrorIsFoundUnderTheIDAPersonWasShown(t *testing.T) {
	defer func(was time.Duration) { longestWait = was }(longestWait)
	longestWait = time.Minute
	l, path := open(t, Options{})
	stack := strings.Repeat("frame\n", 500)
	id := l.ErrorID(&protocol.Error{Kind: protocol.InternalError, Message: "told", Cause: errors.New("not told")}, slog.Any("stack", Detail(stack)))
	// Not closed yet: the id must be there by the time it is shown.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(b, &line); err != nil {
		t.Fatal(err)
	}
	if len(id) != 32 || line["error_id"] != id || line["stack"] != stack {
		t.Errorf("id %q, line %v", id, line)
	}
	if text := fmt.Sprint(line["error"]); !strings.Contains(text, "told") || !strings.Contains(text, "not told") {
		t.Errorf("error = %q, want its message and its cause", text)
	}
}

func TestALongTextIsCut(t *testing.T) {
	l, path := open(t, Options{})
	l.Logger().Info("x", "content", strings.Repeat("é", 100_000), "error", errors.New(strings.Repeat("y", 100_000)))
	l.ErrorID(errors.New(strings.Repeat("z", 100_000)))
	if got := wrote(t, l, path); len(got) > 2*longestText+longestDetail+1024 || !json.Valid([]byte(strings.SplitN(got, "\n", 2)[0])) {
		t.Errorf("%d bytes were written", len(got))
	}
}

func TestTwoWritersRotateOneFileWithoutTearingALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rind.log")
	const each, size = 300, 8 << 10
	var both sync.WaitGroup
	for w := range 2 {
		both.Go(func() {
			l := New(Options{Path: path, MaxSize: size})
			defer l.Close()
			for i := range each {
				l.Logger().Info("line", "writer", w, "i", i)
				l.queue.flush(20 * time.Second)
			}
		})
	}
	both.Wait()
	// A writer that finds the other one rotating writes on; how much depends on the scheduler. The next one puts the size right.
	last := New(Options{Path: path, MaxSize: size})
	last.Logger().Info("last")
	last.queue.flush(20 * time.Second)
	last.Close()
	if info, err := os.Stat(path); err != nil || info.Size() > size {
		t.Errorf("the file has %d bytes after the next line, %v", info.Size(), err)
	}
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != DefaultMaxFiles {
		t.Fatalf("files = %v, %v; want %d", names, err, DefaultMaxFiles)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if !json.Valid(lines.Bytes()) {
				t.Errorf("%s: torn line %q", name, lines.Text())
			}
		}
		f.Close()
	}
}

func TestRotationKeepsTheNewestLines(t *testing.T) {
	l, path := open(t, Options{MaxSize: 1000, MaxFiles: 3})
	for i := range 100 {
		l.Logger().Info("line", "i", i)
		l.queue.flush(20 * time.Second)
	}
	l.Close()
	var all string
	for _, name := range []string{path + ".2", path + ".1", path} {
		b, err := os.ReadFile(name)
		if err != nil || len(b) > 1000 {
			t.Fatalf("%s: %d bytes, %v", name, len(b), err)
		}
		all += string(b)
	}
	lines := strings.Split(strings.TrimSpace(all), "\n")
	for i, line := range lines {
		if want := fmt.Sprintf(`"i":%d}`, 100-len(lines)+i); !strings.Contains(line, want) {
			t.Fatalf("line %d = %s, want %s", i, line, want)
		}
	}
	if _, err := os.Stat(path + ".3"); err == nil {
		t.Error("a file too many was kept")
	}
}

func TestAFileThatWentAwayIsMadeAnew(t *testing.T) {
	l, path := open(t, Options{})
	l.Logger().Info("before")
	l.queue.flush(20 * time.Second)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Skip("an open file cannot be moved here:", err)
	}
	l.Logger().Info("after")
	if got := wrote(t, l, path); !strings.Contains(got, "after") || strings.Contains(got, "before") {
		t.Errorf("file = %q", got)
	}
}

func TestAFileThatCannotBeWrittenFailsNobody(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a folder": dir, "below a file": filepath.Join(plain, "logs", "rind.log")} {
		t.Run(name, func(t *testing.T) {
			l, _ := open(t, Options{Path: path})
			for range 10 {
				l.Logger().Error("x")
			}
			if id := l.ErrorID(errors.New("y")); len(id) != 32 {
				t.Errorf("id = %q", id)
			}
			l.Close()
		})
	}
	none := New(Options{})
	none.Logger().Error("x")
	none.ErrorID(errors.New("y"))
	none.Close()
	none.Close()
}

func TestStandardErrorThatNobodyReadsHoldsNobodyUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, path := open(t, Options{Debug: w})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20_000 {
			l.Logger().Info("a line that fills the pipe and then the queue", "i", i, "text", strings.Repeat("x", 100))
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("logging waits for a reader")
	}
	l.queue.flush(10 * time.Second) // a busy disk takes its time; what is asked is only that it does not wait for standard error
	id := l.ErrorID(errors.New("the file goes on"))
	if got := wrote(t, l, path); !strings.Contains(got, id) {
		t.Error("the file lacks an error while standard error is stuck")
	}
	// Reading lets the goroutine end, which goleak watches.
	w2 := bufio.NewReader(r)
	go func() { <-l.debug.ended; w.Close() }()
	if _, err := io.Copy(io.Discard, w2); err != nil {
		t.Error(err)
	}
	r.Close()
}

func TestStandardErrorThatIsClosedDoesNotEndTheProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	cmd.Stderr = w
	out, err := cmd.Output()
	w.Close()
	if err != nil || !strings.Contains(string(out), "alive") {
		t.Errorf("the process ended: %v, output %q", err, out)
	}
}

func TestLinesThatWereDroppedAreCounted(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var got []byte
	first := true
	q := newQueue(func(b []byte) error {
		if first {
			first = false
			close(entered)
			<-release
		}
		got = append(got, b...)
		return nil
	}, nil)
	q.put([]byte("0\n"))
	<-entered
	for range queueLines + 7 {
		q.put([]byte("x\n"))
	}
	close(release)
	q.close(10 * time.Second)
	if !strings.Contains(string(got), `"lines":7}`) || strings.Count(string(got), "x\n") != queueLines {
		t.Errorf("%d lines were written, want %d and a count of 7", strings.Count(string(got), "x\n"), queueLines)
	}
}

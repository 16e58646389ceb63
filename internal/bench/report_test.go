package bench

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
)

var report = flag.Bool("report", false, "measure and print the report of docs/performance.md")

// TestReport prints one line a goal: what was measured, the ratio, the goal. It is no test: nothing is asserted, and it runs only when
// asked for.
func TestReport(t *testing.T) {
	if !*report {
		t.Skip("measured by make bench")
	}
	dir := t.TempDir()
	sync := syncTime(t, dir)
	line("disk: median 4 KiB write + fdatasync", sync.String(), "")
	startUp(t, dir)
	facts(t, dir, sync)
	chunks(t, dir)
	firstChunk(t, dir, sync)
	overhead(t, dir, sync)
	replay(t, dir)
}

func line(what, got, goal string) { fmt.Printf("%-62s %-34s %s\n", what, got, goal) }

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// syncTime is what this disk needs to make 4 KiB durable.
func syncTime(t *testing.T, dir string) time.Duration {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var took []time.Duration
	for i := range 400 {
		began := time.Now()
		if _, err := f.WriteAt(page, int64(i)*4096); err != nil {
			t.Fatal(err)
		}
		if err := datasync(f); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	return median(took)
}

// startUp compares spawn to initialize with a bare Go program, and with Node where it is installed.
func startUp(t *testing.T, dir string) {
	rind, hello := filepath.Join(dir, "rind"), filepath.Join(dir, "hello")
	build(t, rind, "../../cmd/rind")
	src := filepath.Join(dir, "hello.go")
	if err := os.WriteFile(src, []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"{}\\n\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, hello, src)
	home := filepath.Join(dir, "home")
	const request = `{"kind":"request","request_id":1,"method":"initialize"}` + "\n"
	prompt := exec.Command(rind, "prompt", "x") // the store exists from here on
	prompt.Env, prompt.Dir = []string{"RIND_HOME=" + home}, dir
	if err := prompt.Run(); err != nil {
		t.Fatal(err)
	}
	var ours, bare, node []time.Duration
	rss := 0
	for range 25 {
		d, kb := spawn(t, request, home, rind, "app-server", "--stdio")
		ours, rss = append(ours, d), max(rss, kb)
		d, _ = spawn(t, "", home, hello)
		bare = append(bare, d)
		if path, err := exec.LookPath("node"); err == nil {
			d, _ = spawn(t, "", home, path, "-e", `process.stdout.write("{}\n")`)
			node = append(node, d)
		}
	}
	line("spawn to initialize answered, store exists", fmt.Sprintf("%v = %.1f x Go hello", median(ours), ratio(ours, bare)), "<= 4 x")
	if node != nil {
		line("  the same against Node hello", fmt.Sprintf("%.2f x", ratio(ours, node)), "<= 0.15 x")
	}
	line("idle memory after initialize", fmt.Sprintf("%.1f MB RSS", float64(rss)/1024), "<= 20 MB")
}

func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

func build(t *testing.T, out, pkg string) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, text)
	}
}

// spawn starts a program, sends a line, and measures until its first line; kb is its memory then.
func spawn(t *testing.T, send, home, path string, args ...string) (took time.Duration, kb int) {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"RIND_HOME=" + home}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Write([]byte(send))
	_, err = bufio.NewReader(out).ReadString('\n')
	took = time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	kb = rssOf(cmd.Process.Pid)
	_ = in.Close()
	_ = cmd.Wait()
	return took, kb
}

func rssOf(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

func openStore(t *testing.T, dir string) *sqlite.Store {
	s, err := sqlite.Open(filepath.Join(dir, "sessions", "rind.db"), sqlite.Options{Locks: filepath.Join(dir, "locks")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entry(seq session.Seq) session.Entry {
	e, err := protocol.Encode(protocol.Head{Time: time.Now(), EventID: strings.Repeat("a", 32), Session: "s"}, &protocol.SessionRenamed{Name: "n", Title: strings.Repeat("t", 100)})
	if err != nil {
		panic(err)
	}
	e.Seq = seq
	return e
}

// facts measures the store: one producer, and 64 on sessions of their own.
func facts(t *testing.T, dir string, sync1 time.Duration) {
	s := openStore(t, filepath.Join(dir, "facts"))
	defer s.Close()
	lease := func(id session.SessionID) session.Lease {
		if err := s.Create(t.Context(), session.Meta{ID: id, ConversationID: string(id)}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Acquire(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	produce := func(l session.Lease, until time.Time) int {
		n := 0
		done := make(chan error, 1)
		for ; time.Now().Before(until); n++ {
			s.Append(l, session.Batch{Entries: []session.Entry{entry(session.Seq(n + 1))}}, func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Error(err)
				return n
			}
		}
		return n
	}
	const long = 2 * time.Second
	raw := float64(time.Second) / float64(sync1)
	one := float64(produce(lease("one"), time.Now().Add(long))) / long.Seconds()
	line("single fact (FULL)", fmt.Sprintf("%.0f/s = %.2f x raw rate", one, one/raw), ">= 0.45 x")
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	leases := make([]session.Lease, 64)
	for i := range leases {
		leases[i] = lease(session.SessionID(fmt.Sprintf("p%d", i)))
	}
	until := time.Now().Add(long)
	for _, l := range leases {
		wg.Go(func() {
			n := produce(l, until)
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	many := float64(total) / long.Seconds()
	line("64 producers, group commit", fmt.Sprintf("%.0f/s = %.1f x raw rate", many, many/raw), ">= 6 x")
}

// talker is a model that says n chunks.
type talker struct {
	n     int
	at    time.Time // when the first chunk was said
	asked time.Time
}

func (m *talker) Generate(ctx context.Context, _ session.ModelRequest) iter.Seq2[session.Chunk, error] {
	m.asked = time.Now()
	return func(yield func(session.Chunk, error) bool) {
		m.at = time.Now()
		for range m.n {
			if !yield(session.Chunk{Kind: session.ChunkText, Text: "tok "}, nil) {
				return
			}
		}
		yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
	}
}

func (m *talker) Default() session.Selection {
	return session.Selection{Provider: "t", Model: "m", Mode: "ask"}
}

func (m *talker) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Window: 1 << 20}}, nil
}

func (m *talker) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return nil, "", nil
}

// house is the sessions of one process over a store on disk.
func house(t *testing.T, dir string, m *talker) (*session.Sessions, func()) {
	s := openStore(t, dir)
	loop, err := session.NewLoop(session.Loop{Models: m})
	if err != nil {
		t.Fatal(err)
	}
	all := session.NewSessions(session.Config{Store: s, Agent: loop, Models: m})
	return all, func() {
		_ = all.Shutdown(context.Background())
		_ = s.Close()
	}
}

func prompt(t *testing.T, s *session.Session) {
	done := make(chan session.Outcome, 1)
	s.Prompt(session.PromptRequest{Input: "go"}, func(o session.Outcome, err error) {
		if err != nil {
			t.Error(err)
		}
		done <- o
	})
	if o := <-done; o.Outcome != session.OutcomeCompleted {
		t.Errorf("outcome %+v", o)
	}
}

// chunks measures text through a turn, everything journaled.
func chunks(t *testing.T, dir string) {
	m := &talker{n: 200_000}
	all, end := house(t, filepath.Join(dir, "chunks"), m)
	defer end()
	s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpuTime()
	began := time.Now()
	prompt(t, s)
	took, used := time.Since(began), cpuTime()-cpu
	line("text through a turn", fmt.Sprintf("%.0f chunks/s, %.1f µs CPU each", float64(m.n)/took.Seconds(), float64(used.Microseconds())/float64(m.n)), ">= 30,000/s, <= 25 µs")
	runtime.GC()
}

// firstChunk measures from the model's first piece to a follower's doorbell.
func firstChunk(t *testing.T, dir string, sync1 time.Duration) {
	m := &talker{n: 1}
	all, end := house(t, filepath.Join(dir, "first"), m)
	defer end()
	s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, s)
	var took []time.Duration
	for range 200 {
		got := make(chan time.Time, 1)
		var at session.Seq
		var f *session.Follower
		if err := s.InspectNow(t.Context(), func(v *session.View) {
			at = v.Head
			f = v.Follow(func() {
				es, _, _ := s.Read(context.Background(), at, 64)
				for i := range es {
					at = es[i].Seq
					if es[i].Kind == protocol.KindAssistantDelta {
						got <- time.Now()
					}
				}
			}, nil, nil)
		}); err != nil {
			t.Fatal(err)
		}
		prompt(t, s)
		took = append(took, (<-got).Sub(m.at))
		f.Stop()
	}
	slices.Sort(took)
	line("first chunk: model's piece to follower, p99", took[len(took)*99/100].String(), fmt.Sprintf("<= 3 ms + 2 sync = %v", 3*time.Millisecond+2*sync1))
}

// overhead measures from prompt to the model's request, in an empty session and in one of 20,000 events.
func overhead(t *testing.T, dir string, sync1 time.Duration) {
	m := &talker{n: 1}
	all, end := house(t, filepath.Join(dir, "overhead"), m)
	defer end()
	s, err := all.Draft(t.Context(), session.DraftOptions{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	measure := func(what string) {
		var took []time.Duration
		cpu := cpuTime()
		for range 100 {
			began := time.Now()
			prompt(t, s)
			took = append(took, m.asked.Sub(began))
		}
		used := (cpuTime() - cpu) / time.Duration(len(took))
		line(what, fmt.Sprintf("%v; CPU of the prompt %v", median(took), used), fmt.Sprintf("<= 2 ms + 3 sync = %v", 2*time.Millisecond+3*sync1))
	}
	measure("prompt in to first model request, p50")
	for head := session.Seq(0); head < 20_000; {
		prompt(t, s)
		if err := s.InspectNow(t.Context(), func(v *session.View) { head = v.Head }); err != nil {
			t.Fatal(err)
		}
	}
	measure("  the same in a session of 20,000 events")
}

// replay compares reading 10,000 events in pages with a bare SELECT over the same rows.
func replay(t *testing.T, dir string) {
	path := filepath.Join(dir, "replay")
	s := openStore(t, path)
	defer s.Close()
	if err := s.Create(t.Context(), session.Meta{ID: "s", ConversationID: "c"}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	for at := session.Seq(0); at < 10_000; at += 500 {
		var es []session.Entry
		for i := range session.Seq(500) {
			es = append(es, entry(at+i+1))
		}
		s.Append(l, session.Batch{Entries: es}, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	var ours, bare []time.Duration
	for range 9 {
		began := time.Now()
		for at := session.Seq(0); ; {
			es, err := s.Read(t.Context(), "s", at, 256, protocol.ViewAll)
			if err != nil {
				t.Fatal(err)
			}
			if len(es) == 0 {
				break
			}
			at = es[len(es)-1].Seq
		}
		ours = append(ours, time.Since(began))
		bare = append(bare, bareSelect(t, filepath.Join(path, "sessions", "rind.db")))
	}
	line("10,000 entries read in pages", fmt.Sprintf("%v = %.2f x bare SELECT", median(ours), ratio(ours, bare)), "<= 3 x")
}

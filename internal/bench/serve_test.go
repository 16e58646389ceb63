package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// served is a `rind serve` of its own, driven from outside. What it costs is its CPU time: on a shared machine the one figure that stands.
type served struct {
	t    *testing.T
	base string
	file string // its store
	pid  int
	http *http.Client
}

// serveRind starts one on a free port.
func serveRind(t *testing.T, rind string) *served {
	return serve(t, rind, "serve", "--auth", "none", "--port", "0")
}

// serve starts a program that says on its standard output where it listens; it is ended, and waited for, with the test.
func serve(t *testing.T, program string, args ...string) *served {
	t.Helper()
	home := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = []string{"RIND_HOME=" + filepath.Join(home, "data")}, home
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, pid: cmd.Process.Pid, file: filepath.Join(home, "data", "sessions", "rind.db"), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		cancel()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	for s.base == "" {
		text, err := lines.ReadString('\n')
		if at := strings.Index(text, "http://"); at >= 0 {
			s.base = strings.TrimRight(strings.Fields(text[at:])[0], "/.,\"}")
		} else if err != nil {
			t.Fatalf("no address: %v", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the process
	return s
}

// cpu is what the process has used, in ticks of 10 ms; 0 where /proc is not there.
func (s *served) cpu() time.Duration {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (s *served) do(method, path, body string, accept string) string {
	req, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return ""
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	r, err := s.http.Do(req)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode >= 300 {
		s.t.Errorf("%s %s: %d %v", method, path, r.StatusCode, err)
	}
	return string(b)
}

func (s *served) id(path, body string) string {
	var v struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal([]byte(s.do("POST", path, body, "")), &v)
	return v.ID
}

func (s *served) start(conversation, input, config string) string {
	return s.id("/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"mock","input":%q,"config":%s}`, conversation, input, config))
}

func (s *served) follow(id string) string {
	return s.do("GET", "/v1/executions/"+id+"/events", "", "text/event-stream")
}

// each runs f n times among clients, until a time is over, and returns how often it ran.
func each(clients, n int, until time.Time, f func()) int {
	var ran atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for time.Now().Before(until) && ran.Add(1) <= int64(n) {
				f()
			}
		})
	}
	all.Wait()
	return min(int(ran.Load()), n)
}

const silent = `{"prefix":"","delayMs":0}`

// TestServe measures what the portable protocol costs a server: CPU an execution of four events, started and followed to its end; CPU an event
// of a long answer that is followed live; CPU a replay; memory an idle follower; memory over many executions.
func TestServe(t *testing.T) {
	if !*report {
		t.Skip("measured by make bench")
	}
	rind := filepath.Join(t.TempDir(), "rind")
	build(t, rind, "../../cmd/rind")
	s := serveRind(t, rind)
	if s.cpu() == 0 && rssOf(s.pid) == 0 {
		t.Skip("needs /proc")
	}
	c := s.id("/v1/conversations", "{}")
	one := func() { s.follow(s.start(c, "", silent)) }
	soon := func() time.Time { return time.Now().Add(time.Minute) }
	each(4, 200, soon(), one)
	bare := bareServer(t)
	for _, clients := range []int{1, 32} {
		cost := func(s *served, one func()) time.Duration {
			best := time.Duration(1 << 62)
			for range 3 {
				before := s.cpu()
				if n := each(clients, 1000, soon(), one); n > 0 {
					best = min(best, (s.cpu()-before)/time.Duration(n))
				}
			}
			return best
		}
		line(fmt.Sprintf("HTTP: an execution of 4 events, %d clients, CPU", clients), cost(s, one).String(), "<= 0.25 ms")
		line("  its two requests answered by net/http from memory, CPU", cost(bare, func() { bare.follow(bare.start(c, "", silent)) }).String(), "")
	}
	words := strings.Repeat("word ", 10_000)
	var id string
	best := time.Duration(1 << 62)
	for range 3 {
		before := s.cpu()
		id = s.start(c, words, silent)
		events := strings.Count(s.follow(id), "\nid: ")
		best = min(best, (s.cpu()-before)/time.Duration(max(events, 1)))
	}
	line("HTTP: an event of a stream of 10,000, live, CPU", best.String(), "<= 15 µs")
	best = time.Duration(1 << 62)
	for range 3 {
		before := s.cpu()
		n := each(1, 10, soon(), func() { s.do("GET", "/v1/executions/"+id+"/events", "", "") })
		best = min(best, (s.cpu()-before)/time.Duration(max(n, 1)))
	}
	line("HTTP: 10,000 events as JSON, CPU", best.String(), "<= 20 ms")
	bareTurn(t, s.file, strings.TrimPrefix(id, "exec_"))
	behindReplays(t, s, c, id)

	before := rssOf(s.pid)
	n := each(16, 50_000, time.Now().Add(2*time.Minute), one)
	line(fmt.Sprintf("HTTP: RSS over %d executions", n), fmt.Sprintf("%.1f MB, then %.1f MB", float64(before)/1024, float64(rssOf(s.pid))/1024), "flat")
	followers(t, s, c)
}

// bareServer answers what an execution of four events is asked for, from memory and with nothing behind it: what HTTP itself costs here.
func bareServer(t *testing.T) *served {
	dir := t.TempDir()
	src := filepath.Join(dir, "bare.go")
	if err := os.WriteFile(src, []byte(bareProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, filepath.Join(dir, "bare"), src)
	return serve(t, filepath.Join(dir, "bare"))
}

const bareProgram = `package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	record := "{\"id\":\"exec_1\"," + strings.Repeat(" ", 480) + "\"state\":\"queued\"}"
	events := strings.Repeat("id: 1\nevent: run.started\ndata: {" + strings.Repeat(" ", 300) + "}\n\n", 4)
	http.HandleFunc("POST /v1/executions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(202)
		_, _ = io.WriteString(w, record)
	})
	http.HandleFunc("GET /v1/executions/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
		w.(http.Flusher).Flush()
	})
	fmt.Printf("http://%s\n", l.Addr())
	panic(http.Serve(l, nil))
}
`

// behindReplays follows an answer of a word every 5 ms while three clients replay an execution of 10,000 events, one after the other.
func behindReplays(t *testing.T, s *served, conversation, big string) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				s.do("GET", "/v1/executions/"+big+"/events", "", "")
			}
		})
	}
	id := s.start(conversation, strings.Repeat("word ", 400), `{"delayMs":5}`)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v1/executions/"+id+"/events", nil)
	req.Header.Set("Accept", "text/event-stream")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var gaps []time.Duration
	last := time.Now()
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		if in.Text() == "event: output.text.delta" {
			gaps = append(gaps, time.Since(last))
			last = time.Now()
		}
	}
	slices.Sort(gaps)
	if len(gaps) < 100 {
		t.Fatalf("%d pieces were told", len(gaps))
	}
	line("HTTP: a word every 5 ms, told behind three that replay 10,000", fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, most %.1f ms",
		ms(gaps[len(gaps)/2]), ms(gaps[len(gaps)*99/100]), ms(gaps[len(gaps)-1])), "")
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// followers opens a thousand streams of an execution that waits for a person.
func followers(t *testing.T, s *served, conversation string) {
	id := s.start(conversation, "", `{"requireApproval":true}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := rssOf(s.pid)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 1000 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/v1/executions/"+id+"/events", nil)
		req.Header.Set("Accept", "text/event-stream")
		r, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	grown := rssOf(s.pid) - before
	line("HTTP: 1,000 idle followers", fmt.Sprintf("%.1f MiB, %d KiB each", float64(grown)/1024, grown/1000), "<= 64 MiB")
}

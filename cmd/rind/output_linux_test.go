package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
)

var hugeOutput = flag.Bool("huge", false, "TestACommandThatWritesWithoutEndCostsABoundedAmount lets a command write 2 GB as well")

// TestACommandThatWritesWithoutEndCostsABoundedAmount runs commands that write far more than anybody reads: memory, the wire, the disk and the
// result stay bounded, all output is counted, and a time limit holds.
func TestACommandThatWritesWithoutEndCostsABoundedAmount(t *testing.T) {
	const (
		growth = 64 << 20 // of memory
		wire   = 2_000_000
		file   = 32<<20 + 4<<10
		result = 8 << 10
	)
	hundred := "yes 'a line of output, as a program writes it when it has much to say' 2>/dev/null | head -c 100000000"
	cases := []struct {
		name, arguments string
		bytes           int64 // 0: as many as it can
		status          string
		task            bool
	}{
		{name: "100 MB", arguments: `"yield_time_ms":60000,"command":"` + hundred + `"`, bytes: 100_000_000, status: protocol.ToolCompleted},
		{name: "100 MB without a newline, to both streams", arguments: `"yield_time_ms":60000,"command":"head -c 50000000 /dev/zero | tr '\\0' e >&2; head -c 50000000 /dev/zero | tr '\\0' o"`, bytes: 100_000_000, status: protocol.ToolCompleted},
		{name: "100 MB in the background", arguments: `"yield_time_ms":0,"notify":"manual","command":"` + hundred + `"`, bytes: 100_000_000, status: protocol.ToolCompleted, task: true},
		{name: "yes, for two seconds", arguments: `"timeout_ms":2000,"command":"yes"`, status: protocol.ToolTimedOut},
	}
	if *hugeOutput {
		cases = append(cases, cases[0])
		c := &cases[len(cases)-1]
		c.name, c.arguments, c.bytes = "2 GB", strings.Replace(c.arguments, "100000000", "2000000000", 1), 2_000_000_000
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := chaosRoot(t, `{"turns":[{"steps":[{"call":{"id":"c","name":"bash","arguments":{`+c.arguments+`}}},{"finish":"tool_calls"},{"text":"Done."}]}]}`)
			path, env := program(t)
			s := spawn(t, path, filepath.Join(root, "ws"), append(env, "RIND_HOME="+root, "HOME="+root, "PATH="+os.Getenv("PATH")))
			s.send(1, "initialize", map[string]any{"client_capabilities": []string{}})
			if _, ok := s.reply(1); !ok {
				t.Fatal("initialize was not answered")
			}
			before := memoryOf(t, s.cmd.Process.Pid, "VmRSS")
			began := time.Now()
			s.send(2, "session/prompt", map[string]any{"input": "write"})
			if l, ok := s.answer(2, 3*time.Minute); !ok || !strings.Contains(string(l.Result), `"outcome":"completed"`) {
				t.Fatalf("%s %s", l.Result, l.Error)
			}
			took := time.Since(began)
			var meta protocol.TaskMeta
			r := resultOf(t, s.seen)
			if len(r.Result) > result || r.Status != c.status {
				t.Errorf("status %s, %d bytes", r.Status, len(r.Result))
			}
			var told struct {
				Meta *protocol.TaskMeta `json:"meta"`
			}
			if err := json.Unmarshal([]byte(r.Result), &told); err != nil || told.Meta == nil {
				t.Fatalf("%v: %s", err, r.Result)
			}
			meta = *told.Meta
			if c.task {
				meta = s.taskEnd(t)
				took = time.Since(began)
			}
			if c.bytes > 0 && meta.TotalBytes != c.bytes || meta.TotalBytes < 1<<20 {
				t.Errorf("%d bytes are counted", meta.TotalBytes)
			}
			if c.status == protocol.ToolTimedOut && (took < 2*time.Second || took > 30*time.Second) {
				t.Errorf("it took %v", took)
			}
			most := memoryOf(t, s.cmd.Process.Pid, "VmHWM")
			if most-before > growth {
				t.Errorf("memory grew from %d to %d MiB", before>>20, most>>20)
			}
			if err := s.end(); err != nil {
				t.Error(err)
			}
			if n := s.bytes.Load(); n > wire {
				t.Errorf("%d bytes were written to the client", n)
			}
			kept := int64(0)
			_ = filepath.WalkDir(filepath.Join(root, "outputs"), func(_ string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				kept += info.Size()
				return err
			})
			if kept > file || kept == 0 {
				t.Errorf("%d bytes of output are kept", kept)
			}
			t.Logf("%.1f MB/s; memory %d -> %d MiB at most; %d bytes to the client; result %d bytes; %.1f MiB kept; %v",
				float64(meta.TotalBytes)/1e6/took.Seconds(), before>>20, most>>20, s.bytes.Load(), len(r.Result), float64(kept)/(1<<20), took.Round(time.Millisecond))
		})
	}
}

// answer waits longer for an answer than reply.
func (s *server) answer(id int, limit time.Duration) (wireLine, bool) {
	var got wireLine
	ok := s.until(limit, func(l wireLine) bool {
		got = l
		return l.Kind == "response" && l.RequestID == id
	})
	return got, ok
}

// taskEnd waits for the end of the one task there is.
func (s *server) taskEnd(t *testing.T) protocol.TaskMeta {
	t.Helper()
	var rec protocol.Task
	ended := func(l wireLine) bool {
		var e struct {
			Type string        `json:"type"`
			Task protocol.Task `json:"task"`
		}
		if json.Unmarshal(l.Event, &e) != nil || e.Type != "task_updated" {
			return false
		}
		rec = e.Task
		return !rec.Live()
	}
	for _, l := range s.seen {
		if ended(l) {
			return rec.Meta
		}
	}
	if !s.until(time.Minute, ended) || rec.Status != protocol.TaskCompleted {
		t.Errorf("the task: %+v", rec)
	}
	return rec.Meta
}

// resultOf finds the result of the one call there is.
func resultOf(t *testing.T, lines []wireLine) protocol.ToolResult {
	t.Helper()
	for _, l := range lines {
		var e struct {
			Type string `json:"type"`
			protocol.ToolResult
		}
		if l.Kind == "event" && json.Unmarshal(l.Event, &e) == nil && e.Type == "tool_result" {
			return e.ToolResult
		}
	}
	t.Fatal("there is no result")
	return protocol.ToolResult{}
}

// memoryOf is a figure of a process's status, in bytes.
func memoryOf(t *testing.T, pid int, name string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name+":" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in %s", name, text)
	return 0
}

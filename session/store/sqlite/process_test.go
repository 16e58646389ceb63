//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// TestMain lets the test binary be another process on the same store: RIND_STORE_CHILD is "path session seconds kill" in lines. The one of
// RIND_STORE_NEXT has the next schema; RIND_STORE_LIMIT is the most bytes a file may have, and makes it a different test.
func TestMain(m *testing.M) {
	if os.Getenv("RIND_STORE_NEXT") != "" {
		sqlite.NextSchema(true)
	}
	if spec := os.Getenv("RIND_STORE_CHILD"); spec != "" {
		run := child
		if os.Getenv("RIND_STORE_LIMIT") != "" {
			run = limited
		}
		if err := run(strings.Split(spec, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child appends one fact after the other to a session of its own, says each acknowledged Seq on stdout, and ends after some seconds. With an input
// it takes its lease, waits for a line of that, and appends until the input ends.
func child(spec []string) error {
	path, id, kill := spec[0], session.SessionID(spec[1]), spec[3]
	seconds, err := strconv.ParseFloat(spec[2], 64)
	if err != nil {
		return err
	}
	opt := sqlite.Options{}
	if point, n, ok := strings.Cut(kill, ":"); ok {
		limit, _ := strconv.Atoi(n)
		var seen atomic.Int64
		opt.Kill = func(at string) {
			if at == point && seen.Add(1) == int64(limit) {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
	s, err := sqlite.Open(path, opt)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := s.Session(ctx, id); err != nil {
		if err := s.Create(ctx, session.Meta{ID: id, ConversationID: "conv_" + string(id)}); err != nil {
			return err
		}
	}
	l, err := s.Acquire(ctx, id)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	seq := l.Head
	in := bufio.NewReader(os.Stdin)
	_, none := in.ReadString('\n')
	end, told := time.Now().Add(time.Duration(seconds*float64(time.Second))), atomic.Bool{}
	if none == nil {
		go func() {
			_, _ = in.ReadByte()
			told.Store(true)
		}()
	}
	for !told.Load() && (none == nil || time.Now().Before(end)) {
		seq++
		e := storetest.Entry(seq, "", &protocol.SessionRenamed{Name: "n", Title: "n"})
		if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{e}}); err != nil {
			return fmt.Errorf("entry %d: %w", seq, err)
		}
		fmt.Fprintln(out, seq)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return s.Close()
}

func start(t *testing.T, path, id string, seconds float64, kill string, env ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	return startWith(t, nil, path, id, seconds, kill, env...)
}

func startWith(t *testing.T, in *os.File, path, id string, seconds float64, kill string, env ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	if in != nil {
		cmd.Stdin = in
	}
	cmd.Env = append(append(os.Environ(), env...), "RIND_STORE_CHILD="+strings.Join([]string{path, id, fmt.Sprint(seconds), kill}, "\n"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, &out
}

// seconds is how long the processes append: RIND_STORE_SECONDS=60 makes it the minute of the measurements.
func seconds() float64 {
	if s, err := strconv.ParseFloat(os.Getenv("RIND_STORE_SECONDS"), 64); err == nil {
		return s
	}
	return 2
}

func TestFourProcessesOnOneFileAppendWithoutStarvingOrFailing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	var cmds []*exec.Cmd
	var outs []*strings.Builder
	var ins []*os.File
	for i := range 4 { // all at once, on an empty folder: the file is made once
		in, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		cmd, out := startWith(t, in, path, fmt.Sprintf("s%d", i), 0, "")
		_ = in.Close()
		cmds, outs, ins = append(cmds, cmd), append(outs, out), append(ins, hold)
	}
	s := open(t, path)
	for i := range ins {
		testkit.Eventually(t, "each has its lease", func() bool {
			m, err := s.Session(t.Context(), session.SessionID(fmt.Sprintf("s%d", i)))
			return err == nil && m.OwnerAlive
		})
	}
	for _, in := range ins {
		if _, err := fmt.Fprintln(in, "go"); err != nil {
			t.Fatal(err)
		}
	}
	// On a busy machine they go on until there is something to compare: who gets the processor for how long evens out.
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		least := session.Seq(1 << 30)
		for i := range ins {
			m, err := s.Session(t.Context(), session.SessionID(fmt.Sprintf("s%d", i)))
			if err != nil {
				t.Fatal(err)
			}
			least = min(least, m.Head)
		}
		if took := time.Since(began).Seconds(); took > seconds() && least >= 300 || took > seconds()+60 {
			break
		}
	}
	for _, in := range ins {
		_ = in.Close()
	}
	least, most := 1<<30, 0
	var counts []int
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		n := strings.Count(outs[i].String(), "\n")
		counts = append(counts, n)
		least, most = min(least, n), max(most, n)
	}
	t.Logf("commits %v, least/most %.2f", counts, float64(least)/float64(most))
	if float64(least) < 0.4*float64(most) {
		t.Errorf("one process starved: commits %v", counts)
	}
	for i, n := range counts {
		es, err := s.Read(context.Background(), session.SessionID(fmt.Sprintf("s%d", i)), 0, 1<<20, protocol.ViewAll)
		if err != nil || len(es) != n {
			t.Errorf("session %d holds %d entries, %d were acknowledged (%v)", i, len(es), n, err)
		}
	}
}

func TestKillAtEveryPointKeepsWhatWasAcknowledgedAndTheLeaseIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	points := []string{"before-begin", "after-insert", "before-commit", "after-commit", "before-ack", ""}
	for round := range 18 {
		kill := points[round%len(points)]
		if kill != "" {
			kill += fmt.Sprintf(":%d", 1+rand.IntN(40))
		}
		cmd, out := start(t, path, "s", 20, kill)
		if kill == "" {
			time.AfterFunc(time.Duration(rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		_ = cmd.Wait()
		acked := 0
		for _, line := range strings.Fields(out.String()) {
			acked, _ = strconv.Atoi(line)
		}
		s, err := sqlite.Open(path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Session(context.Background(), "s"); err == nil {
			es, err := s.Read(context.Background(), "s", 0, 1<<20, protocol.ViewAll)
			if err != nil {
				t.Fatalf("after %s: %v", kill, err)
			}
			if len(es) < acked {
				t.Errorf("after %s: %d entries, %d were acknowledged", kill, len(es), acked)
			}
			for i := range es {
				if es[i].Seq != session.Seq(i+1) {
					t.Fatalf("after %s: entry %d has Seq %d", kill, i, es[i].Seq)
				}
			}
			if m, err := s.Session(context.Background(), "s"); err != nil || m.OwnerAlive {
				t.Errorf("after %s: the dead owner counts as alive (%v)", kill, err)
			}
		}
		if h, err := s.Health(context.Background()); err != nil || h.Integrity != "ok" {
			t.Errorf("after %s: integrity %q, %v", kill, h.Integrity, err)
		}
		_ = s.Close()
	}
}

func TestAStoppedOwnerIsStillTheOwner(t *testing.T) {
	t.Cleanup(sqlite.ShortenWaits(time.Second, time.Hour))
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	cmd, _ := start(t, path, "s", 20, "")
	s := open(t, path)
	testkit.Eventually(t, "the child takes its lease", func() bool {
		m, err := s.Session(context.Background(), "s")
		return err == nil && m.OwnerAlive
	})
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(context.Background(), "s"); !errors.Is(err, session.ErrBusy) && !errors.Is(err, session.ErrLocked) { // it may have stopped within a write
		t.Errorf("lease of a stopped owner: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := s.Acquire(context.Background(), "s"); err != nil {
		t.Errorf("lease of a dead owner: %v", err)
	}
	_ = s.Close() // before the limits are as they were
}

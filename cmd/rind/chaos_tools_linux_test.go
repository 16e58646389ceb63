package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

var (
	toolKills = flag.Int("kills", 5, "how often TestChaosToolsKilledAnywhereRunNothingTwice kills the runtime")
	toolSeed  = flag.Uint64("chaosseed", 0, "what its jobs and moments are drawn from; 0 draws one")
)

// markName is the variable by which processes of this test are known again. Commands inherit it.
const markName = "CHAOS_MARK"

// perSession is how many kills one session lives through.
const perSession = 8

// TestChaosToolsKilledAnywhereRunNothingTwice kills the runtime at random moments and at named points of a write, in turns full of tools:
// files written and edited, commands, commands that go on in the background, questions, approvals, goals. The next process goes on with the
// turn, or with another prompt, until all has ended. Nothing that may have run runs again, nothing a dead runtime started goes on, every
// call has one result, which says what is true, tasks are honest, each end of one is told to the model once, turns of a goal are counted,
// and what a turn wrote can be put back. `make chaos` kills 200 times.
func TestChaosToolsKilledAnywhereRunNothingTwice(t *testing.T) {
	t.Parallel()
	seed := *toolSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	base := t.TempDir()
	c := &chaos{
		t: t, base: base, home: filepath.Join(base, "home"), ledger: filepath.Join(base, "temp", "ledger.txt"),
		rnd: rand.New(rand.NewPCG(seed, 1)), mark: fmt.Sprintf("%016x.", rand.Uint64()), results: map[string]int{},
	}
	c.program, c.env = program(t)
	for _, dir := range []string{c.home, filepath.Join(base, "temp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.put(c.ledger, "")
	jobs := &jobMaker{rnd: rand.New(rand.NewPCG(seed, 2)), ledger: c.ledger}
	for left := *toolKills; left > 0 && !t.Failed(); left -= perSession {
		c.conversation(jobs, min(left, perSession))
	}
	if !eventually(20*time.Second, func() bool { return len(processesOf(markName, c.mark)) == 0 }) {
		t.Errorf("after the end of the last runtime these go on: %v", processesOf(markName, c.mark))
	}
	t.Logf("%d kills (%d by name), %d resumed, %d closed by another prompt, %d answered when they waited; %d ends of tasks told, %d turns of goals; results %v",
		c.killed, c.named, c.resumed, c.closed, c.answered, c.notices, c.goalTurns, c.results)
}

// chaos is the run of the test over all sessions.
type chaos struct {
	t                         *testing.T
	program                   string
	env                       []string
	base, home, ledger        string
	rnd                       *rand.Rand
	mark                      string
	runs                      int
	killed, named             int
	resumed, closed, answered int
	results                   map[string]int // by status
	ws                        string
	id                        string
	told                      *witness
	todo                      []*chaosJob
	current                   *chaosJob
	turns                     map[session.TurnID]*chaosJob
	undone                    map[*chaosJob]bool
	seen                      *appearances
	notices, goalTurns        int
	withheld                  bool // the person does not answer the next questions
	finishing                 bool // the session is brought to its end: nothing is left unanswered
}

func (c *chaos) put(path, text string) {
	c.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// conversation is one session: it is killed some times, brought to its end, undone and looked at.
func (c *chaos) conversation(maker *jobMaker, kills int) {
	c.ws = filepath.Join(c.base, fmt.Sprintf("ws%d", maker.made))
	c.told = &witness{received: map[session.Seq]string{}}
	c.turns, c.undone, c.current, c.id, c.finishing = map[session.TurnID]*chaosJob{}, map[*chaosJob]bool{}, nil, "", false
	all := make([]*chaosJob, kills*3+2)
	for i := range all {
		all[i] = maker.job()
	}
	c.todo = all
	workspaceOf(c.t, c.ws, all)
	c.seen = watch(c.t, filepath.Join(c.ws, "w"))
	play := filepath.Join(c.base, "script.json")
	c.put(play, scriptOf(all))
	mode := []string{"ask", "ask", "edit", "full"}[c.rnd.IntN(4)]
	c.put(filepath.Join(c.home, "settings.json"), string(protocol.MustMarshal(map[string]any{
		"provider": "s", "approvalMode": mode,
		"providers": map[string]any{"s": map[string]any{"type": "script", "model": "script", "script": play, "contextWindow": 10_000_000}},
	})))

	first := c.start("") // a session that is stored
	first.prompt(map[string]any{"input": "hello"})
	if !first.await(30 * time.Second) {
		c.t.Fatal("the first prompt was not answered")
	}
	c.gone(first)
	for range kills {
		c.round()
		if c.t.Failed() {
			return
		}
	}
	c.finish()
}

// round is one process from its start to its kill.
func (c *chaos) round() {
	kill := ""
	if c.rnd.IntN(4) == 0 {
		kill = fmt.Sprintf("%s:%d", killPoints[c.rnd.IntN(len(killPoints))], 1+c.rnd.IntN(50))
		c.named++
	}
	c.withheld = c.rnd.IntN(5) == 0
	moment := time.Duration(c.rnd.IntN(900)) * time.Millisecond
	if kill != "" {
		moment = 3 * time.Second
	}
	end := time.Now().Add(moment + 100*time.Millisecond)
	s := c.start(kill)
	if s.alive && c.rnd.IntN(3) == 0 { // the runtime goes on by itself between prompts; refused while a turn runs
		s.call("rind/goal/set", map[string]any{"objective": "see it through", "max_turns": 1 + c.rnd.IntN(20)})
	}
	for time.Now().Before(end) && s.alive {
		if !s.busy() {
			c.next(s, false)
		}
		if s.await(time.Until(end)) && c.rnd.IntN(4) == 0 {
			c.undo(s)
		}
	}
	c.killed++
	c.gone(s)
}

// next goes on with what was left open, or begins another job; closing: or just says something.
func (c *chaos) next(s *peer, closing bool) {
	if s.open {
		s.open = false
		if s.waiting && c.rnd.IntN(3) == 0 { // an answer is enough to go on
			c.answered++
			s.resume()
			return
		}
		if c.rnd.IntN(2) == 0 {
			c.resumed++
			s.resume()
			return
		}
		c.closed++
	}
	if len(c.todo) == 0 || closing && c.rnd.IntN(2) == 0 {
		s.prompt(map[string]any{"input": "that is all"})
		return
	}
	c.current, c.todo = c.todo[0], c.todo[1:]
	s.prompt(map[string]any{"input": c.current.prompt()})
}

// gone kills a process and keeps what it told.
func (c *chaos) gone(s *peer) {
	s.kill()
	c.told.take(s.seen)
}

// finish brings the session to its end in a process that is not killed, puts files back, and looks at all that was done.
func (c *chaos) finish() {
	c.withheld, c.finishing = false, true
	s := c.start("")
	s.call("rind/goal/clear", map[string]any{})
	for s.open {
		c.next(s, true)
		if !s.await(60 * time.Second) {
			c.t.Errorf("a turn has no end; the last lines: %s", s.last(12))
			return
		}
	}
	c.next(s, false) // at least one whole job
	if !s.await(60 * time.Second) {
		c.t.Errorf("a job has no end; the last lines: %s", s.last(12))
		return
	}
	c.honest(s)
	c.undoAll(s)
	c.replays(s)
	if err := s.end(); err != nil {
		c.t.Errorf("the last server: %v", err)
	}
	c.told.take(s.seen)
	c.check(checkChaos(c.t, c.home, session.SessionID(c.id), c.told))
}

// check compares what the log says of each call with what it did.
func (c *chaos) check(es []session.Entry) {
	requested := map[string]int{}
	results := map[string]*protocol.ToolResult{}
	tasks := map[string]protocol.Task{}
	notes := notices{ended: map[string]session.Seq{}, told: map[string]int{}}
	for i := range es {
		notes.take(c.t, &es[i])
		switch b, _ := protocol.Decode(&es[i]); b := b.(type) {
		case *protocol.ToolRequested:
			requested[b.ToolCallID]++
		case *protocol.ToolResult:
			results[b.ToolCallID] = b
			c.results[strings.TrimSuffix(b.Status+" "+b.ErrorType, " ")]++
		case *protocol.TaskUpdated:
			var rec protocol.Task
			if err := json.Unmarshal(b.Task, &rec); err != nil {
				c.t.Error(err)
			}
			if old, ok := tasks[rec.OriginToolCallID]; ok && old.TaskID != rec.TaskID {
				c.t.Errorf("call %s started two tasks", rec.OriginToolCallID)
			}
			tasks[rec.OriginToolCallID] = rec
		}
	}
	notes.check(c.t)
	c.notices += len(notes.told)
	c.goalTurns += notes.goalTurns
	for call, rec := range tasks {
		if rec.Live() {
			c.t.Errorf("the task of call %s is %s after the end of the runtime", call, rec.Status)
		}
	}
	lines := strings.Fields(contentOf(c.t, c.ledger))
	for _, j := range c.jobs() {
		for _, e := range j.effect {
			least, most := 0, 1
			r := results[e.id]
			switch {
			case e.kind == callReads:
				continue
			case requested[e.id] == 0, r.ErrorType == protocol.ErrToolNotRun, r.Status == protocol.ToolRejected:
				most = 0
			case r.Status == protocol.ToolCompleted && e.kind != callTask && !(c.undone[j] && e.kind == callEdits):
				least = 1
			}
			if n := c.effects(e, lines); n < least || n > most {
				c.t.Errorf("call %s (%s, result %+v) was done %d times", e.id, e.kind, r, n)
			}
		}
	}
}

func (c *chaos) jobs() []*chaosJob {
	var out []*chaosJob
	for _, j := range c.turns {
		if !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return append(out, c.todo...)
}

// effects counts how often a call was done.
func (c *chaos) effects(e *effect, ledger []string) int {
	n := 0
	switch e.kind {
	case callWrites:
		return c.seen.count(filepath.Base(e.path()))
	case callEdits:
		return strings.Count(contentOf(c.t, filepath.Join(c.ws, e.path())), e.id+"\n")
	}
	for _, line := range ledger {
		if line == e.id {
			n++
		}
	}
	return n
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// peer is a runtime and the client that drives it: it answers what it is asked, or does not.
type peer struct {
	*server
	c       *chaos
	mark    string
	id      int  // of the last request
	prompts int  // unanswered request of a prompt; 0 for none
	alive   bool // as far as we know
	open    bool // a turn was left open by a process before
	waiting bool // only for an answer
	turn    session.TurnID
	asked   map[string]bool // approvals and questions that were answered
}

// start starts a runtime on the session. Before it goes on, what the one before left is looked at: no process of it runs, no task of it
// is said to run.
func (c *chaos) start(kill string) *peer {
	c.t.Helper()
	c.runs++
	p := &peer{c: c, mark: fmt.Sprintf("%s%d.", c.mark, c.runs), alive: true, asked: map[string]bool{}}
	env := append([]string{
		"RIND_HOME=" + c.home, "HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + filepath.Join(c.base, "temp"),
		"RIND_TEST_KILL=" + kill, markName + "=" + p.mark,
	}, c.env...)
	args := []string{"--cwd", c.ws}
	if c.id != "" {
		args = append(args, "--session", c.id)
	}
	p.server = spawn(c.t, c.program, c.ws, env, args...)
	l, ok := p.call("initialize", map[string]any{"client_capabilities": []string{"rind/approvals"}})
	if !ok {
		p.alive = false
		if kill == "" {
			c.t.Fatalf("initialize was not answered: %s", p.last(5))
		}
		return p
	}
	var r struct {
		ID    string `json:"session_id"`
		State *struct {
			Turn    session.TurnID `json:"turn_id"`
			Status  string         `json:"status"`
			Waiting bool           `json:"waiting"`
		} `json:"turn_state"`
		Live *live `json:"live_turn"`
	}
	if err := json.Unmarshal(l.Result, &r); err != nil {
		c.t.Fatalf("%v: %s %s", err, l.Result, l.Error)
	}
	c.id = r.ID
	if r.State != nil && r.State.Status == "running" {
		p.open, p.waiting = true, r.State.Waiting
	}
	p.before()
	if p.open && p.alive {
		p.answerOpen(r.Live)
	}
	return p
}

// before looks at what runtimes before this one left.
func (p *peer) before() {
	c := p.c
	tasks, ok := p.tasks()
	for _, rec := range tasks {
		if ok && rec.Live() {
			c.t.Errorf("a task of a dead runtime is %s: %+v", rec.Status, rec)
		}
	}
	var left []marked
	if !eventually(20*time.Second, func() bool {
		left = left[:0]
		for _, m := range processesOf(markName, c.mark) {
			if m.mark != p.mark {
				left = append(left, m)
			}
		}
		return len(left) == 0
	}) {
		if p.running() {
			c.t.Errorf("run %d: processes of dead runtimes go on: %+v", c.runs, left)
		}
	}
}

// running reports whether the process is there.
func (p *peer) running() bool {
	for _, m := range processesOf(markName, p.mark) {
		if m.pid == p.cmd.Process.Pid {
			return true
		}
	}
	return false
}

// live is the part of live_turn that asks something.
type live struct {
	Approvals []struct {
		Action string `json:"action_id"`
	} `json:"approvals"`
	Question *struct {
		Call string `json:"tool_call_id"`
	} `json:"question"`
}

// call sends a request and waits for its answer, hearing what comes before.
func (p *peer) call(method string, params any) (wireLine, bool) {
	p.id++
	id := p.id
	p.send(id, method, params)
	var got wireLine
	ok := p.until(20*time.Second, func(l wireLine) bool {
		p.hear(l)
		got = l
		return l.Kind == "response" && l.RequestID == id
	})
	return got, ok
}

func (p *peer) prompt(params map[string]any) {
	p.id++
	p.prompts = p.id
	p.send(p.id, "session/prompt", params)
}

func (p *peer) resume() { p.prompt(map[string]any{"resume": true}) }

// busy reports whether a prompt is unanswered.
func (p *peer) busy() bool { return p.prompts != 0 }

// await hears until the prompt is answered; false when it was not within the time, or the process is gone.
func (p *peer) await(limit time.Duration) bool {
	end := time.Now().Add(limit)
	ok := p.until(limit, func(l wireLine) bool {
		p.hear(l)
		return p.prompts == 0
	})
	if !ok && time.Now().Before(end) {
		p.alive = false
	}
	return ok
}

// hear takes one line in: it answers questions, and notes what ended.
func (p *peer) hear(l wireLine) {
	if l.Kind == "response" && l.RequestID == p.prompts && p.prompts != 0 {
		p.prompts = 0
		p.open = false
		return
	}
	if l.Kind != "event" {
		return
	}
	var e struct {
		Type   string         `json:"type"`
		Turn   session.TurnID `json:"turn_id"`
		Action string         `json:"action_id"`
		Call   string         `json:"tool_call_id"`
		Input  string         `json:"input"`
	}
	if json.Unmarshal(l.Event, &e) != nil {
		return
	}
	switch e.Type {
	case "turn_started":
		p.turn = e.Turn
		if j := p.c.current; j != nil && e.Input == j.prompt() {
			p.c.turns[e.Turn] = j
		}
	case "approval_requested":
		p.approve(e.Action)
	case "user_question_requested":
		p.answer(e.Call)
	}
}

func (p *peer) approve(action string) {
	if p.c.withheld || p.asked[action] {
		return
	}
	p.asked[action] = true
	option := "allow_once"
	if p.c.rnd.IntN(8) == 0 {
		option = "reject_once"
	}
	p.id++
	p.send(p.id, "rind/approval/respond", map[string]any{"action_id": action, "option_id": option})
}

func (p *peer) answer(call string) {
	if p.c.withheld || p.asked[call] {
		return
	}
	p.asked[call] = true
	p.id++
	p.send(p.id, "rind/user-question/respond", map[string]any{"tool_call_id": call, "answer": "Yes (Recommended)"})
}

// answerOpen answers what was asked by a process that is gone; only that of a turn that waits for it goes on by it.
func (p *peer) answerOpen(l *live) {
	if l == nil || !p.c.finishing && p.c.rnd.IntN(3) == 0 {
		return
	}
	for _, a := range l.Approvals {
		p.approve(a.Action)
	}
	if l.Question != nil {
		p.answer(l.Question.Call)
	}
}

// last shows the newest lines, for a failure.
func (p *peer) last(n int) string {
	var b strings.Builder
	for _, l := range p.seen[max(0, len(p.seen)-n):] {
		fmt.Fprintf(&b, "\n%s %d %.300s%.300s%.300s", l.Kind, l.RequestID, l.Event, l.Result, l.Error)
	}
	return b.String()
}

// tasks lists the session's tasks.
func (p *peer) tasks() ([]protocol.Task, bool) {
	l, ok := p.call("rind/task/list", map[string]any{})
	var r struct {
		Tasks []protocol.Task `json:"tasks"`
	}
	if ok && json.Unmarshal(l.Result, &r) != nil {
		p.c.t.Errorf("tasks: %s %s", l.Result, l.Error)
	}
	return r.Tasks, ok
}

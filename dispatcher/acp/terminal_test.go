package acp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
)

const running = `{"turns":[{"match":"run","steps":[{"call":{"id":"x1","name":"bash","arguments":{"command":"make x > made","timeout_ms":20000}}},{"finish":"tool_calls"},{"text":"Ran."}]},
{"match":"behind","steps":[{"call":{"id":"x2","name":"bash","arguments":{"command":"make x","yield_time_ms":0}}},{"finish":"tool_calls"},{"text":"Ran."}]}]}`

// inTerminal plays a prompt that runs a command, up to the terminal the client is asked for.
func inTerminal(t *testing.T, f func(c *client, id, ask string, create *heard)) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", running, acp.Config{ClientTerminal: yes})
		c := p.start(`{"terminal":true}`)
		id, dir := c.atFolder(t, "x")
		ask := c.ask("session/prompt", prompting(id, "run"))
		req, _ := c.permission()
		if !strings.Contains(req.raw, "(in the editor's terminal, without a sandbox)") {
			t.Errorf("consent is asked as %s", req.raw)
		}
		c.choose(req, "allow_once")
		create := c.asked("terminal/create")
		if !strings.Contains(create.raw, `"-c","make x \u003e made"]`) && !strings.Contains(create.raw, `"-c","make x > made"]`) || !strings.Contains(create.raw, fmt.Sprintf(`"cwd":%q`, dir)) || !strings.Contains(create.raw, `"outputByteLimit":`) {
			t.Errorf("asked %s", create.raw)
		}
		f(c, id, ask, create)
		p.end()
	})
}

func TestACommandRunsInTheClientsTerminalWhichIsGivenBackBehindItsEnd(t *testing.T) {
	inTerminal(t, func(c *client, id, ask string, create *heard) {
		c.result(create, `{"terminalId":"t-1"}`)
		var shown, wait *heard // in either order
		for shown == nil || wait == nil {
			h, _ := c.until("the terminal and the wait", func(h *heard) bool {
				return h.Method == "terminal/wait_for_exit" || strings.Contains(h.raw, `{"type":"terminal","terminalId":"t-1"}`)
			})
			if h.Method == "session/update" {
				shown = h
			} else {
				wait = h
			}
		}
		if shown.Params.Update.Status != "in_progress" || shown.Params.Update.ToolCallID != "x1" {
			c.T.Errorf("shown as %s", shown.raw)
		}
		c.result(wait, `{"exitCode":3}`)
		c.result(c.asked("terminal/output"), `{"output":"it said so\n","truncated":false}`)
		end, _ := c.until("the call's end", func(h *heard) bool { return h.Params.Update.Status == "completed" })
		if strings.Contains(end.raw, `"content"`) || strings.Contains(end.raw, "t-1") || !strings.Contains(end.raw, `it said so`) || !strings.Contains(end.raw, `exit_code`) {
			c.T.Errorf("ended with %s", end.raw)
		}
		release := c.asked("terminal/release")
		if !strings.Contains(release.raw, `"terminalId":"t-1"`) {
			c.T.Errorf("%s", release.raw)
		}
		c.result(release, `{}`)
		c.stopped(ask, "end_turn")
		h, replay := c.call("session/load", strings.Replace(loading(id), `"/w"`, fmt.Sprintf("%q", c.dirOf(id)), 1))
		if strings.Contains(raws(replay)+h.raw, "t-1") || !strings.Contains(raws(replay), "it said so") {
			c.T.Errorf("replayed\n%s", raws(replay))
		}
	})
}

// stopped waits for the answer to a prompt, wherever it came among other lines.
func (c *client) stopped(ask, want string) {
	c.T.Helper()
	time.Sleep(5 * time.Second) // of the bubble
	for _, h := range c.Got() {
		if h.Method == "" && string(h.ID) == ask {
			if stopOf(h) != want {
				c.T.Errorf("%s", h.raw)
			}
			return
		}
	}
	c.T.Errorf("no answer to %s", ask)
}

// dirOf is the folder of a session, as the list has it.
func (c *client) dirOf(id string) string {
	c.T.Helper()
	h, _ := c.call("session/list", `{}`)
	return between(h.raw[strings.Index(h.raw, id):], `"cwd":"`, `"`)
}

func TestALoadInBetweenShowsTheCallWithoutItsTerminal(t *testing.T) {
	inTerminal(t, func(c *client, id, ask string, create *heard) {
		c.result(create, `{"terminalId":"t-1"}`)
		wait := c.asked("terminal/wait_for_exit")
		dir := between(create.raw, `"cwd":"`, `"`)
		time.Sleep(time.Second) // of the bubble: the terminal was shown, live
		c.call("session/list", `{}`)
		h, replay := c.call("session/load", strings.Replace(loading(id), `"/w"`, fmt.Sprintf("%q", dir), 1))
		if strings.Contains(raws(replay)+h.raw, "t-1") {
			c.T.Errorf("replayed\n%s", raws(replay))
		}
		c.result(wait, `{"exitCode":0}`)
		c.result(c.asked("terminal/output"), `{"output":"it said so\n","truncated":false}`)
		end, _ := c.until("the call's end", func(h *heard) bool { return h.Params.Update.Status == "completed" })
		if !strings.Contains(end.raw, `"content":[{"type":"content"`) {
			c.T.Errorf("ended with %s", end.raw)
		}
		c.result(c.asked("terminal/release"), `{}`)
		c.stopped(ask, "end_turn")
	})
}

func TestACommandIsKilledInTheClientsTerminalWhenItsTimeIsUpOrTheTurnIsCancelled(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		inTerminal(t, func(c *client, id, ask string, create *heard) {
			c.result(create, `{"terminalId":"t-1"}`)
			c.asked("terminal/wait_for_exit")
			want, status := "timed_out", "end_turn"
			if cancel {
				c.tell("session/cancel", named(id))
				want, status = "cancelled", "cancelled"
			}
			c.result(c.asked("terminal/kill"), `{}`)
			c.result(c.asked("terminal/output"), `{"output":"so far\n","truncated":true}`)
			end, _ := c.until("the call's end", func(h *heard) bool { return h.Params.Update.Status == "failed" })
			if !cancel && !strings.Contains(end.raw, "so far") {
				c.T.Errorf("%s: %s", want, end.raw)
			}
			release := c.asked("terminal/release")
			c.result(release, `{}`)
			c.stopped(ask, status)
		})
	}
}

func TestARefusedTerminalRunsTheCommandHereAndASilentOneDoesNotRunItTwice(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		inTerminal(t, func(c *client, _, ask string, create *heard) {
			c.send(`{"jsonrpc":"2.0","id":` + string(create.ID) + `,"error":{"code":-32603,"message":"no terminal"}}`)
			h, told := c.answer(ask)
			if stopOf(h) != "end_turn" || !strings.Contains(raws(told), "the command was not started") {
				c.T.Errorf("%s", raws(told))
			}
		})
	})
	t.Run("silent", func(t *testing.T) {
		inTerminal(t, func(c *client, _, ask string, _ *heard) {
			h, told := c.answer(ask)
			if stopOf(h) != "end_turn" || strings.Contains(raws(told), "the command was not started") || !strings.Contains(raws(told), "not known") {
				c.T.Errorf("%s", raws(told))
			}
		})
	})
}

func TestOnlyForegroundCommandsGoToTerminalsAndOnlyWhereWanted(t *testing.T) {
	for _, c := range []struct {
		name, caps, prompt string
		cfg                acp.Config
	}{
		{"in the background", `{"terminal":true}`, "behind", acp.Config{ClientTerminal: yes}},
		{"not offered", `{}`, "run", acp.Config{ClientTerminal: yes}},
		{"not wanted", `{"terminal":true}`, "run", acp.Config{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := launchWith(t, peers.NewWorld(), "i1", running, c.cfg)
				e := p.start(c.caps)
				id, dir := e.atFolder(t, "x")
				ask := e.ask("session/prompt", prompting(id, c.prompt))
				req, _ := e.permission()
				e.choose(req, "allow_once")
				if _, told := e.answer(ask); strings.Contains(raws(told), `"terminal/`) || !strings.Contains(raws(told), "the command was not started") {
					t.Errorf("%s", raws(told))
				}
				if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
					t.Error("it ran")
				}
				p.end()
			})
		})
	}
}

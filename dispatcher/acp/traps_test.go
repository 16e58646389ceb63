package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
)

// The traps of the JSON-RPC library (docs/protocol/acp.md section 6) as a client of a connection meets them, by their numbers; protocol/rpc has
// those that only show inside, J9, J12, J17, J21, J22 and J25 among them.

func TestTrapsOfLinesAndIds(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for _, c := range []struct {
		name, line string
		code       int    // 0: nothing is said
		id         string // of the answer
	}{
		{"J1 no JSON", `{"jsonrpc":"2.0","id":7,`, -32700, "null"},
		{"J1 no object", `7`, -32600, "null"},
		{"J1 empty object", `{}`, -32600, "null"},
		{"J1 array", `[{"jsonrpc":"2.0","id":7,"method":"session/list"}]`, -32600, "null"},
		{"J1 method is no string", `{"jsonrpc":"2.0","id":7,"method":8}`, -32600, "7"},
		{"J1 a request with a null result", `{"jsonrpc":"2.0","id":7,"method":"session/list","params":{},"result":null}`, 1, "7"},
		{"J1 an odd error code", `{"jsonrpc":"2.0","id":7,"error":{"code":"x"}}`, 0, ""},
		{"J2 two messages on a line", `{"jsonrpc":"2.0","id":7,"method":"session/list"} {"jsonrpc":"2.0","id":8,"method":"session/list"}`, -32700, "null"},
		{"J2 a blank line", "  ", 0, ""},
		{"J3 a long line", `{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"x":"` + long + `"}}`, -32600, "null"},
		{"J4 negative id", `{"jsonrpc":"2.0","id":-7,"method":"session/list","params":{}}`, 1, "-7"},
		{"J4 fraction", `{"jsonrpc":"2.0","id":1.5,"method":"session/list","params":{}}`, 1, "1.5"},
		{"J4 exponent", `{"jsonrpc":"2.0","id":1e3,"method":"session/list","params":{}}`, 1, "1e3"},
		{"J4 2^64", `{"jsonrpc":"2.0","id":18446744073709551616,"method":"session/list","params":{}}`, 1, "18446744073709551616"},
		{"J4 text", `{"jsonrpc":"2.0","id":"7","method":"session/list","params":{}}`, 1, `"7"`},
		{"J4 object", `{"jsonrpc":"2.0","id":{},"method":"session/list"}`, -32600, "null"},
		{"J4 bool", `{"jsonrpc":"2.0","id":true,"method":"session/list"}`, -32600, "null"},
		{"J5 null", `{"jsonrpc":"2.0","id":null,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`, -32600, "null"},
		{"J6 an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, 0, ""},
		{"J6 an answer to nothing", `{"jsonrpc":"2.0","id":-1,"result":{}}`, 0, ""},
		{"J7 another version", `{"jsonrpc":"1.0","id":7,"method":"session/list"}`, -32600, "7"},
		{"J7 no version", `{"id":7,"method":"session/list"}`, -32600, "7"},
		{"J10 no params where some are due", `{"jsonrpc":"2.0","id":7,"method":"session/new"}`, -32602, "7"},
		{"J10 no params where none are", `{"jsonrpc":"2.0","id":7,"method":"session/list"}`, 1, "7"},
		{"J16 nobody answers such a method", `{"jsonrpc":"2.0","id":7,"method":"session/nothing"}`, -32601, "7"},
		{"J20 a notification nobody knows", `{"jsonrpc":"2.0","method":"session/nothing"}`, 0, ""},
		{"J20 a request without an id", `{"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := config()
				cfg.MaxLine = 8192
				p := launchWith(t, peers.NewWorld(), "i1", touching, cfg)
				e := p.start(`{}`)
				at := e.at
				e.send(c.line)
				time.Sleep(time.Second)      // of the bubble: what there is to say is said
				e.call("session/list", `{}`) // it lives
				said := e.Got()[at:]
				said = said[:len(said)-1]
				switch {
				case c.code == 0 && len(said) > 0:
					t.Errorf("said %s", raws(said))
				case c.code == 0:
				case len(said) != 1 || string(said[0].ID) != c.id:
					t.Errorf("said %s, want an answer to %s", raws(said), c.id)
				case c.code < 0 && (said[0].Error == nil || said[0].Error.Code != c.code):
					t.Errorf("said %s, want %d", said[0].raw, c.code)
				case c.code > 0 && said[0].Error != nil:
					t.Errorf("said %s", said[0].raw)
				}
				p.end()
			})
		})
	}
}

func TestJ8AnIdInFlightIsRefusedWithoutSettlingTheFirst(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "long"))
		c.until("first chunk", func(h *heard) bool { return h.Params.Update.SessionUpdate == "agent_message_chunk" })
		c.send(`{"jsonrpc":"2.0","id":` + ask + `,"method":"session/list","params":{}}`)
		h, _ := c.until("refusal", func(h *heard) bool { return h.Error != nil })
		if h.Error.Code != -32600 || string(h.ID) != "null" {
			t.Errorf("%s", h.raw)
		}
		if h, _ := c.answer(ask); stopOf(h) != "end_turn" {
			t.Errorf("%s", h.raw)
		}
	})
}

func TestJ11ACallDuringAPromptIsAnsweredAndACancelIsSeen(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission()
		c.call("session/list", `{}`) // read while the prompt and a call of ours are open
		c.tell("session/cancel", named(id))
		if h, _ := c.answer(ask); stopOf(h) != "cancelled" {
			t.Errorf("%s", h.raw)
		}
		_ = req
	})
}

func TestJ11SixtyFourRequestsMayBeOpenAndReadingGoesOn(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		var ids []string
		for range 8 {
			id := c.fresh()
			ids = append(ids, id)
			for range 8 {
				c.ask("session/prompt", prompting(id, "stay"))
			}
		}
		c.refused(-32050, "session/list", `{}`)
		for _, id := range ids {
			c.tell("session/cancel", named(id))
		}
		for range 64 {
			h, _ := c.until("answers", func(h *heard) bool { return h.Method == "" })
			if stopOf(h) != "cancelled" {
				t.Errorf("%s", h.raw)
			}
		}
		c.call("session/list", `{}`)
	})
}

func TestJ13NoAnswerOvertakesAnUpdateBeforeIt(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		for range 20 {
			_, told := c.call("session/prompt", prompting(id, "next"))
			if said(told, "agent_message_chunk") != "The next." {
				t.Fatalf("before the answer: %q", said(told, "agent_message_chunk"))
			}
			at := c.at
			c.call("session/list", `{}`)
			if behind := c.heardSince(at); strings.Contains(behind, "session/update") {
				t.Fatalf("behind the answer: %s", behind)
			}
		}
	})
}

func TestJ14ACancelRequestReachesTheRequestItNames(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		one, two := c.fresh(), c.fresh()
		a, b := c.ask("session/prompt", prompting(one, "stay")), c.ask("session/prompt", prompting(two, "long"))
		c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
		c.tell("$/cancel_request", `{"requestId":`+a+`}`)
		stops := map[string]string{}
		for len(stops) < 2 {
			h, _ := c.until("answers", func(h *heard) bool { return h.Method == "" })
			stops[string(h.ID)] = stopOf(h)
		}
		if stops[a] != "cancelled" || stops[b] != "end_turn" {
			t.Errorf("%v", stops)
		}
	})
}

func TestJ15APanicInAMethodIsItsAnswerAndTheConnectionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.Resolve = func(path string) (string, error) {
			if path == "/panic" {
				panic("no good")
			}
			return path, nil
		}
		var refs []error
		cfg.ErrorID = func(err error) string { refs = append(refs, err); return "ref-1" }
		p := launchWith(t, peers.NewWorld(), "i1", touching, cfg)
		c := p.start(`{}`)
		h, _ := c.answer(c.ask("session/new", `{"cwd":"/panic","mcpServers":[]}`))
		if h.Error == nil || h.Error.Code != -32603 || h.Error.Data["ref"] != "ref-1" || len(refs) != 1 || !strings.Contains(refs[0].Error(), "no good") || strings.Contains(h.raw, "no good") {
			t.Errorf("%s, logged %v", h.raw, refs)
		}
		if h, _ := c.call("session/prompt", prompting(c.fresh(), "next")); stopOf(h) != "end_turn" {
			t.Errorf("%s", h.raw)
		}
		p.end()
	})
}

// torn takes n writes, then fails in the middle of one.
type torn struct {
	mu   sync.Mutex
	n    int
	out  strings.Builder
	gone bool
}

func (w *torn) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return 0, errors.New("written after a failed write")
	}
	if w.n--; w.n < 0 {
		w.gone = true
		return len(b) / 2, errors.New("broken pipe")
	}
	w.out.Write(b)
	return len(b), nil
}

func TestJ18TheFirstFailedWriteEndsTheConnectionAndTheTurnIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		in, to := io.Pipe()
		out := &torn{n: 3}
		served := make(chan error, 1)
		go func() { served <- p.d.Serve(context.Background(), in, out) }()
		say := func(line string) { _, _ = io.WriteString(to, line+"\n"); time.Sleep(time.Second) }
		say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
		say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
		out.mu.Lock()
		id := between(out.out.String(), `"sessionId":"`, `"`)
		out.mu.Unlock()
		begun := time.Now()
		say(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":` + prompting(id, "long") + `}`)
		<-served
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it ended after %v", took)
		}
		_ = in.Close()
		sc := bufio.NewScanner(strings.NewReader(out.out.String()))
		for sc.Scan() {
			if !json.Valid(sc.Bytes()) {
				t.Errorf("a torn line: %s", sc.Text())
			}
		}
		p.end()
		p = launch(t, w, "i2", touching)
		c := p.start(`{}`)
		if h, replay := c.call("session/load", loading(id)); said(replay, "user_message_chunk") != "long" || strings.Contains(h.raw, "interrupted") {
			t.Errorf("%s\n%s", h.raw, raws(replay))
		}
		p.end()
	})
}

func TestJ23WhatIsToldKeepsItsOrder(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		id := c.fresh()
		_, told := c.call("session/prompt", prompting(id, "where"))
		var seen []string
		for _, h := range told {
			if s := h.Params.Update.Status; s != "" {
				seen = append(seen, s)
			}
		}
		if got := strings.Join(seen, " "); got != "pending in_progress completed" {
			t.Errorf("told %q", got)
		}
	})
}

func TestJ24RequestsReadBeforeTheEndAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", touching)
		c := p.start(`{}`)
		list, long := c.ask("session/list", `{}`), c.ask("session/prompt", prompting(c.fresh(), "long"))
		fresh := c.ask("session/new", `{"cwd":"/w","mcpServers":[]}`)
		c.hangUp()
		open := map[string]bool{long: true, fresh: true}
		for _, h := range c.Got() {
			delete(open, string(h.ID))
		}
		if len(open) > 0 {
			t.Errorf("%v and %s: no answer to %v in\n%s", list, long, open, c.heardSince(0))
		}
		p.end()
	})
}

func TestJ26ANullResultIsAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config()
		cfg.ClientFiles = yes
		p := launchWith(t, peers.NewWorld(), "i1", editing, cfg)
		c := p.start(withFiles)
		id, _ := c.atFolder(t, "a word\n")
		for range 3 { // were it a fault, the third would not be asked for
			ask := c.ask("session/prompt", prompting(id, "edit"))
			req, _ := c.permission()
			c.choose(req, "allow_once")
			c.result(c.asked("fs/read_text_file"), `{"content":"a word\n"}`)
			c.result(c.asked("fs/write_text_file"), `null`)
			if h, told := c.answer(ask); stopOf(h) != "end_turn" || calls(told)["e1"] != "completed" && !strings.Contains(raws(told), `"completed"`) {
				t.Errorf("%s", raws(told))
			}
		}
		if h, _ := c.call("session/close", named(id)); string(h.Result) != "{}" {
			t.Errorf("an empty result is %s", h.Result)
		}
		p.end()
	})
}

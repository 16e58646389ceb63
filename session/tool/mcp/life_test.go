package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func TestACrashFailsTheCallAndTheNextOneWaitsForTheRestart(t *testing.T) {
	h := open(t, object{"d": program("plain", nil)})
	crash, echo, hang := h.find(t, "mcp__d__crash"), h.find(t, "mcp__d__echo"), h.find(t, "mcp__d__hang")
	var other session.ToolResult
	var wg sync.WaitGroup
	wg.Go(func() { other = run(t.Context(), t, hang, `{}`) })
	for range 3 {
		r := run(t.Context(), t, crash, `{}`)
		if r.Status != protocol.ToolFailed || r.ErrorType != protocol.ErrToolOutcomeUnknown || !strings.Contains(r.Error, "exit code 7") || !strings.Contains(r.Error, "out of memory") {
			t.Fatalf("%+v", r)
		}
		if len(h.Tools(t.Context())) != len(doubleTools) {
			t.Error("a server that is restarted loses its tools")
		}
		if r := run(t.Context(), t, echo, `{"a":1}`); text(r) != `{"a":1}` {
			t.Fatalf("%+v", r)
		}
	}
	wg.Wait()
	if other.ErrorType != protocol.ErrToolOutcomeUnknown {
		t.Errorf("the other call: %+v", other)
	}
}

func TestAServerThatCrashesAgainAndAgainIsLeftAlone(t *testing.T) {
	h := open(t, object{"d": program("plain", nil)}, func(c *Config) { c.second = 60 * time.Millisecond }) // of a window of 36 s
	crash := h.find(t, "mcp__d__crash")
	for range restarts + 1 {
		if r := run(t.Context(), t, crash, `{}`); r.ErrorType != protocol.ErrToolOutcomeUnknown {
			t.Fatalf("%+v", r)
		}
	}
	r := run(t.Context(), t, crash, `{}`)
	if r.Status != protocol.ToolUnavailable || !strings.Contains(r.Error, "did not run") {
		t.Errorf("%+v", r)
	}
	if got := h.List()[0]; got.State != StateFailed || len(h.Tools(t.Context())) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAServerThatCannotStartHoldsUpNobody(t *testing.T) {
	entries := object{
		"good":    program("plain", nil),
		"exit":    program("exit", object{"env": object{"DOUBLE_KEY": "sk-canary-0123456789"}}),
		"nowhere": object{"command": "no-such-program-anywhere"},
		"folder":  program("plain", object{"cwd": "gone"}),
		"off":     program("plain", object{"disabled": true}),
		"refused": object{"url": "http://127.0.0.1:1/mcp"},
		"both":    object{"command": "x", "url": "http://x"},
		"neither": object{},
		"list":    []any{},
		"sse":     object{"url": "http://x", "type": "sse"},
		"unset":   object{"command": "x", "env": object{"A": "$NO_SUCH_VARIABLE"}},
		"number":  object{"command": 5},
		"time":    object{"command": "x", "timeoutMs": -1},
		"header":  object{"url": "http://x", "headers": object{"a b": "c"}},
		"scheme":  object{"url": "ftp://x"},
		"own":     object{"command": "x", "env": object{"RIND_HOME": "/"}},
	}
	h := open(t, entries)
	if tools := h.Tools(t.Context()); len(tools) != len(doubleTools) {
		t.Errorf("%d tools", len(tools))
	}
	want := map[string]string{
		"good": "", "exit": "exit code 3: cannot find module 'left-pad' with key [hidden]",
		"nowhere": "there is no program no-such-program-anywhere", "folder": "working folder", "off": "", "refused": "cannot be reached",
		"both": "mcpServers.both: it has both", "neither": "neither command nor url", "list": "must be an object", "sse": "not supported",
		"unset": "env.A names the variable NO_SUCH_VARIABLE, which is not set", "number": "command must not be a number", "time": "timeoutMs must be",
		"header": "no header", "scheme": "http or https", "own": "no variable that env may set",
	}
	for _, s := range h.List() {
		if !strings.Contains(s.Error, want[s.Name]) || want[s.Name] != "" && s.State != StateFailed {
			t.Errorf("%+v, want %q", s, want[s.Name])
		}
	}
	if strings.Contains(h.log.String(), "canary") {
		t.Error("the log holds a key")
	}
}

func TestAServerThatNeverAnswersIsGivenUp(t *testing.T) {
	h := open(t, object{"mute": program("mute", nil), "deaf": program("deaf", nil)}, func(c *Config) { c.starts = 200 * time.Millisecond })
	h.Start()
	h.Wait(t.Context())
	for _, s := range h.List() {
		if s.State != StateFailed || !strings.Contains(s.Error, "did not answer within 200ms") {
			t.Errorf("%+v", s)
		}
	}
}

func TestATurnGoesWithoutAServerThatStartsSlowlyAndHasItLater(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	h := open(t, object{"d": program("late", object{"env": object{"DOUBLE_GATE": gate}})}, func(c *Config) { c.Wait = time.Second })
	if tools := h.Tools(t.Context()); len(tools) != 0 {
		t.Fatalf("%d tools of a server that has not started", len(tools))
	}
	began := time.Now()
	for range 40 {
		h.Tools(t.Context())
	}
	if time.Since(began) > 20*time.Second {
		t.Error("later turns wait again")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "its tools are offered", func() bool { return len(h.Tools(t.Context())) == len(doubleTools) })
}

func TestCloseEndsServersThatDoNotWantToAndCallsInFlight(t *testing.T) {
	h := open(t, object{"a": program("stubborn", nil), "b": program("mute", nil)}, func(c *Config) { c.Wait = time.Millisecond })
	h.Start()
	testkit.Eventually(t, "one is connected", func() bool { return h.List()[0].State == StateReady })
	hang := h.find(t, "mcp__a__hang")
	done := make(chan session.ToolResult, 1)
	begun := make(chan struct{})
	go func() {
		close(begun)
		r, _ := hang.Run(context.Background(), session.ToolCall{Arguments: json.RawMessage(`{}`)}, &said{})
		done <- r
	}()
	<-begun
	h.children.Refuse()
	began := time.Now()
	h.Close()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("Close took %v", took)
	}
	select {
	case r := <-done:
		if r.ErrorType == "" {
			t.Errorf("%+v", r)
		}
	case <-time.After(soon):
		t.Fatal("the call goes on")
	}
	h.Close() // again
	h.Start() // starts nothing
	if err := h.children.KillAll(); err != nil {
		t.Error(err)
	}
}

func TestAServerThatDoesNotReadIsNotSentMoreThanABound(t *testing.T) {
	h := open(t, object{"d": program("deaf", nil)})
	l := newChild(newPeer(h.cfg.Log, maxMessage), &h.all[0].entry, &h.cfg)
	l.peer.link = l
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	defer l.close()
	big := bytes.Repeat([]byte("x"), 4<<20)
	var err error
	for range 12 {
		if err = l.send(big, 1); err != nil {
			break
		}
	}
	if !errors.Is(err, errUnread) {
		t.Errorf("%v", err)
	}
}

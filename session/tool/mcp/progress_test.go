package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// pipe is a link to a server that is a function of the test: it is given the peer and the number of each call, and answers or does not.
type pipe struct {
	sunk
	peer  *peer
	serve func(p *peer, id int64)
	wg    sync.WaitGroup // of serve
}

func (l *pipe) send(m []byte, id int64) error {
	if id != 0 {
		l.wg.Go(func() { l.serve(l.peer, id) })
	}
	return l.sunk.send(m, id)
}

// piped is a tool of a server behind a pipe, whose calls may take a minute, and ten however much progress is told.
func piped(t *testing.T, serve func(p *peer, id int64)) (*namedTool, *pipe) {
	t.Helper()
	cfg := Config{call: 10 * time.Minute}.filled()
	s := newServer(t.Context(), &cfg, "d", json.RawMessage(`{"command":"x","timeoutMs":60000}`))
	l := &pipe{peer: newPeer(cfg.Log, maxMessage), serve: serve}
	t.Cleanup(func() {
		s.stop()
		s.timer.Stop()
		l.wg.Wait()
	})
	l.peer.link, s.peer = l, l.peer
	s.set(StateReady, "")
	return &namedTool{tool: &tool{server: s, original: "x"}, name: "mcp__d__x"}, l
}

func (p *peer) progresses(id int64, text string) {
	p.receive(protocol.MustMarshal(object{"method": "notifications/progress", "params": object{"progressToken": id, "progress": 1, "message": text}}))
}

// calls runs a tool and returns how long it took.
func calls(t *testing.T, tool *namedTool, out *said) (session.ToolResult, time.Duration) {
	t.Helper()
	began := time.Now()
	r, err := tool.Run(context.Background(), session.ToolCall{Arguments: json.RawMessage(`{}`)}, out)
	if err != nil {
		t.Fatal(err)
	}
	return r, time.Since(began)
}

func (l *pipe) cancelled() bool {
	return slices.ContainsFunc(l.sent, func(m []byte) bool { return strings.Contains(string(m), "notifications/cancelled") })
}

func TestProgressIsToldOnceASecondAndExtendsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool, l := piped(t, func(p *peer, id int64) {
			for _, step := range []struct {
				after time.Duration
				text  string
			}{{0, "a"}, {999 * time.Millisecond, "b"}, {time.Millisecond, "c"}, {59 * time.Second, "d"}, {59 * time.Second, "e"}} {
				time.Sleep(step.after)
				p.progresses(id, step.text)
			}
			time.Sleep(59 * time.Second)
			p.receive(protocol.MustMarshal(object{"id": id, "result": object{"content": []any{object{"type": "text", "text": "done"}}}}))
		})
		out := &said{}
		r, took := calls(t, tool, out)
		if text(r) != "done" || took != 178*time.Second || l.cancelled() {
			t.Errorf("%+v after %v", r, took)
		}
		if want := []string{"a", "c", "d", "e"}; !slices.Equal(out.lines, want) {
			t.Errorf("told %q, want %q", out.lines, want)
		}
	})
}

func TestACallThatIsNotAnsweredTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tool, l := piped(t, func(p *peer, id int64) {
			time.Sleep(50 * time.Second)
			p.progresses(id, "at it")
		})
		r, took := calls(t, tool, &said{})
		if r.Status != protocol.ToolTimedOut || r.ErrorType != protocol.ErrTimedOut || !strings.Contains(r.Error, "within 1m50s. The call may or may not have run") {
			t.Errorf("%+v", r)
		}
		if took != 110*time.Second || !l.cancelled() {
			t.Errorf("after %v, sent %s", took, l.sent)
		}
	})
}

func TestACallEndsHoweverMuchProgressIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		tool, l := piped(t, func(p *peer, id int64) {
			for {
				select {
				case <-over:
					return
				case <-time.After(7 * time.Second):
					p.progresses(id, "at it")
				}
			}
		})
		r, took := calls(t, tool, &said{})
		if r.Status != protocol.ToolTimedOut || took != 10*time.Minute || !l.cancelled() {
			t.Errorf("%+v after %v, sent %s", r, took, l.sent)
		}
	})
}

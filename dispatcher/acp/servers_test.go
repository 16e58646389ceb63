package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

// started is what is asked for of the servers that clients name.
type started struct {
	mu  sync.Mutex
	did []string
}

func (s *started) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, fmt.Sprintf(format, args...))
}

func (s *started) Name(_ session.SessionID, workspace string, entries map[string]json.RawMessage) {
	text, _ := json.Marshal(entries)
	s.note("name %s %s", workspace, text)
}

func (s *started) Forget(session.SessionID) { s.note("forget") }

// last waits until nothing goes on any more and returns what was asked for since the last time.
func (s *started) last() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.did, "; ")
	s.did = nil
	return text
}

func TestServersThatAClientNamesStartWithItsSessionAndEndWithIt(t *testing.T) {
	const (
		servers = `[{"name":"a","command":"/bin/a","args":["x"],"env":[{"name":"K","value":"$v"}]},{"type":"http","name":"b","url":"http://127.0.0.1/mcp","headers":[{"name":"H","value":"w"}]}]`
		want    = `name /w {"a":{"args":["x"],"command":"/bin/a","env":{"K":"$v"},"type":"stdio"},"b":{"headers":{"H":"w"},"type":"http","url":"http://127.0.0.1/mcp"}}`
		none    = `name /w {}`
	)
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", `{"turns":[{"steps":[{"text":"Yes."}]}]}`)
		ran := &started{}
		p.d = acp.New(acp.Config{Sessions: p.All, Version: "0.0.0", Servers: ran})
		c := p.start(`{}`)
		for _, bad := range []string{
			`[{"type":"sse","name":"a","url":"http://x","headers":[]}]`,
			`[{"name":"a","command":"/bin/a","args":[],"env":[]},{"name":"a","command":"/bin/b","args":[],"env":[]}]`,
			`[{"name":"","command":"/bin/a","args":[],"env":[]}]`, `[{"name":"a"}]`, `[7]`, `7`,
			`[{"name":"a","command":"/bin/a","args":"x","env":[]}]`,
		} {
			c.refused(-32602, "session/new", fmt.Sprintf(`{"cwd":"/w","mcpServers":%s}`, bad))
		}
		if got := ran.last(); got != "" {
			t.Errorf("a request that is refused starts servers: %s", got)
		}
		h, _ := c.call("session/new", fmt.Sprintf(`{"cwd":"/w","mcpServers":%s}`, servers))
		var r struct{ SessionID string }
		_ = json.Unmarshal(h.Result, &r)
		if got := ran.last(); got != want {
			t.Errorf("new: %s", got)
		}
		c.call("session/prompt", prompting(r.SessionID, "hello"))
		for _, method := range []string{"session/load", "session/resume"} {
			c.call(method, loading(r.SessionID))
			if got := ran.last(); got != none {
				t.Errorf("%s: %s", method, got)
			}
			c.call(method, fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":%s}`, r.SessionID, servers))
			if got := ran.last(); got != want {
				t.Errorf("%s: %s", method, got)
			}
		}
		c.refused(-32602, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":"/elsewhere","mcpServers":%s}`, r.SessionID, servers))
		c.call("session/close", named(r.SessionID))
		if got := ran.last(); got != "forget" {
			t.Errorf("close: %s", got)
		}
		c.call("session/load", loading(r.SessionID))
		ran.last()
		c.call("session/delete", named(r.SessionID))
		if got := ran.last(); !strings.HasPrefix(got, "forget") {
			t.Errorf("delete: %s", got)
		}
		p.end()
	})
}

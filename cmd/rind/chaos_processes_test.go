//go:build unix

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

var loadTime = flag.Duration("load", 2*time.Second, "how long TestChaosProcessesOnOneStore lets two processes work at once")

// storeClient is one process with a session of its own, at work without a pause. It belongs to one goroutine.
type storeClient struct {
	*server
	id       int
	session  string
	other    string              // a session of the other process
	told     map[string]*witness // by session
	turns    int
	longest  time.Duration
	problems []string
}

// call sends a request and waits for its answer.
func (c *storeClient) call(method string, params any) wireLine {
	c.id++
	c.send(c.id, method, params)
	l, ok := c.reply(c.id)
	switch {
	case !ok:
		c.problems = append(c.problems, method+" was not answered in 30 s")
	case l.Error != nil:
		c.problems = append(c.problems, fmt.Sprintf("%s: %s", method, l.Error))
	}
	return l
}

// work prompts until a time, and looks at what the other process does now and then.
func (c *storeClient) work(until time.Time) {
	for ; time.Now().Before(until) && len(c.problems) < 5; c.turns++ {
		began := time.Now()
		l := c.call("session/prompt", map[string]any{"input": []string{"just talk", "use a tool"}[c.turns%2]})
		c.longest = max(c.longest, time.Since(began))
		if l.Error == nil && !strings.Contains(string(l.Result), `"outcome":"completed"`) {
			c.problems = append(c.problems, fmt.Sprintf("turn %d: %s", c.turns, l.Result))
		}
		switch c.turns % 10 {
		case 3:
			c.call("session/list", map[string]any{})
		case 6:
			c.call("session/replay", map[string]any{"session_id": c.other, "after_cursor": 0, "limit": 200})
		case 9: // a session that is made, used and removed beside them
			var r struct {
				ID string `json:"session_id"`
			}
			l := c.call("session/new", map[string]any{})
			if err := json.Unmarshal(l.Result, &r); err != nil {
				c.problems = append(c.problems, err.Error())
				return
			}
			c.call("session/prompt", map[string]any{"session_id": r.ID, "input": "just talk"})
			c.call("session/switch", map[string]any{"session_id": c.session})
			c.call("session/delete", map[string]any{"session_id": r.ID})
		}
		c.note()
		if c.turns%sessionTurns == sessionTurns-1 { // the script has an end
			c.begin()
		}
	}
}

// sessionTurns is how many turns a session gets.
const sessionTurns = 500

// begin goes on in a new session.
func (c *storeClient) begin() {
	var r struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(c.call("session/new", map[string]any{}).Result, &r); err != nil {
		c.problems = append(c.problems, err.Error())
		return
	}
	c.session = r.ID
	c.told[c.session] = &witness{received: map[session.Seq]string{}}
}

// note keeps what was told of the session.
func (c *storeClient) note() {
	c.told[c.session].take(c.of(c.session))
	c.seen = c.seen[:0]
}

// of are the lines heard of one session.
func (c *storeClient) of(id string) (out []wireLine) {
	for _, l := range c.seen {
		var e struct {
			Session string `json:"session_id"`
		}
		if l.Kind == "event" && json.Unmarshal(l.Event, &e) == nil && e.Session == id {
			out = append(out, l)
		}
	}
	return out
}

// TestChaosProcessesOnOneStore lets two processes work on one store at once: in turns, lists, replays of each other's sessions, and
// sessions that come and go. Each request is answered without a word about locks, nobody starves, and the logs hold what was told.
// `make chaos` runs it for half a minute.
func TestChaosProcessesOnOneStore(t *testing.T) {
	talk := `{"text":"This is an answer told in pieces, as long as answers are. ","chunk":7},{"text":"It ends here.","chunk":3},{"finish":"stop"}`
	tool := `{"call":{"name":"read_file","arguments":{"path":"a.txt"}}},{"finish":"tool_calls"},{"text":"I have read it."},{"finish":"stop"}`
	root := chaosRoot(t, fmt.Sprintf(`{"turns":[{"match":"tool","steps":[{"repeat":{"times":1000,"steps":[%s]}}]},{"match":"talk","steps":[{"repeat":{"times":1000,"steps":[%s]}}]}]}`, tool, talk))
	clients := make([]*storeClient, 2)
	for i := range clients {
		c := &storeClient{server: serve(t, root, ""), told: map[string]*witness{}}
		clients[i] = c
		c.call("initialize", map[string]any{"client_capabilities": []string{}})
		c.begin()
		c.call("session/prompt", map[string]any{"input": "just talk"})
	}
	clients[0].other, clients[1].other = clients[1].session, clients[0].session
	until, done := time.Now().Add(*loadTime), make(chan struct{})
	for _, c := range clients {
		go func() {
			c.work(until)
			done <- struct{}{}
		}()
	}
	for range clients {
		<-done
	}
	for i, c := range clients {
		if err := c.end(); err != nil {
			t.Errorf("end of process %d: %v", i, err)
		}
		c.note()
		for _, p := range c.problems {
			t.Errorf("process %d: %s", i, p)
		}
		t.Logf("process %d: %d turns, the longest took %v", i, c.turns, c.longest.Round(time.Millisecond))
		for id, told := range c.told {
			if len(told.received) >= 20 { // the last may have just begun
				checkChaos(t, root, session.SessionID(id), told)
			}
		}
	}
	if few, many := min(clients[0].turns, clients[1].turns), max(clients[0].turns, clients[1].turns); few*4 < many {
		t.Errorf("one process did %d turns and the other %d", few, many)
	}
}

package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// honest looks whether every task that is said to run has a process.
func (c *chaos) honest(s *peer) {
	var bad protocol.Task
	if !eventually(20*time.Second, func() bool { // one that ends just now is looked at again
		tasks, _ := s.tasks()
		lines := processesOf(markName, s.mark)
		for _, rec := range tasks {
			if rec.Status != protocol.TaskRunning {
				continue
			}
			_, last, _ := strings.Cut(rec.Command, "; ") // a shell becomes its last command
			if !slices.ContainsFunc(lines, func(m marked) bool {
				return strings.Contains(m.command, rec.Command) || strings.TrimSpace(m.command) == last
			}) {
				bad = rec
				return false
			}
		}
		return true
	}) {
		c.t.Errorf("a task runs without a process: %+v", bad)
	}
}

// undo asks for the last turn to be put back, whatever is running.
func (c *chaos) undo(s *peer) {
	if j := c.turns[s.turn]; j != nil {
		c.undone[j] = true
	}
	s.call("rind/command/execute", map[string]any{"input": "/undo"})
}

// undoAll puts every turn back, the newest first, and looks at each file: it is as before, or it is named, and why it was left.
func (c *chaos) undoAll(s *peer) {
	store, err := openStore(filepath.Join(c.home, "sessions", "rind.db"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer store.Close()
	es, err := store.Read(c.t.Context(), session.SessionID(c.id), 0, 1<<20, protocol.ViewAll)
	if err != nil {
		c.t.Fatal(err)
	}
	known := map[string]bool{} // calls whose changes are on record
	var turns []session.TurnID
	for i := range es {
		switch b, _ := protocol.Decode(&es[i]); b := b.(type) {
		case *protocol.ToolResult:
			known[b.ToolCallID] = b.Status == protocol.ToolCompleted && (b.More.Touched == nil || !b.More.Touched.Unknown)
		case *protocol.TurnStarted:
			if c.turns[es[i].Turn] != nil && b.Origin == protocol.OriginUser {
				turns = append(turns, es[i].Turn)
			}
		}
	}
	for i := len(turns) - 1; i >= 0; i-- {
		c.undoTurn(s, turns[i], known)
	}
}

func (c *chaos) undoTurn(s *peer, turn session.TurnID, known map[string]bool) {
	j := c.turns[turn]
	on := map[*effect]string{}
	for _, e := range j.effect {
		if e.path() != "" {
			on[e] = contentOf(c.t, filepath.Join(c.ws, e.path()))
		}
	}
	var r struct {
		Text    string `json:"text"`
		Display *struct {
			Turn  session.TurnID     `json:"turn_id"`
			Files []session.FileUndo `json:"files"`
		} `json:"display"`
	}
	var l wireLine
	if !eventually(20*time.Second, func() bool { // a turn about tasks that ended may be running
		l, _ = s.call("rind/command/execute", map[string]any{"input": "/undo " + string(turn)})
		r.Display = nil
		return json.Unmarshal(l.Result, &r) == nil && r.Display != nil
	}) {
		c.t.Errorf("undo of turn %s: %s %s", turn, l.Result, l.Error)
		return
	}
	c.undone[j] = true
	fates := map[string]session.FileUndo{}
	for _, f := range r.Display.Files {
		fates[f.Path] = f
	}
	for e, was := range on {
		now := contentOf(c.t, filepath.Join(c.ws, e.path()))
		fate, named := fates[e.path()]
		switch {
		case named && fate.Status == session.FileRestored && now != e.before():
			c.t.Errorf("%s was restored, and holds %q", e.path(), now)
		case named && fate.Status != session.FileRestored && now != was:
			c.t.Errorf("%s was left alone (%+v), and is changed from %q to %q", e.path(), fate, was, now)
		case !named && known[e.id] && was != e.before():
			c.t.Errorf("%s was written by call %s and is not named: %s", e.path(), e.id, r.Text)
		case !named && now != was:
			c.t.Errorf("%s is not named, and is changed from %q to %q", e.path(), was, now)
		}
	}
}

// replays reads the whole conversation again over the wire: the events are those that were told live.
func (c *chaos) replays(s *peer) {
	at, n := session.Seq(0), 0
	for {
		l, ok := s.call("session/replay", map[string]any{"after_cursor": at, "limit": 1000})
		var r struct {
			Events []wireLine  `json:"events"`
			Next   session.Seq `json:"next_cursor"`
			More   bool        `json:"has_more"`
		}
		if !ok || json.Unmarshal(l.Result, &r) != nil || r.Events == nil {
			c.t.Errorf("replay after %d: %.300s %s", at, l.Result, l.Error)
			return
		}
		for _, e := range r.Events {
			n++
			if live, ok := c.told.received[e.Cursor]; ok && live != string(e.Event) {
				c.t.Errorf("event %d was told as\n%s\nand is replayed as\n%s", e.Cursor, live, e.Event)
			}
		}
		if !r.More {
			break
		}
		at = r.Next
	}
	if n < 20 {
		c.t.Errorf("only %d events are replayed", n)
	}
}

package acp

import (
	"context"
	"encoding/json"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// newFollow makes a follower with a reference of its own; nil when the session is being deleted. Runs on the session's goroutine.
func (c *Conn) newFollow(v *session.View, cursor session.Seq) *follow {
	ref, err := c.d.cfg.Sessions.Open(context.Background(), v.Session.ID)
	if err != nil {
		return nil
	}
	id := ref.ID
	f := &follow{Cursor: outlet.Cursor{Session: ref, At: cursor}, out: c.out, teller: acp.NewTeller(id, v.Workspace, c.clientCaps(), c.isOwn)}
	f.besides = newBesides(c.d.cfg.Sessions.Store(), v)
	f.teller.Spent(v.Cost)
	f.teller.Terminal, f.teller.Commands = c.terminal, c.commandsIn(id, v.Sel)
	c.hideTerminals(id)
	f.Bell = v.Follow(c.out.Ring, func(event json.RawMessage) { c.pushed(id, event) }, func() {
		go c.discarded(id) // not on the session's goroutine, which ends with this
	})
	return f
}

// discarded lets go of a session that was deleted.
func (c *Conn) discarded(id session.SessionID) {
	c.mu.Lock()
	o := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	c.out.Unfollow(string(id))
	c.forget(id)
	if o != nil {
		o.s.Close()
	}
}

// pushed tells an event that has no entry: settings and title of a session that is not stored yet.
func (c *Conn) pushed(id session.SessionID, event json.RawMessage) {
	var e struct {
		Type  string `json:"type"`
		Title string `json:"title"`
		protocol.SessionSettingsChanged
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	var lines []byte
	switch e.Type {
	case protocol.KindSessionSettingsChanged.String():
		lines = c.appendSettings(nil, id, &e.SessionSettingsChanged)
	case protocol.KindSessionRenamed.String():
		lines = updateLine(id, acp.Titled(e.Title))
	}
	if len(lines) > 0 {
		c.out.Line(lines, "")
	}
}

// state is what the answers that open a session say of it.
func (c *Conn) state(v *session.View) acp.Opened {
	res := acp.Opened{Options: c.d.options(v.Sel)}
	if !c.draft() {
		res.Modes = modesOf(v.Sel)
	}
	if note := openTurn(v); note != nil {
		res.Meta = map[string]json.RawMessage{acp.MetaTurn: protocol.MustMarshal(note)}
	}
	return res
}

// openTurn describes the open turn when nobody works on it; nil otherwise.
func openTurn(v *session.View) *acp.TurnNote {
	t := v.Serial
	if t == nil || !t.Started || v.Alive() {
		return nil
	}
	note := &acp.TurnNote{Status: "interrupted", Turn: t.ID}
	if v.TurnState().Waiting {
		note.Status = session.OutcomeWaiting
	}
	return note
}

// openAsks are the actions of a session that wait for an answer.
func openAsks(v *session.View) []*acp.Ask {
	asks := []*acp.Ask{}
	add := func(t *session.OpenTurn) {
		for _, a := range t.Actions {
			ask := &acp.Ask{Action: a.ID, CallID: a.CallID, Turn: t.ID, Approval: a.Approval}
			if ask.CallID == "" {
				ask.CallID = a.ID
			}
			if a.Question {
				ask.Question = &protocol.UserQuestionRequested{ToolCallID: a.CallID, Question: a.Title, Options: a.Choices}
				ask.Question.More.ActionID = a.ID
			}
			asks = append(asks, ask)
		}
	}
	if v.Serial != nil {
		add(v.Serial)
	}
	for _, t := range v.Parallel {
		add(t)
	}
	return asks
}

// replayed makes the follower of a replay; the call is answered when it gives nil.
func (k *call) replayed(v *session.View, p acp.OpenParams) *follow {
	var after session.Seq
	if p.After != nil {
		after = *p.After
	}
	if after > v.Head {
		k.Fail(acp.Bad("The cursor is not one of this session."))
		return nil
	}
	f := k.c.newFollow(v, after)
	if f == nil {
		k.Fail(notOpen(v.Session.ID))
		return nil
	}
	f.head = v.Head
	f.teller.Replay(p.After != nil)
	f.open.Asks, f.open.Cost = openAsks(v), v.Cost
	if t := v.Serial; t != nil {
		f.open.Turn = t.ID
		f.open.Message, f.open.Text = v.OpenMessage()
		note := openTurn(v)
		f.open.Alive = note == nil || note.Status == session.OutcomeWaiting
		for _, c := range t.Calls {
			if !c.Done {
				f.open.Calls = append(f.open.Calls, acp.OpenCall{ID: c.ID, Name: c.Name})
			}
		}
	}
	return f
}

// answerThenFollow answers, tells the commands, and goes on with the log from where the follower stands. Runs on the session's goroutine.
func (k *call) answerThenFollow(res acp.Opened, p acp.OpenParams, f *follow) {
	s := f.Session
	if !k.Answer(func() {
		k.Out.Reply(protocol.Reply{ID: k.ID, Result: res})
		k.Out.Line(f.commands(), "")
	}) {
		f.Close() // it was taken back meanwhile
		return
	}
	k.c.serve(s, p)
	k.c.out.Follow(string(s.ID), f, nil)
	k.c.lateOptions(s)
}

// commands is what follows right behind the answer that opened a session.
func (f *follow) commands() []byte {
	return updateLine(f.Session.ID, acp.Commands(f.teller.Commands))
}

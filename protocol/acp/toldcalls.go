package acp

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// progressEvery bounds how often progress of one call is told.
const progressEvery = 250 * time.Millisecond

// hidden reports whether a tool is told of by other updates only.
func hidden(name string) bool { return name == "update_plan" }

// announce tells a call, once.
func (t *Teller) announce(dst []Told, turn protocol.TurnID, c CallUpdate) []Told {
	t.calls[c.ID] = &callTold{turn: turn}
	t.order = append(t.order, c.ID)
	return update(dst, Call{ToolCall, c})
}

// call finds a call, and announces it where that was not done and the client does not know it; nil says that nothing is told of it.
func (t *Teller) call(dst []Told, turn protocol.TurnID, id, name string) ([]Told, *callTold) {
	c := t.calls[id]
	switch {
	case hidden(name) || c != nil && c.hidden:
		return dst, nil
	case c == nil && t.knows:
		c = &callTold{turn: turn}
		t.calls[id] = c
		t.order = append(t.order, id)
	case c == nil:
		dst = t.announce(dst, turn, Describe(t.Root, id, name, nil))
	case c.known != nil:
		dst = t.announce(dst, turn, *c.known)
	}
	return dst, t.calls[id]
}

func toolRequested(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	r := b.(*protocol.ToolRequested)
	if hidden(r.ToolName) {
		t.calls[r.ToolCallID] = &callTold{turn: e.Turn, hidden: true}
		return dst
	}
	c := Describe(t.Root, r.ToolCallID, r.ToolName, r.Arguments)
	if r.More.Title != "" {
		c.Title = r.More.Title
	}
	if r.More.ToolKind != "" {
		c.Kind = r.More.ToolKind
	}
	c.show(r.More.View)
	return t.announce(dst, e.Turn, c)
}

func toolStarted(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	s := b.(*protocol.ToolCallStarted)
	dst, c := t.call(dst, e.Turn, s.ToolCallID, s.ToolName)
	if c == nil {
		return dst
	}
	c.started = true
	if t.replay {
		return dst
	}
	return update(dst, Call{ToolCallUpdate, CallUpdate{ID: s.ToolCallID, Status: StatusInProgress}})
}

func toolProgress(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	p := b.(*protocol.ToolProgress)
	if last, ok := t.progress[p.ToolCallID]; t.replay || ok && e.Time.Sub(last) < progressEvery {
		return dst
	}
	shown := p.More.Content
	if shown == "" {
		shown = p.Payload.Message
	}
	shown = tail(shown, maxProgress)
	dst, c := t.call(dst, e.Turn, p.ToolCallID, p.ToolName)
	if c == nil || shown == "" {
		return dst
	}
	t.progress[p.ToolCallID] = e.Time
	return update(dst, Call{ToolCallUpdate, CallUpdate{ID: p.ToolCallID, Status: StatusInProgress, Content: textCall(shown)}})
}

// fileChange keeps what was changed for the call's result, which shows all of it, as far as that fits a line.
func fileChange(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	f := b.(*protocol.FileChange)
	shown := t.diffs[f.ToolCallID]
	left := maxChanges
	for i := range shown {
		left -= shown[i].size()
	}
	var c CallContent
	if f.More.NewText != nil {
		c.Diff = &Diff{Path: f.FilePath, Old: f.More.OldText, New: *f.More.NewText}
	}
	if c.Diff == nil || c.size() > left {
		text := f.FilePath
		for _, l := range f.Lines {
			sign := "+"
			if l.Kind == "removed" {
				sign = "-"
			}
			text += "\n" + sign + l.Text
		}
		told := TextContent(middle(text))
		c = CallContent{Content: &told}
	}
	if c.size() > left { // of very many: that there are more
		if c = textCall("[…]")[0]; len(shown) > 0 && shown[len(shown)-1].same(c) {
			return dst
		}
	}
	t.diffs[f.ToolCallID] = append(shown, c)
	return dst
}

func toolResult(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	r := b.(*protocol.ToolResult)
	shown := t.diffs[r.ToolCallID]
	delete(t.diffs, r.ToolCallID)
	delete(t.progress, r.ToolCallID)
	dst, c := t.call(dst, e.Turn, r.ToolCallID, r.ToolName)
	t.closed(r.ToolCallID)
	if c == nil {
		return dst
	}
	u := CallUpdate{ID: r.ToolCallID, Status: StatusCompleted, Content: shown}
	if r.Status != protocol.ToolCompleted {
		u.Status = StatusFailed
	}
	if len(shown) == 0 || u.Status == StatusFailed {
		if text := resultText(r.Result); text != "" {
			u.Content = append(u.Content, textCall(text)...)
		}
	}
	if json.Valid([]byte(r.Result)) {
		u.RawOutput = json.RawMessage(r.Result)
	}
	for _, d := range shown {
		if d.Diff != nil {
			u.Locations = append(u.Locations, Location{Path: d.Diff.Path})
		}
	}
	over := ""
	if t.Terminal != nil {
		if open, shown := t.Terminal(r.ToolCallID); open {
			over = r.ToolCallID
			if shown && !t.replay { // what is shown stays, and the id must not come again
				u.Content = nil
			}
		}
	}
	dst = update(dst, Call{ToolCallUpdate, u})
	dst[len(dst)-1].Over = over
	return dst
}

// closed forgets a call that has ended.
func (t *Teller) closed(id string) {
	if i := slices.Index(t.order, id); i >= 0 {
		t.order = slices.Delete(t.order, i, i+1)
	}
	delete(t.calls, id)
}

func approvalRequested(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	a := b.(*protocol.ApprovalRequested)
	id := a.ToolCallID
	if id == "" {
		id = a.ActionID
	}
	dst = t.actionCall(dst, e.Turn, id, a.ActionID, a.ToolName)
	return t.ask(dst, &Ask{Action: a.ActionID, CallID: id, Turn: e.Turn, Approval: a})
}

// actionCall finds the call an action is about. One without a call is announced as a call of its own: whatever the client knows from before, it
// cannot know that one.
func (t *Teller) actionCall(dst []Told, turn protocol.TurnID, id, action, tool string) []Told {
	if id != action {
		dst, _ = t.call(dst, turn, id, tool)
		return dst
	}
	if t.calls[id] == nil && !hidden(tool) {
		dst = t.announce(dst, turn, Describe(t.Root, id, tool, nil))
	}
	if c := t.calls[id]; c != nil {
		c.made = true
	}
	return dst
}

func questionRequested(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	q := b.(*protocol.UserQuestionRequested)
	id := q.ToolCallID
	if id == "" {
		id = q.More.ActionID
	}
	dst = t.actionCall(dst, e.Turn, id, q.More.ActionID, "ask_user_question")
	return t.ask(dst, &Ask{Action: q.More.ActionID, CallID: id, Turn: e.Turn, Question: q})
}

func (t *Teller) ask(dst []Told, a *Ask) []Told {
	t.asks = append(t.asks, a)
	if t.replay {
		return dst
	}
	return append(dst, Told{Ask: a})
}

// answered closes an action, and the call that was announced for it alone.
func (t *Teller) answered(dst []Told, action, status string) []Told {
	i := slices.IndexFunc(t.asks, func(a *Ask) bool { return a.Action == action })
	if i >= 0 {
		t.asks = slices.Delete(t.asks, i, i+1)
	}
	if !t.replay {
		dst = append(dst, Told{Resolved: action})
	}
	if c := t.calls[action]; c != nil && c.made {
		t.closed(action)
		dst = update(dst, Call{ToolCallUpdate, CallUpdate{ID: action, Status: status}})
	}
	return dst
}

func approvalResolved(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	r := b.(*protocol.ApprovalResolved)
	status := StatusFailed
	if r.Outcome == protocol.OutcomeAllowed {
		status = StatusCompleted
	}
	return t.answered(dst, r.ActionID, status)
}

func questionAnswered(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	return t.answered(dst, b.(*protocol.UserQuestionAnswered).More.ActionID, StatusCompleted)
}

// OpenCall is a call of the open turn that has no result.
type OpenCall struct{ ID, Name string }

// Open is what a replay ends with: the open turn of the session, as it stood where the replay ends.
type Open struct {
	Turn    protocol.TurnID
	Message string // being said
	Text    string // of it so far
	Alive   bool   // somebody works on it, or it waits for an answer
	Calls   []OpenCall
	Asks    []*Ask  // open actions of all turns
	Cost    float64 // of the session, US dollars
}

// Join adds to dst what a client that joins in the middle is asked, each behind the call it is about.
func (t *Teller) Join(dst []Told, asks []*Ask) []Told {
	for _, a := range asks {
		dst = t.actionCall(dst, a.Turn, a.CallID, a.Action, a.tool())
		dst = t.ask(dst, a)
	}
	return dst
}

func (a *Ask) tool() string {
	if a.Approval != nil {
		return a.Approval.ToolName
	}
	return "ask_user_question"
}

// EndReplay adds to dst what closes a replay: the text so far of what is being said, how open calls stand, the usage. It goes on as live. The
// actions that are open are to be asked again.
func (t *Teller) EndReplay(dst []Told, open Open) ([]Told, []*Ask) {
	for _, turn := range slices.Sorted(maps.Keys(t.thought)) {
		h := t.thought[turn]
		dst = t.sofar(dst, h, ThoughtChunk, thoughtID(h.id))
		if turn != open.Turn {
			delete(t.thought, turn)
		}
	}
	if open.Text != "" {
		t.text[open.Turn] = &heard{id: open.Message, sofar: []byte(open.Text)}
	}
	for _, turn := range slices.Sorted(maps.Keys(t.text)) {
		h := t.text[turn]
		dst = t.sofar(dst, h, AgentChunk, h.id)
	}
	t.before(open)
	for _, id := range t.order {
		c := t.calls[id]
		switch {
		case c.turn == open.Turn && !open.Alive:
			dst = update(dst, Call{ToolCallUpdate, CallUpdate{ID: id, Status: StatusFailed, Content: textCall("interrupted")}})
		case c.started && !slices.ContainsFunc(t.asks, func(a *Ask) bool { return a.CallID == id }):
			dst = update(dst, Call{ToolCallUpdate, CallUpdate{ID: id, Status: StatusInProgress}})
		}
	}
	t.cost = open.Cost
	dst = t.used(dst)
	t.replay = false
	if open.Asks != nil { // some may lie before where the replay began
		t.asks = open.Asks
	}
	var asks []*Ask
	for _, a := range t.asks {
		if a.Turn != open.Turn || open.Alive {
			asks = append(asks, a)
		}
	}
	return dst, asks
}

// before takes in what is open from before where a replay behind a cursor began: the client knows it, and it is closed with the rest.
func (t *Teller) before(open Open) {
	if !t.knows {
		return
	}
	add := func(id string, c *callTold) {
		if t.calls[id] == nil {
			t.calls[id] = c
			t.order = append(t.order, id)
		}
	}
	for _, c := range open.Calls {
		if !hidden(c.Name) {
			add(c.ID, &callTold{turn: open.Turn})
		}
	}
	for _, a := range open.Asks {
		if a.CallID == a.Action {
			add(a.CallID, &callTold{turn: a.Turn, made: true})
		}
	}
}

// sofar tells what there is of an open message.
func (t *Teller) sofar(dst []Told, h *heard, kind, shown string) []Told {
	text := string(h.sofar)
	h.sofar, h.chars, h.sum = nil, protocol.CharLen(text), more(sum0, text)
	return said(dst, kind, shown, text)
}

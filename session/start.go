package session

import (
	"errors"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// startTurn appends the facts a turn begins with and runs it once they are down.
func (s *Session) startTurn(p *Prompt) {
	if p.req.exec != "" {
		s.startExecution(p)
		return
	}
	turn := TurnID(s.all.cfg.IDs.Hex32())
	if p.turn != nil { // tried before: nothing of it is in the log
		turn = p.turn.ID
	}
	if p.req.aside != nil {
		s.startAside(p, turn)
		return
	}
	if p.req.compact {
		started := &protocol.TurnStarted{Operation: protocol.OpCompact, Origin: protocol.OriginUser}
		started.More.Model, started.More.Provider = s.next.Sel.Model, s.next.Sel.Provider
		s.startWith(p, turn, lines(turn, started), nil)
		return
	}
	input := strings.ToValidUTF8(p.req.Input, "\uFFFD")
	var goal []line
	notice := s.notices(turn)
	if p.req.task {
		s.startNotice(p, turn, notice)
		return
	}
	silent := p.req.goal || p.req.Goal && strings.TrimSpace(input) == ""
	switch {
	case silent && s.next.activeGoal() == nil: // it ended while the prompt waited
		s.notStarted(p, errNoGoal())
		return
	case p.req.goal:
		input, goal = goalInput(s.next.Goal), s.goalStart()
	case silent:
		input = goalInput(s.next.Goal)
	default:
		s.driving = true
	}
	acc := &protocol.TurnAccepted{}
	acc.More.Provider, acc.More.Surface, acc.More.Input = "agent", protocol.SurfaceEditor, input
	acc.More.Key, acc.More.Scope = p.req.Key, p.scope
	msg, started := s.said(input, s.next.Sel)
	msg.More.Parts, msg.More.Transient, msg.More.Skills = p.req.Parts, p.req.Transient, p.req.Skills
	if silent {
		msg.More.Origin, started.Origin = protocol.OriginGoal, protocol.OriginGoal
		started.UserMessageChars, started.Input, started.InputTruncated = 0, "", false
	}
	ls := append(append(s.opening(), goal...), lines(turn, acc)...)
	ls = append(append(ls, notice...), lines(turn, msg, started)...)
	var keys []Key
	if p.req.Key != "" {
		keys = []Key{{Surface: p.req.Surface, Key: p.req.Key, Digest: p.req.Digest, Turn: turn}}
	}
	s.startWith(p, turn, ls, keys)
}

// startInputChars is how much of the person's words a turn_started shows, in characters.
const startInputChars = 8000

// said are the facts with which a person's words begin a turn.
func (s *Session) said(input string, sel Selection) (*protocol.UserMessage, *protocol.TurnStarted) {
	msg := &protocol.UserMessage{}
	msg.More.ID, msg.More.Text, msg.More.Origin = s.all.cfg.IDs.Hex32(), input, protocol.OriginUser
	started := &protocol.TurnStarted{
		UserMessageChars: protocol.CharLen(input), Operation: protocol.OpPrompt, Origin: protocol.OriginUser, UserMessageID: msg.More.ID,
		Input: protocol.Prefix(input, startInputChars),
	}
	started.InputTruncated = len(started.Input) < len(input)
	started.More.Model, started.More.Provider = sel.Model, sel.Provider
	return msg, started
}

// notices tells the model of tasks that ended since it was last told.
func (s *Session) notices(turn TurnID) []line {
	ended := s.next.untold()
	if len(ended) == 0 {
		return nil
	}
	return lines(turn, s.notice(ended))
}

// startWith appends what a turn begins with and runs it once that is down.
func (s *Session) startWith(p *Prompt, turn TurnID, ls []line, keys []Key) {
	restarts := p.restarts()
	t := newTurn(s, turn, p, s.next.Sel)
	t.transient, t.aside = p.req.Transient, p.req.aside
	s.stampRoots(ls)
	s.markHosted(t.Selection, ls)
	if p.req.Started != nil {
		p.req.Started(turn)
	}
	s.appendKeyed(ls, keys, func(_ Seq, err error) {
		if err != nil {
			t.drop(err)
		}
		switch {
		case errors.Is(err, ErrKeyUsed): // another process was asked the same, and was first
			s.startedElsewhere(p)
		case errors.Is(err, errRetaken) && restarts:
			s.driving = false // until it is known whose session it is
			s.begin(p)
		case err != nil:
			s.notStarted(p, err)
		default:
			s.startOver(t)
		}
	})
}

// opening is the first line of a log that has none yet.
func (s *Session) opening() []line {
	if s.next.Head > 0 {
		return nil
	}
	c := &protocol.SessionCreated{}
	st := s.next
	c.More.WorkspaceRoot, c.More.ConversationID = st.Workspace, st.Conversation
	c.More.Provider, c.More.Model, c.More.Effort, c.More.Mode = st.Sel.Provider, st.Sel.Model, st.Sel.Effort, st.Sel.Mode
	c.More.Metadata, c.More.Roots, c.More.Surface = st.Metadata, st.Roots, st.Surface
	if st.Renamed {
		c.More.Title = st.Title
	}
	return lines("", c)
}

package script

import (
	"strings"

	"github.com/rind-dev/rind/session"
)

// turn is what answers the user messages that contain match.
type turn struct {
	match       string
	path        string
	completions []completion
}

// completion is what one request is answered with.
type completion struct {
	path  string // of its first step
	n     int    // its number in the script, from 1
	steps []step
	says  bool // it leaves text or calls
	well  bool // it ends in a finish that the loop takes as a complete message
	final bool // one of its steps needs to know what was said before
}

// lane is a sequence of completions that one session takes one after the other.
type lane struct {
	session session.SessionID
	turn    int // index into turns, -1 for the free ones
	ordinal int // of the user message a turn with a match answers; 0 in the free lane
}

// choose finds the completion for r by the rules of the package comment. The caller holds mu.
func (s *Script) choose(r session.ModelRequest) (*completion, error) {
	at := lane{session: r.Session, turn: -1}
	users, free, pos := 0, 0, 0
	matched := map[int]int{} // first turn of a group that matches -> user messages that did
	for i := range r.Messages {
		m := &r.Messages[i]
		switch {
		case m.Role == session.RoleUser:
			users++
			at.turn, at.ordinal, pos = s.matching(m.Text, matched), users, 0
		case m.Role == session.RoleAssistant && at.turn >= 0 && pos < len(s.turns[at.turn].completions):
			pos = after(s.turns[at.turn].completions, pos, m.Interrupted)
		case m.Role == session.RoleAssistant:
			free = after(s.free, free, m.Interrupted)
		}
	}
	if at.turn >= 0 {
		if c := s.take(at, s.turns[at.turn].completions, pos); c != nil {
			return c, nil
		}
	}
	if c := s.take(lane{session: r.Session, turn: -1}, s.free, free); c != nil {
		return c, nil
	}
	return nil, rejected("the script has no completion left for this request, to user message %d, %q", users, short(lastUser(r.Messages)))
}

// take plays the first completion of a lane from pos on that this session has not had; nil when there is none.
func (s *Script) take(at lane, list []completion, pos int) *completion {
	pos = max(pos, s.played[at])
	if pos >= len(list) {
		return nil
	}
	s.played[at] = pos + 1
	return &list[pos]
}

// matching returns the turn that answers a user message, -1 for the free ones, and counts it.
func (s *Script) matching(text string, matched map[int]int) int {
	var group []int
	for i, t := range s.turns {
		if strings.Contains(text, t.match) {
			group = append(group, i)
		}
	}
	if len(group) == 0 {
		return -1
	}
	k := matched[group[0]]
	matched[group[0]]++
	return group[min(k, len(group)-1)]
}

// after returns the position behind the completion that an assistant message stands for.
func after(list []completion, pos int, interrupted bool) int {
	for pos < len(list) {
		c := &list[pos]
		pos++
		if c.says && (c.well || interrupted) {
			break
		}
	}
	return pos
}

package session

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Change sets what a session is set to; nil fields stay. done runs once it is on disk (a draft is kept in memory only) with what
// holds now and when it applies: "now", or "next_turn" while a turn runs.
type Change struct {
	Provider, Model, Effort, Mode *string
	Source                        string // selection_source; "" is "session"

	holds bool // it is said of what holds already, as a hosted agent set itself to it
}

// Change changes settings.
func (s *Session) Change(c Change, done func(sel Selection, applies string, err error)) {
	if !s.post(func() { s.change(c, done) }) {
		done(Selection{}, "", errGone(s.ID))
	}
}

func (s *Session) change(c Change, done func(Selection, string, error)) {
	body := func() (*protocol.SessionSettingsChanged, Selection) {
		sel := s.next.Sel
		for _, f := range []struct {
			to   *string
			from *string
		}{{&sel.Provider, c.Provider}, {&sel.Model, c.Model}, {&sel.Effort, c.Effort}, {&sel.Mode, c.Mode}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		b := &protocol.SessionSettingsChanged{
			Provider: sel.Provider, Model: sel.Model, ReasoningEffort: sel.Effort, ApprovalMode: sel.Mode, Applies: "now",
			SelectionSource: c.Source, ConnectionReady: true,
		}
		if b.SelectionSource == "" {
			b.SelectionSource = "session"
		}
		// The mode is looked at before each call, the others when a turn begins.
		if (c.Provider != nil || c.Model != nil || c.Effort != nil) && !c.holds && !s.lane.free() {
			b.Applies = "next_turn"
		}
		return b, sel
	}
	if s.draft.Load() && s.lane.starting == nil {
		b, sel := body()
		s.next.Sel, s.shown.Sel = sel, sel
		s.announce(b)
		done(sel, b.Applies, nil)
		return
	}
	s.withLease(func(err error) {
		if err != nil {
			done(Selection{}, "", err)
			return
		}
		b, sel := body()
		s.append(append(s.opening(), lines("", b)...), func(_ Seq, err error) { done(sel, b.Applies, err) })
	})
}

// Rename gives the session a title. done runs once it is on disk; a draft keeps it in memory.
func (s *Session) Rename(name string, done func(title string, err error)) {
	name = strings.TrimSpace(strings.ToValidUTF8(name, "\uFFFD"))
	if !s.post(func() {
		b := &protocol.SessionRenamed{Name: name, Title: name}
		if s.draft.Load() && s.lane.starting == nil {
			s.next.Title, s.next.Renamed = name, true
			s.shown.Title, s.shown.Renamed = name, true
			s.announce(b)
			done(name, nil)
			return
		}
		s.withLease(func(err error) {
			if err != nil {
				done("", err)
				return
			}
			s.append(append(s.opening(), lines("", b)...), func(_ Seq, err error) { done(name, err) })
		})
	}) {
		done("", errGone(s.ID))
	}
}

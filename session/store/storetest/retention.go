package storetest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func deletes(t *testing.T, open Opener) {
	s := open(t, "a")
	l, other := Create(t, s, id), Create(t, s, "other")
	full := func() session.Batch {
		b := note(1)
		b.Keys = []session.Key{{Surface: "rind", Key: "k"}}
		b.Row = &session.Row{Fold: []byte("fold"), FoldSeq: 1, UserPrompt: true, Usage: &session.UsageSample{Time: base, Model: "m", Input: 1}}
		return b
	}
	must(t, Append(s, l, full()))
	must(t, Append(s, other, session.Batch{Entries: []session.Entry{Entry(1, turnID(2), &protocol.AssistantDelta{Text: "x"})}}))
	letter, err := s.Post(ctx, id, json.RawMessage(`{}`))
	must(t, err)
	must(t, s.Delete(ctx, id))
	for what, f := range map[string]func() error{
		"session":      func() error { _, err := s.Session(ctx, id); return err },
		"conversation": func() error { _, err := s.Conversation(ctx, "conv_"+string(id)); return err },
		"entries":      func() error { _, err := s.Read(ctx, id, 0, 1, protocol.ViewAll); return err },
		"turn":         func() error { _, err := s.TurnSession(ctx, turnID(1)); return err },
		"key":          func() error { _, err := s.Key(ctx, id, "rind", "k"); return err },
		"fold":         func() error { _, _, err := s.Fold(ctx, id); return err },
		"letter":       func() error { _, err := s.Outcome(ctx, letter); return err },
		"append":       func() error { return Append(s, l, note(2)) },
		"again":        func() error { return s.Delete(ctx, id) },
	} {
		wantErr(t, what, f(), session.ErrNotFound)
	}
	if r, err := s.Usage(ctx, time.Time{}); err != nil || len(r.Days)+len(r.Sessions)+len(r.Models) != 0 {
		t.Errorf("usage after the deletion: %+v, %v", r, err)
	}
	if es, err := s.Read(ctx, "other", 0, 9, protocol.ViewAll); err != nil || len(es) != 1 {
		t.Errorf("the other session has %d entries, %v", len(es), err)
	}
	l = Create(t, s, id)
	if f, _, err := s.Fold(ctx, id); err != nil || f != nil {
		t.Errorf("the id brought back fold %q, %v", f, err)
	}
	must(t, Append(s, l, full()))
	if es := read(t, s, protocol.ViewAll); len(es) != 1 {
		t.Errorf("%d entries after the id returned", len(es))
	}
}

// replaced: one process goes on to use a session that another one has deleted, and in whose place it made a new one, with a log as long.
func replaced(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id)
	must(t, Append(a, l, note(1)))
	must(t, a.Release(ctx, l))
	lb, err := b.Acquire(ctx, id)
	must(t, err)
	must(t, b.Delete(ctx, id))
	_, err = a.Acquire(ctx, id)
	wantErr(t, "lease of a session that was deleted", err, session.ErrNotFound)
	must(t, a.Create(ctx, session.Meta{ID: id, ConversationID: "conv_again", Workspace: "/w", Created: base}))
	must(t, b.Delete(ctx, id))
	next := Create(t, b, "next")
	must(t, Append(b, next, note(1)))
	must(t, b.Release(ctx, next))
	for what, f := range map[string]func() error{
		"Acquire":                      func() error { _, err := a.Acquire(ctx, id); return err },
		"Post":                         func() error { _, err := a.Post(ctx, id, json.RawMessage(`{}`)); return err },
		"Delete":                       func() error { return a.Delete(ctx, id) },
		"append with the lease of old": func() error { return Append(b, lb, note(2)) },
	} {
		wantErr(t, what, f(), session.ErrNotFound)
	}
	if m, err := b.Session(ctx, "next"); err != nil || m.Head != 1 || m.Owner != "" {
		t.Errorf("the new session is %+v, %v", m, err)
	}
	if letters, err := b.Open(ctx, "next"); err != nil || len(letters) != 0 {
		t.Errorf("the new session has letters %v, %v", letters, err)
	}
	must(t, a.Create(ctx, session.Meta{ID: id, ConversationID: "conv_once_more", Workspace: "/w", Created: base}))
}

func prunes(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	var es []session.Entry
	add := func(turn session.TurnID, b protocol.Body) {
		es = append(es, Entry(session.Seq(len(es)+1), turn, b))
	}
	for n, surface := range []string{protocol.SurfaceEditor, protocol.SurfacePortable, protocol.SurfaceEditor} {
		acc := &protocol.TurnAccepted{}
		acc.More.Surface = surface
		turn := turnID(n + 1)
		add(turn, acc)
		add(turn, &protocol.ContextBuilt{})
		add(turn, &protocol.AssistantDelta{Text: "x"})
		add(turn, &protocol.ToolInputDelta{Delta: "x"})
		add(turn, &protocol.AssistantMessageCompleted{Content: "x"})
		if n < 2 {
			add(turn, &protocol.TurnCompleted{})
		}
	}
	must(t, Append(s, l, session.Batch{Entries: es}))
	n, err := s.Prune(ctx, base.Add(time.Hour))
	must(t, err)
	var got []session.Seq
	for _, e := range read(t, s, protocol.ViewAll) {
		got = append(got, e.Seq)
	}
	// 1-6: the editor's turn loses context, text and arguments. 7-12: the portable one keeps its text. 13-17 is open: nothing goes.
	if want := []session.Seq{1, 5, 6, 7, 9, 11, 12, 13, 14, 15, 16, 17}; !slices.Equal(got, want) || n != 5 {
		t.Errorf("left %v, removed %d, want %v", got, n, want)
	}
	if n, err := s.Prune(ctx, base.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("pruned twice: %d, %v", n, err)
	}
	must(t, Append(s, l, note(18)))
}

func prunesNotes(t *testing.T, open Opener) {
	s := open(t, "a")
	for _, name := range []session.SessionID{id, "other"} {
		l := Create(t, s, name)
		var es []session.Entry
		for i := range session.Seq(6) { // Entry gives each a second more than the one before
			var b protocol.Body = &protocol.Notice{}
			if i%2 == 0 {
				b = &protocol.CommandsChanged{}
			}
			es = append(es, Entry(i+1, "", b))
		}
		must(t, Append(s, l, session.Batch{Entries: es}))
	}
	n, err := s.Prune(ctx, base.Add(4*time.Second)) // entries 1 to 3 are older
	must(t, err)
	if got := seqs(read(t, s, protocol.ViewAll)); n != 6 || !slices.Equal(got, []session.Seq{4, 5, 6}) {
		t.Errorf("removed %d, left %v", n, got)
	}
	n, err = s.Prune(ctx, base.Add(time.Hour)) // the newest list of commands stays
	must(t, err)
	if got := seqs(read(t, s, protocol.ViewAll)); n != 4 || !slices.Equal(got, []session.Seq{5}) {
		t.Errorf("removed %d, left %v", n, got)
	}
	if m, err := s.Session(ctx, id); err != nil || m.Head != 6 {
		t.Errorf("head %d, %v", m.Head, err)
	}
}

package storetest

import (
	"encoding/json"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

func unknown(t *testing.T, open Opener) {
	s := open(t, "a")
	Create(t, s, id)
	for what, f := range map[string]func() error{
		"Session":      func() error { _, err := s.Session(ctx, "no"); return err },
		"Conversation": func() error { _, err := s.Conversation(ctx, "no"); return err },
		"Read":         func() error { _, err := s.Read(ctx, "no", 0, 1, protocol.ViewAll); return err },
		"ReadBack":     func() error { _, err := s.ReadBack(ctx, "no", 0, 1, protocol.ViewFacts); return err },
		"ReadTurn":     func() error { _, err := s.ReadTurn(ctx, "no", 0, 1, nil); return err },
		"TurnSession":  func() error { _, err := s.TurnSession(ctx, "no"); return err },
		"Fold":         func() error { _, _, err := s.Fold(ctx, "no"); return err },
		"Key":          func() error { _, err := s.Key(ctx, "no", "rind", "k"); return err },
		"a key":        func() error { _, err := s.Key(ctx, id, "rind", "k"); return err },
		"Delete":       func() error { return s.Delete(ctx, "no") },
		"Acquire":      func() error { _, err := s.Acquire(ctx, "no"); return err },
		"Post":         func() error { _, err := s.Post(ctx, "no", json.RawMessage(`{}`)); return err },
		"Outcome":      func() error { _, err := s.Outcome(ctx, 99); return err },
		"Settle":       func() error { return s.Settle(ctx, 99, json.RawMessage(`{}`)) },
	} {
		wantErr(t, what, f(), session.ErrNotFound)
	}
	must(t, s.Release(ctx, session.Lease{Session: "no", Epoch: 1}))
	if open, err := s.Open(ctx, "no"); err != nil || len(open) != 0 {
		t.Errorf("letters to nobody: %v, %v", open, err)
	}
	if gone, err := s.Withdraw(ctx, 99); err != nil || gone {
		t.Errorf("withdrew a letter that never was: %v, %v", gone, err)
	}
	if es, err := s.Read(ctx, id, 0, 1, protocol.ViewAll); err != nil || len(es) != 0 {
		t.Errorf("empty session: %v, %v", es, err)
	}
	if f, at, err := s.Fold(ctx, id); err != nil || f != nil || at != 0 {
		t.Errorf("fold of an empty session: %q at %d, %v", f, at, err)
	}
	wantErr(t, "second session of a conversation", s.Create(ctx, session.Meta{ID: "two", ConversationID: "conv_" + string(id)}), session.ErrExists)
}

func writable(t *testing.T, open Opener) {
	s, other := open(t, "a"), open(t, "b")
	must(t, s.Writable(ctx))
	if all, _, err := s.Sessions(ctx, session.Query{Limit: 1, All: true}); err != nil || len(all) > 0 {
		t.Errorf("asking made %v, %v", all, err)
	}
	l := Create(t, s, id)
	must(t, Append(s, l, note(1)))
	wantErr(t, "a gap", Append(s, l, note(7)), session.ErrGap)
	_, err := other.Acquire(ctx, id)
	wantErr(t, "a lease of another", err, session.ErrBusy)
	wantErr(t, "a session that is there", s.Create(ctx, session.Meta{ID: id, ConversationID: "x"}), session.ErrExists)
	for _, s := range []session.Store{s, other} { // what a request did wrong is no fault of the store
		must(t, s.Writable(ctx))
	}
	must(t, Append(s, l, note(2)))
	if es := read(t, s, protocol.ViewAll); len(es) != 2 {
		t.Errorf("%d entries", len(es))
	}
}

func closed(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	must(t, Append(s, l, note(1)))
	bells, err := s.Watch(ctx)
	must(t, err)
	must(t, s.Close())
	for range bells { // ends with the store
	}
	for what, f := range map[string]func() error{
		"Create":   func() error { return s.Create(ctx, session.Meta{ID: "x", ConversationID: "x"}) },
		"Acquire":  func() error { _, err := s.Acquire(ctx, id); return err },
		"Append":   func() error { return Append(s, l, note(2)) },
		"Read":     func() error { _, err := s.Read(ctx, id, 0, 1, protocol.ViewAll); return err },
		"Session":  func() error { _, err := s.Session(ctx, id); return err },
		"Sessions": func() error { _, _, err := s.Sessions(ctx, session.Query{Limit: 1}); return err },
		"Turns":    func() error { _, err := s.Turns(ctx, session.TurnQuery{Limit: 1}); return err },
		"Delete":   func() error { return s.Delete(ctx, id) },
		"Post":     func() error { _, err := s.Post(ctx, id, json.RawMessage(`{}`)); return err },
		"Watch":    func() error { _, err := s.Watch(ctx); return err },
		"Health":   func() error { _, err := s.Health(ctx); return err },
		"Writable": func() error { return s.Writable(ctx) },
		"AddRule": func() error {
			_, err := s.AddRule(ctx, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "p"})
			return err
		},
		"Rules":  func() error { _, err := s.Rules(ctx, "/w"); return err },
		"a rule": func() error { _, err := s.RemoveRule(ctx, "/w", 1); return err },
	} {
		wantErr(t, what, f(), session.ErrClosed)
	}
	must(t, s.Release(ctx, l))
}

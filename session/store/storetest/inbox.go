package storetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

func watches(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id)
	posted, err := a.Post(ctx, id, json.RawMessage(`{}`))
	must(t, err)
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bells, err := b.Watch(wctx)
	must(t, err)
	expect(t, bells, "letter that was open before", id)
	must(t, a.Settle(ctx, posted, json.RawMessage(`{}`)))
	must(t, Append(a, l, note(1)))
	expect(t, bells, "append", id)
	other := Create(t, a, "other")
	expect(t, bells, "new session", "other")
	must(t, Append(a, other, note(1)))
	expect(t, bells, "append to it", "other")
	_, err = a.Post(ctx, id, json.RawMessage(`{}`))
	must(t, err)
	expect(t, bells, "letter", id)
	cancel()
	for range bells { // closed when ctx ends
	}
}

// expect waits for the ring of a session. Others may come before it: rings repeat and merge.
func expect(t *testing.T, bells <-chan session.SessionID, what string, want session.SessionID) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case got, ok := <-bells:
			if !ok {
				t.Fatalf("%s: the watch ended", what)
			}
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("%s: no ring", what)
		}
	}
}

// watchesDeletion deletes the session that was active last, so that a cursor made of what is left would go back.
func watchesDeletion(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	first, last := Create(t, a, "first"), Create(t, a, "last")
	must(t, Append(a, first, note(1)))
	for i := range session.Seq(5) {
		must(t, Append(a, last, note(i+1)))
	}
	bells, err := b.Watch(ctx)
	must(t, err)
	must(t, Append(a, last, note(6)))
	expect(t, bells, "append", "last")
	must(t, a.Delete(ctx, "last"))
	expect(t, bells, "deletion", "")
	must(t, Append(a, first, note(2)))
	expect(t, bells, "append after the deletion", "first")
}

func letters(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	Create(t, a, id)
	_, err := b.Post(ctx, "nobody", json.RawMessage(`{}`))
	wantErr(t, "letter to nobody", err, session.ErrNotFound)
	n, err := b.Post(ctx, id, json.RawMessage(`{"op":1}`))
	must(t, err)
	m, err := b.Post(ctx, id, json.RawMessage(`{"op":2}`))
	must(t, err)
	got, err := a.Open(ctx, id)
	must(t, err)
	if len(got) != 2 || got[0].ID != n || string(got[0].Body) != `{"op":1}` {
		t.Fatalf("open letters %+v", got)
	}
	if out, err := b.Outcome(ctx, n); err != nil || out != nil {
		t.Errorf("outcome before: %s, %v", out, err)
	}
	must(t, a.Settle(ctx, n, json.RawMessage(`{"ok":true}`)))
	if a.Settle(ctx, n, json.RawMessage(`{}`)) == nil {
		t.Error("a letter was settled twice")
	}
	if out, err := b.Outcome(ctx, n); err != nil || string(out) != `{"ok":true}` {
		t.Errorf("outcome: %s, %v", out, err)
	}
	if gone, err := b.Withdraw(ctx, n); err != nil || gone {
		t.Errorf("settled letter withdrawn: %v, %v", gone, err)
	}
	if gone, err := b.Withdraw(ctx, m); err != nil || !gone {
		t.Errorf("open letter not withdrawn: %v, %v", gone, err)
	}
	if a.Settle(ctx, m, json.RawMessage(`{}`)) == nil {
		t.Error("a withdrawn letter was settled")
	}
}

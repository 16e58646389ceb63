package storetest

import (
	"testing"

	"github.com/rind-dev/rind/session"
)

func fenced(t *testing.T, open Opener) {
	a := open(t, "a")
	l := Create(t, a, id)
	must(t, Append(a, l, note(1)))
	again, err := a.Acquire(ctx, id)
	must(t, err)
	if again.Epoch != l.Epoch || again.Head != 1 {
		t.Errorf("acquired again: %+v, first %+v", again, l)
	}
	must(t, a.Release(ctx, l))
	b := open(t, "b")
	lb, err := b.Acquire(ctx, id)
	must(t, err)
	if lb.Epoch <= l.Epoch || lb.Head != 1 {
		t.Errorf("new lease %+v after %+v", lb, l)
	}
	wantErr(t, "append with the old lease", Append(a, l, note(2)), session.ErrFenced)
	must(t, a.Release(ctx, l)) // stale: no error, and no effect
	must(t, Append(b, lb, note(2)))
	_, err = b.Acquire(ctx, "nobody")
	wantErr(t, "lease of an unknown session", err, session.ErrNotFound)
}

func retaken(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	with := func(n session.Seq, retake, release bool) session.Batch {
		batch := note(n)
		batch.Retake, batch.Release = retake, release
		return batch
	}
	owner := func(want string) {
		t.Helper()
		m, err := b.Session(ctx, id)
		must(t, err)
		if m.Owner != want || m.OwnerAlive != (want != "") {
			t.Errorf("owner %q, alive %v, want %q", m.Owner, m.OwnerAlive, want)
		}
	}
	l := Create(t, a, id)
	must(t, Append(a, l, with(1, false, true)))
	owner("")
	wantErr(t, "append with a lease that was given back", Append(a, l, note(2)), session.ErrFenced)
	must(t, Append(a, l, with(2, true, false)))
	owner("a")
	_, err := b.Acquire(ctx, id)
	wantErr(t, "lease that was taken again", err, session.ErrBusy)
	wantErr(t, "a batch that does not fit", Append(a, l, with(4, false, true)), session.ErrGap)
	owner("a")
	must(t, Append(a, l, with(3, true, true)))
	owner("")
	wantErr(t, "a batch that does not fit", Append(a, l, with(5, true, false)), session.ErrGap)
	owner("")
	must(t, a.Release(ctx, l))
	must(t, Append(a, l, with(4, true, false)))
	must(t, a.Release(ctx, l))

	lb, err := b.Acquire(ctx, id) // at once: nobody holds it
	must(t, err)
	wantErr(t, "retake from another", Append(a, l, with(5, true, false)), session.ErrFenced)
	must(t, Append(b, lb, with(5, false, true)))
	wantErr(t, "retake after another", Append(a, l, with(6, true, false)), session.ErrFenced)
	must(t, Append(b, lb, with(6, true, true)))
	must(t, b.Delete(ctx, id))
	wantErr(t, "retake of a session that was deleted", Append(a, l, with(7, true, false)), session.ErrNotFound)
	must(t, b.Create(ctx, session.Meta{ID: "next", ConversationID: "conv_next", Workspace: "/w", Created: base}))
	wantErr(t, "retake of a session whose place another one has", Append(a, session.Lease{Session: id}, with(1, true, false)), session.ErrNotFound)
}

func owners(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id)
	_, err := b.Acquire(ctx, id)
	wantErr(t, "lease of a living owner", err, session.ErrBusy)
	wantErr(t, "delete under a living owner", b.Delete(ctx, id), session.ErrBusy)
	m, err := b.Session(ctx, id)
	must(t, err)
	if !m.OwnerAlive {
		t.Error("the owner is shown as dead")
	}
	must(t, a.Close())
	m, err = b.Session(ctx, id)
	must(t, err)
	if m.OwnerAlive {
		t.Error("the closed owner is shown as alive")
	}
	lb, err := b.Acquire(ctx, id)
	must(t, err)
	if lb.Epoch <= l.Epoch {
		t.Errorf("epoch %d after %d", lb.Epoch, l.Epoch)
	}
}

func keys(t *testing.T, open Opener) {
	s := open(t, "a")
	l := Create(t, s, id)
	k := session.Key{Surface: "rind", Key: "k", Digest: "d", Turn: turnID(1)}
	b := note(1)
	b.Keys = []session.Key{k}
	must(t, Append(s, l, b))
	b = note(2)
	b.Keys = []session.Key{{Surface: "rind", Key: "new", Digest: "x", Turn: turnID(2)}, k}
	wantErr(t, "taken key", Append(s, l, b), session.ErrKeyUsed)
	_, err := s.Key(ctx, id, "rind", "new")
	wantErr(t, "key of a batch that failed", err, session.ErrNotFound)
	got, err := s.Key(ctx, id, "rind", "k")
	must(t, err)
	if got != k {
		t.Errorf("key %+v", got)
	}
	_, err = s.Key(ctx, id, "acp", "k")
	wantErr(t, "key of another surface", err, session.ErrNotFound)
}

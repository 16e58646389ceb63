package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// SetRoots says which further folders the tools of the session may touch from the next turn on: absolute, links resolved. It writes nothing
// by itself; the turn does.
func (s *Session) SetRoots(roots []string) {
	s.post(func() { s.roots = &roots })
}

// stampRoots puts further folders that are not in the log yet on the turn that is being started.
func (s *Session) stampRoots(ls []line) {
	if s.roots == nil || slices.Equal(*s.roots, s.next.Roots) {
		return
	}
	for _, l := range ls {
		if b, ok := l.body.(*protocol.TurnStarted); ok {
			b.More.Roots = s.roots
		}
	}
}

// Roots are the further folders of a stored session, as they are in the log; nil for none, and for a session that is not there.
func (ss *Sessions) Roots(ctx context.Context, id SessionID) []string {
	var st struct{ Roots []string }
	if fold, _, err := ss.cfg.Store.Fold(ctx, id); err != nil || fold != nil && json.Unmarshal(fold, &st) == nil {
		return st.Roots
	}
	first, err := ss.cfg.Store.Read(ctx, id, 0, 1, protocol.ViewFacts)
	if err != nil || len(first) == 0 {
		return nil
	}
	switch b, _ := protocol.Decode(&first[0]); b := b.(type) {
	case *protocol.SessionCreated:
		return b.More.Roots
	case *protocol.SessionForked:
		return b.More.Roots
	}
	return nil
}

// idleEntries bounds the log of a session that is looked at to see whether anything happened in it.
const idleEntries = 256

// idleKind reports whether an entry of a kind says only how a session is set up.
func idleKind(k protocol.Kind) bool {
	return k == protocol.KindSessionCreated || k == protocol.KindSessionSettingsChanged || k == protocol.KindSessionRenamed
}

func idleLog(entries []Entry) bool {
	if len(entries) == 0 || entries[0].Seq != 1 {
		return false
	}
	for i := range entries {
		if !idleKind(entries[i].Kind) {
			return false
		}
	}
	first, err := protocol.Decode(&entries[0])
	created, ok := first.(*protocol.SessionCreated)
	return err == nil && ok && created.More.Surface == "acp"
}

// SweepUnprompted removes the sessions that editors opened, in which nothing was ever asked and which are older than before. One that is open
// in this process stays; one that is open in another comes back with its first prompt. It returns how many went.
func (ss *Sessions) SweepUnprompted(ctx context.Context, before time.Time) (int, error) {
	gone := 0
	q := Query{All: true, Limit: 200}
	for {
		page, next, err := ss.cfg.Store.Sessions(ctx, q)
		if err != nil {
			return gone, ss.storeError(err)
		}
		for i := range page {
			m := &page[i]
			if m.UserPrompt || !m.Activity.Before(before) || m.OwnerAlive || m.Head > idleEntries || ss.known(m.ID) != nil {
				continue
			}
			switch went, err := ss.sweep(ctx, m.ID); {
			case err != nil:
				return gone, ss.storeError(err)
			case went:
				gone++
			}
		}
		if next == "" || ctx.Err() != nil {
			return gone, context.Cause(ctx)
		}
		q.Page = next
	}
}

// sweep removes a session if nothing happened in it, under its lease.
func (ss *Sessions) sweep(ctx context.Context, id SessionID) (bool, error) {
	store := ss.cfg.Store
	lease, err := store.Acquire(ctx, id)
	switch {
	case errors.Is(err, ErrBusy), errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	entries, err := store.Read(ctx, id, 0, idleEntries+1, protocol.ViewAll)
	if err == nil && idleLog(entries) && entries[len(entries)-1].Seq == lease.Head {
		if err = store.Delete(ctx, id); err == nil {
			return true, nil
		}
	}
	return false, errors.Join(err, store.Release(context.WithoutCancel(ctx), lease))
}

// unprompted is the whole log of a session in which nothing happened yet, as far as it is in memory: another process may have removed it.
func (s *Session) unprompted() []Entry {
	if s.draft.Load() || s.shown.Surface != "acp" || s.shown.UserPrompt || s.shown.Head > idleEntries {
		return nil
	}
	entries, head, ok := s.tail.after(0, idleEntries)
	if !ok || head != s.shown.Head || !idleLog(entries) {
		return nil
	}
	return entries
}

// putBack stores such a session again.
func putBack(ctx context.Context, store Store, m Meta, entries []Entry) (Lease, error) {
	if err := store.Create(ctx, m); err != nil {
		return Lease{}, err
	}
	lease, err := store.Acquire(ctx, m.ID)
	if err != nil {
		return lease, err
	}
	done := make(chan error, 1)
	store.Append(lease, Batch{Entries: entries}, func(err error) { done <- err })
	if err := <-done; err != nil {
		return lease, errors.Join(err, store.Release(ctx, lease))
	}
	lease.Head = entries[len(entries)-1].Seq
	return lease, nil
}

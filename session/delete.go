package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

// Delete removes a session and its bytes, also one that cannot be opened because an entry of it is damaged. TurnActive while a turn runs,
// SessionBusy while another process works in it.
func (ss *Sessions) Delete(ctx context.Context, id SessionID) error {
	s, err := ss.Open(ctx, id)
	if errors.Is(err, ErrCorrupt) {
		return ss.deleteDamaged(ctx, id)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	return s.call(ctx, func(done func(error)) { s.delete(ctx, done) })
}

// deleteDamaged removes a session that nobody can have open.
func (ss *Sessions) deleteDamaged(ctx context.Context, id SessionID) error {
	if _, err := ss.cfg.Store.Acquire(ctx, id); err != nil {
		return ss.storeError(err)
	}
	if err := ss.cfg.Store.Delete(ctx, id); err != nil {
		return ss.storeError(err)
	}
	ss.removeOutputs(id)
	return nil
}

// removeOutputs removes the output files of a session that is gone.
func (ss *Sessions) removeOutputs(id SessionID) {
	if ss.cfg.Outputs == nil {
		return
	}
	if dir := ss.cfg.Outputs(id); filepath.IsAbs(dir) {
		if err := os.RemoveAll(dir); err != nil { // the session is gone all the same
			ss.cfg.Log.Warn("remove output files", "session", id, "err", err)
		}
	}
}

func (s *Session) delete(ctx context.Context, done func(error)) {
	if s.lane.busy() || s.door.shut || s.exec.open() {
		done(protocol.Errorf(protocol.TurnActive, "Cannot delete a session while a turn is active."))
		return
	}
	if s.draft.Load() {
		s.remove()
		done(nil)
		return
	}
	s.withLease(func(err error) {
		if err != nil {
			done(err)
			return
		}
		if !s.lane.free() || s.exec.open() {
			done(protocol.Errorf(protocol.TurnActive, "Cannot delete a session while a turn is active."))
			return
		}
		if err := s.all.cfg.Store.Delete(ctx, s.ID); err != nil { // all that comes behind it is of a session that is gone: it waits
			done(s.all.storeError(err))
			return
		}
		s.lease.lost()
		s.all.removeOutputs(s.ID)
		s.remove()
		done(nil)
	})
}

// remove says to all who follow that the session is no more. Nothing keeps it here either.
func (s *Session) remove() {
	if s.gone.Load() {
		return
	}
	s.gone.Store(true)
	s.refs = 0
	for _, t := range s.jobs.live { // nobody could reach them any more
		s.endJob(t, protocol.ReasonTaskCancelled)
	}
	for _, f := range slices.Clone(s.followers) {
		f.gone()
	}
}

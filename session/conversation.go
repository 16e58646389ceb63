package session

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// Conversation finds the session of a conversation (docs/protocol/portable-2026-09-02.md section 12), also a draft that is open here, of which
// no more than what it was made with is told. ErrNotFound.
func (ss *Sessions) Conversation(ctx context.Context, id string) (Meta, error) {
	meta, err := ss.cfg.Store.Conversation(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return meta, err
	}
	s := ss.conversing(id)
	switch {
	case s == nil:
		return Meta{}, err
	case s.draft.Load():
		return s.drafted(), nil
	}
	return ss.cfg.Store.Conversation(ctx, id) // it was stored meanwhile, or another process has deleted it
}

// conversing finds the session of a conversation this process has open; nil for none.
func (ss *Sessions) conversing(id string) *Session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, s := range ss.open {
		if s.conversation == id && id != "" {
			return s
		}
	}
	return nil
}

// Described is what the list of sessions has of one, also of a draft that is open here. ErrNotFound.
func (ss *Sessions) Described(ctx context.Context, id SessionID) (Meta, error) {
	meta, err := ss.cfg.Store.Session(ctx, id)
	if !errors.Is(err, ErrNotFound) {
		return meta, err
	}
	s := ss.known(id)
	switch {
	case s == nil:
		return Meta{}, err
	case s.draft.Load():
		return s.drafted(), nil
	}
	return ss.cfg.Store.Session(ctx, id) // as above
}

// drafted is all there is to tell of a draft.
func (s *Session) drafted() Meta {
	return Meta{ID: s.ID, ConversationID: s.conversation, Workspace: s.workspace, Created: s.created}
}

func errStopping() error {
	return protocol.Errorf(protocol.ServerStopping, "Runtime is shutting down.")
}

func errGone(id SessionID) error {
	return protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", id)
}

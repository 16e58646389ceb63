package httpapi

import (
	"net/http"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// workspaceHeader names the workspace of a new conversation (section 2.1).
const workspaceHeader = "Rind-Workspace"

func (x *exchange) createConversation() error {
	metadata, err := portable.ReadConversation(x.text)
	if err != nil {
		return err
	}
	workspace, err := x.workspace()
	if err != nil {
		return err
	}
	s, err := x.s.cfg.Sessions.Draft(x.r.Context(), session.DraftOptions{Workspace: workspace})
	if err != nil {
		return err
	}
	defer s.Close()
	conversation := ""
	if err := s.InspectNow(x.r.Context(), func(v *session.View) { conversation = v.Conversation }); err != nil {
		return err
	}
	if err := s.Keep(x.r.Context(), metadata); err != nil {
		return err
	}
	meta, err := x.s.cfg.Sessions.Store().Conversation(x.r.Context(), conversation)
	if err != nil {
		return stored(err)
	}
	return x.answer(http.StatusCreated, portable.NewConversation(meta.ConversationID, meta.Created, meta.Metadata))
}

// workspace is the folder the header names.
func (x *exchange) workspace() (string, error) {
	names := x.r.Header.Values(workspaceHeader)
	if len(names) == 0 {
		return x.s.cfg.Workspace, nil
	}
	if len(names) > 1 || !ValidWorkspaceName(names[0]) {
		return "", portable.Invalid("Invalid Rind-Workspace header")
	}
	dir, ok := x.s.cfg.Workspaces[names[0]]
	if !ok {
		return "", &portable.Error{Code: portable.NotFound, Message: "Workspace not found: " + names[0]}
	}
	return dir, nil
}

// ValidWorkspaceName reports whether a workspace may be called so: [a-z0-9][a-z0-9._-]{0,63}.
func ValidWorkspaceName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func (x *exchange) readConversation() error {
	meta, err := x.conversation(x.args[0])
	if err != nil {
		return err
	}
	x.w.Header().Set("Rind-Session-Id", string(meta.ID))
	return x.answer(http.StatusOK, portable.NewConversation(meta.ConversationID, meta.Created, meta.Metadata))
}

// conversation finds the session of a conversation id.
func (x *exchange) conversation(id string) (session.Meta, error) {
	meta, err := x.s.cfg.Sessions.Store().Conversation(x.r.Context(), id)
	if err != nil {
		if missing(err) {
			return meta, portable.ConversationNotFound(id)
		}
		return meta, stored(err)
	}
	return meta, nil
}

// located is an execution that exists, before anything of it was read.
type located struct {
	id      string
	turn    protocol.TurnID
	session session.Meta
}

// locate finds an execution by its id.
func (x *exchange) locate(id string) (located, error) {
	at := located{id: id}
	turn, ok := portable.TurnID(id)
	if !ok {
		return at, portable.ExecutionNotFound(id)
	}
	at.turn = turn
	store := x.s.cfg.Sessions.Store()
	sid, err := store.TurnSession(x.r.Context(), turn)
	if err == nil {
		at.session, err = store.Session(x.r.Context(), sid)
	}
	var first []session.Entry
	if err == nil {
		first, err = store.ReadTurn(x.r.Context(), turn, 0, 1)
	}
	switch {
	case missing(err), err == nil && (len(first) == 0 || first[0].Kind != protocol.KindTurnAccepted): // a turn that only compacts is none
		return at, portable.ExecutionNotFound(id)
	case err != nil:
		return at, stored(err)
	}
	return at, nil
}

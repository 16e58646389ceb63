package httpapi

import (
	"net/http"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
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
	meta, err := x.s.cfg.Commands.Create(x.r.Context(), metadata, workspace)
	if err != nil {
		return err
	}
	return x.answer(http.StatusCreated, executions.Show(&meta))
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
	meta, err := x.s.cfg.Commands.Conversation(x.r.Context(), x.args[0])
	if err != nil {
		return err
	}
	x.w.Header().Set("Rind-Session-Id", string(meta.ID))
	return x.answer(http.StatusOK, executions.Show(&meta))
}

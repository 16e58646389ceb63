package rindv2

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Reader is implemented by the params of every method: Read checks and takes them, and returns the *protocol.Error to be told by the
// first check that fails. Checks that need a session's state are not made here. Names are exact, null is absent, others are ignored.
type Reader interface{ Read(p Params) error }

// Nothing is the params of methods that have none.
type Nothing struct{}

// Read takes nothing.
func (*Nothing) Read(Params) error { return nil }

// Target is the session a request is for; "" is the connection's current one.
type Target struct {
	SessionID protocol.SessionID `json:"session_id,omitempty"`
}

// Read takes an optional session_id.
func (t *Target) Read(p Params) error {
	if !p.Has("session_id") {
		return nil
	}
	return t.must(p)
}

func (t *Target) must(p Params) error {
	id, ok := protocol.Text(p["session_id"])
	switch {
	case !ok || strings.TrimSpace(id) == "":
		return SessionRequired()
	case !protocol.ValidSessionID(id):
		return Bad("Invalid session id.")
	}
	t.SessionID = protocol.SessionID(id)
	return nil
}

// Named is a session that has to be named: of session/switch and session/delete.
type Named struct {
	SessionID protocol.SessionID `json:"session_id"`
}

// Read takes session_id.
func (n *Named) Read(p Params) error {
	var t Target
	err := t.must(p)
	n.SessionID = t.SessionID
	return err
}

// InitializeParams are those of initialize (section 4.1).
type InitializeParams struct {
	// ClientCapabilities is nil where the client named none, and empty where it named an empty list.
	ClientCapabilities []string `json:"client_capabilities,omitempty"`
}

// Read takes client_capabilities.
func (i *InitializeParams) Read(p Params) (err error) {
	i.ClientCapabilities, err = p.texts("client_capabilities")
	return err
}

// NewParams are those of session/new.
type NewParams struct {
	WorkspaceRoot string `json:"workspace_root,omitempty"`
}

// Read takes workspace_root.
func (n *NewParams) Read(p Params) (err error) {
	n.WorkspaceRoot, err = p.text("workspace_root")
	return err
}

// CreateParams are those of session/create.
type CreateParams struct {
	WorkspaceRoot   string             `json:"workspace_root,omitempty"`
	ProviderID      string             `json:"provider_id,omitempty"`
	ModelID         string             `json:"model_id,omitempty"`
	ReasoningEffort string             `json:"reasoning_effort,omitempty"`
	SessionID       protocol.SessionID `json:"session_id,omitempty"` // proposed
	Name            string             `json:"name,omitempty"`
}

// Read takes the texts of a session to be.
func (c *CreateParams) Read(p Params) error {
	var t Target
	if err := t.Read(p); err != nil {
		return err
	}
	c.SessionID = t.SessionID
	return p.fill(
		field{"workspace_root", &c.WorkspaceRoot}, field{"provider_id", &c.ProviderID}, field{"model_id", &c.ModelID},
		field{"reasoning_effort", &c.ReasoningEffort}, field{"name", &c.Name},
	)
}

// ListParams are those of session/list.
type ListParams struct {
	Limit                 int      `json:"limit,omitempty"` // 1..100, default 20
	WorkspaceRoot         string   `json:"workspace_root,omitempty"`
	ExcludeWorkspaceRoots []string `json:"exclude_workspace_roots,omitempty"` // nil: not given
	PageToken             string   `json:"page_token,omitempty"`
}

// Read takes the filter of a list.
func (l *ListParams) Read(p Params) (err error) {
	if l.Limit, err = p.between("limit", 20, 1, 100, "session/list limit must be an integer from 1 to 100."); err != nil {
		return err
	}
	if l.ExcludeWorkspaceRoots, err = p.texts("exclude_workspace_roots"); err != nil {
		return err
	}
	return p.fill(field{"workspace_root", &l.WorkspaceRoot}, field{"page_token", &l.PageToken})
}

// ForkParams are those of session/fork.
type ForkParams struct {
	Target
	BeforeMessageID string `json:"before_message_id,omitempty"`
}

// Read takes the place of the fork.
func (f *ForkParams) Read(p Params) error {
	if err := f.Target.Read(p); err != nil {
		return err
	}
	return p.fill(field{"before_message_id", &f.BeforeMessageID})
}

// SubscribeParams are those of session/subscribe.
type SubscribeParams struct {
	Target
	AfterCursor *protocol.Seq `json:"after_cursor,omitempty"` // nil: from now on
}

// Read takes the position to follow from.
func (s *SubscribeParams) Read(p Params) (err error) {
	if err := s.Target.Read(p); err != nil {
		return err
	}
	s.AfterCursor, err = p.cursor("after_cursor", "session/subscribe")
	return err
}

// ReplayParams are those of session/replay (section 4.4). AfterCursor chooses event mode.
type ReplayParams struct {
	Target
	Start           *int64        `json:"start,omitempty"`
	End             *int64        `json:"end,omitempty"`
	AfterCursor     *protocol.Seq `json:"after_cursor,omitempty"`
	Limit           int           `json:"limit,omitempty"` // 1..1000, default 200
	AfterTaskCursor *protocol.Seq `json:"after_task_cursor,omitempty"`
}

// Read takes a slice of messages, where what is no integer is ignored, or a page of events.
func (r *ReplayParams) Read(p Params) (err error) {
	if err := r.Target.Read(p); err != nil {
		return err
	}
	r.Start, r.End = p.place("start"), p.place("end")
	if r.AfterCursor, err = p.cursor("after_cursor", "session/replay"); err != nil || r.AfterCursor == nil {
		return err
	}
	if r.Limit, err = p.between("limit", 200, 1, 1000, "session/replay limit must be an integer from 1 to 1000."); err != nil {
		return err
	}
	r.AfterTaskCursor, err = p.cursor("after_task_cursor", "session/replay")
	return err
}

// ModeParams are those of rind/session/set_mode (section 7.7).
type ModeParams struct {
	Target
	Mode string `json:"mode" enum:"ask,edit,read,full"`
}

// Read takes a mode.
func (m *ModeParams) Read(p Params) (err error) {
	if err := m.Target.Read(p); err != nil {
		return err
	}
	m.Mode, err = p.word("mode", "rind/session/set_mode requires mode.", "mode must be ask, edit, read or full.", "ask", "edit", "read", "full")
	return err
}

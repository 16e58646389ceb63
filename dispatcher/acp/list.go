package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"path/filepath"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// listed is the opaque cursor of session/list.
type listed struct {
	Page      string `json:"p"`
	Workspace string `json:"w,omitempty"`
}

func sessionList(k *call) {
	q := session.Query{Limit: 50}
	cwd := ""
	var err error
	if k.params["cwd"] != nil {
		if cwd, err = k.params.Text("cwd"); err == nil && !filepath.IsAbs(cwd) {
			err = acp.Bad("cwd must be an absolute path.")
		}
		if err != nil {
			k.Fail(err)
			return
		}
		q.Workspace = cwd // what cannot be resolved is looked for as it is
		if abs, err := k.c.d.cfg.Resolve(cwd); err == nil {
			q.Workspace = abs
		}
	}
	if k.params["cursor"] != nil {
		var at listed
		text, err := k.params.Text("cursor")
		raw, bad := base64.RawURLEncoding.DecodeString(text)
		if err != nil || bad != nil || json.Unmarshal(raw, &at) != nil || at.Page == "" || cwd != "" && at.Workspace != q.Workspace {
			k.Fail(acp.Bad("The cursor is not one of this list."))
			return
		}
		q.Page, q.Workspace = at.Page, at.Workspace
	}
	k.Background(func() {
		metas, next, err := k.c.d.cfg.Sessions.List(context.Background(), q)
		if err != nil {
			k.Fail(err)
			return
		}
		res := acp.Listed{Sessions: make([]acp.Info, 0, len(metas))}
		for _, m := range metas {
			i := acp.Info{ID: m.ID, Title: m.Title, Updated: protocol.FormatTime(m.Activity)}
			i.CWD, i.Roots = k.c.shownFolders(m)
			res.Sessions = append(res.Sessions, i)
		}
		if next != "" {
			cursor := base64.RawURLEncoding.EncodeToString(protocol.MustMarshal(listed{next, q.Workspace}))
			res.Next = &cursor
		}
		k.OK(res)
	})
}

// shownFolders are the folders of a session as the client named them, where it did.
func (c *Conn) shownFolders(m session.Meta) (cwd string, further []string) {
	c.mu.Lock()
	o := c.open[m.ID]
	c.mu.Unlock()
	if o != nil {
		return o.cwd, o.roots
	}
	return m.Workspace, c.d.cfg.Sessions.Roots(context.Background(), m.ID)
}

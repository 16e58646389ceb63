package dispatcher

import (
	"context"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// workspace is a workspace_root, which must be a folder that exists; "" is the connection's.
func (c *Conn) workspace(path string) (string, error) {
	if path == "" {
		return c.d.cfg.Workspace, nil
	}
	abs, err := c.d.cfg.Resolve(path)
	if err != nil {
		return "", rindv2.Bad("Workspace directory does not exist: %s", path)
	}
	return abs, nil
}

func (k *call) draft(o session.DraftOptions) {
	s, err := k.c.d.cfg.Sessions.Draft(context.Background(), o)
	if err != nil {
		k.Fail(err)
		return
	}
	k.c.makeCurrent(s)
	k.answerInfo(s)
}

func (k *call) answerInfo(s *session.Session) {
	if !s.Recall(func(v *session.Recalled, err error) {
		if err != nil {
			k.Fail(err)
			return
		}
		k.OK(k.c.info(v))
	}) {
		k.Fail(rindv2.SessionNotFound(s.ID))
	}
}

func sessionNew(k *call, p *rindv2.NewParams) {
	ws, err := k.c.workspace(p.WorkspaceRoot)
	if err != nil {
		k.Fail(err)
		return
	}
	k.draft(session.DraftOptions{Workspace: ws})
}

func sessionCreate(k *call, p *rindv2.CreateParams) {
	ws, err := k.c.workspace(p.WorkspaceRoot)
	if err != nil {
		k.Fail(err)
		return
	}
	k.draft(session.DraftOptions{
		ID: p.SessionID, Workspace: ws, Title: nameOf(p.Name),
		Selection: session.Selection{Provider: p.ProviderID, Model: p.ModelID, Effort: p.ReasoningEffort},
	})
}

// forgetDraft drops a draft nobody has used.
func forgetDraft(k *call, _ *rindv2.Target) {
	k.with(func(s *session.Session) {
		s.Forget(func(forgotten bool) { k.OK(rindv2.Forgotten{Forgotten: forgotten}) })
	})
}

func sessionList(k *call, p *rindv2.ListParams) {
	resolved := func(path string) string { // what cannot be resolved is looked for as it is
		if abs, err := k.c.d.cfg.Resolve(path); err == nil {
			return abs
		}
		return path
	}
	q := session.Query{Limit: p.Limit, Page: p.PageToken}
	switch {
	case p.WorkspaceRoot != "":
		q.Workspace = resolved(p.WorkspaceRoot)
	case p.ExcludeWorkspaceRoots == nil:
		q.Workspace = k.c.d.cfg.Workspace
	}
	for _, root := range p.ExcludeWorkspaceRoots {
		q.Exclude = append(q.Exclude, resolved(root))
	}
	k.Background(func() {
		metas, next, err := k.c.d.cfg.Sessions.List(context.Background(), q)
		if err != nil {
			k.Fail(err)
			return
		}
		k.OK(k.c.list(metas, next))
	})
}

func (c *Conn) list(metas []session.Meta, next string) rindv2.List {
	res := rindv2.List{Sessions: make([]rindv2.ListItem, 0, len(metas))}
	for _, m := range metas {
		it := rindv2.ListItem{
			ID: m.ID, Title: m.Title, UpdatedAt: protocol.FormatTime(m.Activity), Size: rindv2.ListSize{Messages: m.Messages, ToolCalls: m.ToolCalls},
			Preview: m.Preview, WorkspaceRoot: m.Workspace, SessionType: "standalone_project", HasUserMessage: m.UserPrompt, ConnectionReady: true,
		}
		if m.Parent != "" {
			p := string(m.Parent)
			it.ParentSessionID = &p
		}
		res.Sessions = append(res.Sessions, it)
	}
	c.mu.Lock()
	if c.current != nil {
		id := c.current.ID
		res.CurrentSessionID = &id
	}
	c.mu.Unlock()
	if next != "" {
		res.NextPageToken = &next
	}
	return res
}

// sessionSwitch makes another session current. Legacy clients cannot tell the events of two sessions apart, so theirs may not switch while
// one works.
func sessionSwitch(k *call, p *rindv2.Named) {
	c := k.c
	change := func() {
		s, err := c.d.cfg.Sessions.Open(context.Background(), p.SessionID)
		if err != nil {
			k.Fail(err)
			return
		}
		c.makeCurrent(s)
		k.answerInfo(s)
	}
	c.mu.Lock()
	cur := c.current
	c.mu.Unlock()
	if cur == nil || !c.legacy() {
		change()
		return
	}
	busy := make(chan bool, 1)
	if !cur.Inspect(func(v *session.View) { busy <- v.Working() }) {
		busy <- false
	}
	if <-busy {
		k.Fail(protocol.Errorf(protocol.TurnActive, "Cannot switch sessions while a turn is running."))
		return
	}
	change()
}

func sessionFork(k *call, p *rindv2.ForkParams) {
	s, close, err := k.session()
	if err != nil {
		k.Fail(err)
		return
	}
	k.Background(func() {
		defer close()
		f, err := s.Fork(context.Background(), p.BeforeMessageID)
		if err != nil {
			k.Fail(err)
			return
		}
		defer f.Close()
		k.OK(rindv2.Forked{SessionID: f.ID, ForkedFrom: s.ID})
	})
}

func sessionDelete(k *call, p *rindv2.Named) {
	k.c.mu.Lock()
	current := k.c.current != nil && k.c.current.ID == p.SessionID
	k.c.mu.Unlock()
	if current {
		k.Fail(rindv2.Bad("Cannot delete the current session."))
		return
	}
	k.Background(func() {
		err := k.c.d.cfg.Sessions.Delete(context.Background(), p.SessionID)
		k.Settle(rindv2.Deleted{OK: true, Deleted: p.SessionID}, err)
	})
}

func subscribe(k *call, p *rindv2.SubscribeParams) {
	k.with(func(s *session.Session) {
		if p.AfterCursor == nil {
			k.c.follow(s)
			if !s.Inspect(func(*session.View) { k.OK(rindv2.Subscribed{OK: true, Subscribed: k.c.subscribed()}) }) {
				k.Fail(rindv2.SessionNotFound(s.ID))
			}
			return
		}
		ref, err := k.c.d.cfg.Sessions.Open(context.Background(), s.ID)
		if err != nil {
			k.Fail(err)
			return
		}
		if !ref.Inspect(func(v *session.View) {
			f := k.c.followAfter(ref, v, *p.AfterCursor)
			// The answer goes first: it is handed over before the follower is.
			ids := k.c.subscribed()
			if !k.c.following(s.ID) {
				ids = insert(ids, s.ID)
			}
			k.OK(rindv2.Subscribed{OK: true, Subscribed: ids})
			k.c.out.Follow(string(s.ID), f, nil)
		}) {
			ref.Close()
			k.Fail(rindv2.SessionNotFound(s.ID))
		}
	})
}

func insert(ids []session.SessionID, id session.SessionID) []session.SessionID {
	i := 0
	for i < len(ids) && ids[i] < id {
		i++
	}
	return append(ids[:i:i], append([]session.SessionID{id}, ids[i:]...)...)
}

func unsubscribe(k *call, _ *rindv2.Target) {
	k.with(func(s *session.Session) {
		end := func() {
			k.c.out.Unfollow(string(s.ID))
			k.OK(rindv2.Subscribed{OK: true, Subscribed: k.c.subscribed()})
		}
		if !s.Inspect(func(*session.View) { end() }) { // behind what was asked of it before
			end()
		}
	})
}

package dispatcher

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

func panicError(r any) error { return fmt.Errorf("panic in a method: %v\n%s", r, debug.Stack()) }

// workspace reads workspace_root, which must be a folder that exists; absent is the connection's.
func (k *call) workspace() (string, error) {
	path, ok := k.params.Text("workspace_root")
	if !ok {
		return "", rindv2.Bad("workspace_root must be a string.")
	}
	if path == "" {
		return k.c.d.cfg.Workspace, nil
	}
	abs, err := k.c.d.cfg.Resolve(path)
	if err != nil {
		return "", rindv2.Bad("Workspace directory does not exist: %s", path)
	}
	return abs, nil
}

func (k *call) draft(o session.DraftOptions) {
	s, err := k.c.d.cfg.Sessions.Draft(context.Background(), o)
	if err != nil {
		k.fail(err)
		return
	}
	k.c.makeCurrent(s)
	k.answerInfo(s)
}

func (k *call) answerInfo(s *session.Session) {
	if !s.Inspect(func(v *session.View) {
		i, err := k.c.info(v)
		k.settle(i, err)
	}) {
		k.fail(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
	}
}

func sessionNew(k *call) {
	ws, err := k.workspace()
	if err != nil {
		k.fail(err)
		return
	}
	k.draft(session.DraftOptions{Workspace: ws})
}

func sessionCreate(k *call) {
	ws, err := k.workspace()
	if err != nil {
		k.fail(err)
		return
	}
	o := session.DraftOptions{Workspace: ws}
	if k.params.Has("session_id") {
		if o.ID, err = k.sessionID(); err != nil {
			k.fail(err)
			return
		}
	}
	for name, field := range map[string]*string{
		"provider_id": &o.Selection.Provider, "model_id": &o.Selection.Model, "reasoning_effort": &o.Selection.Effort, "name": &o.Title,
	} {
		text, ok := k.params.Text(name)
		if !ok {
			k.fail(rindv2.Bad("%s must be a string.", name))
			return
		}
		*field = text
	}
	k.draft(o)
}

// forgetDraft drops a draft nobody has used.
func forgetDraft(k *call) {
	k.with(func(s *session.Session) {
		s.Forget(func(forgotten bool) {
			k.ok(struct {
				Forgotten bool `json:"forgotten"`
			}{forgotten})
		})
	})
}

func sessionList(k *call) {
	limit, ok := k.params.Int("limit", 20)
	if !ok || limit < 1 || limit > 100 {
		k.fail(rindv2.Bad("session/list limit must be an integer from 1 to 100."))
		return
	}
	q := session.Query{Limit: int(limit), Workspace: k.c.d.cfg.Workspace}
	if ws, ok := k.params.Text("workspace_root"); ok && ws != "" {
		if abs, err := k.c.d.cfg.Resolve(ws); err == nil {
			ws = abs
		}
		q.Workspace = ws
	}
	if k.params.Has("exclude_workspace_roots") {
		roots, ok := k.params.Texts("exclude_workspace_roots")
		if !ok {
			k.fail(rindv2.Bad("exclude_workspace_roots must be a list of strings."))
			return
		}
		if !k.params.Has("workspace_root") {
			q.Workspace = ""
		}
		for _, r := range roots {
			if abs, err := k.c.d.cfg.Resolve(r); err == nil {
				r = abs
			}
			q.Exclude = append(q.Exclude, r)
		}
	}
	page, ok := k.params.Text("page_token")
	if !ok {
		k.fail(rindv2.Bad("Invalid page token."))
		return
	}
	q.Page = page
	k.background(func() {
		metas, next, err := k.c.d.cfg.Sessions.List(context.Background(), q)
		if err != nil {
			k.fail(err)
			return
		}
		k.ok(k.c.list(metas, next))
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
func sessionSwitch(k *call) {
	id, err := k.sessionID()
	if err != nil {
		k.fail(err)
		return
	}
	c := k.c
	change := func() {
		s, err := c.d.cfg.Sessions.Open(context.Background(), id)
		if err != nil {
			k.fail(err)
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
		k.fail(protocol.Errorf(protocol.TurnActive, "Cannot switch sessions while a turn is running."))
		return
	}
	change()
}

func sessionFork(k *call) {
	before, ok := k.params.Text("before_message_id")
	if !ok {
		k.fail(rindv2.Bad("before_message_id must be a string."))
		return
	}
	k.with(func(s *session.Session) {
		k.background(func() {
			f, err := s.Fork(context.Background(), before)
			if err != nil {
				k.fail(err)
				return
			}
			defer f.Close()
			k.ok(struct {
				ID   session.SessionID `json:"session_id"`
				From session.SessionID `json:"forked_from"`
			}{f.ID, s.ID})
		})
	})
}

func sessionDelete(k *call) {
	id, err := k.sessionID()
	if err != nil {
		k.fail(err)
		return
	}
	k.c.mu.Lock()
	current := k.c.current != nil && k.c.current.ID == id
	k.c.mu.Unlock()
	if current {
		k.fail(rindv2.Bad("Cannot delete the current session."))
		return
	}
	k.background(func() {
		if err := k.c.d.cfg.Sessions.Delete(context.Background(), id); err != nil {
			k.fail(err)
			return
		}
		k.ok(struct {
			OK      bool              `json:"ok"`
			Deleted session.SessionID `json:"deleted"`
		}{true, id})
	})
}

type subscribedResult struct {
	OK         bool                `json:"ok"`
	Subscribed []session.SessionID `json:"subscribed"`
}

func subscribe(k *call) {
	after, ok := k.params.Int("after_cursor", -1)
	if !ok || k.params.Has("after_cursor") && after < 0 {
		k.fail(rindv2.Bad("session/subscribe after_cursor must be a non-negative integer."))
		return
	}
	k.with(func(s *session.Session) {
		if after < 0 {
			k.c.follow(s)
			s.Inspect(func(*session.View) { k.ok(subscribedResult{true, k.c.subscribed()}) })
			return
		}
		ref, err := k.c.d.cfg.Sessions.Open(context.Background(), s.ID)
		if err != nil {
			k.fail(err)
			return
		}
		if !ref.Inspect(func(v *session.View) {
			f := k.c.followAfter(ref, v, session.Seq(after))
			// The answer goes first: it is handed over before the follower is.
			ids := k.c.subscribed()
			if !k.c.out.following(s.ID) {
				ids = insert(ids, s.ID)
			}
			k.ok(subscribedResult{true, ids})
			k.c.out.add(f)
		}) {
			ref.Close()
			k.fail(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
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

func unsubscribe(k *call) {
	k.with(func(s *session.Session) {
		k.c.unfollow(s.ID)
		k.ok(subscribedResult{true, k.c.subscribed()})
	})
}

package dispatcher

import (
	"context"
	"sort"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// method is one row of the method table.
type method struct {
	run    func(k *call) // on the reading goroutine: must not wait for a session
	early  bool          // allowed before initialize
	always bool          // never refused as Overloaded
	hidden bool          // not listed by initialize
}

// methods is every method served over rind v2 and its JSON-RPC twin. Filled in init, because initialize lists it.
var methods map[string]method

func init() {
	methods = map[string]method{
		"initialize":                     {run: initialize, early: true},
		"ping":                           {run: func(k *call) { k.ok(okResult) }, early: true, always: true},
		"shutdown":                       {run: func(k *call) { k.c.d.shutdown(k) }, early: true, always: true},
		"session/new":                    {run: sessionNew},
		"session/create":                 {run: sessionCreate},
		"rind/session/forget_draft":      {run: forgetDraft},
		"session/list":                   {run: sessionList},
		"session/switch":                 {run: sessionSwitch},
		"session/fork":                   {run: sessionFork},
		"session/delete":                 {run: sessionDelete},
		"session/subscribe":              {run: subscribe},
		"session/unsubscribe":            {run: unsubscribe},
		"session/replay":                 {run: replay},
		"session/prompt":                 {run: prompt},
		"session/cancel":                 {run: cancel, always: true},
		"model/list":                     {run: modelList},
		"model/set":                      {run: modelSet},
		"model/effort":                   {run: modelEffort},
		"rind/session/set_mode":          {run: setMode},
		"rind/session/steer":             {run: enqueue(protocol.ModeSteering)},
		"rind/session/follow_up":         {run: enqueue(protocol.ModeFollowUp)},
		"rind/session/promote_follow_up": {run: promote},
		"rind/session/unsteer":           {run: retrieve(protocol.ModeSteering)},
		"rind/session/dequeue_follow_up": {run: retrieve(protocol.ModeFollowUp)},
		"rind/command/execute":           {run: execute},
		"rind/user-question/respond":     {run: answerQuestion, always: true},
		"rind/approval/respond":          {run: answerApproval, always: true},
		"rind/context/inspect":           {run: contextInspect},
		"rind/usage/summary":             {run: usageSummary},
		"rind/auth/list":                 {run: authList},
		"file/list":                      {run: fileList},
		"file/read":                      {run: fileRead},
		"file/write":                     {run: fileWrite},
		"$/cancel_request":               {hidden: true, always: true},
	}
}

func methodNames() []string {
	var names []string
	for name, m := range methods {
		if !m.hidden {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// capabilities are listed only where all their methods are served (docs/protocol/rind-v2.md section 11).
var capabilities = []string{
	"sessions", "models", "rind/commands", "rind/context", "rind/user-questions", "rind/steering", "rind/follow-up", "rind/input-retrieval",
	"rind/session-subscriptions", "rind/files", "rind/request-completion", "rind/approvals", "rind/event-log", "rind/idempotency", "rind/prompt-queue",
	"rind/input-fate",
}

// session finds the session a request is for: named, or the connection's current one.
func (k *call) session() (*session.Session, error) {
	if !k.params.Has("session_id") {
		k.c.mu.Lock()
		defer k.c.mu.Unlock()
		if k.c.current == nil {
			if k.c.lostCurrent != "" {
				return nil, protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", k.c.lostCurrent)
			}
			return nil, rindv2.Bad("session_id is required for this method.")
		}
		return k.c.current, nil
	}
	id, err := k.sessionID()
	if err != nil {
		return nil, err
	}
	k.c.mu.Lock()
	cur := k.c.current
	k.c.mu.Unlock()
	if cur != nil && cur.ID == id {
		return cur, nil
	}
	s, err := k.c.d.cfg.Sessions.Open(context.Background(), id)
	if err != nil {
		return nil, err
	}
	s.Close() // the reference holds until the session has nothing to do; what is asked next is in its mailbox before
	return s, nil
}

// sessionID reads a session_id that must be there.
func (k *call) sessionID() (session.SessionID, error) {
	id, ok := k.params.Name("session_id")
	if !ok {
		return "", rindv2.Bad("session_id is required for this method.")
	}
	if !protocol.ValidSessionID(id) {
		return "", rindv2.Bad("Invalid session id.")
	}
	return session.SessionID(id), nil
}

// with runs f with the request's session; an error is the answer.
func (k *call) with(f func(s *session.Session)) {
	s, err := k.session()
	if err != nil {
		k.fail(err)
		return
	}
	f(s)
}

// inspect runs f on the goroutine of the request's session; an error is the answer.
func (k *call) inspect(f func(v *session.View)) {
	k.with(func(s *session.Session) {
		if !s.Inspect(f) {
			k.fail(protocol.Errorf(protocol.SessionNotFound, "Session not found: %s", s.ID))
		}
	})
}

// background runs f on a goroutine of its own: for what reads files, the network or long pages.
func (k *call) background(f func()) {
	go func() {
		defer func() {
			if r := recover(); r != nil {
				k.fail(panicError(r))
			}
		}()
		f()
	}()
}

// makeCurrent makes s the connection's current session, taking over the caller's reference, and follows it.
func (c *Conn) makeCurrent(s *session.Session) {
	c.mu.Lock()
	old := c.current
	c.current, c.lostCurrent = s, ""
	c.mu.Unlock()
	c.follow(s)
	if old != nil {
		old.Close()
	}
}

// info builds session info. Runs on the session's goroutine.
func (c *Conn) info(v *session.View) (rindv2.SessionInfo, error) {
	preview, err := v.ResumePreview()
	if err != nil {
		return rindv2.SessionInfo{}, err
	}
	i := rindv2.SessionInfo{
		SessionID: v.Session.ID, Draft: v.Draft, Model: v.Sel.Model, Provider: v.Sel.Provider, ReasoningEffort: v.Sel.Effort, ApprovalMode: v.Sel.Mode,
		WorkspaceRoot: v.Workspace, SessionType: "standalone_project", Goal: v.Goal, Usage: v.Stats, MessageCount: v.Messages, Title: title(v),
		UpdatedAt: updated(v), ResumePreview: preview,
	}
	if v.Parent != "" {
		p := string(v.Parent)
		i.ParentSessionID = &p
	}
	if ts := v.TurnState(); ts != nil {
		i.TurnState = ts
	}
	if lt := v.Live(c.knowsApprovals()); lt != nil {
		i.LiveTurn = lt
	}
	return i, nil
}

func title(v *session.View) string {
	if v.Title == "" {
		return "Untitled"
	}
	return v.Title
}

func updated(v *session.View) string {
	if v.Draft || v.Activity.IsZero() {
		return ""
	}
	return protocol.FormatTime(v.Activity)
}

// initialize is serial: nothing is read before it has answered.
func initialize(k *call) {
	c := k.c
	caps, ok := k.params.Texts("client_capabilities")
	if !ok {
		k.fail(rindv2.Bad("client_capabilities must be a list of strings."))
		return
	}
	c.mu.Lock()
	again := c.current
	if k.params.Has("client_capabilities") {
		c.caps, c.approves = true, false
		for _, cap := range caps {
			c.approves = c.approves || cap == "rind/approvals"
		}
	}
	c.mu.Unlock()
	if again == nil {
		s, err := c.first()
		if err != nil {
			k.fail(err)
			return
		}
		c.makeCurrent(s)
	}
	done := make(chan struct{})
	c.mu.Lock()
	s := c.current
	c.mu.Unlock()
	if s == nil || !s.Inspect(func(v *session.View) {
		defer close(done)
		res, err := c.initialized(v)
		if err == nil {
			c.mu.Lock()
			c.ready = true
			c.mu.Unlock()
		}
		k.settle(res, err)
	}) {
		k.fail(protocol.Errorf(protocol.SessionNotFound, "Session not found."))
		return
	}
	<-done
}

// first opens the session a connection begins with.
func (c *Conn) first() (*session.Session, error) {
	cfg := &c.d.cfg
	ctx := context.Background()
	switch {
	case cfg.Session != "":
		return cfg.Sessions.Open(ctx, cfg.Session)
	case cfg.Latest:
		return cfg.Sessions.Latest(ctx, cfg.Workspace)
	}
	return cfg.Sessions.Draft(ctx, session.DraftOptions{Workspace: cfg.Workspace})
}

func (c *Conn) initialized(v *session.View) (rindv2.Initialize, error) {
	i, err := c.info(v)
	if err != nil {
		return rindv2.Initialize{}, err
	}
	return rindv2.Initialize{
		SessionID: i.SessionID, Draft: i.Draft, Model: i.Model, Provider: i.Provider, ReasoningEffort: i.ReasoningEffort, BaseURL: c.d.cfg.Setup().BaseURL,
		WorkspaceRoot: i.WorkspaceRoot, ApprovalMode: i.ApprovalMode, Version: c.d.cfg.Version, ProtocolVersion: "2", Capabilities: capabilities,
		Methods: methodNames(), ResumePreview: i.ResumePreview, HasRindDoc: c.d.cfg.HasDoc(i.WorkspaceRoot), Title: i.Title, UpdatedAt: i.UpdatedAt,
		MessageCount: i.MessageCount, TurnState: i.TurnState, LiveTurn: i.LiveTurn, Goal: i.Goal, Commands: commandList(), Providers: c.d.cfg.Providers(),
	}, nil
}

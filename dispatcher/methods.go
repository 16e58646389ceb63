package dispatcher

import (
	"context"
	"slices"
	"sort"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// method is one row of the method table.
type method struct {
	run func(k *call) // on the reading goroutine: must not wait for a session. nil: a notification
	// As the codec's table has them (rindv2.Methods).
	early  bool // allowed before initialize
	always bool // never refused as Overloaded
}

// methods is every method served over rind v2 and its JSON-RPC twin. Filled in init, because initialize lists it.
var methods map[string]method

func init() {
	served := map[string]func(k *call){
		"initialize":                     takes(initialize),
		"ping":                           func(k *call) { k.OK(okResult) },
		"shutdown":                       func(k *call) { k.c.d.shutdown(k) },
		"session/new":                    takes(sessionNew),
		"session/create":                 takes(sessionCreate),
		"rind/session/forget_draft":      takes(forgetDraft),
		"session/list":                   takes(sessionList),
		"session/switch":                 takes(sessionSwitch),
		"session/fork":                   takes(sessionFork),
		"session/delete":                 takes(sessionDelete),
		"session/subscribe":              takes(subscribe),
		"session/unsubscribe":            takes(unsubscribe),
		"session/replay":                 takes(replay),
		"session/prompt":                 takes(prompt),
		"session/cancel":                 takes(cancel),
		"model/list":                     takes(modelList),
		"model/set":                      takes(modelSet),
		"model/effort":                   takes(modelEffort),
		"rind/session/set_mode":          takes(setMode),
		"rind/session/steer":             takes(enqueue(protocol.ModeSteering)),
		"rind/session/follow_up":         takes(enqueue(protocol.ModeFollowUp)),
		"rind/session/promote_follow_up": promote,
		"rind/session/unsteer":           retrieve(protocol.ModeSteering),
		"rind/session/dequeue_follow_up": retrieve(protocol.ModeFollowUp),
		"rind/session/compact":           takes(compact),
		"rind/command/execute":           execute,
		"rind/user-question/respond":     takes(answerQuestion),
		"rind/approval/respond":          takes(answerApproval),
		"rind/runtime/describe":          runtimeDescribe,
		"rind/conversation/create":       conversationCreate,
		"rind/conversation/read":         conversationRead,
		"rind/execution/start":           executionStart,
		"rind/execution/read":            executionRead,
		"rind/execution/cancel":          executionCancel,
		"rind/execution/events":          executionEvents,
		"rind/execution/artifacts":       executionArtifacts,
		"rind/action/respond":            actionRespond,
		"rind/task/list":                 takes(taskList),
		"rind/task/read":                 takes(taskRead),
		"rind/task/wait":                 takes(taskWait),
		"rind/task/cancel":               takes(taskCancel),
		"rind/task/release_wait":         takes(releaseWait),
		"rind/background/list":           takes(backgroundList),
		"rind/background/output":         takes(backgroundOutput),
		"rind/goal/get":                  takes(goalGet),
		"rind/goal/set":                  takes(goalSet),
		"rind/goal/status":               takes(goalStatus),
		"rind/goal/clear":                takes(goalClear),
		"rind/context/inspect":           takes(contextInspect),
		"rind/usage/summary":             takes(usageSummary),
		"rind/auth/list":                 takes(authList),
		"rind/auth/login":                takes(authLogin),
		"rind/auth/logout":               takes(authLogout),
		"rind/folder_defaults/get":       takes(folderGet),
		"rind/folder_defaults/set":       takes(folderSet),
		"rind/folder_defaults/unset":     takes(folderUnset),
		"rind/folder_defaults/resolve":   takes(folderResolve),
		"rind/folder_defaults/apply":     takes(folderApply),
		"file/list":                      takes(fileList),
		"file/read":                      takes(fileRead),
		"file/write":                     takes(fileWrite),
	}
	methods = map[string]method{rindv2.MethodCancelRequest: {always: true}}
	for _, row := range rindv2.Methods() {
		if run := served[row.Name]; run != nil {
			methods[row.Name] = method{run, row.Early, row.Always}
		}
	}
}

// takes reads a method's params before it runs; what is wrong with them is the answer.
func takes[P any, R interface {
	*P
	rindv2.Reader
}](run func(k *call, p *P),
) func(k *call) {
	return func(k *call) {
		p := new(P)
		if err := R(p).Read(k.params); err != nil {
			k.Fail(err)
			return
		}
		run(k, p)
	}
}

func methodNames() []string {
	var names []string
	for name, m := range methods {
		if m.run != nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// capabilities are listed only where all their methods are served (docs/protocol/rind-v2.md section 11).
var capabilities = []string{
	"sessions", "models", "rind/commands", "rind/compaction", "rind/context", "rind/user-questions", "rind/steering", "rind/follow-up", "rind/input-retrieval",
	"rind/session-subscriptions", "rind/files", "rind/request-completion", "rind/approvals", "rind/event-log", "rind/idempotency", "rind/prompt-queue",
	"rind/input-fate", "rind/goals", "rind/tasks", "rind/backgrounds", "rind/auth", "rind/executions",
}

// session finds the session a request is for: named, or the connection's current one. Until close is called it stays open, whatever
// becomes idle meanwhile.
func (k *call) session() (s *session.Session, close func(), err error) {
	var t rindv2.Target
	if err := t.Read(k.params); err != nil {
		return nil, nil, err
	}
	k.c.mu.Lock()
	cur, lost := k.c.current, k.c.lostCurrent
	k.c.mu.Unlock()
	switch {
	case cur != nil && (t.SessionID == "" || t.SessionID == cur.ID):
		return cur, func() {}, nil
	case t.SessionID == "" && lost != "":
		return nil, nil, rindv2.SessionNotFound(lost)
	case t.SessionID == "":
		return nil, nil, rindv2.SessionRequired()
	}
	if s, err = k.c.d.cfg.Sessions.Open(context.Background(), t.SessionID); err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

// with runs f with the request's session; an error is the answer. What f asks of the session, it asks before it returns: then the session
// may go as soon as it has done that.
func (k *call) with(f func(s *session.Session)) {
	s, close, err := k.session()
	if err != nil {
		k.Fail(err)
		return
	}
	defer close()
	f(s)
}

// inspect runs f on the goroutine of the request's session; an error is the answer.
func (k *call) inspect(f func(v *session.View)) {
	k.with(func(s *session.Session) {
		if !s.Inspect(f) {
			k.Fail(rindv2.SessionNotFound(s.ID))
		}
	})
}

// recall is inspect with the messages of the session.
func (k *call) recall(f func(v *session.Recalled)) {
	k.with(func(s *session.Session) {
		if !s.Recall(func(v *session.Recalled, err error) {
			if err != nil {
				k.Fail(err)
				return
			}
			f(v)
		}) {
			k.Fail(rindv2.SessionNotFound(s.ID))
		}
	})
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
func (c *Conn) info(v *session.Recalled) rindv2.SessionInfo {
	i := rindv2.SessionInfo{
		SessionID: v.Session.ID, Draft: v.Draft, Model: v.Sel.Model, Provider: v.Sel.Provider, ReasoningEffort: v.Sel.Effort, ApprovalMode: v.Sel.Mode,
		WorkspaceRoot: v.Workspace, SessionType: "standalone_project", Goal: v.Goal, Usage: v.Stats, MessageCount: v.Messages, Title: title(v.View),
		UpdatedAt: updated(v.View), ResumePreview: v.ResumePreview(),
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
	return i
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
func initialize(k *call, p *rindv2.InitializeParams) {
	c := k.c
	c.mu.Lock()
	again := c.current
	if p.ClientCapabilities != nil {
		c.caps, c.approves = true, slices.Contains(p.ClientCapabilities, "rind/approvals")
		c.notices = slices.Contains(p.ClientCapabilities, "rind/notices")
	}
	c.mu.Unlock()
	if again == nil {
		s, err := c.first()
		if err != nil {
			k.Fail(err)
			return
		}
		c.makeCurrent(s)
	}
	done := make(chan struct{})
	c.mu.Lock()
	s, lost := c.current, c.lostCurrent
	c.mu.Unlock()
	if s != nil {
		lost = s.ID
	}
	if s == nil || !s.Recall(func(v *session.Recalled, err error) {
		defer close(done)
		if err != nil {
			k.Fail(err)
			return
		}
		c.mu.Lock()
		c.ready = true
		c.mu.Unlock()
		k.OK(c.initialized(v))
	}) {
		k.Fail(rindv2.SessionNotFound(lost))
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

func (c *Conn) initialized(v *session.Recalled) rindv2.Initialize {
	i := c.info(v)
	return rindv2.Initialize{
		SessionID: i.SessionID, Draft: i.Draft, Model: i.Model, Provider: i.Provider, ReasoningEffort: i.ReasoningEffort, BaseURL: c.d.cfg.Setup().BaseURL,
		WorkspaceRoot: i.WorkspaceRoot, ApprovalMode: i.ApprovalMode, Version: c.d.cfg.Version, ProtocolVersion: "2", Capabilities: capabilities,
		Methods: methodNames(), ResumePreview: i.ResumePreview, HasRindDoc: c.d.cfg.HasDoc(i.WorkspaceRoot), Title: i.Title, UpdatedAt: i.UpdatedAt,
		MessageCount: i.MessageCount, TurnState: i.TurnState, LiveTurn: i.LiveTurn, Goal: i.Goal, Commands: commandList(), Providers: c.d.cfg.Providers(),
	}
}

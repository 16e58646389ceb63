package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Config is what the sessions of one process are made of. Store, Agent and Models are required.
type Config struct {
	Store  Store
	Agent  Agent // answers serial turns
	Models Models
	Policy Policy // remembers the rule of an always option; may be nil
	IDs    protocol.IDs
	Now    func() time.Time
	Log    *slog.Logger
	// Guide is message 0 of message mode: what the model is told about itself and the workspace.
	Guide Guide
	// ErrorID writes an unexpected error into the log file and returns the id a user may be shown.
	ErrorID func(err error) string
	// Outputs names the directory of a session's output files; they are removed with it. May be nil.
	Outputs func(id SessionID) string
	// OnEnd is called when the end of the process has begun, before anything is cancelled. May be nil.
	OnEnd func()
	// Forgot is called when this process has let go of a session: nothing refers to it and nothing is left to do. It must not block. May be nil.
	Forgot func(id SessionID)
}

// Sessions are the conversations this process has open, and the way to all others of its store. It owns one goroutine that listens
// for commits of other processes while a session is open, and each Session owns one; Shutdown ends them all. Safe for
// concurrent use.
type Sessions struct {
	cfg       Config
	execution ExecutionOptions
	places    places
	figures   *figures                 // nil: nothing is counted
	unstored  atomic.Bool              // the end of a turn could not be stored at the end of the process
	recovery  atomic.Pointer[Recovery] // set once executions of other processes are looked after

	mu         sync.Mutex // guards the fields below; never held over I/O
	open       map[SessionID]*Session
	tasks      map[string]SessionID // background tasks of the open ones
	stopping   bool
	watching   bool
	live       sync.WaitGroup
	recovering map[SessionID]bool // those looked after again in a moment; see recoverLater

	ctx    context.Context // of watching
	cancel context.CancelFunc
}

// NewSessions fills in defaults for IDs, Now, Log and ErrorID.
func NewSessions(cfg Config) *Sessions {
	if cfg.IDs == nil {
		cfg.IDs = protocol.RandomIDs{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ErrorID == nil {
		ids := cfg.IDs
		cfg.ErrorID = func(err error) string {
			id := ids.Hex32()
			cfg.Log.Error("unexpected", "error_id", id, "err", err)
			return id
		}
	}
	if cfg.Guide == nil {
		cfg.Guide = noGuide{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Sessions{cfg: cfg, open: map[SessionID]*Session{}, tasks: map[string]SessionID{}, recovering: map[SessionID]bool{}, ctx: ctx, cancel: cancel}
}

// now is the time an entry gets: UTC, microseconds.
func (ss *Sessions) now() time.Time { return ss.cfg.Now().UTC().Truncate(time.Microsecond) }

// storeError turns an error of the store into what a client is told.
func (ss *Sessions) storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*protocol.Error](err); ok {
		return err
	}
	switch {
	case errors.Is(err, ErrBusy), errors.Is(err, ErrFenced):
		return &protocol.Error{Kind: protocol.SessionBusy, Message: textBusy, Cause: err}
	case errors.Is(err, ErrNotFound):
		return &protocol.Error{Kind: protocol.SessionNotFound, Message: "Session not found.", Cause: err}
	}
	return &protocol.Error{Kind: protocol.PersistenceError, Message: err.Error(), Cause: err}
}

// damaged is the answer where an entry is needed that says nothing this version can read; what is wrong with it is for the log file.
func damaged(id SessionID, seq Seq, err error) error {
	return &protocol.Error{
		Kind:    protocol.PersistenceError,
		Message: fmt.Sprintf("%v: entry %d of session %s is not readable: run 'rind doctor'", ErrCorrupt, seq, id),
		Cause:   errors.Join(ErrCorrupt, err),
	}
}

// internal makes the answer to an unexpected error; its details go to the log file only.
func (ss *Sessions) internal(err error) *protocol.Error {
	id := ss.cfg.ErrorID(err)
	return &protocol.Error{
		Kind: protocol.InternalError, Message: "Internal error (id " + id + ").", Details: map[string]any{"error_id": id}, Cause: err,
	}
}

// DraftOptions shape a new session.
type DraftOptions struct {
	ID        SessionID // "" makes one
	Workspace string    // absolute, links resolved
	Selection Selection // zero fields take the defaults of the settings
	Title     string
	Roots     []string // further folders of its tools: absolute, links resolved
	Surface   string   // "acp": it goes when it is never prompted (SweepUnprompted)
}

// Draft makes a session in memory only: nothing of it is on disk until it is used. The caller holds a reference (Close).
func (ss *Sessions) Draft(ctx context.Context, o DraftOptions) (*Session, error) {
	id := o.ID
	if id == "" {
		id = protocol.NewSessionID(ss.cfg.IDs, ss.now())
	} else if _, err := ss.cfg.Store.Session(ctx, id); err == nil {
		return nil, protocol.Errorf(protocol.InvalidRequest, "This conversation already exists.")
	} else if !errors.Is(err, ErrNotFound) {
		return nil, ss.storeError(err)
	}
	sel := ss.Default(o.Workspace)
	if named := o.Selection.Provider; named != "" && named != sel.Provider {
		if m, ok := ss.cfg.Models.(ProviderModels); ok && o.Selection.Model == "" {
			if model, effort, ok := m.DefaultOf(named); ok {
				sel.Model, sel.Effort = model, effort
			}
		}
		sel.Provider = named
	}
	if o.Selection.Model != "" {
		sel.Model = o.Selection.Model
	}
	if o.Selection.Effort != "" {
		sel.Effort = o.Selection.Effort
	}
	if o.Selection.Mode != "" {
		sel.Mode = o.Selection.Mode
	}
	st := newState()
	st.Workspace, st.Sel, st.Created = o.Workspace, sel, ss.now()
	st.Roots, st.Surface = o.Roots, o.Surface
	st.Conversation = "conv_" + ss.cfg.IDs.Hex32()
	if o.Title != "" {
		st.Title, st.Renamed = o.Title, true
	}
	s := ss.newSession(id, st)
	s.draft.Store(true)
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.stopping {
		return nil, errStopping()
	}
	if _, taken := ss.open[id]; taken {
		return nil, protocol.Errorf(protocol.InvalidRequest, "This conversation already exists.")
	}
	ss.start(s)
	return s, nil
}

// Default is what a new session of a workspace begins with.
func (ss *Sessions) Default(workspace string) Selection {
	if m, ok := ss.cfg.Models.(WorkspaceModels); ok {
		return m.DefaultIn(workspace)
	}
	return ss.cfg.Models.Default()
}

func (ss *Sessions) newSession(id SessionID, st *State) *Session {
	s := &Session{
		ID: id, workspace: st.Workspace, all: ss, box: newMailbox(), end: make(chan struct{}), tail: &tail{}, journal: newJournal(st), refs: 1,
		keyed: map[surfaceKey]*Prompt{}, watchers: map[TurnID][]func(Outcome){}, answering: map[string]bool{}, exec: newExecutions(), jobs: newJobs(),
	}
	s.conversation, s.created = st.Conversation, st.Created
	s.tail.reset(st.Head)
	return s
}

// start adds a session and its goroutine; ss.mu is held.
func (ss *Sessions) start(s *Session) {
	ss.open[s.ID] = s
	for _, t := range s.shown.Tasks {
		ss.tasks[t.Task.TaskID] = s.ID
		s.jobs.named = append(s.jobs.named, t.Task.TaskID)
	}
	ss.live.Add(1)
	go func() {
		defer ss.live.Done()
		s.loop()
	}()
	if !ss.watching {
		ss.watching = true
		ss.live.Add(1)
		go func() {
			defer ss.live.Done()
			ss.watch()
		}()
	}
}

// drop forgets a session nothing refers to any more; it is called by its goroutine, which ends when true is returned.
func (ss *Sessions) drop(s *Session) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if !s.box.close() {
		return false
	}
	if ss.open[s.ID] == s {
		delete(ss.open, s.ID)
		maps.DeleteFunc(ss.tasks, func(_ string, owner SessionID) bool { return owner == s.ID })
		if ss.cfg.Forgot != nil {
			ss.cfg.Forgot(s.ID)
		}
	}
	return true
}

// Open returns the session id, reading its log when this process has not. The caller holds a reference (Close). An unknown id is
// SessionNotFound. Opening writes nothing.
func (ss *Sessions) Open(ctx context.Context, id SessionID) (*Session, error) {
	for {
		if s := ss.known(id); s != nil {
			if s.gone.Load() { // it may have tasks to wait for, but nobody comes to it any more
				return nil, errGone(id)
			}
			if s.post(func() {
				if !s.stopping && !s.gone.Load() { // then nothing keeps it any more
					s.refs++
				}
			}) {
				return s, nil
			}
			select {
			case <-s.end: // it was just ending; open it anew
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			continue
		}
		st, err := ss.load(ctx, id)
		if err != nil {
			return nil, err
		}
		s := ss.newSession(id, st)
		ss.mu.Lock()
		if ss.stopping {
			ss.mu.Unlock()
			return nil, errStopping()
		}
		if ss.open[id] == nil {
			ss.start(s)
			ss.mu.Unlock()
			s.post(s.refresh) // what was committed between reading and listening
			return s, nil
		}
		ss.mu.Unlock()
	}
}

// opened lists the sessions this process has open.
func (ss *Sessions) opened() []*Session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Values(ss.open))
}

// known finds a session this process has open; nil for none.
func (ss *Sessions) known(id SessionID) *Session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.open[id]
}

// load folds the state of a stored session from its newest snapshot and what came after it.
func (ss *Sessions) load(ctx context.Context, id SessionID) (*State, error) {
	meta, err := ss.cfg.Store.Session(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, errGone(id)
	}
	if err != nil {
		return nil, ss.storeError(err)
	}
	st := newState()
	if fold, seq, err := ss.cfg.Store.Fold(ctx, id); err != nil {
		return nil, ss.storeError(err)
	} else if fold != nil {
		if snap := loadState(fold); snap != nil && snap.Head == seq {
			st = snap
		}
	}
	if st.Conversation == "" { // a session that has no entry yet
		st.Conversation, st.Workspace, st.Parent, st.Created = meta.ConversationID, meta.Workspace, meta.Parent, meta.Created
	}
	for e, err := range readLog(ctx, ss.cfg.Store, id, st.Head, protocol.ViewAll) {
		if err != nil {
			return nil, ss.storeError(err)
		}
		b, err := protocol.Decode(e)
		if err != nil {
			return nil, damaged(id, e.Seq, err)
		}
		st.Apply(e, b)
	}
	return st, nil
}

// Latest opens the session of workspace with the newest activity. SessionNotFound when there is none.
func (ss *Sessions) Latest(ctx context.Context, workspace string) (*Session, error) {
	page, _, err := ss.cfg.Store.Sessions(ctx, Query{Workspace: workspace, Limit: 1})
	if err != nil {
		return nil, ss.storeError(err)
	}
	if len(page) == 0 {
		return nil, protocol.Errorf(protocol.SessionNotFound, "No existing session found to resume.")
	}
	return ss.Open(ctx, page[0].ID)
}

// List returns stored sessions, newest activity first; next is "" on the last page.
func (ss *Sessions) List(ctx context.Context, q Query) (page []Meta, next string, err error) {
	page, next, err = ss.cfg.Store.Sessions(ctx, q)
	return page, next, ss.storeError(err)
}

// Store gives read access to the log for followers that page through it.
func (ss *Sessions) Store() Store { return ss.cfg.Store }

// Models are the models sessions can be set to.
func (ss *Sessions) Models() Models { return ss.cfg.Models }

// watch listens for what other processes commit and lets the sessions that are open here take it over.
func (ss *Sessions) watch() {
	bells, err := ss.cfg.Store.Watch(ss.ctx)
	if err != nil {
		if ss.ctx.Err() == nil { // else it ended before it began
			ss.cfg.Log.Warn("watch store", "err", err)
		}
		return
	}
	for _, s := range ss.opened() { // what was committed after they were read and before anybody listened rang for nobody
		s.post(s.refresh)
	}
	for id := range bells {
		if id == "" { // one that was deleted may be any of them
			for _, s := range ss.opened() {
				s.post(s.refresh)
			}
		} else if s := ss.known(id); s != nil {
			s.post(s.refresh)
		}
	}
}

// Close gives back a reference. The session ends when nothing refers to it and nothing is left to do.
func (s *Session) Close() {
	s.post(func() {
		if s.refs > 0 {
			s.refs--
		}
	})
}

package session

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// Session is one open conversation. Its state belongs to one goroutine, started by Sessions and ended by it when nothing refers
// to the session and nothing is left to do; all others post functions to it. It does not wait for the store: appends are handed over and
// acknowledged into the mailbox, reads are made beside it (fetch). Two things are waited for: whether another process lives, for a second at
// most, and the session's own removal.
type Session struct {
	ID        SessionID
	workspace string // never changes, like the two below
	all       *Sessions
	box       *mailbox
	end       chan struct{} // closed when the goroutine has ended
	gone      atomic.Bool   // it was removed; set by the goroutine
	draft     atomic.Bool   // it has no log yet; changed by the goroutine alone

	conversation string
	created      time.Time

	tail *tail

	// Owned by the goroutine.
	refs      int
	roots     *[]string // further folders an opening asked for; in the log with the next turn
	stopping  bool
	rung      bool // another process appended, and that was not looked at yet
	fetches   int  // reads of the store under way
	errands   int  // that run
	following following
	recalls   []func(*History, error) // for the messages, which are being read
	followers []*Follower

	journal // what holds by the log
	lease   leasehold

	door      door
	lane      lane
	keyed     map[surfaceKey]*Prompt // prompts with an idempotency key that have no answer yet
	watchers  map[TurnID][]func(Outcome)
	unsettled *ending         // a terminal that could not be stored yet
	answering map[string]bool // actions whose answer is on its way
	inbox     inbox
	exec      executions

	scope     requestScope
	jobs      jobs
	driving   bool      // goal turns are started here
	goalAfter time.Time // not before
}

// Workspace is the folder the session is bound to: absolute, links resolved.
func (s *Session) Workspace() string { return s.workspace }

// loop is the session's goroutine.
func (s *Session) loop() {
	defer close(s.end)
	var work []func()
	for {
		work = s.box.take(work)
		for _, f := range work {
			f()
		}
		if s.idle() && s.all.drop(s) {
			return
		}
		<-s.box.wake
	}
}

// post runs f on the session's goroutine; false when the session is gone.
func (s *Session) post(f func()) bool { return s.box.post(f) }

// busy reports whether there is work here: what a lease is held for.
func (s *Session) busy() bool {
	return s.fetches > 0 || s.errands > 0 || s.lane.busy() || s.writing() || s.unsettled != nil || s.lease.wanted() ||
		s.goalDue() || s.jobs.busy() || s.noticeDue() || s.exec.busy()
}

func (s *Session) idle() bool { return s.refs == 0 && !s.busy() && s.lease.none() }

func (s *Session) log() *slog.Logger { return s.all.cfg.Log }

// after posts f in d.
func (s *Session) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { s.post(f) })
}

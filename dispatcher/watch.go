package dispatcher

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// watch follows one execution (docs/protocol/portable-2026-09-02.md section 13): a cursor in the log of its session, like a follower's, that
// tells the events of one turn as the portable protocol words them. A slow reader costs no more than that.
type watch struct {
	outlet.Cursor
	c     *Conn
	claim *claim

	// Owned by the outlet's goroutine once the watch is followed.
	run    *executions.Run
	teller *executions.Teller
	told   int64  // number of the last event told
	line   []byte // the event that is being told
}

var _ outlet.Stream = (*watch)(nil)

// claim is a request to follow an execution; over once a newer request about the same one was read.
type claim struct {
	execution, key string
	over           atomic.Bool
}

// claims are the executions a connection follows, or is about to.
type claims struct {
	mu       sync.Mutex // guards what follows; never held over I/O
	last     int64
	by       map[string]*claim // by execution
	watching atomic.Pointer[[]*watch]
}

// claim takes the place of an earlier request about an execution, whose follow ends with that. It returns nil when the new one follows not.
func (c *Conn) claim(execution string, follow bool) *claim {
	cs := &c.claims
	var next *claim
	cs.mu.Lock()
	old := cs.by[execution]
	delete(cs.by, execution)
	if follow {
		if cs.by == nil {
			cs.by = map[string]*claim{}
		}
		cs.last++
		next = &claim{execution: execution, key: watchKey + execution + watchKey + strconv.FormatInt(cs.last, 10)}
		cs.by[execution] = next
	}
	cs.mu.Unlock()
	if old != nil {
		old.over.Store(true)
		c.out.Unfollow(old.key)
	}
	return next
}

// watchKey begins the keys of watches among the outlet's streams: no session's id has it.
const watchKey = "/"

// isWatch returns the execution that a stream of the outlet tells of; false for that of a session.
func isWatch(key string) (execution string, ok bool) {
	if !strings.HasPrefix(key, watchKey) {
		return "", false
	}
	execution, _, _ = strings.Cut(key[1:], watchKey)
	return execution, true
}

// disclaim ends a claim, if no newer one has its place.
func (c *Conn) disclaim(k *claim) {
	if k == nil {
		return
	}
	k.over.Store(true)
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.claims.by[k.execution] == k {
		delete(c.claims.by, k.execution)
	}
}

// watch prepares to tell an execution from where its log stands; it is told once it is followed.
func (c *Conn) watch(run *executions.Run, k *claim) (*watch, error) {
	s, err := run.Open(context.Background())
	if err != nil {
		return nil, err
	}
	w := &watch{Cursor: outlet.Cursor{Session: s}, c: c, claim: k, run: run, teller: run.Teller()}
	if err := s.InspectNow(context.Background(), func(v *session.View) {
		w.At = v.Head
		w.Bell = v.Follow(c.out.Ring, nil, func() { go w.end() }) // not on the session's goroutine, which ends with this
	}); err != nil {
		s.Close()
		return nil, err
	}
	return w, nil
}

// expect says what a watch is to tell: what comes behind part. From now on the answer to a prompt waits for what it tells of its turn.
func (w *watch) expect(part *executions.Part) {
	w.told = part.Cursor
	if part.Seq > 0 {
		w.At = part.Seq
	}
	w.c.claims.change(func(list []*watch) []*watch { return append(list, w) })
}

// follow lets a watch tell, unless a newer request has been read.
func (w *watch) follow() {
	w.c.out.Follow(w.claim.key, w, nil)
	if w.claim.over.Load() {
		w.c.out.Unfollow(w.claim.key)
	}
}

// end ends a watch: its execution has ended, or its session is gone.
func (w *watch) end() {
	w.c.disclaim(w.claim)
	w.c.out.Unfollow(w.claim.key)
}

// Close implements outlet.Stream.
func (w *watch) Close() {
	w.c.claims.change(func(list []*watch) []*watch {
		var left []*watch
		for _, other := range list {
			if other != w {
				left = append(left, other)
			}
		}
		return left
	})
	w.Cursor.Close()
}

// change replaces the list of watches.
func (cs *claims) change(f func([]*watch) []*watch) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var list []*watch
	if old := cs.watching.Load(); old != nil {
		list = append(list, *old...)
	}
	list = f(list)
	cs.watching.Store(&list)
}

// before reports whether a watch of a session has not come to a place of its log yet. Runs on the outlet's goroutine.
func (cs *claims) before(id session.SessionID, seq session.Seq) bool {
	list := cs.watching.Load()
	if list == nil {
		return false
	}
	for _, w := range *list {
		if w.Session.ID == id && w.At < seq && !w.claim.over.Load() {
			return true
		}
	}
	return false
}

// Page implements outlet.Stream. Nothing is merged: one event is one line.
func (w *watch) Page(buf []byte, _ func() session.Seq) (_ []byte, more bool, err error) {
	if w.claim.over.Load() {
		return buf, false, nil
	}
	entries, head, err := w.Session.Read(context.Background(), w.At, outlet.PageEntries)
	if err != nil {
		return buf, false, err
	}
	begin := len(buf)
	for i := range entries {
		e := &entries[i]
		if len(buf) >= outlet.BatchBytes {
			return buf, true, nil
		}
		if e.Turn == w.run.Turn {
			if err = w.teller.Each(e, w.told, func(l *portable.Line) {
				w.told, w.line = l.Sequence, l.Append(w.line[:0])
				buf = w.c.out.appendEvent(buf, &protocol.Envelope{Method: rindv2.MethodExecution, Execution: w.run.ID, Event: w.line})
			}); err != nil && len(buf) > begin {
				return buf, true, nil // what was told is not told again: the error is met anew where it is
			} else if err != nil {
				return buf, false, err
			}
			if e.Kind.Info().Terminal {
				w.At = head // nothing of it comes any more
				w.end()
				return buf, false, nil
			}
		}
		w.At = e.Seq
	}
	return buf, w.At < head, nil
}

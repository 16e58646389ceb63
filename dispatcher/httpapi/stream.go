package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// listEvents is route 9 (section 5.1): a page of JSON, or a stream.
func (x *exchange) listEvents() error {
	from, given, err := after(x.r)
	if err != nil {
		return err
	}
	streams := wantsStream(x.r.Header.Values("Accept"))
	if last := x.r.Header.Get("Last-Event-ID"); streams && !given && last != "" {
		var ok bool
		if from, ok = cursor(last); !ok {
			return portable.Invalid("Last-Event-ID must be a non-negative integer")
		}
	}
	run, err := x.run()
	if err != nil {
		return err
	}
	if streams {
		return x.stream(run, from)
	}
	return x.list(run, from)
}

// list answers with all events behind a cursor. What fits into one write is told with its length; a longer list is told while it is read, so
// that it costs no more memory, and is cut off where it cannot be read to its end.
func (x *exchange) list(run *executions.Run, from int64) error {
	out := x.writer()
	defer out.release()
	out.append(`{"events":[`)
	f := run.Feed(nil, from)
	begun, many := false, false
	tell := func(l *portable.Line) {
		if many {
			out.append(",")
		}
		many = true
		if out.buf = l.Append(out.buf); len(out.buf) < writeAtOnce {
			return
		}
		if !begun {
			begun = true
			x.w.Header().Set("Content-Type", "application/json")
			x.w.Header().Set("Cache-Control", "no-store")
			x.status(http.StatusOK)
		}
		_ = out.write() // the error stays
	}
	for more := true; more; {
		n, err := f.Next(x.r.Context(), tell)
		switch {
		case err != nil && x.r.Context().Err() != nil:
			panic(http.ErrAbortHandler) // nobody waits for the rest
		case err != nil:
			return err
		case out.err != nil, begun && x.r.Method == http.MethodHead:
			return nil
		}
		more = n == executions.PageEntries
	}
	out.append(`],"nextCursor":`)
	out.buf = append(strconv.AppendInt(out.buf, f.Cursor(), 10), '}')
	if !begun {
		return x.write(http.StatusOK, "application/json", out.buf)
	}
	_ = out.write() // who left is told nothing
	return nil
}

// watch is a stream's interest in a session.
type watch struct {
	*session.Follower
	bell chan struct{} // the log has grown by something of the execution
	gone chan struct{} // closed: the session was deleted
	open bool          // the execution has no end, as far as is known here
}

func (x *exchange) watch(s *session.Session, turn session.TurnID) (*watch, error) {
	w := &watch{bell: make(chan struct{}, 1), gone: make(chan struct{})}
	return w, s.InspectNow(x.r.Context(), func(v *session.View) {
		_, w.open = v.Execution(turn)
		w.Follower = v.FollowTurn(turn, func() {
			select {
			case w.bell <- struct{}{}:
			default:
			}
		}, func() { close(w.gone) })
	})
}

// stream writes events as they come, from a cursor on, until the last one. It owns no goroutine: the session rings, the log is read.
func (x *exchange) stream(run *executions.Run, from int64) error {
	s, err := run.Open(x.r.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	w, err := x.watch(s, run.Turn)
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := run.There(x.r.Context()); err != nil { // from here on its session hears of it
		return err
	}
	defer x.s.traffic.follow()()
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.status(http.StatusOK)
	if x.r.Method == http.MethodHead {
		return nil
	}
	out := x.writer()
	defer out.release()
	if err := x.follow(run, s, w, from, out); err != nil {
		x.s.cfg.Log.Info("stream cut", "err", err)
		panic(http.ErrAbortHandler) // its end must not look like a good one
	}
	return nil
}

// follow tells events until the last one, or until nobody waits for more. An error says that it could not go on.
func (x *exchange) follow(run *executions.Run, s *session.Session, w *watch, from int64, out *writer) error {
	ping := time.NewTimer(x.s.cfg.Ping)
	defer ping.Stop()
	f := run.Feed(s, from)
	ctx := context.WithoutCancel(x.r.Context())
	ending, last, asked, rung := false, false, false, false
	tell := func(l *portable.Line) {
		out.event(l)
		last = portable.Terminal(l.Type)
	}
	for begun := false; ; begun = true {
		n, err := f.Next(ctx, tell)
		switch {
		case err != nil:
			return err
		case last:
			return out.write() // goes out with the end of the answer
		case n > 0 || !begun: // the headers with what there is
			if err := out.flush(); err != nil {
				return err
			}
		}
		switch {
		case n > 0:
			ping.Reset(x.s.cfg.Ping)
			continue
		case ending:
			return nil
		case rung && f.Cursor() == from: // what rang lies before the place the stream begins at, and with it perhaps the end
			if s.InspectNow(x.r.Context(), func(v *session.View) { _, w.open = v.Execution(run.Turn) }) != nil {
				w.open = false // as far as is known here; below, the log is asked
			}
		}
		rung = false
		if !w.open { // here: another process may have it, and this one not have heard of that yet. The log knows.
			ended, err := run.Ended(ctx, &executions.Part{})
			switch {
			case err != nil:
				return err
			case ended && asked:
				return nil
			case ended:
				f, asked = run.Feed(nil, f.Cursor()), true // what was not heard of yet is in the store
				continue
			}
			w.open = true
		}
		select {
		case <-w.bell:
			rung = true
		case <-ping.C:
			out.ping()
			if err := out.flush(); err != nil {
				return err
			}
			ping.Reset(x.s.cfg.Ping)
		case <-x.r.Context().Done():
			return nil
		case <-w.gone:
			return nil
		case <-x.s.end:
			ending = true
		}
	}
}

// writer gathers what is told next.
type writer struct {
	w   http.ResponseWriter
	buf []byte // nil while nothing is to be told
	err error
}

func (x *exchange) writer() *writer { return &writer{w: x.w} }

const writeAtOnce = 64 << 10

// buffers are those of writers: a stream that waits holds none. They have grown as much as was needed.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

func (o *writer) append(text string) {
	if o.buf == nil {
		o.buf = *buffers.Get().(*[]byte)
	}
	o.buf = append(o.buf, text...)
}

// release gives the buffer back, unless it has grown beyond the common size.
func (o *writer) release() {
	if o.buf != nil && cap(o.buf) <= 2*writeAtOnce {
		b := o.buf[:0]
		buffers.Put(&b)
	}
	o.buf = nil
}

func (o *writer) event(l *portable.Line) {
	o.append("event: ")
	o.buf = append(o.buf, l.Type...)
	o.buf = append(o.buf, "\ndata: "...)
	o.buf = l.Append(o.buf)
	o.buf = append(o.buf, "\nid: "...)
	o.buf = strconv.AppendInt(o.buf, l.Sequence, 10)
	o.buf = append(o.buf, "\n\n"...)
	if len(o.buf) >= writeAtOnce {
		_ = o.write() // the error stays
	}
}

func (o *writer) ping() { o.append(": ping\n\n") }

// write writes what was gathered and goes on in the same buffer.
func (o *writer) write() error {
	if o.err == nil && len(o.buf) > 0 {
		_, o.err = o.w.Write(o.buf)
	}
	if o.buf = o.buf[:0]; cap(o.buf) > 2*writeAtOnce {
		o.buf = nil
	}
	return o.err
}

// flush writes what was gathered and sees it off: nothing comes for a while.
func (o *writer) flush() error {
	if o.write() == nil {
		o.err = http.NewResponseController(o.w).Flush()
	}
	o.release()
	return o.err
}

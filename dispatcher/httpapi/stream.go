package httpapi

import (
	"context"
	"net/http"
	"strconv"
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
	f := run.Feed(nil, from)
	body := []byte(`{"events":[`)
	many := false
	for {
		n, err := f.Next(x.r.Context(), func(e *portable.Event) {
			if many {
				body = append(body, ',')
			}
			body, many = e.Append(body), true
		})
		if err != nil {
			return err
		}
		if n < executions.PageEntries {
			break
		}
	}
	body = append(body, `],"nextCursor":`...)
	body = append(strconv.AppendInt(body, f.Cursor(), 10), '}')
	x.w.Header().Set("Cache-Control", "no-store")
	return x.write(http.StatusOK, "application/json", body)
}

// stream writes events as they come, from a cursor on, until the last one. It owns no goroutine: the session rings, the log is read.
func (x *exchange) stream(run *executions.Run, from int64) error {
	s, err := run.Open(x.r.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	bell := make(chan struct{}, 1)
	gone := make(chan struct{})
	open := false
	var follower *session.Follower
	if err := s.InspectNow(x.r.Context(), func(v *session.View) {
		_, open = v.Execution(run.Turn)
		follower = v.Follow(func() {
			select {
			case bell <- struct{}{}:
			default:
			}
		}, nil, func() { close(gone) })
	}); err != nil {
		return err
	}
	defer follower.Stop()
	defer x.s.traffic.follow()()
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.status(http.StatusOK)
	out := &writer{w: x.w, rc: http.NewResponseController(x.w), limit: x.s.cfg.Stall}
	if x.r.Method == http.MethodHead {
		return nil
	}
	ping := time.NewTimer(x.s.cfg.Ping)
	defer ping.Stop()
	f := run.Feed(s, from)
	ending := false
	for begun := false; ; begun = true {
		last := false
		n, err := f.Next(context.WithoutCancel(x.r.Context()), func(e *portable.Event) {
			out.event(e)
			last = portable.Terminal(e.Type)
		})
		switch {
		case err != nil:
		case last: // goes out with the end of the answer
			err = out.write()
		case n > 0 || !begun: // the headers with what there is
			err = out.flush()
		}
		switch {
		case err != nil:
			x.s.cfg.Log.Info("stream cut", "err", err)
			panic(http.ErrAbortHandler) // its end must not look like a good one
		case last, n == 0 && (ending || !open):
			return nil
		case n > 0:
			ping.Reset(x.s.cfg.Ping)
			continue
		}
		select {
		case <-bell:
		case <-ping.C:
			out.ping()
			if out.flush() != nil {
				panic(http.ErrAbortHandler)
			}
			ping.Reset(x.s.cfg.Ping)
		case <-x.r.Context().Done():
			return nil
		case <-gone:
			return nil
		case <-x.s.end:
			ending = true
		}
	}
}

// writer gathers what a stream is told next; each write has a bounded time.
type writer struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration
	buf   []byte
	err   error
}

const writeAtOnce = 64 << 10

func (o *writer) event(e *portable.Event) {
	o.buf = append(o.buf, "event: "...)
	o.buf = append(o.buf, e.Type...)
	o.buf = append(o.buf, "\ndata: "...)
	o.buf = e.Append(o.buf)
	o.buf = append(o.buf, "\nid: "...)
	o.buf = strconv.AppendInt(o.buf, e.Sequence, 10)
	o.buf = append(o.buf, "\n\n"...)
	if len(o.buf) >= writeAtOnce {
		_ = o.write() // the error stays
	}
}

func (o *writer) ping() { o.buf = append(o.buf, ": ping\n\n"...) }

func (o *writer) write() error {
	if o.err == nil && len(o.buf) > 0 {
		_ = o.rc.SetWriteDeadline(time.Now().Add(o.limit))
		_, o.err = o.w.Write(o.buf)
	}
	if o.buf = o.buf[:0]; cap(o.buf) > 2*writeAtOnce {
		o.buf = nil
	}
	return o.err
}

func (o *writer) flush() error {
	if o.write() == nil {
		_ = o.rc.SetWriteDeadline(time.Now().Add(o.limit))
		o.err = o.rc.Flush()
	}
	return o.err
}

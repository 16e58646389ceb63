package httpapi

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

const maxCursor = 9007199254740991

// cursor reads a cursor: 1 to 16 digits, at most 2^53-1.
func cursor(text string) (int64, bool) {
	if text == "" || len(text) > 16 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n <= maxCursor
}

// after is where a reader wants to begin, and whether it said so.
func after(r *http.Request) (int64, bool, error) {
	bad := portable.Invalid("after must be a non-negative integer")
	q, err := url.ParseQuery(r.URL.RawQuery)
	values := q["after"]
	switch {
	case len(values) == 0 && (err == nil || !strings.Contains(r.URL.RawQuery, "after")):
		return 0, false, nil
	case len(values) != 1:
		return 0, true, bad
	}
	n, ok := cursor(values[0])
	if !ok {
		return 0, true, bad
	}
	return n, true, nil
}

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
	list := portable.EventList{Events: []portable.Event{}, NextCursor: from}
	for {
		page, err := run.Page(x.r.Context(), list.NextCursor, 1024)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return x.answer(http.StatusOK, list)
		}
		list.Events = append(list.Events, page...)
		list.NextCursor = page[len(page)-1].Sequence
	}
}

// wantsStream reads Accept: an event stream when it is named with a weight that is at least that of JSON.
func wantsStream(lines []string) bool {
	stream, json, jsonAt := -1.0, -1.0, 0
	for _, part := range strings.Split(strings.Join(lines, ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil || q < 0 || q > 1 {
				continue
			}
		}
		exact := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}[kind]
		switch {
		case kind == "text/event-stream":
			stream = max(stream, q)
		case exact > jsonAt:
			json, jsonAt = q, exact
		}
	}
	return stream > 0 && stream >= json
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
	var follower *session.Follower
	if err := s.InspectNow(x.r.Context(), func(v *session.View) {
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
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	x.w.WriteHeader(http.StatusOK)
	out := &writer{w: x.w, rc: http.NewResponseController(x.w)}
	if err := out.flush(); err != nil || x.r.Method == http.MethodHead {
		return nil
	}
	ping := time.NewTimer(x.s.cfg.Ping)
	defer ping.Stop()
	ending := false
	for {
		wrote, last, err := x.tell(run, s, out, &from)
		switch {
		case err != nil:
			x.s.cfg.Log.Info("stream cut", "err", err)
			panic(http.ErrAbortHandler) // its end must not look like a good one
		case last, ending && !wrote:
			return nil
		case wrote:
			ping.Reset(x.s.cfg.Ping)
			continue
		}
		select {
		case <-bell:
		case <-ping.C:
			if out.write([]byte(": ping\n\n")) != nil || out.flush() != nil {
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

// tell writes the next page of events, if there is one; last says that there will be no more.
func (x *exchange) tell(run *executions.Run, s *session.Session, out *writer, from *int64) (wrote, last bool, err error) {
	var open session.OpenExecution
	var is bool
	// An error says that the session is not kept any more, because the process ends: what the log has is told, and no more will come.
	_ = s.InspectNow(context.WithoutCancel(x.r.Context()), func(v *session.View) { open, is = v.Execution(run.Turn) })
	if is && open.Next-1 <= *from {
		return false, false, nil
	}
	events, err := run.Page(x.r.Context(), *from, pageEvents)
	if err != nil {
		return false, false, err
	}
	for i := range events {
		e := &events[i]
		if err := out.event(e); err != nil {
			return true, false, err
		}
		*from = e.Sequence
		last = portable.Terminal(e.Type)
	}
	if len(events) == 0 {
		return false, !is, nil
	}
	return true, last, out.flush()
}

// writer writes a stream; each write has 30 s.
type writer struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

func (o *writer) write(b []byte) error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTime))
	_, err := o.w.Write(b)
	return err
}

func (o *writer) flush() error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTime))
	return o.rc.Flush()
}

func (o *writer) event(e *portable.Event) error {
	data, err := protocol.Marshal(e)
	if err != nil {
		return err
	}
	o.buf = append(o.buf[:0], "event: "...)
	o.buf = append(o.buf, e.Type...)
	o.buf = append(o.buf, "\ndata: "...)
	o.buf = append(o.buf, data...)
	o.buf = append(o.buf, "\nid: "...)
	o.buf = strconv.AppendInt(o.buf, e.Sequence, 10)
	o.buf = append(o.buf, "\n\n"...)
	return o.write(o.buf)
}

package outlet

import (
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Run writes until the outlet is closed and drained, or a write fails. It is called once.
func (o *Outlet) Run() {
	defer close(o.done)
	var buf []byte
	for {
		if cap(buf) > 4*BatchBytes { // one huge line must not keep its memory
			buf = nil
		}
		var more, last bool
		buf, more, last = o.fill(buf[:0])
		if len(buf) > 0 {
			o.opt.Answering(o.ids)
			if _, err := o.opt.Sink.Write(buf); err != nil {
				o.fail(err)
				return
			}
			o.written()
		}
		switch {
		case last:
			return
		case more:
			continue
		}
		if o.drained() {
			return
		}
		o.sleep()
	}
}

func (o *Outlet) drained() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing && len(o.items) == 0 && len(o.holds) == 0
}

// sleep waits for Ring, or until a resting stream is to be asked again.
func (o *Outlet) sleep() {
	var first time.Time
	o.mu.Lock()
	for _, p := range o.streams {
		if !p.rest.IsZero() && (first.IsZero() || p.rest.Before(first)) {
			first = p.rest
		}
	}
	o.mu.Unlock()
	if first.IsZero() {
		<-o.wake
		return
	}
	t := time.NewTimer(time.Until(first))
	defer t.Stop()
	select {
	case <-o.wake:
	case <-t.C:
	}
}

// fail ends the outlet: the client is gone, or a torn line lies on the wire.
func (o *Outlet) fail(err error) {
	o.mu.Lock()
	o.items, o.holds = nil, nil
	o.mu.Unlock()
	o.opt.Lost(err)
}

// written settles the accounts of a batch.
func (o *Outlet) written() {
	if len(o.ids) > 0 {
		o.mu.Lock()
		o.count(-len(o.ids), -o.size)
		o.mu.Unlock()
		o.opt.Answered(o.ids)
	}
	o.ids, o.size = nil, 0
	after := o.after
	o.after = nil
	for _, f := range after {
		f()
	}
}

// fill encodes what is to be written next: what was handed over, a page of each stream, the answers whose place was reached. more says that
// there may be more at once; last that nothing may follow.
func (o *Outlet) fill(buf []byte) (_ []byte, more, last bool) {
	o.mu.Lock()
	items := o.items
	o.items = nil
	order := o.order[:len(o.order):len(o.order)]
	o.mu.Unlock()
	for i, it := range items {
		if it.write != nil {
			buf = it.write(buf)
		} else {
			buf = append(buf, it.line...)
			o.ids = append(o.ids, it.id)
			o.size += len(it.line)
		}
		if len(buf) >= BatchBytes && i+1 < len(items) {
			o.mu.Lock()
			o.items = append(items[i+1:len(items):len(items)], o.items...)
			o.mu.Unlock()
			return buf, true, false
		}
	}
	for i := range order {
		at := (o.turn + i) % len(order)
		var again bool
		if buf, again = o.page(buf, order[at]); again {
			more = true
		}
		if len(buf) >= BatchBytes { // the others begin the next batch
			more, o.turn = true, at+1
			break
		}
	}
	before := len(buf)
	buf, last = o.due(buf, !more)
	return buf, more || len(buf) > before, last
}

// page asks one stream.
func (o *Outlet) page(buf []byte, key string) (_ []byte, more bool) {
	o.mu.Lock()
	p := o.streams[key]
	o.mu.Unlock()
	if p == nil || !p.rest.IsZero() && time.Now().Before(p.rest) {
		return buf, false
	}
	out, more, err := p.Page(buf, func() session.Seq { return o.limit(key) })
	if err != nil {
		o.unread(key, p, err)
		return buf, false
	}
	p.tries, p.since, p.rest = 0, time.Time{}, time.Time{}
	return out, more
}

// unread lets a stream rest whose log could not be read, and ends it when that does not get better.
func (o *Outlet) unread(key string, p *place, err error) {
	now := time.Now()
	if p.tries == 0 {
		p.since = now
	}
	last := now.Sub(p.since) >= restInAll
	p.rest = now.Add(min(restFirst<<min(p.tries, 10), restMost))
	p.tries++
	if last {
		o.mu.Lock()
		last = o.streams[key] == p // else another one has taken its place
		o.mu.Unlock()
		if last {
			o.Unfollow(key)
		}
	}
	o.opt.Unread(key, err, last)
}

// limit is how far a stream may be told, because of answers that stand between; -1 for no limit.
func (o *Outlet) limit(key string) session.Seq {
	o.mu.Lock()
	defer o.mu.Unlock()
	most := session.Seq(-1)
	for _, h := range o.holds {
		if h.Exact && h.Stream == key && (most < 0 || h.Seq < most) {
			most = h.Seq
		}
	}
	return most
}

// due adds the held answers whose place was reached; idle says that every stream was told to its end.
func (o *Outlet) due(buf []byte, idle bool) (_ []byte, last bool) {
	o.mu.Lock()
	holds := o.holds
	streams := make([]Stream, len(holds))
	for i, h := range holds {
		if p := o.streams[h.Stream]; p != nil {
			streams[i] = p.Stream
		}
	}
	if len(holds) == 0 {
		o.mu.Unlock()
		return buf, false
	}
	alone := len(holds) == 1 && len(o.items) == 0
	due, kept := make([]int, 0, len(holds)), make([]*Hold, 0, len(holds))
	for i, h := range holds {
		s := streams[i]
		if h.Wait || s != nil && s.Told() < h.Seq || h.Until != nil && h.Until(s) || h.Last && !(idle && alone) {
			kept = append(kept, h)
			continue
		}
		due = append(due, i)
	}
	o.holds = kept
	o.mu.Unlock()
	for _, i := range due {
		h, at := holds[i], len(buf)
		if h.Lead != nil {
			buf = h.Lead(buf, streams[i])
		}
		if h.Reply != nil {
			buf = append(buf, o.opt.Frame(o.reply(h, streams[i]))...)
		}
		o.mu.Lock()
		o.count(1, len(buf)-at)
		o.mu.Unlock()
		o.size += len(buf) - at
		o.ids = append(o.ids, string(h.ID))
		if h.Written != nil {
			o.after = append(o.after, h.Written)
		}
		last = last || h.Last
	}
	return buf, last
}

func (o *Outlet) reply(h *Hold, s Stream) protocol.Reply {
	result, err := h.Reply(s)
	if err != nil {
		return protocol.Reply{ID: h.ID, Err: o.opt.Told(err)}
	}
	return protocol.Reply{ID: h.ID, Result: result}
}

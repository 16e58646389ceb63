package acp

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// cleanupWithin is how long the end of a turn may take before a session is let go of all the same.
const cleanupWithin = 10 * time.Second

// sessionCancel ends what the client may end in a session. It is acted on in reading order.
func sessionCancel(k *call) {
	id, err := k.params.Session()
	if err != nil {
		if k.ID != nil {
			k.Fail(err)
		}
		return
	}
	k.c.mu.Lock()
	o := k.c.open[id]
	k.c.mu.Unlock()
	if o != nil {
		k.c.cancel(o.s)
	}
	k.OK(acp.Empty{})
}

// withdraw takes back the prompts of this connection in a session that are meant, and returns them. Those that wait go first: one that found the
// turn before it ended already would begin.
func (c *Conn) withdraw(id session.SessionID, meant func(*call) bool) []*call {
	flying := c.requests.All()
	c.mu.Lock()
	mine := slices.DeleteFunc(flying, func(k *call) bool { return k.session != id || k.prompt == nil || !meant(k) })
	c.mu.Unlock()
	slices.SortFunc(mine, func(a, b *call) int { return cmp.Compare(b.place, a.place) })
	for _, k := range mine {
		k.prompt.Withdraw("", func(error) {})
	}
	return mine
}

// cancel ends every prompt of this connection in a session, and an editor's turn that no connection's prompt covers (docs/protocol/acp.md
// section 2.5). It returns the prompts.
func (c *Conn) cancel(s *session.Session) []*call {
	mine := c.withdraw(s.ID, func(*call) bool { return true })
	ignore := func(error) {}
	s.Inspect(func(v *session.View) {
		t := v.Serial
		switch {
		case t == nil:
			if !v.Working() && v.Goal != nil && v.Goal.Status == session.GoalActive {
				s.Cancel(session.CancelRequest{Surface: "acp"}, ignore)
			}
		case c.uncovered(v, t):
			s.Cancel(session.CancelRequest{Turn: t.ID, Surface: "acp"}, ignore)
		}
	})
	return mine
}

// uncovered reports whether an open turn is an editor's that no connection's prompt covers.
func (c *Conn) uncovered(v *session.View, t *session.OpenTurn) bool {
	if !t.Started || t.Surface == protocol.SurfacePortable || c.d.isCovered(t.ID) {
		return false
	}
	return v.Hosted || t.Origin != protocol.OriginUser || !v.Alive() // else a prompt of another process, which may be waiting for consent
}

// dismissed ends the turn whose dialog the client closed without an answer, where session/cancel of this connection would. Prompts behind that
// turn stay: a client that stops one and sends the next may close the dialog of the first after that (docs/protocol/acp.md section 2.7).
func (c *Conn) dismissed(s *session.Session, turn session.TurnID, done func(error)) {
	c.withdraw(s.ID, func(k *call) bool { return k.turn == turn })
	if !s.Inspect(func(v *session.View) {
		if t := v.Serial; t != nil && t.ID == turn && c.uncovered(v, t) {
			s.Cancel(session.CancelRequest{Turn: turn, Surface: "acp"}, done)
			return
		}
		done(nil)
	}) {
		done(nil)
	}
}

// ended waits until the prompts were answered and the turn of a session has ended.
func (c *Conn) ended(ctx context.Context, s *session.Session, prompts []*call) {
	for _, k := range prompts {
		select {
		case <-k.left:
		case <-ctx.Done():
			return
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		hosted := false
		if s.InspectNow(ctx, func(v *session.View) { hosted = v.Hosted && v.Serial != nil && v.Serial.Cancel != nil }) != nil || !hosted {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// toldAll waits until the connection was told what the log of a session holds: what follows removes it.
func (c *Conn) toldAll(ctx context.Context, s *session.Session) {
	var head session.Seq
	if s.InspectNow(ctx, func(v *session.View) { head = v.Head }) != nil {
		return
	}
	told := make(chan struct{})
	c.out.Hold(&outlet.Hold{
		Stream: string(s.ID), Seq: head, Exact: true,
		Lead: func(buf []byte, _ outlet.Stream) []byte { // behind the answers that waited for less
			close(told)
			return buf
		},
	})
	select {
	case <-told:
	case <-c.out.Done():
	case <-ctx.Done():
	}
}

// release takes a session out of those that are open here; nil when it is not.
func (c *Conn) release(id session.SessionID) *opened {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open[id]
	delete(c.open, id)
	return o
}

// keep puts a session back that was released; false when it was opened anew meanwhile.
func (c *Conn) keep(o *opened) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[o.s.ID] != nil {
		return false
	}
	c.open[o.s.ID] = o
	return true
}

// sessionClose cancels, waits for the last fact, lets go and answers.
func sessionClose(k *call) {
	o, err := k.opened()
	if err != nil {
		k.Fail(err)
		return
	}
	s, c := o.s, k.c
	prompts := c.cancel(s)
	c.release(s.ID)
	k.Background(func() {
		ctx, stop := context.WithTimeout(context.Background(), cleanupWithin)
		defer stop()
		c.ended(ctx, s, prompts)
		c.forget(s.ID)
		var head session.Seq
		_ = s.InspectNow(ctx, func(v *session.View) { head = v.Head })
		letGo := func() {
			c.mu.Lock()
			again := c.open[s.ID] != nil // opened anew meanwhile
			c.mu.Unlock()
			if !again {
				c.out.Unfollow(string(s.ID))
			}
			s.Close()
		}
		if !k.Answer(func() {
			k.Out.Hold(&outlet.Hold{
				Stream: string(s.ID), Seq: head, Exact: true, ID: k.ID,
				Reply: func(outlet.Stream) (any, error) { return acp.Empty{}, nil }, Written: letGo,
			})
		}) {
			letGo() // the request was taken back: the session is closed all the same
		}
	})
}

// sessionDelete cancels and removes a session and its bytes; one that is not there is deleted already.
func sessionDelete(k *call) {
	id, err := k.params.Session()
	if err != nil {
		k.Fail(err)
		return
	}
	c := k.c
	o := c.release(id)
	var prompts []*call
	if o != nil {
		prompts = c.cancel(o.s)
	}
	k.Background(func() {
		ctx, stop := context.WithTimeout(context.Background(), cleanupWithin)
		defer stop()
		if o != nil {
			c.ended(ctx, o.s, prompts)
			c.forget(id)
			c.toldAll(ctx, o.s)
		}
		var err error
		if protocol.ValidSessionID(string(id)) {
			err = c.d.cfg.Sessions.Delete(ctx, id)
		}
		if o != nil && protocol.KindOf(err) == protocol.SessionBusy && c.keep(o) { // refused: it is there, and open here as before
			k.Fail(err)
			return
		}
		if o != nil {
			c.out.Unfollow(string(id))
			o.s.Close()
		}
		if protocol.KindOf(err) == protocol.SessionNotFound {
			err = nil
		}
		k.Settle(acp.Empty{}, err)
	})
}

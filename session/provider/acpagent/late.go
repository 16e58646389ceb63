package acpagent

import (
	"context"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// This file is the turn of its own that what an agent says after its answer opens (docs/protocol/acp.md section 5.2).

// wake starts a turn for what came late; ho.mu is held.
func (ho *host) wake(c *child) {
	if ho.waking || ho.closed {
		return
	}
	ho.waking = true
	after := ho.last
	go ho.hosts.all.Aside(ho.id, after, func(ctx context.Context, t *session.Turn) (string, error) { return ho.lateTurn(ctx, c, t) }, ho.woken) // does not wait
}

// woken ends a turn for what came late, also one that could not be started.
func (ho *host) woken(err error) {
	ho.mu.Lock()
	defer ho.mu.Unlock()
	ho.waking = false
	if err != nil && protocol.KindOf(err) != protocol.TurnActive { // somebody else answers the session by now
		ho.late.lose()
	}
}

// lateTurn is a turn of what the child says after its answer; it ends after a while of quiet, or when somebody wants the lane.
func (ho *host) lateTurn(ctx context.Context, c *child, t *session.Turn) (string, error) {
	defer ho.enter(t)()
	c.touch()
	return newTalk(ho, c, t).during(ctx, func() (string, error) {
		c.untilQuiet(ctx, ho.cfg.times.late, t.Hurry())
		return "", context.Cause(ctx)
	})
}

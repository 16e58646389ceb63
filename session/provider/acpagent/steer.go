package acpagent

import (
	"context"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// This file gives a child that is another rind what the person says while it works (docs/protocol/acp.md sections 4 and 5.6).

// given is an input the child was given. It is part of the conversation when the child shows it as said, at the latest with its answer.
type given struct {
	id, text string
	theirs   string // the child's id of it; "" until it answered
	arrived  bool
}

// ring says that an input may wait. It does not block.
func (k *talk) ring() {
	select {
	case k.rung <- struct{}{}:
	default:
	}
}

// steerable gives the child what the person says while it answers, where it takes that. end stops and waits; it may be called again.
func (k *talk) steerable() (end func()) {
	if !k.c.about.Steer {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // ends with stop, within the bound of a call
		defer close(ended)
		k.steers(ctx)
	}()
	return func() {
		stop()
		<-ended
	}
}

// steers gives the child what waits for it, in order, until ctx ends or it does not take one: that is said when its answer ends.
func (k *talk) steers(ctx context.Context) {
	for ctx.Err() == nil {
		in, err := k.t.Hand()
		switch {
		case err != nil:
			return
		case in != nil:
			if !k.hand(in) {
				return
			}
		default:
			select {
			case <-k.rung:
			case <-ctx.Done():
			}
		}
	}
}

// hand gives the child one input; false when it does not take it.
func (k *talk) hand(in *session.Input) bool {
	g := &given{id: in.ID, text: in.Text}
	k.mu.Lock()
	k.given = append(k.given, g) // it may show it before it answers
	k.mu.Unlock()
	theirs, err := k.steer(in)
	k.mu.Lock()
	g.theirs = theirs
	refused := err != nil && !g.arrived
	if refused {
		k.given = slices.DeleteFunc(k.given, func(o *given) bool { return o == g })
	}
	k.mu.Unlock()
	if refused {
		k.host.cfg.Log.Info("a hosted agent did not take a steering", "session", k.host.id, "err", k.c.mask(err.Error()))
		_ = k.t.TakeBack(in.ID) // an error is the end of the turn
	}
	return !refused
}

// steer asks the child to take one input. It is waited for beyond the end of the turn's context: whether it was taken must be known.
func (k *talk) steer(in *session.Input) (theirs string, err error) {
	blocks, err := acp.PromptBlocks(&k.c.about, nil, in.Text, in.Parts)
	if err != nil {
		return "", err
	}
	raw, err := k.c.within(context.Background(), k.host.cfg.times.cancel, acp.MethodSteer, object{"sessionId": k.c.session().ID, "prompt": blocks})
	if err != nil {
		return "", err
	}
	return acp.HostQueued(raw), nil
}

// shows reports whether the child shows an input it was given, as far as can be told.
func (g *given) shows(u *acp.HostUpdate, text string) bool {
	if g.theirs != "" {
		return u.MessageID == g.theirs
	}
	return strings.Contains(g.text, text)
}

// userChunk takes what the child shows as said by the person: an input it was given is part of the conversation now, an echo of the prompt is
// nothing new. k.mu is held.
func (k *talk) userChunk(u *acp.HostUpdate) {
	b := acp.ReadHostBlock(u.Content)
	for _, g := range k.given {
		if g.shows(u, b.Text) {
			k.arrives(g)
			return
		}
	}
	if !k.prompt.echoes(&b) {
		k.event(u)
	}
}

// arrives records that an input is part of the conversation. k.mu is held.
func (k *talk) arrives(g *given) {
	if g.arrived {
		return
	}
	g.arrived = true
	k.flush()
	if err := k.t.Arrived(g.id); !k.halted() {
		k.fails(err)
	}
}

// settleGiven says what became of the inputs the child was given, once its answer is there: those it dropped wait again.
func (k *talk) settleGiven(dropped []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.given {
		if !g.arrived && slices.Contains(dropped, g.theirs) {
			_ = k.t.TakeBack(g.id) // an error is the end of the turn
			continue
		}
		k.arrives(g)
	}
	k.given = nil
}

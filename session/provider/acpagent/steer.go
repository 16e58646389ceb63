package acpagent

import (
	"context"
	"slices"
	"strings"
	"time"

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
		if err != nil {
			return
		}
		if in == nil {
			select {
			case <-k.rung:
				continue
			case <-ctx.Done():
				return
			}
		}
		g := &given{id: in.ID, text: in.Text}
		k.mu.Lock()
		k.given = append(k.given, g)
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
			k.host.hosts.cfg.Log.Info("a hosted agent did not take a steering", "session", k.host.id, "err", k.c.mask(err.Error()))
			_ = k.t.TakeBack(in.ID) // an error is the end of the turn
			return
		}
	}
}

// steer asks the child to take one input. It is waited for beyond the end of the turn's context: whether it was taken must be known.
func (k *talk) steer(in *session.Input) (theirs string, err error) {
	blocks, err := acp.PromptBlocks(&k.c.about, nil, in.Text, in.Parts)
	if err != nil {
		return "", err
	}
	raw, err := k.c.within(context.Background(), k.host.hosts.cfg.times.cancel, acp.MethodSteer, object{"sessionId": k.c.session().ID, "prompt": blocks})
	if err != nil {
		return "", err
	}
	return acp.HostQueued(raw), nil
}

// userChunk takes what the child shows as said by the person: an input it was given is part of the conversation now, an echo of the prompt is
// nothing new. k.mu is held.
func (k *talk) userChunk(u *acp.HostUpdate) {
	b := acp.ReadHostBlock(u.Content)
	for _, g := range k.given {
		if g.theirs != "" && g.theirs != u.MessageID || g.theirs == "" && !strings.Contains(g.text, b.Text) {
			continue
		}
		k.arrives(g)
		return
	}
	if strings.Contains(k.said, b.Text) && b.Plain || !b.Plain && k.parts {
		return
	}
	k.event(u)
}

// arrives records that an input is part of the conversation. k.mu is held.
func (k *talk) arrives(g *given) {
	if g.arrived {
		return
	}
	g.arrived = true
	k.flush()
	if err := k.t.Arrived(g.id); err != nil && k.err == nil && !k.halted {
		k.err = err
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

// begins keeps what the child is asked, to know it again where the child repeats it; text is the person's part of it.
func (k *talk) begins(blocks []acp.Content, text string) {
	var said strings.Builder
	parts := false
	for _, b := range blocks {
		if b.Type == "text" && b.Text != nil {
			said.WriteString(*b.Text)
		} else {
			parts = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said, k.parts = said.String(), parts
	k.asksToCompact = strings.HasPrefix(strings.TrimSpace(text), "/compact")
	k.heard = time.Now()
}

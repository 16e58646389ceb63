package acpagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Stop reasons we return for those of an agent.
var stops = map[string]string{
	"end_turn": "end_turn", "max_tokens": "max_tokens", "max_turn_requests": "max_turn_requests", "refusal": "content_filter",
}

const recapIntro = "This conversation began before you joined it. What was said and done so far, as the record has it:\n\n"

// answered is what a child was seen to do that answered a prompt.
const answered = "answered"

// turn answers one turn.
func (ho *host) turn(ctx context.Context, spec Spec, t *session.Turn, said *session.Said) (string, error) {
	defer ho.enter(t)()
	c, recap, err := ho.ready(ctx, spec, t, said)
	if err != nil {
		return "", err
	}
	c.settle(ctx, t)
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	before := said.Context
	if recap != "" {
		before = append([]string{recapIntro + recap}, before...)
	}
	k := newTalk(ho, c, t)
	k.unasked = said.Unasked || ho.cfg.Unattended
	stop, err := k.during(ctx, func() (string, error) {
		return k.converse(ctx, before, &session.Input{Text: said.Text, Parts: said.Parts})
	})
	ho.learn(c)
	return stop, err
}

// during runs f while k is the turn that is being answered; what is open in it is closed then.
func (k *talk) during(ctx context.Context, f func() (string, error)) (string, error) {
	k.host.begin(k)
	stop, err := f()
	cancelled := context.Cause(ctx) != nil
	k.host.over(cancelled)
	rest := protocol.ToolFailed
	if cancelled {
		rest = protocol.ToolCancelled
	}
	if fault := k.close(rest); err == nil {
		err = fault
	}
	return stop, err
}

// converse puts the prompt to the child, and after its answer what waits for the end of it.
func (k *talk) converse(ctx context.Context, before []string, in *session.Input) (string, error) {
	if k.c.about.Steer {
		if err := k.t.Steering(k.ring); err != nil {
			return "", err
		}
	}
	for {
		stop, err := k.answer(ctx, before, in)
		if err != nil || stop != stops["end_turn"] {
			return stop, err
		}
		k.pause()
		if in, err = k.next(); in == nil || err != nil {
			return stop, err
		}
		before = nil
	}
}

// next is what is said in the same turn behind an answer: a steering the child did not take any more, else a follow-up; nil when the turn ends.
func (k *talk) next() (*session.Input, error) {
	for {
		for _, mode := range []string{protocol.ModeSteering, protocol.ModeFollowUp} {
			if in, err := k.t.Deliver(mode); in != nil || err != nil {
				return in, err
			}
		}
		if last, err := k.t.LastCall(); last || err != nil {
			return nil, err
		}
	}
}

// outcome is how a prompt ended.
type outcome struct {
	answer
	none    bool             // the child answered neither the prompt nor the cancel of it
	stalled *session.Failure // we cancelled it for this; nil where we did not
}

// answer puts one prompt to the child and waits for its end.
func (k *talk) answer(ctx context.Context, before []string, in *session.Input) (string, error) {
	blocks, err := acp.PromptBlocks(&k.c.about, before, in.Text, in.Parts)
	if err != nil {
		return "", fail(protocol.FailRejected, "The agent refused the prompt: "+err.Error()+".")
	}
	k.mu.Lock()
	k.prompt = promptOf(blocks, in.Text)
	k.mu.Unlock()
	endSteering := k.steerable()
	defer endSteering()
	asking, stop := context.WithCancel(context.WithoutCancel(ctx)) // a cancel is said to the child, its answer is waited for
	defer stop()
	o := k.await(ctx, k.c.prompt(asking, blocks))
	if o.none {
		return "", k.unanswered(ctx, &o)
	}
	endSteering()
	if o.err != nil && !k.c.usable() {
		return "", k.broke(ctx, &o)
	}
	return k.ended(ctx, &o)
}

// prompt asks the child to answer; what is returned gets the answer, or why there is none.
func (c *child) prompt(ctx context.Context, blocks []acp.Content) <-chan answer {
	ch := make(chan answer, 1)
	c.touch()
	go func() { // ends with the prompt's answer, or with the child
		result, err := c.call(ctx, acp.MethodPrompt, object{"sessionId": c.session().ID, "prompt": blocks})
		ch <- answer{result, err}
	}()
	return ch
}

// await waits for the answer to a prompt. One that is cancelled, or whose child is silent for too long, is cancelled there and waited for a while.
func (k *talk) await(ctx context.Context, answers <-chan answer) (o outcome) {
	times := &k.host.cfg.times
	silence := time.NewTicker(max(times.stall/20, time.Millisecond))
	defer silence.Stop()
	var bound <-chan time.Time // of the waiting, once it was cancelled there
	cancelled := ctx.Done()
	for {
		select {
		case o.answer = <-answers:
			return o
		case <-cancelled:
			cancelled = nil
			most := times.cancel
			if errors.Is(context.Cause(ctx), session.ErrShutdown) {
				most = times.shutdown
			}
			bound = k.cancel(most)
		case <-silence.C:
			if bound == nil && k.c.stalled(times.stall) {
				o.stalled = fail(protocol.FailStalled, fmt.Sprintf("The agent said nothing for %s and was stopped.", times.stall))
				bound = k.cancel(times.cancel)
			}
		case <-bound:
			o.none = true
			return o
		}
	}
}

// cancel says to the child that the turn is cancelled, and returns what comes when its answer is not waited for any longer.
func (k *talk) cancel(most time.Duration) <-chan time.Time {
	k.halt()
	k.c.notify(acp.MethodCancel, object{"sessionId": k.c.session().ID})
	return time.After(most)
}

// unanswered ends a child that does not even answer a cancel.
func (k *talk) unanswered(ctx context.Context, o *outcome) error {
	k.host.cfg.Log.Info("a hosted agent does not end its turn and is killed", "session", k.host.id)
	k.c.seenTo("killed")
	k.host.drop(k.c)
	k.c.kill()
	if o.stalled != nil {
		return o.stalled
	}
	return context.Cause(ctx)
}

// broke ends a child that cannot be used any more.
func (k *talk) broke(ctx context.Context, o *outcome) error {
	k.host.drop(k.c)
	defer k.c.kill()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if o.stalled != nil {
		return o.stalled
	}
	fault := k.c.breakFault(k.c.why())
	k.host.count(fault)
	return fault
}

// ended turns the answer to a prompt into the end of the turn.
func (k *talk) ended(ctx context.Context, o *outcome) (string, error) {
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return "", cause
	case o.stalled != nil:
		return "", o.stalled
	case o.err != nil:
		return "", k.c.promptFault(o.err)
	}
	k.c.seenTo(answered)
	s := acp.ReadHostStop(o.result)
	k.settleGiven(s.Dropped)
	if s.Usage != nil {
		k.used(s.Usage)
	}
	if stop, ok := stops[s.Reason]; ok {
		return stop, nil
	}
	if s.Reason == "cancelled" {
		return "", session.ErrAgentCancelled
	}
	k.t.Note(k.c.providerEvent(acp.MethodPrompt, o.result))
	return stops["end_turn"], nil
}

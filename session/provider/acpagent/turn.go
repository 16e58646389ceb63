package acpagent

import (
	"context"
	"encoding/json"
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

// turn answers one turn.
func (ho *host) turn(ctx context.Context, spec Spec, t *session.Turn, said *session.Said) (string, error) {
	ho.turns.Lock()
	defer ho.turns.Unlock()
	defer ho.rest()
	defer ho.answered(t)
	c, recap, err := ho.ensure(ctx, spec, t, said)
	if err != nil {
		return "", err
	}
	c.settle(ctx, t)
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	k := newTalk(ho, c, t)
	k.unasked = said.Unasked || ho.hosts.cfg.Unattended
	ho.begin(k)
	c.flushEarly()
	if c.about.Steer {
		if err := t.Steering(k.ring); err != nil {
			return "", err
		}
	}
	before := said.Context
	if recap != "" {
		before = append([]string{recapIntro + recap}, before...)
	}
	stop, err := ho.answer(ctx, k, before, said.Text, said.Parts)
	for err == nil && stop == stops["end_turn"] { // what waits for the end of the answer is said in the same turn
		k.pause()
		var more *session.Input
		if more, err = t.Deliver(protocol.ModeSteering); err == nil && more == nil { // one the child did not take any more
			more, err = t.Deliver(protocol.ModeFollowUp)
		}
		if err != nil {
			break
		}
		if more == nil {
			var last bool
			if last, err = t.LastCall(); last || err != nil {
				break
			}
			continue
		}
		stop, err = ho.answer(ctx, k, nil, more.Text, more.Parts)
	}
	cancelled := context.Cause(ctx) != nil
	ho.over(k, cancelled)
	rest := protocol.ToolFailed
	if cancelled {
		rest = protocol.ToolCancelled
	}
	if kerr := k.close(rest); err == nil {
		err = kerr
	}
	ho.learn(c)
	return stop, err
}

const recapIntro = "This conversation began before you joined it. What was said and done so far, as the record has it:\n\n"

// answer puts one prompt to the child and waits for its end.
func (ho *host) answer(ctx context.Context, k *talk, before []string, text string, parts []protocol.Part) (string, error) {
	c := k.c
	blocks, err := acp.PromptBlocks(&c.about, before, text, parts)
	if err != nil {
		return "", fail(protocol.FailRejected, "The agent refused the prompt: "+err.Error()+".")
	}
	k.begins(blocks, text)
	given := k.steerable()
	defer given()
	type end struct {
		result json.RawMessage
		err    error
	}
	ended := make(chan end, 1)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx)) // a cancel is said to the child, its answer is waited for
	defer stop()
	c.touch()
	go func() { // ends with the prompt's answer, or with the child
		result, err := c.call(asking, acp.MethodPrompt, object{"sessionId": c.session().ID, "prompt": blocks})
		ended <- end{result, err}
	}()
	stall := time.NewTicker(max(ho.hosts.cfg.times.stall/20, time.Millisecond))
	defer stall.Stop()
	var failure *session.Failure // what it was cancelled for, by us
	var bound <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case e := <-ended:
			given()
			return ho.ended(ctx, k, e.result, e.err, failure)
		case <-done:
			done = nil
			most := ho.hosts.cfg.times.cancel
			if errors.Is(context.Cause(ctx), session.ErrShutdown) {
				most = ho.hosts.cfg.times.shutdown
			}
			bound = k.cancel(most)
		case <-stall.C:
			if failure != nil || done == nil || !c.stalled(ho.hosts.cfg.times.stall) {
				continue
			}
			failure = fail(protocol.FailStalled, fmt.Sprintf("The agent said nothing for %s and was stopped.", ho.hosts.cfg.times.stall))
			bound = k.cancel(ho.hosts.cfg.times.cancel)
		case <-bound:
			ho.hosts.cfg.Log.Info("a hosted agent does not end its turn and is killed", "session", ho.id)
			c.seenTo("killed")
			ho.drop(c)
			c.kill()
			if failure != nil {
				return "", failure
			}
			return "", context.Cause(ctx)
		}
	}
}

// ended turns the answer to a prompt into the end of the turn.
func (ho *host) ended(ctx context.Context, k *talk, result json.RawMessage, err error, failure *session.Failure) (string, error) {
	c := k.c
	cause := context.Cause(ctx)
	if err != nil && !c.usable() { // it broke
		why := c.why()
		ho.drop(c)
		if !errors.Is(why, errClosed) {
			c.notify(acp.MethodCancel, object{"sessionId": c.session().ID})
			c.kill()
		}
		if cause != nil {
			c.kill()
			return "", cause
		}
		if failure == nil {
			fault := c.crashed(why, !c.hasAnswered())
			failure, _ = errors.AsType[*session.Failure](fault)
			if failure != nil && failure.Type == protocol.FailCrashed {
				ho.crash()
			}
		}
		c.kill()
		return "", failure
	}
	switch {
	case cause != nil:
		c.seenTo("cancelled")
		return "", cause
	case failure != nil:
		return "", failure
	case isAuth(err):
		return "", c.noCredentials(err)
	case err != nil:
		if e, ok := errors.AsType[*protocol.Error](err); ok {
			return "", fail(protocol.FailRejected, "The agent failed: "+c.errorText(e))
		}
		return "", fail(protocol.FailUnavailable, "The agent failed: "+oneLine(c.mask(err.Error()), 500))
	}
	c.answered()
	s := acp.ReadHostStop(result)
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
	k.t.Note(providerEvent(c.spec.Provider, acp.MethodPrompt, result))
	return stops["end_turn"], nil
}

// touch counts now as the last time the child was heard of.
func (c *child) touch() {
	c.mu.Lock()
	c.heard = time.Now()
	c.mu.Unlock()
}

// stalled reports whether the child has said nothing for that long, and waits for nothing from us.
func (c *child) stalled(most time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests) == 0 && time.Since(c.heard) > most
}

// seenTo keeps what the child was seen to do, for its manifest.
func (c *child) seenTo(what string) {
	c.mu.Lock()
	c.seen[what] = true
	c.mu.Unlock()
}

func (c *child) answered() { c.seenTo("answered") }

func (c *child) hasAnswered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen["answered"]
}

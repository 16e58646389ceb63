package acp_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
)

// TestACommandWithAKeyIsRunOnce, for two who ask at one time, for one who asks again, and for one who asks in the next process,
// however this one ended.
func TestACommandWithAKeyIsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, held := 0, make(chan struct{})
		cfg := acp.Config{Trust: func(string) ([]string, error) {
			runs++
			<-held
			return nil, nil
		}}
		w := peers.NewWorld()
		p := launchWith(t, w, "i1", touching, cfg)
		c := p.start(`{}`)
		id := c.fresh()
		first := c.ask("session/prompt", keyed(prompting(id, "/trust"), "k1"))
		second := c.ask("session/prompt", keyed(prompting(id, "/trust"), "k1"))
		c.refused(-32051, "session/prompt", keyed(prompting(id, "/rename other"), "k1"))
		c.refused(-32051, "session/prompt", keyed(prompting(id, "no command"), "k1"))
		close(held)
		h, told := c.answer(first)
		if stopOf(h) != "end_turn" || strings.Contains(h.raw, "replayed") || !strings.HasPrefix(said(told, "agent_message_chunk"), "Trusted: /w") {
			t.Errorf("the first is answered %s", h.raw)
		}
		again := func(h *heard, told []*heard) {
			t.Helper()
			if stopOf(h) != "end_turn" || !strings.Contains(h.raw, `"rind/replayed":true`) || said(told, "agent_message_chunk") != "" {
				t.Errorf("asked again: %s, and said %q", h.raw, said(told, "agent_message_chunk"))
			}
		}
		again(c.answer(second))
		again(c.call("session/prompt", keyed(prompting(id, "/trust"), "k1")))
		p.kill()
		p = launchWith(t, w, "i2", touching, cfg)
		c = p.start(`{}`)
		c.call("session/load", loading(id))
		again(c.call("session/prompt", keyed(prompting(id, "/trust"), "k1")))
		if runs != 1 {
			t.Errorf("it ran %d times", runs)
		}
		if _, told := c.call("session/prompt", keyed(prompting(id, "/trust"), "k2")); runs != 2 || said(told, "agent_message_chunk") == "" {
			t.Errorf("with another key it ran %d times in all", runs)
		}
		p.end()
	})
}

// TestACommandThatOnlyShowsIsAnsweredEachTime: who lost the answer wants to see it.
func TestACommandThatOnlyShowsIsAnsweredEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "i1", touching)
		c := p.start(`{}`)
		id := c.fresh()
		for range 2 {
			if _, told := c.call("session/prompt", keyed(prompting(id, "/status"), "k1")); !strings.HasPrefix(said(told, "agent_message_chunk"), "Session ") {
				t.Errorf("said %q", said(told, "agent_message_chunk"))
			}
		}
		p.end()
	})
}

// TestOfACommandWhoseProcessDiedNobodyIsToldThatItWasDone, nor is it run again.
func TestOfACommandWhoseProcessDiedNobodyIsToldThatItWasDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, held := 0, make(chan struct{})
		cfg := acp.Config{Trust: func(string) ([]string, error) {
			runs++
			<-held
			return nil, nil
		}}
		w := peers.NewWorld()
		p := launchWith(t, w, "i1", touching, cfg)
		c := p.start(`{}`)
		id := c.fresh()
		c.ask("session/prompt", keyed(prompting(id, "/trust"), "k1"))
		synctest.Wait()
		p.Store.Kill()
		close(held)
		p.end()
		p = launchWith(t, w, "i2", touching, cfg)
		c = p.start(`{}`)
		c.call("session/load", loading(id))
		h, _ := c.call("session/prompt", keyed(prompting(id, "/trust"), "k1"))
		if stopOf(h) != "cancelled" || !strings.Contains(h.raw, `"rind/turn":{"status":"interrupted"}`) || runs != 1 {
			t.Errorf("asked again: %s; it ran %d times", h.raw, runs)
		}
		p.end()
	})
}

// TestACompactionWithAKeyIsCancelledLikeOneWithout: at once and while it runs; what is not cancelled is done once.
func TestACompactionWithAKeyIsCancelledLikeOneWithout(t *testing.T) {
	const play = `{"turns":[{"match":"hello","steps":[{"text":"Hello."}]},{"match":"The conversation is about","steps":[{"hang":true},{"text":"Summary."},{"finish":"stop"}]}]}`
	for _, atOnce := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := launch(t, peers.NewWorld(), "i1", play)
			c := p.start(`{}`)
			id := c.fresh()
			c.call("session/prompt", prompting(id, "hello"))
			at := c.ask("session/prompt", keyed(prompting(id, "/compact"), "k1"))
			if !atOnce {
				synctest.Wait()
			}
			c.tell("session/cancel", named(id))
			if h, _ := c.answer(at); stopOf(h) != "cancelled" {
				t.Errorf("cancelled, at once %v: %s", atOnce, h.raw)
			}
			if !atOnce {
				for _, replayed := range []bool{false, true} {
					h, told := c.call("session/prompt", keyed(prompting(id, "/compact"), "k2"))
					if words := said(told, "agent_message_chunk"); stopOf(h) != "end_turn" || strings.Contains(h.raw, "replayed") != replayed || strings.Contains(words, "is a summary for the model now") == replayed {
						t.Errorf("to its end, replayed %v: %s, said %q", replayed, h.raw, words)
					}
				}
			}
			p.end()
		})
	}
}

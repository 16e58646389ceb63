package acp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

func TestASessionThatWasNeverPromptedIsThereForTheNextProcessAndInNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		c := p.start(`{}`)
		id := c.fresh()
		c.call("session/set_mode", `{"sessionId":"`+id+`","modeId":"edit"}`)
		p.kill()

		p = launch(t, w, "i2", touching)
		c = p.start(`{}`)
		if h, _ := c.call("session/list", `{}`); strings.Contains(h.raw, id) {
			t.Errorf("listed: %s", h.raw)
		}
		if h, _ := c.call("session/load", loading(id)); !strings.Contains(h.raw, `"currentModeId":"edit"`) {
			t.Errorf("loaded as %s", h.raw)
		}
		if h, _ := c.call("session/prompt", prompting(id, "next")); stopOf(h) != "end_turn" {
			t.Errorf("prompt: %s", h.raw)
		}
		if h, _ := c.call("session/list", `{}`); !strings.Contains(h.raw, id) {
			t.Errorf("not listed: %s", h.raw)
		}
		p.end()
	})
}

func TestASessionThatWasNeverPromptedGoesAfterADayAndIsThereAgainWhereItIsStillOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		first := launch(t, w, "i1", touching)
		c := first.start(`{}`)
		idle, open, used := c.fresh(), c.fresh(), c.fresh()
		c.call("session/set_mode", `{"sessionId":"`+open+`","modeId":"edit"}`)
		c.call("session/prompt", prompting(used, "next"))
		other, err := first.All.Draft(t.Context(), session.DraftOptions{Workspace: "/w"}) // as another surface keeps one
		if err == nil {
			err = other.Keep(t.Context(), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		other.Close()
		c.call("session/close", named(idle))
		young := func(age time.Duration, there bool) {
			time.Sleep(age)
			p := launch(t, w, "i2"+age.String(), touching)
			d := p.start(`{}`)
			d.fresh()
			time.Sleep(time.Second)
			for _, id := range []string{idle, open} {
				if _, err := p.Store.Session(context.Background(), session.SessionID(id)); (err == nil) != there {
					t.Errorf("after %v session %s: %v", age, id, err)
				}
			}
			for _, id := range []session.SessionID{session.SessionID(used), other.ID} {
				if _, err := p.Store.Session(context.Background(), id); err != nil {
					t.Errorf("after %v session %s: %v", age, id, err)
				}
			}
			p.end()
		}
		young(23*time.Hour, true)
		young(2*time.Hour, false)
		c.refused(-32002, "session/load", loading(idle))
		if h, told := c.call("session/prompt", prompting(open, "next")); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "The next." {
			t.Errorf("prompt: %s", h.raw)
		}
		first.end()

		p := launch(t, w, "i3", touching)
		c = p.start(`{}`)
		h, replay := c.call("session/load", loading(open))
		if said(replay, "user_message_chunk") != "next" || !strings.Contains(h.raw, `"currentModeId":"edit"`) {
			t.Errorf("loaded as %s\n%s", h.raw, c.heardSince(0))
		}
		p.end()
	})
}

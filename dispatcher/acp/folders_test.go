package acp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

// resolve knows one link and one folder that is gone.
func resolve(path string) (string, error) {
	switch {
	case strings.HasPrefix(path, "/gone"):
		return "", errors.New("no such folder")
	case path == "/link":
		return "/shared", nil
	}
	return path, nil
}

func in(method, id, more string) (string, string) {
	return "session/" + method, fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[],"additionalDirectories":%s}`, id, more)
}

// where asks a tool for the folders it may touch.
func (c *client) where(id string) string {
	c.T.Helper()
	_, told := c.call("session/prompt", prompting(id, "where"))
	for _, h := range told {
		if _, after, ok := strings.Cut(h.raw, `"data":"`); ok {
			folders, _, _ := strings.Cut(after, `"`)
			return folders
		}
	}
	c.T.Errorf("no folders in\n%s", c.heardSince(0))
	return ""
}

func TestAdditionalDirectoriesAreRootsOfThatSessionOnlyAsLongAsTheyAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		cfg := acp.Config{Resolve: resolve, Unstable: true}
		p := launchWith(t, w, "i1", touching, cfg)
		c := p.start(`{}`)
		for _, bad := range []string{`["x"]`, `[7]`, `"/x"`, `["/gone"]`} {
			c.refused(-32602, "session/new", `{"cwd":"/w","mcpServers":[],"additionalDirectories":`+bad+`}`)
		}
		h, _ := c.call("session/new", `{"cwd":"/w","mcpServers":[],"additionalDirectories":["/link","/x","/w","/shared"]}`)
		id := between(h.raw, `"sessionId":"`, `"`)
		plain := c.fresh()
		if a, b := c.where(id), c.where(plain); a != "/w /shared /x" || b != "/w" {
			t.Errorf("roots %q, of the other session %q", a, b)
		}
		if h, _ := c.call("session/list", `{}`); strings.Count(h.raw, "additionalDirectories") != 1 || !strings.Contains(h.raw, `"additionalDirectories":["/link","/x","/w","/shared"]`) {
			t.Errorf("list: %s", h.raw)
		}
		p.kill()

		p = launchWith(t, w, "i2", touching, cfg)
		c = p.start(`{}`)
		if h, _ := c.call("session/list", `{}`); !strings.Contains(h.raw, `"additionalDirectories":["/shared","/x"]`) {
			t.Errorf("list: %s", h.raw)
		}
		c.call(in("load", id, `["/gone/since","/y"]`))
		if got := c.where(id); got != "/w /y" {
			t.Errorf("after a load with another list: %q", got)
		}
		h, _ = c.call(in("fork", id, `["/z"]`))
		if got := c.where(between(h.raw, `"sessionId":"`, `"`)); got != "/w /z" {
			t.Errorf("of a fork: %q", got)
		}
		c.call(in("resume", id, `null`))
		if got := c.where(id); got != "/w" {
			t.Errorf("after a resume without a list: %q", got)
		}
		p.kill()

		p = launchWith(t, w, "i3", touching, cfg)
		c = p.start(`{}`)
		if h, _ := c.call("session/list", `{}`); strings.Count(h.raw, "additionalDirectories") != 1 {
			t.Errorf("list: %s", h.raw)
		}
		p.end()
	})
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestAForkKnowsWhatWasSaidAndIsOfferedOnlyWhereAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", touching, acp.Config{Unstable: true})
		c := p.connect()
		h, _ := c.call("initialize", `{"protocolVersion":1}`)
		if !strings.Contains(h.raw, `"fork":{}`) {
			t.Errorf("initialize: %s", h.raw)
		}
		id := c.fresh()
		c.call("session/prompt", prompting(id, "next"))
		h, passed := c.call("session/fork", loading(id))
		fork := between(h.raw, `"sessionId":"`, `"`)
		if fork == id || !strings.Contains(h.raw, `"configOptions":[`) || len(calls(passed)) > 0 {
			t.Errorf("fork: %s", h.raw)
		}
		c.until("its commands", func(h *heard) bool {
			return h.Params.SessionID == fork && h.Params.Update.SessionUpdate == "available_commands_update"
		})
		if h, told := c.call("session/prompt", prompting(fork, "where")); stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != "There." {
			t.Errorf("%s", h.raw)
		}
		_, replay := c.call("session/load", loading(fork))
		if got := said(replay, "user_message_chunk") + "|" + said(replay, "agent_message_chunk"); got != "nextwhere|The next.There." {
			t.Errorf("the fork holds %q", got)
		}
		_, replay = c.call("session/load", loading(id))
		if got := said(replay, "user_message_chunk"); got != "next" {
			t.Errorf("its parent holds %q", got)
		}
		c.refused(-32002, "session/fork", loading("none"))
		c.refused(-32602, "session/fork", fmt.Sprintf(`{"sessionId":%q,"cwd":"/elsewhere","mcpServers":[]}`, id))
		ask := c.ask("session/prompt", prompting(id, "stay"))
		c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
		c.refused(-32050, "session/fork", loading(id))
		c.tell("session/cancel", named(id))
		c.answer(ask)
		p.end()
	})
}

// keyless has no credentials for what is not in open.
type keyless struct {
	peers.Scripted
	open map[string]bool
}

func (m keyless) Select(ctx context.Context, sel session.Selection) (session.Selected, error) {
	if !m.open[sel.Model] {
		return session.Selected{}, &session.ModelError{Fault: session.FaultConfig, Message: "No API key: KEY is not set. Set it, or run rind login."}
	}
	return m.Scripted.Select(ctx, sel)
}

func TestASessionIsLoadedAsLongAsSomeModelCanBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "i1", touching)
		c := p.start(`{}`)
		id := c.fresh()
		c.call("session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":"model","value":"play/m-2"}`, id))
		c.call("session/prompt", prompting(id, "next"))
		p.end()
		for i, can := range []struct {
			open      map[string]bool
			load, new bool
		}{{map[string]bool{"m-2": true}, true, false}, {map[string]bool{"m-1": true}, true, true}, {map[string]bool{}, false, false}} {
			p := launchModels(t, w, fmt.Sprint("k", i), touching, acp.Config{}, func(m peers.Scripted) session.Models { return keyless{m, can.open} })
			c := p.start(`{}`)
			for method, params := range map[string]string{"session/load": loading(id), "session/resume": loading(id), "session/new": `{"cwd":"/w","mcpServers":[]}`} {
				h, _ := c.answer(c.ask(method, params))
				want := can.load
				if method == "session/new" {
					want = can.new
				}
				if (h.Error == nil) != want || h.Error != nil && h.Error.Code != -32000 {
					t.Errorf("%v, %s: %s", can.open, method, h.raw)
				}
			}
			p.end()
		}
	})
}

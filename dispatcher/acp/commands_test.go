package acp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
)

func TestCommandsAreNamedInOrderAndOnlyWhereTheyWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", touching, acp.Config{Trust: func(string) ([]string, error) { return nil, nil }})
		c := p.start(`{}`)
		c.fresh()
		h, _ := c.until("commands", func(h *heard) bool { return h.Params.Update.SessionUpdate == "available_commands_update" })
		var names []string
		for _, part := range strings.Split(h.raw, `"name":"`)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			names = append(names, name)
		}
		if want := []string{"compact", "init", "rename", "status", "trust"}; !slices.Equal(names, want) { // no policy, guide or undo here
			t.Errorf("commands %q, want %q", names, want)
		}
		p.end()
	})
}

func TestInitIsAPromptThatSaysWhatToWrite(t *testing.T) {
	const play = `{"turns":[{"match":"Initialize project RIND.md at /w/RIND.md","steps":[{"text":"Written."}]},{"match":"Initialize user RIND.md at /d/RIND.md","steps":[{"text":"For you."}]}]}`
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", play, acp.Config{DataRoot: "/d"})
		c := p.start(`{}`)
		id := c.fresh()
		for _, asked := range []struct{ command, said string }{{"/init", "Written."}, {"/init project", "Written."}, {"/init user", "For you."}, {"/init nonsense", "Usage: /init [project|user]"}} {
			h, told := c.call("session/prompt", prompting(id, asked.command))
			if stopOf(h) != "end_turn" || said(told, "agent_message_chunk") != asked.said {
				t.Errorf("%s: %s said %q", asked.command, h.raw, said(told, "agent_message_chunk"))
			}
		}
		p.end()
	})
}

func TestTrustNamesWhatItEnables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var enabled []string
		var refused error
		p := launchWith(t, peers.NewWorld(), "i1", touching, acp.Config{Trust: func(workspace string) ([]string, error) {
			if workspace != "/w" {
				t.Errorf("trusts %s", workspace)
			}
			return enabled, refused
		}})
		c := p.start(`{}`)
		id := c.fresh()
		trust := func() string {
			_, told := c.call("session/prompt", prompting(id, "/trust"))
			return said(told, "agent_message_chunk")
		}
		if got := trust(); !strings.HasPrefix(got, "Trusted: /w\nIt enables nothing today") {
			t.Errorf("said %q", got)
		}
		enabled = []string{".mcp.json", ".rind/skills/a.md"}
		if got := trust(); got != "Trusted: /w\nThis enables:\n- .mcp.json\n- .rind/skills/a.md" {
			t.Errorf("said %q", got)
		}
		refused = errors.New("a link is among what it enables")
		if got := trust(); !strings.HasSuffix(got, "a link is among what it enables") {
			t.Errorf("said %q", got)
		}
		p.end()
	})
}

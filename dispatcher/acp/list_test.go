package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// listPage is an answer to session/list.
type listPage struct {
	Sessions   []struct{ SessionID, CWD, Title, UpdatedAt string }
	NextCursor string
}

func (c *client) list(params string) (page listPage) {
	c.T.Helper()
	h, _ := c.call("session/list", params)
	if err := json.Unmarshal(h.Result, &page); err != nil {
		c.T.Fatal(err)
	}
	return page
}

// Sessions that are touched while somebody turns the pages show on none of them twice, and a cursor stays with the folder it was made for.
func TestPagesOfTheListShowEachSessionOnceWhateverIsTouchedMeanwhile(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, _ *process, c *client) {
		var ids []string
		for i := range 60 {
			id := c.fresh()
			if i%12 == 0 {
				h, _ := c.call("session/new", `{"cwd":"/elsewhere","mcpServers":[]}`)
				id = between(h.raw, `"sessionId":"`, `"`)
			}
			c.call("session/prompt", prompting(id, "next"))
			ids = append(ids, id)
		}
		first := c.list(`{}`)
		if len(first.Sessions) != 50 || first.Sessions[0].SessionID != ids[59] || first.NextCursor == "" {
			t.Fatalf("%d sessions, cursor %q", len(first.Sessions), first.NextCursor)
		}
		c.call("session/prompt", prompting(ids[0], "next")) // of the second page
		c.call("session/prompt", prompting(ids[55], "next"))
		rest := c.list(fmt.Sprintf(`{"cursor":%q}`, first.NextCursor))
		seen := map[string]bool{}
		for _, s := range append(first.Sessions, rest.Sessions...) {
			if seen[s.SessionID] || s.UpdatedAt == "" {
				t.Errorf("%+v, seen %v", s, seen[s.SessionID])
			}
			seen[s.SessionID] = true
		}
		if len(seen) != 59 || seen[ids[0]] || rest.NextCursor != "" {
			t.Errorf("%d sessions, the touched one %v, cursor %q", len(seen), seen[ids[0]], rest.NextCursor)
		}
		if page := c.list(`{"cwd":"/elsewhere"}`); len(page.Sessions) != 5 || page.Sessions[0].CWD != "/elsewhere" {
			t.Errorf("of one folder: %+v", page)
		}
		c.refused(-32602, "session/list", fmt.Sprintf(`{"cwd":"/elsewhere","cursor":%q}`, first.NextCursor))
	})
}

// Deleting ends what this connection asked for there, answers it, and leaves nothing.
func TestDeletingASessionAnswersItsPromptsFirst(t *testing.T) {
	bubble(t, `{}`, func(t *testing.T, p *process, c *client) {
		id := c.fresh()
		running, waits := c.ask("session/prompt", prompting(id, "stay")), c.ask("session/prompt", prompting(id, "next"))
		c.until("the call runs", func(h *heard) bool { return h.Params.Update.Status == "in_progress" })
		deleting := c.ask("session/delete", named(id))
		var order []string
		for len(order) < 3 {
			h, told := c.until("answers", func(h *heard) bool { return h.Method == "" })
			if string(h.ID) == running && calls(told)["s1"] != "failed" {
				t.Errorf("its call is left %q", calls(told)["s1"])
			}
			if h.Error != nil || string(h.ID) != deleting && stopOf(h) != "cancelled" {
				t.Errorf("%s", h.raw)
			}
			order = append(order, string(h.ID))
		}
		if order[2] != deleting || !strings.Contains(strings.Join(order, " "), running) || !strings.Contains(strings.Join(order, " "), waits) {
			t.Errorf("answered in the order %v", order)
		}
		c.refused(-32002, "session/load", loading(id))
		c.refused(-32002, "_rind/session/replay", named(id))
	})
}

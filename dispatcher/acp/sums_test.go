package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// inBubble lets rapid check inside a bubble, where sub-tests may not be started.
type inBubble struct{ *testing.T }

// reader is a client as docs/protocol/acp.md section 4 wants it: it keeps what it is told and the last cursor, and after a reconnection what
// is told anew takes the place of what it had of that message.
type reader struct {
	c      *client
	texts  map[string]string
	fresh  map[string]bool // told since the last connection
	cursor string
	at     int
}

func (r *reader) connected(c *client, again bool) {
	r.c, r.at = c, 0
	r.fresh = map[string]bool{}
	if !again {
		r.texts, r.cursor = map[string]string{}, ""
	}
}

// take reads what came on the connection.
func (r *reader) take() {
	for _, h := range r.c.Got()[r.at:] {
		r.at++
		if u := h.Params.Update; u.SessionUpdate == "agent_message_chunk" || u.SessionUpdate == "user_message_chunk" {
			if !r.fresh[u.MessageID] {
				r.fresh[u.MessageID], r.texts[u.MessageID] = true, ""
			}
			r.texts[u.MessageID] += u.text()
		}
		if cursor := h.Params.Meta["rind/cursor"]; cursor != "" {
			r.cursor = cursor
		}
	}
}

// stored are the texts of the session's messages, by their ids.
func stored(t *testing.T, p *process, id string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := p.Store.Read(context.Background(), session.SessionID(id), 0, 100_000, protocol.ViewFacts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		b, err := protocol.Decode(&entries[i])
		if err != nil {
			t.Fatal(err)
		}
		switch b := b.(type) {
		case *protocol.AssistantMessageCompleted:
			out[b.MessageID] = b.Content
		case *protocol.UserMessage:
			out[b.More.ID] = b.More.Text
		}
	}
	return out
}

// A session is driven by one client and watched by others, which read fast, slowly or not at all for a while, come and go with their cursors, and
// outlive the process, killed or not. What each of them has of every message adds up to what is stored of it.
func TestWhatIsToldAddsUpForFastSlowAndReconnectingClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			text := strings.Repeat(rapid.StringOfN(rapid.RuneFrom([]rune("ab é\u4e16😀\n")), 1, 60, -1).Draw(rt, "text"), rapid.IntRange(1, 40).Draw(rt, "times"))
			raw, _ := json.Marshal(text)
			play := fmt.Sprintf(`{"turns":[{"match":"go","steps":[{"text":%s,"chunk":%d,"delayMs":%d},{"call":{"name":"where","arguments":{}}},{"finish":"tool_calls"},{"text":"Then this.","chunk":3,"delayMs":30}]}]}`,
				raw, rapid.IntRange(1, 50).Draw(rt, "chunk"), rapid.IntRange(0, 40).Draw(rt, "delay"))
			w := peers.NewWorld()
			n := 0
			launch := func() *process { n++; return launch(t, w, fmt.Sprint("i", n), play) }
			p := launch()
			driver := p.start(`{}`)
			id := driver.fresh()
			driver.call("session/prompt", prompting(id, "go first"))
			readers := []*reader{}
			for range rapid.IntRange(1, 3).Draw(rt, "readers") {
				r := &reader{}
				c := p.start(`{}`)
				r.connected(c, false)
				c.call("session/load", loading(id))
				readers = append(readers, r)
			}
			driver.ask("session/prompt", prompting(id, "go on"))
			for range rapid.IntRange(1, 6).Draw(rt, "steps") {
				time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
				r := readers[rapid.IntRange(0, len(readers)-1).Draw(rt, "who")]
				switch rapid.SampledFrom([]string{"stall", "reconnect", "load", "kill", "prompt"}).Draw(rt, "step") {
				case "stall":
					r.c.Deafen()
					time.Sleep(3 * time.Second)
					r.c.Hear()
				case "reconnect":
					r.take()
					cursor := r.cursor
					c := p.start(`{}`)
					r.connected(c, true)
					again(c, id, cursor)
				case "load":
					c := p.start(`{}`)
					r.connected(c, false)
					c.call("session/load", loading(id))
				case "kill":
					for _, r := range readers {
						r.take()
					}
					p.kill()
					p = launch()
					driver = p.start(`{}`)
					driver.call("session/load", loading(id))
					for _, r := range readers {
						c := p.start(`{}`)
						cursor := r.cursor
						r.connected(c, true)
						again(c, id, cursor)
					}
					driver.ask("session/prompt", prompting(id, "go again"))
				case "prompt":
					driver.ask("session/prompt", prompting(id, "go more"))
				}
			}
			time.Sleep(time.Hour) // of the bubble: all turns have ended, all is told
			want := stored(t, p, id)
			for i, r := range readers {
				r.take()
				for m, text := range want {
					if r.texts[m] != text {
						rt.Errorf("client %d has %q of message %s, stored is %q", i, r.texts[m], m, text)
					}
				}
				for m := range r.texts {
					if _, there := want[m]; !there {
						rt.Errorf("client %d was told of message %s, which is not there", i, m)
					}
				}
			}
			p.end()
		})
	})
}

func again(c *client, id, cursor string) {
	c.call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":"/w","mcpServers":[],"_meta":{"rind/afterCursor":%q}}`, id, cursor))
}

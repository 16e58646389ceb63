package acp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/session"
)

// piece is a message as a client that only reads chunks puts it together: chunks of one kind and id that stand next to each other.
type piece struct{ kind, id, text string }

func pieces(lines []*heard) []piece {
	var out []piece
	for _, h := range lines {
		u := h.Params.Update
		if !strings.HasSuffix(u.SessionUpdate, "message_chunk") {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].kind == u.SessionUpdate && out[n].id == u.MessageID {
			out[n].text += u.text()
		} else {
			out = append(out, piece{u.SessionUpdate, u.MessageID, u.text()})
		}
	}
	return out
}

func textsOf(all []piece) (out []string) {
	for _, p := range all {
		out = append(out, p.text)
	}
	return out
}

// docs/protocol/portable-2026-09-02.md section 12: ACP has no ids of turns, so an execution beside the serial turn is told in one piece, behind
// its end and outside of messages; what it asks is asked at once. Load, replay and resume tell the same pieces, each once.
func TestAnExecutionBesideTheTurnIsToldInOnePieceOutsideOfMessages(t *testing.T) {
	const script = `{"turns":[{"match":"go","steps":[{"text":"one two three four five six seven eight","chunk":4,"delayMs":100},{"finish":"stop"}]}]}`
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "a", script)
		c := p.start(`{}`)
		id := c.fresh()
		prompt := c.ask("session/prompt", prompting(id, "go"))
		time.Sleep(150 * time.Millisecond) // of the bubble: the answer has begun
		synctest.Wait()
		s, err := p.All.Open(t.Context(), session.SessionID(id))
		if err != nil {
			t.Fatal(err)
		}
		begin := func(input, config string) {
			t.Helper()
			r := session.ExecutionRequest{Provider: "mock", Input: input, Config: json.RawMessage(config), Runner: session.Mock{}}
			if _, err := s.SubmitExecution(r)(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		begin("first a b c", `{"prefix":"> ","delayMs":30}`)
		begin("second a b c", `{"prefix":"> ","delayMs":30}`)
		begin("third", `{"prefix":"> ","delayMs":1,"requireApproval":true}`)
		begin("fourth a b c", `{"prefix":"> ","delayMs":400}`) // ends behind the turn
		ask, meanwhile := c.permission()
		if got := said(meanwhile, "agent_message_chunk"); strings.HasSuffix(got, "eight") || strings.Contains(got, ">") {
			t.Errorf("asked behind %q", got)
		}
		c.choose(ask, "allow_once")
		done, _ := c.answer(prompt)
		time.Sleep(5 * time.Second)
		synctest.Wait()

		live := c.Got()
		const answer = "one two three four five six seven eight"
		want := []string{answer, "first a b c", "> first a b c", "second a b c", "> second a b c", "third", "> third", "fourth a b c", "> fourth a b c"}
		got := textsOf(pieces(live))
		if len(got) != len(want) || got[0] != answer || got[7] != want[7] || got[8] != want[8] {
			t.Fatalf("told %q", got)
		}
		for i := 1; i < len(got); i += 2 {
			if got[i+1] != "> "+got[i] || !slices.Contains(want, got[i]) {
				t.Errorf("%q is answered with %q", got[i], got[i+1])
			}
		}
		if status := calls(live)[toolCall(ask)]; status != "completed" {
			t.Errorf("what was asked stands as %q", status)
		}

		// From each cursor on the rest comes whole: what was told with it or before it, and what follows, are all of it, once.
		last := func(lines []*heard) int { // the last line that the cursor of a client covers
			for i := len(lines) - 1; i >= 0; i-- {
				if lines[i].Params.Meta["rind/cursor"] != "" {
					return i
				}
			}
			return -1
		}
		told := 0
		for n := range live {
			if i := last(live[:n+1]); i != n {
				continue
			}
			told++
			d := p.start(`{}`)
			cursor := live[n].Params.Meta["rind/cursor"]
			d.call("session/resume", strings.Replace(loading(id), `"mcpServers"`, `"_meta":{"rind/afterCursor":"`+cursor+`"},"mcpServers"`, 1))
			time.Sleep(time.Second)
			synctest.Wait()
			known := textsOf(pieces(live[:n+1]))
			if k := len(known) - 1; k >= 0 && !slices.Contains(want, known[k]) {
				known = known[:k] // told in part: the client drops it
			}
			all := slices.Sorted(slices.Values(append(known, textsOf(pieces(d.Got()))...)))
			if sorted := slices.Sorted(slices.Values(append([]string{}, want...))); !slices.Equal(all, sorted) {
				t.Errorf("behind cursor %s there is %q, all is %q", cursor, textsOf(pieces(d.Got())), all)
			}
		}
		if told < 4 {
			t.Errorf("%d cursors were told", told)
		}

		// As history they stand in the same pieces.
		history := func(name string, got []string) {
			t.Helper()
			if len(got) != len(want)+1 || got[0] != "go" {
				t.Errorf("%s: %q", name, got)
			}
			at := slices.Index(got, answer)
			if at < 0 {
				t.Fatalf("%s: %q", name, got)
			}
			got = slices.Delete(slices.Clone(got), at, at+1)
			for i := 1; i+1 < len(got); i += 2 {
				if got[i+1] != "> "+got[i] {
					t.Errorf("%s: %q is answered with %q", name, got[i], got[i+1])
				}
			}
		}
		d := p.start(`{}`)
		_, loaded := d.call("session/load", loading(id))
		history("load", textsOf(pieces(loaded)))
		for _, limit := range []int{1, 3, 1000} {
			var got []string
			for after, more := "0", true; more; {
				h, _ := c.call("_rind/session/replay", fmt.Sprintf(`{"sessionId":%q,"limit":%d,"afterCursor":%q}`, id, limit, after))
				var page struct {
					Updates []struct{ Update update }
					Cursor  string
					HasMore bool
				}
				if err := json.Unmarshal(h.Result, &page); err != nil {
					t.Fatal(err)
				}
				for _, u := range page.Updates {
					if strings.HasSuffix(u.Update.SessionUpdate, "message_chunk") {
						got = append(got, u.Update.text())
					}
				}
				after, more = page.Cursor, page.HasMore
			}
			history(fmt.Sprintf("pages of %d", limit), got)
		}
		if stopOf(done) != "end_turn" {
			t.Errorf("answered %s", done.raw)
		}
		s.Close()
		p.end()
	})
}

func toolCall(h *heard) string { return h.Params.ToolCall.ToolCallID }

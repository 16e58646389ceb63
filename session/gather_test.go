package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestTextIsToldAtOnceThenEvery25MillisecondsInPiecesOf2048CharactersAndBeforeAnythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := answering()
		h := &house{t: t, store: memory.New(), model: m}
		said := ""
		agent := agentFunc(func(_ context.Context, turn *session.Turn) (string, error) {
			begun := time.Now()
			at := func(ms int, text string) {
				time.Sleep(time.Until(begun.Add(time.Duration(ms) * time.Millisecond)))
				if text != "" {
					said += text
					turn.Say("m1", text)
				}
			}
			at(0, "é") // the first at once
			at(10, "éé")
			at(20, "é")
			at(30, "éééé") // those of 25 ms together
			at(120, "é")   // after a pause at once
			at(125, strings.Repeat("é", 2000))
			at(130, strings.Repeat("é", 2200)) // too much to wait for
			at(135, strings.Repeat("é", 5))
			at(140, "")
			turn.Note(&protocol.Notice{Severity: "info", Title: "between"})
			at(141, strings.Repeat("é", 6))
			at(142, "")
			turn.Think("m1", "hm") // another stream
			at(145, strings.Repeat("é", 7))
			at(146, strings.Repeat("é", 8))
			return "end_turn", turn.Record(&protocol.AssistantMessageCompleted{Content: said, ContentChars: protocol.CharLen(said), MessageID: "m1"})
		})
		h.all = session.NewSessions(session.Config{Store: h.store, Agent: agent, Models: m, Now: time.Now})
		s := h.draft()
		h.prompt(s, "x")
		var got []string
		var begun time.Time
		for _, e := range h.entries(s.ID) {
			b, err := protocol.Decode(&e)
			if err != nil {
				t.Fatal(err)
			}
			chars := 0
			switch b := b.(type) {
			case *protocol.AssistantDelta:
				chars = protocol.CharLen(b.Text)
			case *protocol.ReasoningDelta:
				chars = protocol.CharLen(b.Text)
			case *protocol.Notice, *protocol.AssistantMessageCompleted:
			default:
				continue
			}
			if begun.IsZero() {
				begun = e.Time
			}
			got = append(got, fmt.Sprintf("%d %s %d", e.Time.Sub(begun).Milliseconds(), e.Kind, chars))
			if chars > 0 && e.PortableCount != 1 {
				t.Errorf("%s is %d events", got[len(got)-1], e.PortableCount)
			}
		}
		want := []string{
			"0 assistant_delta 1", "25 assistant_delta 3", "50 assistant_delta 4", "120 assistant_delta 1", "130 assistant_delta 2048", "130 assistant_delta 2048",
			"130 assistant_delta 104", "140 assistant_delta 5", "140 notice 0", "141 assistant_delta 6", "142 reasoning_delta 2", "145 assistant_delta 7",
			"146 assistant_delta 8", "146 assistant_message_completed 0",
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("got\n%s\nwant\n%s", a, b)
		}
		checkLog(t, h)
		h.close()
	})
}

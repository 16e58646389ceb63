package session_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

// TestADanglingCallIsRepairedOnceForAllRestarts opens a log damaged by somebody else: a call without a result, and a message behind it.
func TestADanglingCallIsRepairedOnceForAllRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backing := memory.NewBacking()
		const id = session.SessionID("20260102_101112_0000000a")
		st := backing.Open("damager")
		l := storetest.Create(t, st, id)
		created := &protocol.SessionCreated{}
		created.More.WorkspaceRoot, created.More.Model = "/w", "m-1"
		msg := &protocol.UserMessage{}
		msg.More.ID, msg.More.Text, msg.More.Origin = "u1", "x", "user"
		call := &protocol.ToolRequested{ToolCallID: "c1", ToolName: "look", Arguments: []byte(`{}`)}
		call.More.MessageID = "m1"
		const turn = session.TurnID("0123456789abcdef0123456789abcdef")
		es := []session.Entry{
			storetest.Entry(1, "", created), storetest.Entry(2, turn, msg), storetest.Entry(3, turn, &protocol.TurnStarted{Operation: "prompt", Origin: "user"}),
			storetest.Entry(4, turn, call), storetest.Entry(5, turn, &protocol.TurnCompleted{}),
		}
		if err := storetest.Append(st, l, session.Batch{Entries: es}); err != nil {
			t.Fatal(err)
		}
		_ = st.Close()
		for round := range 3 {
			m := answering()
			h := newHouse(t, backing.Open(string(rune('a'+round))), m)
			s := h.open(id)
			h.prompt(s, "go on")
			for _, r := range m.requests {
				checkHistory(t, r.Messages)
				if err := session.CheckMessages(r.Messages); err != nil {
					t.Error(err)
				}
			}
			if n := strings.Count(kinds(h.entries(id)), "history_repaired"); n != 1 {
				t.Errorf("after round %d the log holds %d repairs", round, n)
			}
			h.close()
		}
	})
}

func TestTheOldestAttachmentsAreLeftOutOfARequestThatWouldBeTooBig(t *testing.T) {
	m := answering()
	bubble(t, m, nil, func(h *house) {
		s := h.draft()
		for range 6 {
			_, ch := ask(s, session.PromptRequest{Input: "look", Parts: []protocol.Part{{Kind: "image", MIME: "image/png", Data: make([]byte, 2<<20)}}})
			if o := <-ch; o.err != nil {
				t.Fatal(o.err)
			}
		}
		bytes, notes := 0, 0
		for _, msg := range m.requests[len(m.requests)-1].Messages {
			for _, p := range msg.Parts {
				bytes += len(p.Data)
				if strings.Contains(p.Text, "left out") {
					notes++
				}
			}
		}
		if bytes != 8<<20 || notes != 2 {
			t.Errorf("%d bytes of attachments, %d left out", bytes, notes)
		}
	})
}

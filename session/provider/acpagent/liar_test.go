package acpagent

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// saidIn adds up the messages of a session.
func saidIn(h *house, id session.SessionID) string {
	var b strings.Builder
	for _, m := range find[*protocol.AssistantMessageCompleted](h, id) {
		b.WriteString(m.Content)
	}
	return b.String()
}

func TestAnAgentGetsNothingForWhatItWasNeverGiven(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("full")
	h.prompt(s, `terminal elsewhere=/etc/passwd update={"sessionUpdate":"tool_call","toolCallId":"1","title":"T","status":"completed","content":[{"type":"terminal","terminalId":"term_1"}]}`)
	said := saidIn(h, s.ID)
	if n := strings.Count(said, `"code":-32002`); n != 6 || strings.Contains(said, "root:") {
		t.Errorf("%d refusals: %s", n, said)
	}
	if r := find[*protocol.ToolResult](h, s.ID); len(r) != 1 || r[0].Status != protocol.ToolCompleted {
		t.Errorf("%+v", r)
	}
}

func TestAMessageOfTenMegabytesInOneLineIsKeptWhole(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	want := strings.Repeat("0123456789", 1<<20)
	if o := h.prompt(s, "wide"); o.Outcome != session.OutcomeCompleted || o.Answer != want {
		t.Errorf("%s, %d bytes", o.Outcome, len(o.Answer))
	}
	told := 0
	for _, d := range find[*protocol.AssistantDelta](h, s.ID) {
		if n := protocol.CharLen(d.Text); n > 2048 {
			t.Fatalf("a piece of %d characters", n)
		}
		told += len(d.Text)
	}
	if told != len(want) {
		t.Errorf("%d bytes were told in pieces", told)
	}
}

func TestARequestForConsentAfterACancelIsAnsweredAsCancelledAndAsksNobody(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "say=begun latter")
	h.until(s, "text", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
	s.Cancel(session.CancelRequest{}, func(error) {})
	if o := h.await(ch); o.Outcome != session.OutcomeCancelled {
		t.Fatalf("%+v", o)
	}
	if said := saidIn(h, s.ID); said != `begunlate:{"outcome":{"outcome":"cancelled"}}` {
		t.Errorf("%s", said)
	}
	if a := find[*protocol.ApprovalRequested](h, s.ID); len(a) != 0 {
		t.Errorf("%+v", a)
	}
}

func TestTextOfTwoTurnsIsNeverOneMessage(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	const one = `update={"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"one"}}`
	h.prompt(s, one)
	h.prompt(s, one+" think "+one)
	got := find[*protocol.AssistantMessageCompleted](h, s.ID)
	ids := map[string]bool{}
	for _, m := range got {
		ids[m.MessageID] = true
		if m.Content != "one" {
			t.Errorf("%q", m.Content)
		}
	}
	if len(got) != 3 || len(ids) != 3 { // the same id of the agent's, and each is a message of its own
		t.Errorf("%d messages of %d ids", len(got), len(ids))
	}
}

func TestWhatCannotBeKeptUntilATurnTakesItIsCountedAndTold(t *testing.T) {
	h := open(t, memory.New(), "torrent")
	s := h.draft("ask")
	h.prompt(s, "hello")
	if said := saidIn(h, s.ID); strings.Count(said, "x") != maxBacklog {
		t.Errorf("%d updates were kept", strings.Count(said, "x"))
	}
	var told []string
	for _, n := range find[*protocol.Notice](h, s.ID) {
		told = append(told, n.Severity+" "+n.Title)
	}
	if want := "warning The agent said more than could be kept while no turn took it: 500 of its updates are lost."; len(told) != 1 || told[0] != want {
		t.Errorf("told %q", told)
	}
}

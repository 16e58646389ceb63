package acpagent

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func enqueue(s *session.Session, mode, text string) (session.InputResult, error) {
	type got struct {
		r   session.InputResult
		err error
	}
	ch := make(chan got, 1)
	s.Enqueue(mode, text, "", func(r session.InputResult, err error) { ch <- got{r, err} })
	g := <-ch
	return g.r, g.err
}

func TestSteeringReachesAnAgentThatTakesItWhereItSaysSo(t *testing.T) {
	h := open(t, memory.New(), "steer")
	s := h.draft("ask")
	ch := h.ask(s, "say=one steered say=!")
	h.until(s, "text", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
	in, err := enqueue(s, protocol.ModeSteering, "look-here")
	if err != nil {
		t.Fatal(err)
	}
	if o := h.await(ch); o.Answer != "heard:look-here!" {
		t.Errorf("%+v", o)
	}
	if d := find[*protocol.QueuedInputDelivered](h, s.ID); len(d) != 1 || d[0].InputID != in.ID || d[0].Input != "look-here" || d[0].Mode != protocol.ModeSteering {
		t.Errorf("%+v", d)
	}
	if got := h.kinds(s.ID); !strings.Contains(got, "assistant_message_completed queued_input_delivered assistant_delta assistant_message_completed turn_completed") {
		t.Errorf("%s", got)
	}
	if m := h.hosts.About(s.ID, h.spec).Manifest; m["steer"] != native {
		t.Errorf("steer: %s", m["steer"])
	}
}

func TestSteeringThatAnAgentDoesNotTakeIsSaidWhenItsAnswerEnds(t *testing.T) {
	h := open(t, memory.New(), "steer,closed")
	s := h.draft("ask")
	ch := h.ask(s, "say=one ask")
	a := h.action(s)
	if _, err := enqueue(s, protocol.ModeSteering, "say=two"); err != nil {
		t.Fatal(err)
	}
	if _, err := enqueue(s, protocol.ModeFollowUp, "say=three"); err != nil {
		t.Fatal(err)
	}
	h.resolve(s, a.ID, "yes")
	if o := h.await(ch); o.Answer != "three" {
		t.Errorf("%+v", o)
	}
	var said []string
	for _, d := range find[*protocol.QueuedInputDelivered](h, s.ID) {
		said = append(said, d.Mode+" "+d.Input)
	}
	if strings.Join(said, ", ") != "steering say=two, follow_up say=three" {
		t.Errorf("%q", said)
	}
}

func TestAnInputThatTheAgentHasIsSaidOnceAndCannotBeTakenBack(t *testing.T) {
	h := open(t, memory.New(), "steer")
	s := h.draft("ask")
	ch := h.ask(s, "say=one unheard ask")
	h.until(s, "text", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
	in, err := enqueue(s, protocol.ModeSteering, "say=twice")
	if err != nil {
		t.Fatal(err)
	}
	a := h.action(s) // behind the steering
	back := make(chan error, 2)
	s.Retrieve(protocol.ModeSteering, in.ID, func(_ session.InputResult, err error) { back <- err })
	s.Retrieve(protocol.ModeSteering, "", func(_ session.InputResult, err error) { back <- err })
	for range 2 {
		if err := <-back; protocol.KindOf(err) != protocol.InputNotPending {
			t.Errorf("%v", err)
		}
	}
	h.resolve(s, a.ID, "yes")
	h.await(ch)
	if d := find[*protocol.QueuedInputDelivered](h, s.ID); len(d) != 1 {
		t.Errorf("%+v", d)
	}
	for _, m := range find[*protocol.AssistantMessageCompleted](h, s.ID) {
		if strings.Contains(m.Content, "twice") {
			t.Error("it was said as a prompt too")
		}
	}
}

package testkit

import (
	"fmt"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// SoundLog checks what must hold of every log whose turns have all ended (docs/protocol/rind-v2.md section 5, invariants): Seq grows, each
// turn starts and has one terminal, last; calls, inputs and actions have one end each; portable numbers are contiguous; the pieces of
// a message add up to it. The error names the entry.
func SoundLog(es []session.Entry) error {
	type turn struct {
		started, ended bool
		next           int64
		calls          map[string]int
		inputs         map[string]int
		actions        map[string]int
	}
	turns := map[session.TurnID]*turn{}
	var seq session.Seq
	texts := map[string][]byte{}
	for i := range es {
		e := &es[i]
		if e.Seq <= seq {
			return fmt.Errorf("seq %d after %d", e.Seq, seq)
		}
		seq = e.Seq
		b, err := protocol.Decode(e)
		if err != nil {
			return err
		}
		if e.Turn == "" {
			continue
		}
		tn := turns[e.Turn]
		if tn == nil {
			tn = &turn{next: 1, calls: map[string]int{}, inputs: map[string]int{}, actions: map[string]int{}}
			turns[e.Turn] = tn
		}
		if tn.ended {
			return fmt.Errorf("%s at %d after the terminal of its turn", e.Kind, e.Seq)
		}
		if e.PortableCount > 0 {
			if e.PortableFirst != tn.next {
				return fmt.Errorf("%s at %d: portable number %d, want %d", e.Kind, e.Seq, e.PortableFirst, tn.next)
			}
			tn.next += int64(e.PortableCount)
		}
		tn.ended = e.Kind.Info().Terminal
		switch b := b.(type) {
		case *protocol.TurnStarted:
			tn.started = true
		case *protocol.AssistantDelta:
			texts[b.More.MessageID] = append(texts[b.More.MessageID], b.Text...)
		case *protocol.AssistantMessageCompleted:
			if string(texts[b.MessageID]) != b.Content {
				return fmt.Errorf("message %s: deltas %q, content %q", b.MessageID, texts[b.MessageID], b.Content)
			}
		case *protocol.ToolRequested:
			tn.calls[b.ToolCallID]++
		case *protocol.ToolResult:
			tn.calls[b.ToolCallID] += 100
		case *protocol.InputAccepted:
			tn.inputs[b.More.InputID]++
		case *protocol.InputMoved:
			if b.More.To == protocol.MovedAway {
				tn.inputs[b.More.InputID] += 100
			}
		case *protocol.QueuedInputDelivered:
			tn.inputs[b.InputID] += 100
		case *protocol.QueuedInputReturned:
			tn.inputs[b.InputID] += 100
		case *protocol.ApprovalRequested:
			tn.actions[b.ActionID]++
		case *protocol.ApprovalResolved:
			tn.actions[b.ActionID] += 100
		}
	}
	for id, tn := range turns {
		if !tn.started || !tn.ended {
			return fmt.Errorf("turn %s: started %v, ended %v", id, tn.started, tn.ended)
		}
		for what, m := range map[string]map[string]int{"call": tn.calls, "input": tn.inputs, "action": tn.actions} {
			for id, n := range m {
				if n != 101 {
					return fmt.Errorf("%s %s has %d beginnings and %d ends", what, id, n%100, n/100)
				}
			}
		}
	}
	return nil
}

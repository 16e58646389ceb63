package dispatcher

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// compact compacts the model's view of a session; the result is the record (docs/protocol/rind-v2.md section 7.8).
func compact(k *call, _ *rindv2.Target) {
	k.compact(func(id session.SessionID, o session.Outcome, err error) {
		if err != nil {
			k.Fail(err)
			return
		}
		k.at(id, o.Seq, o.Record, compactFailure(o))
	})
}

// compact starts the turn of a compaction. done runs when it has ended.
func (k *call) compact(done func(id session.SessionID, o session.Outcome, err error)) {
	k.with(func(s *session.Session) {
		k.c.follow(s)
		turn := s.Compact(func(o session.Outcome, err error) { done(s.ID, o, err) })
		k.c.mu.Lock()
		k.prompt = turn
		k.c.mu.Unlock()
	})
}

// compactFailure is the error of a compaction that made no record.
func compactFailure(o session.Outcome) error {
	if o.Outcome == session.OutcomeCompleted && o.Record != nil {
		return nil
	}
	text := o.Reason
	if o.Fault != nil {
		text = o.Fault.Message
	}
	if text == "" {
		text = protocol.ReasonUser
	}
	return &protocol.Error{Kind: protocol.RequestFailed, Message: text, Details: map[string]any{
		"details": map[string]any{"turn_id": o.Turn, "outcome": o.Outcome, "stop_reason": o.Stop},
	}}
}

func init() {
	register(command{rindv2.Command{Name: "compact", Description: "Replace the conversation by a summary in the model's view", Usage: "/compact"}, commandCompact})
}

func commandCompact(k *call, _ *session.Session, args []string) {
	if len(args) > 0 {
		k.text("Usage: /compact")
		return
	}
	k.compact(func(id session.SessionID, o session.Outcome, err error) {
		if err == nil {
			err = compactFailure(o)
		}
		switch {
		case protocol.KindOf(err) == protocol.TurnActive:
			k.text("Cannot compact while a turn is running. Wait for it to finish or interrupt it first.")
			return
		case errors.Is(err, session.ErrAgentCompacts):
			k.OK(commandResult{Next: &rindv2.NextPrompt{Input: "/compact"}})
			return
		case err != nil:
			k.failed(err)
			return
		}
		var rec protocol.Compaction
		if err := json.Unmarshal(o.Record, &rec); err != nil {
			k.failed(err)
			return
		}
		k.at(id, o.Seq, commandResult{Text: fmt.Sprintf("Compact complete.\n- id: %s\n- source: messages[%d:%d]\n- tool calls: %d",
			rec.ID, rec.Source.MessageStartIndex, rec.Source.MessageEndIndexExclusive, len(rec.Source.ToolCallIDs))}, nil)
	})
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
)

// Stop reasons of an Outcome (docs/protocol/rind-v2.md section 4.3).
const (
	stopEndTurn       = "end_turn"
	stopCancelled     = "cancelled"
	stopShutdown      = "shutdown"
	stopMaxTokens     = "max_tokens"
	stopFilter        = "content_filter"
	stopProvider      = "provider_error"
	stopTool          = "tool_error"
	stopPersistence   = "persistence_error"
	stopConfiguration = "configuration_error"
	stopRuntime       = "runtime_error"
)

// Outcomes of a prompt.
const (
	OutcomeCompleted = "completed"
	OutcomeFailed    = "failed"
	OutcomeCancelled = "cancelled"
	OutcomeWaiting   = "waiting"
)

// TurnFault is the error of a failed turn.
type TurnFault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Outcome is how a prompt ended. Its answer may be written once the connection was told everything up to Seq.
type Outcome struct {
	Turn    TurnID
	Outcome string
	Stop    string
	Fault   *TurnFault
	Reason  string          // of a cancellation
	Seq     Seq             // of the terminal; 0 when there is none
	Scope   string          // request scope id; "" for a prompt without one
	Answer  string          // content of the last assistant message
	Record  json.RawMessage // of a compaction
}

// outcome reads an Outcome from a terminal.
func outcome(turn TurnID, terminal protocol.Body) Outcome {
	switch b := terminal.(type) {
	case *protocol.TurnFailed:
		return Outcome{Turn: turn, Outcome: OutcomeFailed, Stop: b.More.StopReason, Fault: &TurnFault{Type: b.ErrorType, Message: b.Error}}
	case *protocol.TurnCancelled:
		return Outcome{Turn: turn, Outcome: OutcomeCancelled, Stop: b.More.StopReason, Reason: b.Reason}
	case *protocol.TurnCompleted:
		return Outcome{Turn: turn, Outcome: OutcomeCompleted, Stop: b.More.StopReason}
	}
	return Outcome{Turn: turn}
}

// outcomeOf tells then how a turn ended.
func (s *Session) outcomeOf(turn TurnID, then func(Outcome, error)) {
	fetch(s, func(ctx context.Context, store Store) (Outcome, error) { return readOutcome(ctx, store, turn) }, func(o Outcome, err error) {
		if errors.Is(err, errNoTerminal) {
			err = s.all.internal(err)
		}
		then(o, err)
	})
}

var errNoTerminal = errors.New("turn has no terminal")

// readOutcome reads how a turn ended from its terminal.
func readOutcome(ctx context.Context, store Log, turn TurnID) (Outcome, error) {
	var last *Entry
	scope, answer := "", ""
	for e, err := range readTurn(ctx, store, turn) {
		if err != nil {
			return Outcome{}, err
		}
		if e.Kind == protocol.KindTurnAccepted || e.Kind == protocol.KindAssistantMessageCompleted {
			switch b, _ := protocol.Decode(e); b := b.(type) { // one that is not readable says nothing
			case *protocol.TurnAccepted:
				scope = b.More.Scope
			case *protocol.AssistantMessageCompleted:
				answer = b.Content
			}
		}
		last = e
	}
	if last == nil || !last.Kind.Info().Terminal {
		return Outcome{}, fmt.Errorf("%w: %s", errNoTerminal, turn)
	}
	b, err := protocol.Decode(last)
	if err != nil {
		return Outcome{}, errors.Join(ErrCorrupt, err)
	}
	o := outcome(turn, b)
	o.Seq, o.Scope, o.Answer = last.Seq, scope, answer
	return o, nil
}

// watch calls f with the outcome of a turn once it has ended, in this process or another.
func (s *Session) watch(turn TurnID, f func(Outcome)) { s.watchers[turn] = append(s.watchers[turn], f) }

func (s *Session) tellWatchers(o Outcome) {
	fs := s.watchers[o.Turn]
	delete(s.watchers, o.Turn)
	for _, f := range fs {
		f(o)
	}
}

// wakeWatchers looks whether a watched turn was ended by another process.
func (s *Session) wakeWatchers() {
	for turn := range s.watchers {
		if s.shown.turn(turn) != nil {
			continue
		}
		s.outcomeOf(turn, func(o Outcome, err error) {
			if err != nil {
				o = Outcome{Turn: turn, Outcome: OutcomeFailed, Stop: stopRuntime, Fault: &TurnFault{Type: string(protocol.KindOf(err)), Message: messageOf(err)}}
			}
			s.tellWatchers(o)
		})
	}
}

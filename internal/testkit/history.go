package testkit

import (
	"context"
	"iter"

	"github.com/rind-dev/rind/session"
)

// StrictHistory answers what a provider that forgives nothing would answer to a request with these messages: nil, or the refusal. Each
// call has exactly one result in the messages right behind its own, no result is without a call, call ids are unique, arguments are JSON
// objects, all text is valid UTF-8, no message is empty, the first is of the system or the user.
func StrictHistory(messages []session.Message) error { return session.CheckMessages(messages) }

// Strict puts the double before a model: a request with a history that StrictHistory refuses is answered as a provider answers it, with
// status 400, and never reaches m.
func Strict(m session.Model) session.Model { return strict{m} }

type strict struct{ session.Model }

func (s strict) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	if err := StrictHistory(r.Messages); err != nil {
		return func(yield func(session.Chunk, error) bool) {
			yield(session.Chunk{}, &session.ModelError{Fault: session.FaultRejected, Status: 400, Message: "invalid history: " + err.Error()})
		}
	}
	return s.Model.Generate(ctx, r)
}

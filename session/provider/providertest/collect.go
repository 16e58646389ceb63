package providertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

// Answer is a completion read to its end.
type Answer struct {
	Chunks    []session.Chunk
	Text      string
	Reasoning string
	Calls     []AnswerCall
	Usage     []session.Usage
	Finish    session.Finish // "" for none
	Err       error
}

// AnswerCall is a call of an Answer.
type AnswerCall struct{ ID, Name, Arguments string }

// Fault is that of the answer's error, "" for none or another error.
func (a Answer) Fault() session.Fault {
	if e, ok := errors.AsType[*session.ModelError](a.Err); ok {
		return e.Fault
	}
	return ""
}

// ErrorOf is the answer's error, which has to be a *session.ModelError.
func ErrorOf(t testing.TB, a Answer) session.ModelError {
	t.Helper()
	e, ok := a.Err.(*session.ModelError)
	if !ok {
		t.Fatalf("got text %q, finish %q, error %v, want a *session.ModelError", a.Text, a.Finish, a.Err)
	}
	return *e
}

// MeasureChunks reads an answer of b.N chunks of text, which is what is measured.
func MeasureChunks(b *testing.B, m session.Model) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for chunk, err := range m.Generate(b.Context(), Hello()) {
		if err != nil {
			b.Fatal(err)
		}
		if chunk.Kind == session.ChunkText {
			n++
		}
	}
	if n != b.N {
		b.Fatalf("%d chunks of %d", n, b.N)
	}
}

// patience is longer than any completion of a test takes: a model that does not end fails its test, not the whole run.
const patience = 15 * time.Second

var errPatience = errors.New("the completion does not end")

// Collect reads a completion and holds it against the contract of session.Model: calls start, go on and end in this order and the pieces
// of their arguments are the whole; a finish is one and the last; after an error nothing comes.
func Collect(ctx context.Context, t testing.TB, m session.Model, r session.ModelRequest) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	var a Answer
	var text, thought strings.Builder
	type state struct {
		name  string
		args  strings.Builder
		ended bool
	}
	calls := map[string]*state{}
	for c, err := range m.Generate(ctx, r) {
		if a.Err != nil {
			t.Errorf("after the error %v came %+v, %v", a.Err, c, err)
		}
		if a.Finish != "" {
			t.Errorf("after the finish came %+v, %v", c, err)
		}
		if err != nil {
			a.Err = err
			continue
		}
		a.Chunks = append(a.Chunks, c)
		switch c.Kind {
		case session.ChunkText:
			text.WriteString(c.Text)
		case session.ChunkReasoning:
			thought.WriteString(c.Text)
		case session.ChunkCallStart:
			if calls[c.CallID] != nil {
				t.Errorf("call %q starts twice", c.CallID)
			}
			calls[c.CallID] = &state{name: c.Name}
		case session.ChunkCallDelta:
			s := calls[c.CallID]
			if s == nil || s.ended {
				t.Errorf("a piece of call %q, which is not open", c.CallID)
				continue
			}
			s.args.WriteString(c.Text)
		case session.ChunkCallEnd:
			s := calls[c.CallID]
			if s == nil || s.ended {
				t.Errorf("end of call %q, which is not open", c.CallID)
				continue
			}
			s.ended = true
			if s.name != c.Name || s.args.String() != c.Text && s.args.Len() > 0 {
				t.Errorf("call %q is %s(%s) in pieces and %s(%s) at its end", c.CallID, s.name, s.args.String(), c.Name, c.Text)
			}
			a.Calls = append(a.Calls, AnswerCall{c.CallID, c.Name, c.Text})
		case session.ChunkUsage:
			a.Usage = append(a.Usage, c.Usage)
		case session.ChunkFinish:
			a.Finish = c.Finish
			if c.Finish == "" {
				t.Error("a finish says no reason")
			}
		}
	}
	if a.Err == nil && a.Finish == "" {
		t.Error("the stream ended with neither a finish nor an error")
	}
	if a.Finish != "" && len(a.Calls) != len(calls) {
		t.Errorf("%d calls started, %d ended", len(calls), len(a.Calls))
	}
	a.Text, a.Reasoning = text.String(), thought.String()
	return a
}

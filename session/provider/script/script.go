// Package script is a session.Model that answers from a file: for fixtures, demonstrations and tests, without network, chance or clock of
// its own. The language is described in docs/script-provider.md; in short:
//
//	{"turns": [
//	  {"steps": [{"text": "Let me look."}, {"call": {"id": "c1", "name": "read_file", "arguments": {"path": "a.txt"}}}]},
//	  {"steps": [{"expect": {"role": "tool"}}, {"text": "It says hello.", "chunk": 4, "delayMs": 20}]},
//	  {"match": "weather", "steps": [{"fail": {"fault": "rate", "status": 429, "retryAfterMs": 1000}}]}
//	]}
//
// A list of steps is one completion, or several: finish, fail, cut, reset, hang and tool end theirs. Which one answers a request is read
// from the request, so that it is the same after the process was restarted:
//
//   - A turn whose match is in the last user message answers it; of several the first answers the first such message, the second the
//     second, the last one all further ones. Everything else, and what is asked when that turn has no completion left, is answered by
//     the turns without a match, in their order.
//   - Of the turn (or of the turns without a match taken together) that completion is next that follows the ones the request shows as
//     assistant messages: each message stands for the next completion that says something and ends well, an interrupted one for the
//     next that says something. Completions that fail leave no message, so after a restart they are played again.
//   - Within one Script, the same session never gets a completion twice: a retry gets the next one.
//
// The package owns no goroutine. A delay, a gate and a hang end with the context of their request.
package script

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

// keptRequests bounds Requests, as a script may also be a provider of a long-lived process.
const keptRequests = 4096

// Script is a parsed script and how far it has been played. Safe for concurrent use.
type Script struct {
	turns   []turn // those with a match
	free    []completion
	lenient bool
	pause   func(ctx context.Context, d time.Duration) error
	gates   map[string]*gate

	mu       sync.Mutex // guards what is below
	played   map[lane]int
	requests []session.ModelRequest
}

var _ session.Model = (*Script)(nil)

type gate struct {
	open, reached     chan struct{}
	opening, reaching sync.Once
}

// Option changes how a Script behaves.
type Option func(*Script)

// Lenient takes requests whose history session.CheckMessages refuses; without it they are answered as FaultRejected, status 400.
func Lenient() Option { return func(s *Script) { s.lenient = true } }

// Pause replaces the waiting of sleepMs and delayMs. It waits for d, or returns the cause of ctx when that ends first.
func Pause(f func(ctx context.Context, d time.Duration) error) Option {
	return func(s *Script) { s.pause = f }
}

// New parses a script. An error names the place: line and column where data is no JSON, else the path of the step, as turns[1].steps[0].
func New(data []byte, options ...Option) (*Script, error) {
	s := &Script{pause: session.Pause, gates: map[string]*gate{}, played: map[lane]int{}}
	if err := s.parse(data); err != nil {
		return nil, err
	}
	for _, o := range options {
		o(s)
	}
	return s, nil
}

// Must is New for scripts written into a test: it panics where New returns an error.
func Must(text string, options ...Option) *Script {
	s, err := New([]byte(text), options...)
	if err != nil {
		panic("script: " + err.Error())
	}
	return s
}

// Requests returns the requests asked so far, oldest first; at most the newest 4,096. The copy is the caller's, but for the bytes of
// arguments and attachments, which nobody changes.
func (s *Script) Requests() []session.ModelRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]session.ModelRequest, 0, len(s.requests))
	for _, r := range s.requests {
		out = append(out, copyRequest(r))
	}
	return out
}

func copyRequest(r session.ModelRequest) session.ModelRequest {
	r.Messages, r.Tools = slices.Clone(r.Messages), slices.Clone(r.Tools)
	for i := range r.Messages {
		m := &r.Messages[i]
		m.Parts, m.Reasoning, m.Calls = slices.Clone(m.Parts), slices.Clone(m.Reasoning), slices.Clone(m.Calls)
	}
	return r
}

// Open lets everything pass that waits, or will wait, at the gate. Opening twice is no error. It panics when the script has no such gate.
func (s *Script) Open(name string) {
	g := s.gate(name)
	g.opening.Do(func() { close(g.open) })
}

// Reached returns a channel that is closed once a completion has come to the gate. It panics when the script has no such gate.
func (s *Script) Reached(name string) <-chan struct{} { return s.gate(name).reached }

func (s *Script) gate(name string) *gate {
	g, ok := s.gates[name]
	if !ok {
		panic(fmt.Sprintf("script: there is no gate %q", name))
	}
	return g
}

// Generate implements session.Model. The completion is chosen when Generate is called, not when its sequence is read.
func (s *Script) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	c, err := s.next(r)
	return func(yield func(session.Chunk, error) bool) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			yield(session.Chunk{}, err)
			return
		}
		p := &player{ctx: ctx, script: s, request: r, completion: c, yield: yield}
		p.play()
	}
}

// next records a request and chooses what answers it.
func (s *Script) next(r session.ModelRequest) (*completion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == keptRequests {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	s.requests = append(s.requests, copyRequest(r))
	if !s.lenient {
		if err := session.CheckMessages(r.Messages); err != nil {
			return nil, rejected("invalid history: %v", err)
		}
	}
	return s.choose(r)
}

func rejected(format string, args ...any) error {
	return &session.ModelError{Fault: session.FaultRejected, Status: 400, Message: fmt.Sprintf(format, args...)}
}

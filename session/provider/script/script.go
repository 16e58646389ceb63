// Package script is a model that plays a script: deterministic, for fixtures, tests and demonstrations without a network. It owns no
// goroutine.
//
// A script is JSON: {"turns":[{"match":"text","steps":[…]}, …]}, or {"steps":[…]} for one. Each completion plays one turn. A turn with
// match answers every request whose last user message contains that text; the others are played in order. Which is next is told by the
// request alone, by how many completions its history holds, so that it survives a restart. When none is left the last one repeats.
//
// Steps, one member each beside its options (docs/script-provider.md):
//
//	{"text":S,"chunk":N,"delayMs":N}   text, in pieces of N characters with a pause between
//	{"delta":S}                        the same as text
//	{"reasoning":S} {"opaque":any}     reasoning shown; reasoning to be given back
//	{"call":{"id":S,"name":S,"arguments":object or text},"chunk":N}
//	{"usage":{"input":N,"cached":N,"output":N,"reasoning":N}}
//	{"sleepMs":N}
//	{"repeat":{"times":N,"steps":[…]}}
//	{"echo":true}                      the last user message as text
//	{"gate":S}                         waits for Open(S)
//	{"finish":S}                       stop, tool_calls, length, content_filter; implied at the end
//	{"fail":{"fault":S,"status":N,"message":S,"retryAfterMs":N}} or {"fail":"message"}
//	{"hang":true} {"cut":true} {"reset":true}
package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Script is a model that plays a script. Safe for concurrent use.
type Script struct {
	turns []turn

	mu       sync.Mutex
	gates    map[string]chan struct{}
	requests []session.ModelRequest
}

var _ session.Model = (*Script)(nil)

type turn struct {
	Match string `json:"match"`
	Steps []step `json:"steps"`
}

type step struct {
	Text      *string         `json:"text"`
	Delta     *string         `json:"delta"`
	Reasoning *string         `json:"reasoning"`
	Opaque    json.RawMessage `json:"opaque"`
	Call      *call           `json:"call"`
	Usage     *usage          `json:"usage"`
	SleepMS   *float64        `json:"sleepMs"`
	Repeat    *repeat         `json:"repeat"`
	Echo      bool            `json:"echo"`
	Gate      string          `json:"gate"`
	Finish    string          `json:"finish"`
	Fail      *fail           `json:"fail"`
	Hang      bool            `json:"hang"`
	Cut       bool            `json:"cut"`
	Reset     bool            `json:"reset"`

	Chunk   int     `json:"chunk"`
	DelayMS float64 `json:"delayMs"`
}

type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// raw is the arguments as the model would write them: a string is taken as it is.
func (c *call) raw() string {
	var s string
	if json.Unmarshal(c.Arguments, &s) == nil {
		return s
	}
	return string(c.Arguments)
}

type usage struct{ Input, Cached, Output, Reasoning int }

type repeat struct {
	Times int    `json:"times"`
	Steps []step `json:"steps"`
}

type fail struct {
	Fault        string  `json:"fault"`
	Status       int     `json:"status"`
	Message      string  `json:"message"`
	RetryAfterMS float64 `json:"retryAfterMs"`
}

// UnmarshalJSON takes a plain text as a message too.
func (f *fail) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &f.Message) == nil {
		f.Fault = string(session.FaultServer)
		return nil
	}
	type plain fail
	return strict(b, (*plain)(f))
}

// UnmarshalJSON refuses steps it does not know.
func (s *step) UnmarshalJSON(b []byte) error {
	type plain step
	return strict(b, (*plain)(s))
}

func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// New reads a script.
func New(data []byte) (*Script, error) {
	var doc struct {
		Turns []turn `json:"turns"`
		Steps []step `json:"steps"`
	}
	if err := strict(data, &doc); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if doc.Steps != nil {
		doc.Turns = append(doc.Turns, turn{Steps: doc.Steps})
	}
	if len(doc.Turns) == 0 {
		return nil, errors.New(`script: it has no turns; write {"turns":[{"steps":[{"text":"hi"}]}]}`)
	}
	for i, t := range doc.Turns {
		if err := check(t.Steps); err != nil {
			return nil, fmt.Errorf("script: turn %d: %w", i+1, err)
		}
	}
	return &Script{turns: doc.Turns, gates: map[string]chan struct{}{}}, nil
}

func check(steps []step) error {
	for i, s := range steps {
		if s.Repeat != nil {
			if err := check(s.Repeat.Steps); err != nil {
				return fmt.Errorf("step %d: %w", i+1, err)
			}
		}
		if s.Call != nil && s.Call.Name == "" {
			return fmt.Errorf("step %d: call has no name", i+1)
		}
		switch session.Finish(s.Finish) {
		case "", session.FinishStop, session.FinishCalls, session.FinishLength, session.FinishFilter:
		default:
			return fmt.Errorf("step %d: unknown finish %q", i+1, s.Finish)
		}
	}
	return nil
}

// Open opens a gate, for good.
func (m *Script) Open(gate string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := m.gate(gate)
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// gate returns the channel of a gate; m.mu is held.
func (m *Script) gate(name string) chan struct{} {
	if m.gates[name] == nil {
		m.gates[name] = make(chan struct{})
	}
	return m.gates[name]
}

// Requests lists what the model was asked so far.
func (m *Script) Requests() []session.ModelRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]session.ModelRequest(nil), m.requests...)
}

// pick chooses the turn that answers r.
func (m *Script) pick(r session.ModelRequest) turn {
	said, done := "", 0
	for _, msg := range r.Messages {
		switch msg.Role {
		case session.RoleUser:
			said = msg.Text
		case session.RoleAssistant:
			if !msg.Interrupted {
				done++
			}
		case session.RoleSystem, session.RoleTool:
		}
	}
	var line []turn
	for _, t := range m.turns {
		if t.Match == "" {
			line = append(line, t)
		} else if strings.Contains(said, t.Match) && r.Messages[len(r.Messages)-1].Role == session.RoleUser {
			return t
		}
	}
	if len(line) == 0 {
		return m.turns[len(m.turns)-1]
	}
	return line[min(done, len(line)-1)]
}

// Generate implements session.Model.
func (m *Script) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	m.mu.Unlock()
	t := m.pick(r)
	return func(yield func(session.Chunk, error) bool) {
		p := &player{m: m, ctx: ctx, r: r, yield: yield}
		err := p.play(t.Steps)
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(session.Chunk{}, err)
		case p.calls > 0:
			yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishCalls}, nil)
		default:
			yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
		}
	}
}

// errStopped ends a completion without another word.
var errStopped = errors.New("stopped")

type player struct {
	m     *Script
	ctx   context.Context
	r     session.ModelRequest
	yield func(session.Chunk, error) bool
	calls int
}

func (p *player) send(c session.Chunk) error {
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	if !p.yield(c, nil) {
		return errStopped
	}
	return nil
}

func (p *player) sleep(ms float64) error {
	if ms <= 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(ms * float64(time.Millisecond)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// pieces sends text in pieces of chunk characters.
func (p *player) pieces(text string, s step, send func(string) error) error {
	for first := true; text != ""; first = false {
		if !first {
			if err := p.sleep(s.DelayMS); err != nil {
				return err
			}
		}
		part := text
		if s.Chunk > 0 {
			part = protocol.Prefix(text, s.Chunk)
		}
		text = text[len(part):]
		if err := send(part); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) play(steps []step) error {
	for _, s := range steps {
		if err := p.step(s); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) step(s step) error {
	say := func(kind session.ChunkKind) func(string) error {
		return func(part string) error { return p.send(session.Chunk{Kind: kind, Text: part}) }
	}
	switch {
	case s.Text != nil:
		return p.pieces(*s.Text, s, say(session.ChunkText))
	case s.Delta != nil:
		return p.pieces(*s.Delta, s, say(session.ChunkText))
	case s.Reasoning != nil:
		return p.pieces(*s.Reasoning, s, say(session.ChunkReasoning))
	case s.Opaque != nil:
		return p.send(session.Chunk{Kind: session.ChunkOpaque, Opaque: s.Opaque})
	case s.Call != nil:
		return p.call(s)
	case s.Usage != nil:
		return p.send(session.Chunk{Kind: session.ChunkUsage, Usage: session.Usage(*s.Usage)})
	case s.SleepMS != nil:
		return p.sleep(*s.SleepMS)
	case s.Repeat != nil:
		for range s.Repeat.Times {
			if err := p.play(s.Repeat.Steps); err != nil {
				return err
			}
		}
		return nil
	case s.Echo:
		for i := len(p.r.Messages) - 1; i >= 0; i-- {
			if p.r.Messages[i].Role == session.RoleUser {
				return p.pieces(p.r.Messages[i].Text, s, say(session.ChunkText))
			}
		}
		return nil
	case s.Gate != "":
		p.m.mu.Lock()
		gate := p.m.gate(s.Gate)
		p.m.mu.Unlock()
		select {
		case <-gate:
			return nil
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	case s.Finish != "":
		if err := p.send(session.Chunk{Kind: session.ChunkFinish, Finish: session.Finish(s.Finish)}); err != nil {
			return err
		}
		return errStopped
	default:
		return p.fault(s)
	}
}

func (p *player) call(s step) error {
	p.calls++
	c := s.Call
	if err := p.send(session.Chunk{Kind: session.ChunkCallStart, CallID: c.ID, Name: c.Name}); err != nil {
		return err
	}
	raw := c.raw()
	if err := p.pieces(raw, s, func(part string) error {
		return p.send(session.Chunk{Kind: session.ChunkCallDelta, CallID: c.ID, Text: part})
	}); err != nil {
		return err
	}
	return p.send(session.Chunk{Kind: session.ChunkCallEnd, CallID: c.ID, Name: c.Name, Text: raw})
}

func (p *player) fault(s step) error {
	switch {
	case s.Fail != nil:
		e := &session.ModelError{
			Fault: session.Fault(s.Fail.Fault), Status: s.Fail.Status, Message: s.Fail.Message,
			RetryAfter: time.Duration(s.Fail.RetryAfterMS * float64(time.Millisecond)),
		}
		if e.Message == "" {
			e.Message = "The script failed."
		}
		return e
	case s.Hang:
		<-p.ctx.Done()
		return context.Cause(p.ctx)
	case s.Cut:
		return &session.ModelError{Fault: session.FaultCut, Message: "The script cut the stream."}
	case s.Reset:
		return &session.ModelError{Fault: session.FaultCut, Message: "The script reset the connection.", Cause: syscall.ECONNRESET}
	}
	return nil
}

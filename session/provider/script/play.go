package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// player plays one completion.
type player struct {
	ctx        context.Context
	script     *Script
	request    session.ModelRequest
	completion *completion
	yield      func(session.Chunk, error) bool
	began      bool // a chunk was yielded
	calls      int
	said       strings.Builder // kept only where a final step asks
}

func (p *player) play() {
	if !p.steps(p.completion.steps) {
		return
	}
	finish := session.FinishStop
	if p.calls > 0 {
		finish = session.FinishCalls
	}
	p.emit(session.Chunk{Kind: session.ChunkFinish, Finish: finish})
}

// steps plays a list; false means that the completion is over.
func (p *player) steps(list []step) bool {
	for i := range list {
		if !p.step(&list[i]) {
			return false
		}
	}
	return true
}

func (p *player) step(st *step) bool {
	switch st.verb {
	case "text", "delta":
		return p.say(session.Chunk{Kind: session.ChunkText}, st.text, st.pace)
	case "echo":
		return p.say(session.Chunk{Kind: session.ChunkText}, lastUser(p.request.Messages), st.pace)
	case "final":
		return p.finale(st)
	case "reasoning":
		return p.say(session.Chunk{Kind: session.ChunkReasoning}, st.text, st.pace)
	case "opaque":
		return p.emit(session.Chunk{Kind: session.ChunkOpaque, Opaque: st.raw})
	case "call":
		return p.call(st)
	case "tool":
		return p.call(st) && p.finish(session.FinishCalls)
	case "usage":
		return p.emit(session.Chunk{Kind: session.ChunkUsage, Usage: st.usage})
	case "alive":
		return p.emit(session.Chunk{Kind: session.ChunkAlive})
	case "sleepMs":
		return p.sleep(st.wait)
	case "gate":
		return p.gate(st.text)
	case "expect":
		if text := st.expect.miss(p.request); text != "" {
			return p.fail(rejected("script %s: %s", st.path, text))
		}
		return true
	case "repeat":
		for range st.times {
			if p.ctx.Err() != nil {
				return p.fail(context.Cause(p.ctx))
			}
			if !p.steps(st.steps) {
				return false
			}
		}
		return true
	case "finish":
		return p.finish(st.finish)
	case "fail":
		e := *st.fail
		return p.fail(&e)
	case "cut":
		return p.fail(&session.ModelError{Fault: session.FaultCut, Message: "the stream ended before it was complete"})
	case "reset":
		return p.reset()
	case "hang":
		<-p.ctx.Done()
		return p.fail(context.Cause(p.ctx))
	}
	return p.fail(fmt.Errorf("script %s: step %q is parsed but cannot be played", st.path, st.verb))
}

// emit yields a chunk, unless the context has ended: then it yields its cause.
func (p *player) emit(c session.Chunk) bool {
	if p.ctx.Err() != nil {
		return p.fail(context.Cause(p.ctx))
	}
	p.began = true
	return p.yield(c, nil)
}

// fail yields the last element of the sequence.
func (p *player) fail(err error) bool {
	p.yield(session.Chunk{}, err)
	return false
}

func (p *player) finish(f session.Finish) bool {
	p.emit(session.Chunk{Kind: session.ChunkFinish, Finish: f})
	return false
}

func (p *player) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	if err := p.script.pause(p.ctx, d); err != nil {
		return p.fail(err)
	}
	return true
}

func (p *player) gate(name string) bool {
	g := p.script.gates[name]
	g.reaching.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return true
	case <-p.ctx.Done():
		return p.fail(context.Cause(p.ctx))
	}
}

// say yields text at its pace, each piece in a copy of c.
func (p *player) say(c session.Chunk, text string, at pace) bool {
	if p.completion.final && c.Kind == session.ChunkText {
		p.said.WriteString(text)
	}
	for first := true; text != ""; first = false {
		c.Text = text
		if at.chunk > 0 {
			c.Text = protocol.Prefix(text, at.chunk)
		}
		text = text[len(c.Text):]
		if !first && !p.sleep(at.delay) {
			return false
		}
		if !p.emit(c) {
			return false
		}
	}
	return true
}

// finale says what is missing so that the answer is the text of a final step; where the answer went elsewhere already, the text
// follows it as a paragraph.
func (p *player) finale(st *step) bool {
	said := p.said.String()
	rest, ok := strings.CutPrefix(st.text, said)
	if !ok {
		rest = "\n\n" + st.text
	}
	return p.say(session.Chunk{Kind: session.ChunkText}, rest, st.pace)
}

func (p *player) call(st *step) bool {
	p.calls++
	id := st.callID
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", p.completion.n, p.calls)
	}
	args := string(st.raw)
	return p.emit(session.Chunk{Kind: session.ChunkCallStart, CallID: id, Name: st.text}) &&
		p.say(session.Chunk{Kind: session.ChunkCallDelta, CallID: id}, args, st.pace) &&
		p.emit(session.Chunk{Kind: session.ChunkCallEnd, CallID: id, Name: st.text, Text: args})
}

// reset breaks the connection: before anything came that is a network fault, later a cut (session.Fault).
func (p *player) reset() bool {
	e := &session.ModelError{Fault: session.FaultCut, Message: "connection reset by peer", Cause: syscall.ECONNRESET}
	if !p.began {
		e.Fault = session.FaultNetwork
	}
	return p.fail(e)
}

func lastUser(messages []session.Message) string {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == session.RoleUser {
			return messages[i].Text
		}
	}
	return ""
}

// faultOf is the fault a provider's HTTP status stands for.
func faultOf(status int) (session.Fault, error) {
	switch {
	case status == 401 || status == 403:
		return session.FaultAuth, nil
	case status == 402:
		return session.FaultQuota, nil
	case status == 404:
		return session.FaultModel, nil
	case status == 413:
		return session.FaultContext, nil
	case status == 429:
		return session.FaultRate, nil
	case status >= 500 && status <= 599:
		return session.FaultServer, nil
	case status == 0 || status >= 400 && status <= 499:
		return session.FaultRejected, nil
	}
	return "", errors.New("needs a fault, or a status of 400 to 599")
}

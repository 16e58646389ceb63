package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/protocol/rpc"
	"github.com/rind-dev/rind/session"
)

// asks are the questions put to the client that have no answer yet. The pending action belongs to the session: whoever answers first, answers.
type asks struct {
	life context.Context // of all of them
	end  context.CancelFunc

	mu     sync.Mutex // guards what follows
	closed bool
	open   map[string]*asked // by action id
	last   int64             // id of our newest call
	silent map[string]bool   // call ids whose withdrawal is written already, or is not to be
}

// asked is one question on its way, or its answer, which the session cannot take yet.
type asked struct {
	id   string // of our call; "" once it is answered; read and written with mu of asks held
	stop context.CancelFunc
}

// answerRetry is how long an answer waits that could not be handed over.
const answerRetry = time.Second

// sendCall writes a call of ours.
func (c *Conn) sendCall(call protocol.Call) {
	c.out.Line(append(acp.AppendCall(nil, call), '\n'), "")
}

// withdrawCall takes one back, unless that was written already.
func (c *Conn) withdrawCall(id string) {
	c.asks.mu.Lock()
	silent := c.asks.silent[id]
	delete(c.asks.silent, id)
	c.asks.mu.Unlock()
	if !silent {
		c.out.Line(append(acp.AppendWithdrawal(nil, id), '\n'), "")
	}
}

// next is the id of our next call; a.mu is held.
func (a *asks) next() string {
	a.last++
	return strconv.FormatInt(a.last, 10)
}

// close lets go of all questions: what is open is left to whoever opens the session next. Those who wait end with their connection.
func (a *asks) close() {
	a.mu.Lock()
	a.closed = true
	for _, q := range a.open {
		if q.id != "" {
			a.silent[q.id] = true
		}
	}
	a.open = map[string]*asked{}
	a.mu.Unlock()
	a.end()
}

// resolved withdraws the question of an action that has its answer, in the order of the log.
func (a *asks) resolved(buf []byte, action string) []byte {
	a.mu.Lock()
	q := a.open[action]
	delete(a.open, action)
	id := ""
	if q != nil {
		id = q.id // it may be answered from here on
	}
	if id != "" {
		a.silent[id] = true
	}
	a.mu.Unlock()
	if q != nil {
		q.stop()
	}
	if id == "" {
		return buf
	}
	return append(acp.AppendWithdrawal(buf, id), '\n')
}

// ask puts an action to the client: consent as a permission, a question as a form, or as a permission of its choices, or as a message.
func (c *Conn) ask(f *follow, a *acp.Ask) {
	caps := c.clientCaps()
	s, id, root := f.Session, f.Session.ID, f.Session.Workspace()
	var call protocol.Call
	switch {
	case a.Approval != nil:
		call = protocol.Call{Method: acp.MethodPermission, Params: protocol.MustMarshal(acp.Permission(id, root, a.Approval))}
	case caps.Form:
		call = protocol.Call{Method: acp.MethodElicitation, Params: protocol.MustMarshal(acp.QuestionForm(id, a.CallID, a.Question.Question, a.Question.Options))}
	case len(a.Question.Options) > 0:
		call = protocol.Call{Method: acp.MethodPermission, Params: protocol.MustMarshal(acp.Choice(id, a.CallID, a.Question.Question, a.Question.Options))}
	default: // the next prompt is the answer
		said := acp.Chunk{Kind: acp.AgentChunk, MessageID: a.Action, Text: a.Question.Question + "\n"}
		c.out.update(id, said.Encode())
		s.Inspect(func(v *session.View) { // unless it is somebody else's to answer
			if t := v.Serial; c.isOwn(a.Turn) || t != nil && t.ID == a.Turn && c.uncovered(v, t) {
				s.PutOffQuestion(a.Question.ToolCallID, func(error) {})
			}
		})
		return
	}
	ctx, stop := context.WithCancel(c.asks.life)
	c.asks.mu.Lock()
	if c.asks.closed {
		c.asks.mu.Unlock()
		stop()
		return
	}
	call.ID = c.asks.next()
	before := c.asks.open[a.Action] // asked again: the dialog from before, or its answer, is void
	dialog := ""
	if before != nil {
		dialog = before.id
	}
	if dialog != "" {
		c.asks.silent[dialog] = true
	}
	q := &asked{call.ID, stop}
	c.asks.open[a.Action] = q
	c.asks.mu.Unlock()
	if dialog != "" {
		c.out.Line(append(acp.AppendWithdrawal(nil, dialog), '\n'), "")
	}
	if before != nil {
		before.stop()
	}
	go func() {
		defer stop()
		result, err := c.rpc.Call(ctx, call)
		c.asks.mu.Lock()
		mine := c.asks.open[a.Action] == q
		q.id = ""
		c.asks.mu.Unlock()
		if !mine || ctx.Err() != nil || errors.Is(err, rpc.ErrEnded) { // somebody else answered, or nobody does
			return
		}
		c.handOver(ctx, s, a, call.Method, result, err)
		c.asks.mu.Lock()
		if c.asks.open[a.Action] == q {
			delete(c.asks.open, a.Action)
		}
		c.asks.mu.Unlock()
	}()
}

// handOver answers the action, again every second while the session can take no answer, because the process that works in it is stopped or its
// log cannot be written: the dialog is gone, so that nobody would give the answer a second time. ctx ends when it is void.
func (c *Conn) handOver(ctx context.Context, s *session.Session, a *acp.Ask, method string, result json.RawMessage, failed error) {
	for {
		settled := make(chan error, 1)
		c.answered(s, a, method, result, failed, func(err error) { settled <- err })
		var err error
		select {
		case err = <-settled:
		case <-ctx.Done():
			return
		}
		if err == nil {
			return
		}
		c.d.cfg.Log.Info("answer of the client", "session", s.ID, "action", a.Action, "err", err)
		if kind := protocol.KindOf(err); kind != protocol.SessionBusy && kind != protocol.PersistenceError {
			return
		}
		select {
		case <-time.After(answerRetry):
		case <-ctx.Done():
			return
		}
	}
}

// answered hands the client's answer to the session; settled runs once.
func (c *Conn) answered(s *session.Session, a *acp.Ask, method string, result json.RawMessage, err error, settled func(error)) {
	if method == acp.MethodElicitation {
		words := ""
		if err == nil {
			words = acp.ReadForm(result)
		}
		s.AnswerQuestion(a.Question.ToolCallID, words, settled)
		return
	}
	option, cancelled, ok := acp.ReadPermission(result)
	if err == nil && cancelled {
		c.dismissed(s, a.Turn, settled)
		return
	}
	if a.Question != nil {
		if err != nil || !ok || option == acp.Declined {
			option = ""
		}
		s.AnswerQuestion(a.Question.ToolCallID, option, settled)
		return
	}
	known := false
	for _, o := range a.Approval.Options {
		known = known || o.ID == option
	}
	if err != nil || !ok || !known { // not understood: the careful answer
		option = protocol.Rejection(a.Approval.Options)
	}
	s.ResolveApproval(a.Action, option, settled)
}

package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// maxAsked bounds the requests for consent without an answer (docs/protocol/acp.md section 5.3).
const maxAsked = 16

// Bounds of one request: what it offers goes to the person in one line.
const (
	maxOptions  = 64
	maxOptionID = 1 << 10
)

// errWithdrawn ends a request the child took back.
var errWithdrawn = errors.New("the agent took the request back")

// asks answers a request of the child on a goroutine of its own.
func (c *child) asks(req protocol.Request) {
	handle := handlers[req.Method]
	if handle == nil {
		c.reply(protocol.Reply{ID: req.ID, Err: protocol.Errorf(protocol.MethodNotFound, "Unknown method: %s", oneLine(req.Method, 100))})
		c.event(req.Method, req.Params)
		return
	}
	key := string(req.ID)
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	_, twice := c.requests[key]
	full := len(c.requests) >= maxRequests
	if !twice && !full {
		c.requests[key] = cancel
	}
	c.mu.Unlock()
	switch {
	case twice:
		cancel()
		c.reply(protocol.Reply{Err: protocol.Errorf(acp.BadMessage, "A request with this id is in flight.")})
		return
	case full:
		cancel()
		c.reply(protocol.Reply{ID: req.ID, Err: protocol.Errorf(protocol.Overloaded, "Too many requests are in flight.")})
		return
	}
	c.host.mu.Lock()
	k := c.host.talk
	c.host.mu.Unlock()
	var prepared func(context.Context) (any, error)
	if k != nil && req.Method == acp.MethodPermission { // in the order of arrival
		prepared = k.permission(req.Params)
	}
	c.wg.Go(func() {
		defer func() {
			cancel()
			c.mu.Lock()
			delete(c.requests, key)
			c.mu.Unlock()
			c.touch()
		}()
		var result any
		var err error
		if prepared != nil {
			result, err = prepared(ctx)
		} else {
			result, err = handle(ctx, c, k, req.Params)
		}
		r := protocol.Reply{ID: req.ID, Result: result}
		if err != nil {
			r = protocol.Reply{ID: req.ID, Err: c.refusal(err)}
		}
		c.reply(r)
	})
}

// refusal is an error the child may see.
func (c *child) refusal(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errWithdrawn) {
		return protocol.Errorf(acp.RequestCancelled, "The request was cancelled.")
	}
	c.host.hosts.cfg.Log.Warn("a request of a hosted agent failed", "session", c.host.id, "err", err)
	return protocol.Errorf(protocol.InternalError, "Internal error.")
}

// withdrawn ends a request the child takes back.
func (c *child) withdrawn(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.requests[string(p.ID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

type handler func(ctx context.Context, c *child, k *talk, params json.RawMessage) (any, error)

// handlers are the requests a child may make.
var handlers = map[string]handler{
	acp.MethodPermission: func(context.Context, *child, *talk, json.RawMessage) (any, error) { // no turn is open
		return acp.Selected(""), nil
	},
	acp.MethodElicitation:     elicit,
	acp.MethodReadFile:        readFile,
	acp.MethodWriteFile:       writeFile,
	acp.MethodTerminalCreate:  terminalCreate,
	acp.MethodTerminalOutput:  terminalOutput,
	acp.MethodTerminalWait:    terminalWait,
	acp.MethodTerminalKill:    terminalKill,
	acp.MethodTerminalRelease: terminalRelease,
}

func noTurn() error {
	return protocol.Errorf(protocol.TurnNotActive, "No prompt is being answered.")
}

// permission takes a request for consent, in reading order, and returns what waits for its answer.
func (k *talk) permission(params json.RawMessage) func(context.Context) (any, error) {
	var p acp.HostPermission
	if err := json.Unmarshal(params, &p); err != nil {
		return func(context.Context) (any, error) { return nil, acp.Bad("The request for consent cannot be read.") }
	}
	for _, o := range p.Options {
		if len(p.Options) > maxOptions || len(o.ID) > maxOptionID {
			return func(context.Context) (any, error) {
				return nil, acp.Bad("A request for consent has at most %d options, with ids of at most %d bytes.", maxOptions, maxOptionID)
			}
		}
	}
	k.c.mu.Lock()
	k.c.asked = true
	k.c.mu.Unlock()
	k.mu.Lock()
	if k.closed || k.halted || k.asked >= maxAsked {
		k.mu.Unlock()
		return func(context.Context) (any, error) { return acp.Selected(""), nil }
	}
	k.asked++
	turn := k.queueUp()
	c := k.toolCall(&p.Call.HostCall, p.Call.Content)
	k.flush() // what was said before is told before the dialog
	k.mu.Unlock()
	return func(ctx context.Context) (any, error) {
		option := k.decide(ctx, c, p.Options, turn)
		k.mu.Lock()
		k.asked--
		k.leave(turn)
		k.mu.Unlock()
		return acp.Selected(option), nil
	}
}

// queueUp takes a place among those who want to ask the person: one after another, in the order of their coming. What it returns is closed when it
// is one's turn; it is given back to leave in any case. k.mu is held.
func (k *talk) queueUp() (turn chan struct{}) {
	turn = make(chan struct{})
	if k.line = append(k.line, turn); len(k.line) == 1 {
		close(turn)
	}
	return turn
}

// leave gives a place back. k.mu is held.
func (k *talk) leave(turn chan struct{}) {
	at := slices.Index(k.line, turn)
	k.line = slices.Delete(k.line, at, at+1)
	if at == 0 && len(k.line) > 0 {
		close(k.line[0])
	}
}

// wait waits for the turn to ask; leave is called in any case. It is for those whose order of coming does not matter.
func (k *talk) wait(ctx context.Context) (leave func(), err error) {
	k.mu.Lock()
	turn := k.queueUp()
	k.mu.Unlock()
	leave = func() {
		k.mu.Lock()
		k.leave(turn)
		k.mu.Unlock()
	}
	select {
	case <-turn:
		return leave, nil
	case <-k.stopped:
		return leave, noTurn()
	case <-ctx.Done():
		return leave, errWithdrawn
	}
}

// decide finds the option a request for consent is answered with; "" is cancelled. turn is its place among those who ask.
func (k *talk) decide(ctx context.Context, c *call, options []acp.HostPermOption, turn <-chan struct{}) string {
	mode, err := k.t.Mode()
	if err != nil {
		return ""
	}
	k.mu.Lock()
	kind := c.kind
	k.mu.Unlock()
	if option, decided := byMode(mode, kind, options); decided {
		k.answered(c, options, option)
		return option
	}
	if k.unasked {
		option := refused(options)
		k.answered(c, options, option)
		return option
	}
	select { // one after another
	case <-turn:
	case <-k.stopped:
		return ""
	case <-k.c.broken:
		return ""
	case <-ctx.Done():
		return ""
	}
	option := k.ask(ctx, c, options)
	k.answered(c, options, option)
	return option
}

// answered keeps how a call was decided: what one that was consented to writes and runs through us is covered by that.
func (k *talk) answered(c *call, options []acp.HostPermOption, option string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range options {
		if o.ID == option {
			c.approved = c.approved || strings.HasPrefix(o.Kind, "allow")
			c.rejected = strings.HasPrefix(o.Kind, "reject")
		}
	}
}

// ask puts a request to the person and waits; "" is cancelled. It is its turn to ask.
func (k *talk) ask(ctx context.Context, c *call, options []acp.HostPermOption) string {
	k.mu.Lock()
	a := &protocol.ApprovalRequested{ToolCallID: c.id, ToolName: c.name, Title: c.title, Arguments: c.arguments()}
	a.More.View = c.view()
	k.mu.Unlock()
	if a.Title == "" {
		a.Title = a.ToolName
	}
	for _, o := range options {
		a.Options = append(a.Options, protocol.Option{ID: o.ID, Label: oneLine(o.Name, 200), Kind: o.Kind})
	}
	answered := make(chan string, 1)
	go func() { // ends with the answer, at the latest with the turn
		option, err := k.t.Choose(a)
		if err != nil {
			option = ""
		}
		answered <- option
	}()
	select {
	case option := <-answered:
		return option
	case <-k.stopped:
	case <-k.c.broken:
	case <-ctx.Done(): // it does not want to know any more; the dialog is closed
		k.t.Withdraw(a.ToolCallID)
	}
	return ""
}

// arguments are what the call is made with, as an object.
func (c *call) arguments() json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(c.args, &object) == nil && object != nil {
		return c.args
	}
	return json.RawMessage(`{}`)
}

// byMode answers for the person where the mode says so (docs/protocol/acp.md section 5.3).
func byMode(mode, kind string, options []acp.HostPermOption) (option string, decided bool) {
	switch mode {
	case "full":
		if kind == "switch_mode" {
			return "", false
		}
		for _, o := range options {
			if o.Kind == "allow_once" {
				return o.ID, true
			}
		}
	case "read":
		switch kind {
		case "edit", "delete", "move", "execute":
			return refused(options), true
		}
	}
	return "", false
}

// refused is the option that refuses once, or the nearest to it; "" when none does.
func refused(options []acp.HostPermOption) string {
	found := ""
	for _, o := range options {
		switch {
		case o.Kind == "reject_once":
			return o.ID
		case found == "" && strings.HasPrefix(o.Kind, "reject"):
			found = o.ID
		}
	}
	return found
}

package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// maxRequests bounds the requests of a child that are in flight.
const maxRequests = 64

var (
	// errWithdrawn ends a request the child took back.
	errWithdrawn = errors.New("the agent took the request back")
	// errNoTurn answers a request that only a turn can serve.
	errNoTurn error = protocol.Errorf(protocol.TurnNotActive, "No prompt is being answered.")
)

// handler takes a request of the child on the reading goroutine, in reading order, and returns what answers it; k is the turn that is being
// answered, nil for none.
type handler func(c *child, k *talk, params json.RawMessage) reply

// reply answers a request on a goroutine of its own. ctx ends when the child takes the request back, or has ended.
type reply func(ctx context.Context) (any, error)

// handlers are the requests a child may make.
var handlers = map[string]handler{
	acp.MethodPermission:      permission,
	acp.MethodElicitation:     inAnyOrder(elicit),
	acp.MethodReadFile:        inAnyOrder(readFile),
	acp.MethodWriteFile:       inAnyOrder(writeFile),
	acp.MethodTerminalCreate:  inAnyOrder(terminalCreate),
	acp.MethodTerminalOutput:  inAnyOrder(terminalOutput),
	acp.MethodTerminalWait:    inAnyOrder(terminalWait),
	acp.MethodTerminalKill:    inAnyOrder(terminalKill),
	acp.MethodTerminalRelease: inAnyOrder(terminalRelease),
}

// inAnyOrder makes a handler of what does not depend on the order in which requests come.
func inAnyOrder[P any](answer func(ctx context.Context, c *child, k *talk, p *P) (any, error)) handler {
	return func(c *child, k *talk, params json.RawMessage) reply {
		return func(ctx context.Context) (any, error) {
			var p P
			if len(params) == 0 || json.Unmarshal(params, &p) != nil {
				return nil, acp.Bad("The params cannot be read.")
			}
			return answer(ctx, c, k, &p)
		}
	}
}

// always is a reply that is known already.
func always(result any, err error) reply {
	return func(context.Context) (any, error) { return result, err }
}

// asks takes a request of the child.
func (c *child) asks(req protocol.Request) {
	handle := handlers[req.Method]
	if handle == nil {
		c.reply(protocol.Reply{ID: req.ID, Err: protocol.Errorf(protocol.MethodNotFound, "Unknown method: %s", oneLine(req.Method, 100))})
		c.event(req.Method, req.Params)
		return
	}
	ctx, refusal := c.admit(req.ID)
	if refusal != nil {
		c.reply(*refusal)
		return
	}
	answer := handle(c, c.host.current(), req.Params)
	c.wg.Go(func() { // ends with the answer; ctx ends with the child
		defer c.settled(req.ID)
		defer func() {
			if v := recover(); v != nil {
				c.panicked(req, v, debug.Stack())
			}
		}()
		result, err := answer(ctx)
		if err != nil {
			c.reply(protocol.Reply{ID: req.ID, Err: c.refusal(err)})
			return
		}
		c.reply(protocol.Reply{ID: req.ID, Result: result})
	})
}

// admit enters a request among those in flight, or tells what refuses it.
func (c *child) admit(id json.RawMessage) (context.Context, *protocol.Reply) {
	key := string(id)
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.requests[key]; twice {
		cancel()
		return nil, &protocol.Reply{Err: protocol.Errorf(acp.BadMessage, "A request with this id is in flight.")}
	}
	if len(c.requests) >= maxRequests {
		cancel()
		return nil, &protocol.Reply{ID: id, Err: protocol.Errorf(protocol.Overloaded, "Too many requests are in flight.")}
	}
	c.requests[key] = cancel
	return ctx, nil
}

// settled ends a request that was admitted.
func (c *child) settled(id json.RawMessage) {
	c.mu.Lock()
	cancel := c.requests[string(id)]
	delete(c.requests, string(id))
	c.heard = time.Now()
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
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

// serves checks that the child may have a request of ours served, for its own session, and keeps that it made one.
func (c *child) serves(what, session string) error {
	offered, name := c.spec.FS, "Files"
	if what == "shell" {
		offered, name = c.spec.Terminal, "Terminals"
	}
	if !offered {
		return protocol.Errorf(protocol.MethodNotFound, "%s are not served.", name)
	}
	if err := c.mine(session); err != nil {
		return err
	}
	c.seenTo(what)
	return nil
}

// mine checks that a request is about the child's own session.
func (c *child) mine(session string) error {
	if session != c.session().ID {
		return protocol.Errorf(protocol.SessionNotFound, "There is no such session.")
	}
	return nil
}

// refusal is an error the child may see.
func (c *child) refusal(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errWithdrawn) {
		return protocol.Errorf(acp.RequestCancelled, "The request was cancelled.")
	}
	c.host.cfg.Log.Warn("a request of a hosted agent failed", "session", c.host.id, "err", err)
	return internal()
}

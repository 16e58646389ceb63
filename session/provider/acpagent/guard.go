package acpagent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// What the child asks us to do is judged as our own tools are.
var (
	readSpec  = session.ToolSpec{Name: "read_file", Kind: "read", ReadOnly: true}
	writeSpec = session.ToolSpec{Name: "write_file", Kind: "edit"}
	shellSpec = session.ToolSpec{Name: "bash", Kind: "execute"}
)

// deed is something the child asks us to do.
type deed struct {
	spec  session.ToolSpec
	title string
	args  any    // of our tool of that name
	path  string // absolute; "" for a command
	what  string // the path, or the command line
}

// granted is a deed that may be done.
type granted struct {
	call    *call // it belongs to; nil for none: nothing of it is recorded
	own     bool  // the call was made for it, and ends with it
	verdict session.Verdict
}

// key tells deeds apart: consent to one is none to another.
func (d *deed) key() string { return d.spec.Name + " " + d.what }

// covers reports whether the consent given to a call, or to the same deed in it, is consent to a deed.
func (c *call) covers(d *deed) bool {
	return !c.done && slices.Contains(c.deeds, d.key()) || c.approved && !c.done && c.fits(d) && (d.path == "" || len(c.places) == 0 || c.touches(d.path))
}

// fits reports whether a deed may be what a call does.
func (c *call) fits(d *deed) bool {
	switch c.kind {
	case "edit", "delete", "move":
		return d.spec.Kind == "edit"
	case "execute":
		return d.spec.Kind == "execute"
	case "", "other":
		return d.spec.Kind != "read"
	}
	return false
}

func rejected(text string) error {
	return &protocol.Error{Kind: protocol.InvalidRequest, Message: text, Details: map[string]any{"reason": "rejected"}}
}

// grant asks for consent to a deed where no open call that was consented to covers it. An error is for the child.
func (c *child) grant(ctx context.Context, k *talk, d *deed) (g granted, err error) {
	if k == nil {
		if d.spec.ReadOnly {
			if v, err := c.judge(ctx, "ask", "", d, "rind"); err == nil && v.Effect == "allow" {
				return granted{verdict: v}, nil
			}
		}
		return g, noTurn()
	}
	k.mu.Lock()
	if k.closed || k.halted {
		k.mu.Unlock()
		return g, noTurn()
	}
	for _, open := range k.open() {
		if open.covers(d) {
			k.start(open)
			k.mu.Unlock()
			return granted{call: open, verdict: session.Verdict{Effect: "allow"}}, nil
		}
	}
	k.mu.Unlock()
	mode, err := k.t.Mode()
	if err != nil {
		return g, noTurn()
	}
	v, err := c.judge(ctx, mode, k.t.ID, d, "rind")
	if err != nil {
		return g, err
	}
	if v.Effect == "allow" && d.spec.ReadOnly {
		return granted{verdict: v}, nil
	}
	k.mu.Lock()
	if k.closed || k.halted {
		k.mu.Unlock()
		return g, noTurn()
	}
	g.verdict = v
	for _, open := range k.open() { // the call it most likely is for
		if open.fits(d) && !open.approved && (d.path == "" || open.touches(d.path)) {
			g.call = open
			break
		}
	}
	if g.call == nil {
		g.call, g.own = k.ours(d.spec.Name, d.title, d.spec.Kind, d.args), true
	}
	k.mu.Unlock()
	switch {
	case v.Effect == "allow":
	case v.Effect == "deny":
		k.refuse(&g, v.Reason)
		return g, rejected(v.Reason)
	case k.unasked:
		k.refuse(&g, "This needs consent and nobody can be asked.")
		return g, rejected("This needs consent and nobody can be asked.")
	default:
		ok, err := k.consent(ctx, g.call, d, &v)
		if err != nil {
			return g, err
		}
		if !ok {
			k.refuse(&g, "The user rejected this.")
			return g, rejected("The user rejected this.")
		}
	}
	k.mu.Lock()
	g.call.deeds = append(g.call.deeds, d.key())
	k.start(g.call)
	k.mu.Unlock()
	return g, nil
}

// judge asks the policy.
func (c *child) judge(ctx context.Context, mode string, turn session.TurnID, d *deed, id string) (session.Verdict, error) {
	if c.host.hosts.cfg.Policy == nil {
		if d.spec.ReadOnly {
			return session.Verdict{Effect: "allow"}, nil
		}
		return session.Verdict{Effect: "ask", Title: d.title}, nil
	}
	return c.host.hosts.cfg.Policy.Judge(ctx, mode, d.spec, session.ToolCall{
		ID: id, Name: d.spec.Name, Arguments: protocol.MustMarshal(d.args), Session: c.host.id, Turn: turn, Roots: c.roots(),
	})
}

// consent puts a deed to the person.
func (k *talk) consent(ctx context.Context, c *call, d *deed, v *session.Verdict) (bool, error) {
	leave, err := k.wait(ctx)
	defer leave()
	if err != nil {
		return false, err
	}
	a := &protocol.ApprovalRequested{ToolCallID: c.id, ToolName: d.spec.Name, Title: v.Title, Arguments: protocol.MustMarshal(d.args)}
	if a.Title == "" {
		a.Title = d.title
	}
	a.More.Rule = v.Rule
	type answer struct {
		ok  bool
		err error
	}
	answered := make(chan answer, 1)
	go func() { // ends with the answer, at the latest with the turn
		ok, err := k.t.RequestApproval(a)
		answered <- answer{ok, err}
	}()
	select {
	case got := <-answered:
		if got.err != nil {
			return false, noTurn()
		}
		return got.ok, nil
	case <-k.stopped:
		return false, noTurn()
	case <-ctx.Done():
		k.t.Withdraw(c.id)
		return false, errWithdrawn
	}
}

// refuse ends a call that was made for a deed that is not done.
func (k *talk) refuse(g *granted, why string) {
	if !g.own {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed && !g.call.done {
		k.end(g.call, protocol.ToolRejected, why)
	}
}

// fault ends a call of ours whose deed failed.
func (k *talk) fault(g *granted, why string) {
	if k == nil || !g.own {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed && !g.call.done {
		k.end(g.call, protocol.ToolFailed, why)
	}
}

func (c *child) roots() []string {
	return append(c.host.hosts.cfg.Roots(c.dir), c.further...)
}

func badParams(what string) error { return acp.Bad("%s", what) }

func readParams(params json.RawMessage, into any) error {
	if len(params) == 0 || json.Unmarshal(params, into) != nil {
		return badParams("The params cannot be read.")
	}
	return nil
}

// mine checks that a request is about the child's own session.
func (c *child) mine(id string) error {
	if id != c.session().ID {
		return protocol.Errorf(protocol.SessionNotFound, "There is no such session.")
	}
	return nil
}

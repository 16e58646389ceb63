package acpagent

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// This file is the consent to what a child has us do, which is judged as our own tools are.

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
	what  string // the path, or the command line and where it runs
}

// key tells deeds apart: consent to one is none to another.
func (d *deed) key() string { return d.spec.Name + " " + d.what }

// granted is a deed that may be done. Whoever was granted it says with done or failed what came of it.
type granted struct {
	k     *talk // nil outside a turn
	call  *call // it belongs to; nil for none: nothing of it is recorded
	own   bool  // the call was made for it, and ends with it
	reads bool  // it was allowed because it only reads
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

// covers reports whether the consent given to an open call, or to the same deed in it, is consent to a deed.
func (c *call) covers(d *deed) bool {
	if slices.Contains(c.deeds, d.key()) {
		return true
	}
	return c.approved && c.fits(d) && (d.path == "" || len(c.places) == 0 || c.touches(d.path))
}

// likely reports whether a deed most likely is what an open call is about.
func (c *call) likely(d *deed) bool {
	return c.fits(d) && !c.approved && (d.path == "" || c.touches(d.path))
}

// grant asks for consent to a deed where no open call that was consented to covers it. An error is for the child.
func (c *child) grant(ctx context.Context, k *talk, d *deed) (*granted, error) {
	if k == nil {
		return c.grantOutside(ctx, d)
	}
	if g, err := k.covered(d); g != nil || err != nil {
		return g, err
	}
	mode, err := k.t.Mode()
	if err != nil {
		return nil, errNoTurn
	}
	v, err := c.judge(ctx, mode, k.t.ID, d)
	if err != nil {
		return nil, err
	}
	if v.Effect == "allow" && d.spec.ReadOnly {
		return &granted{k: k, reads: v.Reads}, nil
	}
	g, err := k.claim(d)
	if err != nil {
		return nil, err
	}
	g.reads = v.Reads
	if err := g.consented(ctx, d, &v); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	g.call.deeds = append(g.call.deeds, d.key())
	k.start(g.call)
	return g, nil
}

// grantOutside grants a deed while no turn runs: only what reads, and needs nobody's consent.
func (c *child) grantOutside(ctx context.Context, d *deed) (*granted, error) {
	if d.spec.ReadOnly {
		if v, err := c.judge(ctx, "ask", "", d); err == nil && v.Effect == "allow" {
			return &granted{reads: v.Reads}, nil
		}
	}
	return nil, errNoTurn
}

// judge asks the policy.
func (c *child) judge(ctx context.Context, mode string, turn session.TurnID, d *deed) (session.Verdict, error) {
	policy := c.host.cfg.Policy
	switch {
	case policy != nil:
		return policy.Judge(ctx, mode, d.spec, session.ToolCall{
			ID: "rind", Name: d.spec.Name, Arguments: protocol.MustMarshal(d.args), Session: c.host.id, Turn: turn, Roots: c.roots(),
		})
	case d.spec.ReadOnly:
		return session.Verdict{Effect: "allow"}, nil
	}
	return session.Verdict{Effect: "ask", Title: d.title}, nil
}

// covered grants a deed that the consent to an open call covers; nil where none does.
func (k *talk) covered(d *deed) (*granted, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.halted() {
		return nil, errNoTurn
	}
	for _, open := range k.open() {
		if open.covers(d) {
			k.start(open)
			return &granted{k: k, call: open}, nil
		}
	}
	return nil, nil
}

// claim finds the call that a deed belongs to: an open one that it likely is for, else one of our own. Consent to it is still needed.
func (k *talk) claim(d *deed) (*granted, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.halted() {
		return nil, errNoTurn
	}
	for _, open := range k.open() {
		if open.likely(d) {
			return &granted{k: k, call: open}, nil
		}
	}
	return &granted{k: k, call: k.ours(d.spec.Name, d.title, d.spec.Kind, d.args), own: true}, nil
}

// consented returns when the verdict, or the person, allows a deed. An error is for the child.
func (g *granted) consented(ctx context.Context, d *deed, v *session.Verdict) error {
	switch {
	case v.Effect == "allow":
		return nil
	case v.Effect == "deny":
		return g.refuse(v.Reason)
	case g.k.unasked:
		return g.refuse("This needs consent and nobody can be asked.")
	}
	ok, err := g.k.consent(ctx, g.call, d, v)
	if err == nil && !ok {
		return g.refuse(refusedByUser)
	}
	return err
}

// consent puts a deed to the person.
func (k *talk) consent(ctx context.Context, c *call, d *deed, v *session.Verdict) (bool, error) {
	leave, err := k.queue(ctx)
	defer leave()
	if err != nil {
		return false, err
	}
	a := &protocol.ApprovalRequested{ToolCallID: c.id, ToolName: d.spec.Name, Title: v.Title, Arguments: protocol.MustMarshal(d.args)}
	if a.Title == "" {
		a.Title = d.title
	}
	a.More.Rule = v.Rule
	return ask(ctx, k, c.id, func() (bool, error) { return k.t.RequestApproval(a) })
}

// refuse says why a deed is not done, and ends a call that was made for it.
func (g *granted) refuse(why string) error {
	g.end(protocol.ToolRejected, why)
	return &protocol.Error{Kind: protocol.InvalidRequest, Message: why, Details: map[string]any{"reason": "rejected"}}
}

// failed ends a call that was made for a deed which failed.
func (g *granted) failed(why string) { g.end(protocol.ToolFailed, why) }

// done ends a call that was made for a deed, which is done.
func (g *granted) done() { g.end(protocol.ToolCompleted, "") }

func (g *granted) end(status, why string) {
	if !g.own {
		return
	}
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	g.k.end(g.call, status, why)
}

// wrote records what a deed changed, with the call it belongs to.
func (g *granted) wrote(ch *protocol.FileChange) {
	if g.call == nil {
		return
	}
	g.k.mu.Lock()
	defer g.k.mu.Unlock()
	if g.k.closed {
		return
	}
	ch.ToolCallID = g.call.id
	first, err := g.k.t.FirstChange(ch.FilePath)
	ch.More.First = first && err == nil
	g.call.written[filepath.Clean(filepath.FromSlash(ch.FilePath))] = true
	g.k.record(ch)
}

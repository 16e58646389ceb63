package acpagent

import (
	"context"
	"slices"

	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// This file is how a child is set: by us before a prompt, and by itself (docs/protocol/acp.md sections 5.1 and 5.2).

// OwnModel is the model of a session that leaves the choice to its agent.
const OwnModel = "default"

// settle sets the child to what the session is set to, as far as it offers that.
func (c *child) settle(ctx context.Context, t *session.Turn) {
	mode, err := t.Mode()
	if err != nil {
		return
	}
	c.setOption(ctx, "mode", mode)
	if t.Selection.Model != OwnModel {
		c.setOption(ctx, "model", t.Selection.Model)
	}
	c.setOption(ctx, "thought_level", t.Selection.Effort)
	c.setMode(ctx, mode)
}

// setOption sets one of the child's options, where it has one of that category which can be so, and is not.
func (c *child) setOption(ctx context.Context, category, value string) {
	self := c.session()
	o := self.Option(category)
	if o == nil || value == "" || o.Current == value || !o.Has(value) {
		return
	}
	raw, err := c.within(ctx, c.host.cfg.times.open, acp.MethodSetOption, object{"sessionId": self.ID, "configId": o.ID, "value": value})
	if err != nil {
		c.host.cfg.Log.Info("a hosted agent did not take a setting", "session", c.host.id, "category", category, "err", c.mask(err.Error()))
		return
	}
	if list := acp.ReadHostOptions(acp.ReadParams(raw)["configOptions"]); len(list) > 0 {
		c.change(func(self *acp.HostSession) { self.Options = list })
	}
}

// setMode sets the mode of a child that has modes, and no option for them.
func (c *child) setMode(ctx context.Context, mode string) {
	self := c.session()
	if self.Option("mode") != nil || self.Mode == mode || !slices.Contains(self.Modes, mode) {
		return
	}
	if _, err := c.within(ctx, c.host.cfg.times.open, acp.MethodSetMode, object{"sessionId": self.ID, "modeId": mode}); err == nil {
		c.change(func(self *acp.HostSession) { self.Mode = mode })
	}
}

// strictness orders the modes of ours: a child may set itself, and with that the session, to one that allows less, never to one that allows more.
var strictness = map[string]int{"read": 1, "ask": 2, "edit": 3, "full": 4}

// own are the settings a child changed by itself; nil ones it did not.
type own struct{ mode, model, effort *string }

// changed keeps how the child is set now, and tells what is new in that.
func (c *child) changed(u *acp.HostUpdate) own {
	c.mu.Lock()
	before := c.self
	if u.Kind == acp.ModeUpdate {
		c.self.Mode = u.Mode
	} else if list := acp.ReadHostOptions(u.Options); len(list) > 0 {
		c.self.Options = list
	}
	after := c.self
	c.mu.Unlock()
	var o own
	if after.Mode != before.Mode {
		o.mode = &after.Mode
	}
	for category, into := range map[string]**string{"mode": &o.mode, "model": &o.model, "thought_level": &o.effort} {
		was, is := before.Option(category), after.Option(category)
		if was != nil && is != nil && is.Current != "" && is.Current != was.Current {
			*into = &is.Current
		}
	}
	return o
}

// change is what of it the session takes over.
func (o own) change(provider string) func(session.Selection) (session.Change, bool) {
	return func(sel session.Selection) (session.Change, bool) {
		var ch session.Change
		if o.mode != nil && strictness[*o.mode] > 0 && strictness[*o.mode] < strictness[sel.Mode] {
			ch.Mode = o.mode
		}
		if sel.Provider == provider { // with --agent a session may be set to another one's models
			if o.model != nil && *o.model != sel.Model {
				ch.Model = o.model
			}
			if o.effort != nil && *o.effort != sel.Effort {
				ch.Effort = o.effort
			}
		}
		return ch, ch != session.Change{}
	}
}

// adopt takes over what the child set itself to; what is no setting of ours is kept as it was sent. k.mu is held.
func (k *talk) adopt(u *acp.HostUpdate) {
	taken, err := k.t.Adopt(k.c.changed(u).change(k.c.spec.Provider))
	k.fails(err)
	if !taken {
		k.event(u)
	}
}

package acpagent

import (
	"context"
	"encoding/json"
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

const refusedByUser = "The user rejected this."

// permission takes session/request_permission: what the child asks consent to is told, and has its place in line, in the order of reading.
func permission(_ *child, k *talk, params json.RawMessage) reply {
	cancelled := always(acp.Selected(""), nil)
	if k == nil {
		return cancelled
	}
	var p acp.HostPermission
	if err := json.Unmarshal(params, &p); err != nil {
		return always(nil, acp.Bad("The request for consent cannot be read."))
	}
	if !offerable(p.Options) {
		return always(nil, acp.Bad("A request for consent has at most %d options, with ids of at most %d bytes.", maxOptions, maxOptionID))
	}
	k.c.seenTo("asked")
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.halted() || k.asked >= maxAsked {
		return cancelled
	}
	k.asked++
	place := k.line.join()
	c := k.toolCall(&p.Call.HostCall, p.Call.Content)
	k.flush() // what was said before is told before the dialog
	return func(ctx context.Context) (any, error) {
		option := k.decide(ctx, c, p.Options, place)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asked--
		k.line.leave(place)
		c.decided(p.Options, option)
		return acp.Selected(option), nil
	}
}

func offerable(options []acp.HostPermOption) bool {
	for _, o := range options {
		if len(o.ID) > maxOptionID {
			return false
		}
	}
	return len(options) <= maxOptions
}

// decide finds the option a request for consent is answered with; "" is cancelled.
func (k *talk) decide(ctx context.Context, c *call, options []acp.HostPermOption, place <-chan struct{}) string {
	mode, err := k.t.Mode()
	if err != nil {
		return ""
	}
	k.mu.Lock()
	kind := c.kind
	k.mu.Unlock()
	if option, decided := byMode(mode, kind, options); decided {
		return option
	}
	if k.unasked {
		return refused(options)
	}
	if k.first(ctx, place) != nil {
		return ""
	}
	a := k.requestFor(c, options)
	option, err := ask(ctx, k, a.ToolCallID, func() (string, error) { return k.t.Choose(a) })
	if err != nil {
		return ""
	}
	return option
}

// requestFor is what the person is shown of a request: the call, and the child's own options.
func (k *talk) requestFor(c *call, options []acp.HostPermOption) *protocol.ApprovalRequested {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := &protocol.ApprovalRequested{ToolCallID: c.id, ToolName: c.name, Title: c.title, Arguments: c.arguments()}
	a.More.View = c.view()
	if a.Title == "" {
		a.Title = a.ToolName
	}
	for _, o := range options {
		a.Options = append(a.Options, protocol.Option{ID: o.ID, Label: oneLine(o.Name, 200), Kind: o.Kind})
	}
	return a
}

// decided keeps how a call was decided: what one that was consented to writes and runs through us is covered by that.
func (c *call) decided(options []acp.HostPermOption, option string) {
	for _, o := range options {
		if o.ID == option && option != "" {
			c.approved = c.approved || strings.HasPrefix(o.Kind, "allow")
			c.rejected = strings.HasPrefix(o.Kind, "reject")
		}
	}
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
	all := make([]protocol.Option, len(options))
	for i, o := range options {
		all[i] = protocol.Option{ID: o.ID, Label: o.Name, Kind: o.Kind}
	}
	return protocol.Rejection(all)
}

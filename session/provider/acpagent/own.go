package acpagent

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// This file is what a child does to itself: how it is set, and its context (docs/protocol/acp.md section 5.2).

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
	if err != nil && k.err == nil {
		k.err = err
	}
	if !taken {
		k.event(u)
	}
}

// Bounds of what is kept of compactions that have not ended.
const (
	maxCompactions = 16
	maxSummary     = 256 << 10 // of what one shows of the rest
)

// compaction is one of the child's, as far as it told of it.
type compaction struct {
	summary strings.Builder
	done    bool
}

// compacts takes what the child tells of a compaction of its context: its end is a fact, its beginning is shown. k.mu is held.
func (k *talk) compacts(u *acp.HostUpdate) {
	c := k.compactions[u.Compaction]
	if c == nil && len(k.compactions) < maxCompactions && u.Compaction != "" {
		c = &compaction{}
		k.compactions[u.Compaction] = c
		if u.Kind == acp.CompactionChunk || u.Status == acp.StatusInProgress {
			k.notice("info", "The agent makes room in its context.", u)
		}
	}
	if c == nil || c.done {
		k.event(u)
		return
	}
	if u.Kind == acp.CompactionChunk {
		if text := acp.ReadHostBlock(u.Content).Text; c.summary.Len()+len(text) <= maxSummary {
			c.summary.WriteString(text)
		}
		return
	}
	if len(u.Summary) > 0 { // it replaces what was said before, also by null
		c.summary.Reset()
		c.summary.WriteString(protocol.Prefix(acp.BlocksText(u.Summary), maxSummary))
	}
	switch u.Status {
	case acp.StatusCompleted:
		c.done = true
		k.flush()
		b, err := k.t.Compacted(k.c.spec.Provider, c.summary.String(), k.asksToCompact)
		if err == nil {
			k.record(b)
		}
	case acp.StatusFailed, "cancelled":
		c.done = true
		text := "The agent could not make room in its context."
		if u.Error != nil && *u.Error != "" {
			text = "The agent could not make room in its context: " + oneLine(k.c.mask(*u.Error), 500)
		}
		k.notice("warning", text, u)
	case acp.StatusInProgress:
	default:
		k.event(u)
	}
}

// notice shows a line beside the conversation. k.mu is held.
func (k *talk) notice(severity, title string, u *acp.HostUpdate) {
	k.t.Note(noticeOf(severity, title, u))
}

func noticeOf(severity, title string, u *acp.HostUpdate) protocol.Body {
	b := &protocol.Notice{Severity: severity, Title: oneLine(title, 1000)}
	if b.Severity != "warning" && b.Severity != "error" {
		b.Severity = "info"
	}
	b.More.Data = u.Raw
	return b
}

// event keeps an update as it was sent. k.mu is held.
func (k *talk) event(u *acp.HostUpdate) {
	k.t.Note(providerEvent(k.c.spec.Provider, acp.MethodUpdate, u.Raw))
}

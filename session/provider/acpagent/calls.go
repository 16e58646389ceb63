package acpagent

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// This file is what the log is told of the calls of a turn. k.mu is held in all of it.

// Bounds of what is told.
const (
	maxProgress  = 8 << 10
	maxRawOutput = 8 << 10
	maxShown     = 1 << 20 // of a call's content
)

// toolCall takes what the child tells of a call: the first makes it, whatever it is called.
func (k *talk) toolCall(h *acp.HostCall, content json.RawMessage) *call {
	c := k.calls[h.ID]
	fresh := c == nil
	if fresh {
		c = newCall(k.callID(h.ID))
		k.calls[h.ID] = c
		k.order = append(k.order, c)
	}
	if c.done { // it has its result: what comes after it is kept as it is
		if len(content) > 0 || h.RawOutput != nil {
			k.t.Note(k.c.providerEvent(acp.MethodUpdate, protocol.MustMarshal(object{"toolCallId": h.ID, "content": content, "rawOutput": h.RawOutput})))
		}
		return c
	}
	c.learn(h, content)
	runs := h.Status == acp.StatusInProgress || h.Status == acp.StatusCompleted
	switch {
	case fresh:
		k.request(c, runs)
	case runs:
		k.start(c)
	}
	switch {
	case h.Status == acp.StatusCompleted:
		k.end(c, protocol.ToolCompleted, "")
	case h.Status == acp.StatusFailed:
		k.end(c, protocol.ToolFailed, c.refusal())
	case !fresh && len(content) > 0:
		k.progress(c)
	}
	return c
}

// callID is our id of a call: unlike those of other children, and fit to be one.
func (k *talk) callID(theirs string) string {
	id := k.c.tag + "_" + theirs
	if theirs == "" || len(id) > 128 || strings.ContainsFunc(theirs, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		id = k.c.tag + "_" + k.t.NewID()[:16]
	}
	return id
}

// ours makes a call of our own, for what the child asks us to do beside the calls it told of.
func (k *talk) ours(name, title, kind string, args any) *call {
	c := newCall(k.c.tag + "_rind_" + strconv.Itoa(len(k.order)+1) + k.t.NewID()[:8])
	c.name, c.title, c.kind, c.args = name, title, kind, protocol.MustMarshal(args)
	k.order = append(k.order, c)
	k.request(c, false)
	return c
}

// request records a call, with its start where it runs already. It belongs to the newest message.
func (k *talk) request(c *call, runs bool) {
	step := k.message.id
	if step == "" {
		if k.step == "" {
			k.step = k.t.NewID()
		}
		step = k.step
	}
	c.name = c.tool()
	bodies := []protocol.Body{session.RequestedBy(c.id, step, c.name, c.title, c.args, c.view())}
	if runs {
		c.started = true
		bodies = append(bodies, startOf(c))
	}
	k.flush(bodies...)
}

// start records that a call runs.
func (k *talk) start(c *call) {
	if c.started || c.done {
		return
	}
	c.started = true
	k.record(startOf(c))
}

func startOf(c *call) protocol.Body {
	return &protocol.ToolCallStarted{ToolCallID: c.id, ToolName: c.name}
}

// progress tells what a call shows so far, four times a second at most.
func (k *talk) progress(c *call) {
	if wait := k.host.cfg.times.progress - time.Since(c.told); wait > 0 {
		k.progressIn(c, wait)
		return
	}
	c.told = time.Now()
	text := k.shownText(c)
	if text == "" {
		return
	}
	b := &protocol.ToolProgress{ToolCallID: c.id, ToolName: c.name}
	b.Payload.Message = oneLine(lastLine(text), 500)
	b.More.Content = lastBytes(text, maxProgress)
	k.t.Note(b)
}

// progressIn tells it after a while.
func (k *talk) progressIn(c *call, wait time.Duration) {
	if c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(wait, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		c.timer = nil
		if !c.done {
			k.progress(c)
		}
	})
}

// shownText is what a call shows as text; diffs are told as changes.
func (k *talk) shownText(c *call) string {
	var b strings.Builder
	for _, s := range c.shown {
		text := s.Text
		if s.Terminal != "" {
			text = k.c.terminals.text(s.Terminal)
		}
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(text)
		if b.Len() > maxShown {
			break
		}
	}
	return b.String()
}

// end records how a call ended, once; why says it where it did not complete, "" leaves that to what the call shows.
func (k *talk) end(c *call, status, why string) {
	if c.done {
		return
	}
	c.done = true
	if c.timer != nil {
		c.timer.Stop()
	}
	bodies, err := k.t.CallEnd(c.id, c.name, k.result(c, status, why), time.Since(c.began))
	if err != nil {
		k.fails(err)
		return
	}
	k.record(bodies...)
}

// result is what came of a call that ended.
func (k *talk) result(c *call, status, why string) *session.ToolResult {
	r := &session.ToolResult{Status: status}
	text := k.shownText(c)
	data := object{}
	if text != "" {
		data["content"] = text
	}
	if len(c.output) > 0 && len(c.output) <= maxRawOutput && json.Valid(c.output) {
		data["raw_output"] = c.output
	}
	switch status {
	case protocol.ToolCompleted:
		r.Data, r.Changes = data, c.changes()
		return r
	case protocol.ToolCancelled:
		r.ErrorType, r.Error = protocol.ErrCancelled, "The turn was cancelled before this call finished."
		return r
	case protocol.ToolRejected:
		r.ErrorType = protocol.ErrApprovalRejected
	default:
		r.ErrorType = protocol.ErrInternal
	}
	r.Error = cmp.Or(why, text, "The agent says that this call failed.")
	if len(c.output) > 0 {
		r.Data = data
	}
	return r
}

// open lists the calls without a result, newest first.
func (k *talk) open() []*call {
	var out []*call
	for i := len(k.order) - 1; i >= 0; i-- {
		if !k.order[i].done {
			out = append(out, k.order[i])
		}
	}
	return out
}

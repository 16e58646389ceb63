package acpagent

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Bounds of what a call tells.
const (
	maxProgress  = 8 << 10
	maxRawOutput = 8 << 10
	maxToldText  = 64 << 10 // of each text a change carries whole
	maxLines     = 120
	maxChars     = 12_000
	maxShown     = 1 << 20 // of a call's content
	maxPlaces    = 64
)

// call is one tool call of the child, or one of ours for what it asks us to do.
type call struct {
	id       string // ours
	name     string
	title    string
	kind     string
	args     json.RawMessage
	started  bool
	done     bool
	approved bool     // a person allowed it, or the mode
	rejected bool     // likewise
	deeds    []string // in it that were allowed one by one
	began    time.Time
	shown    []acp.HostContent
	places   []protocol.Place // it is about
	output   json.RawMessage
	told     time.Time // of its newest progress
	timer    *time.Timer
	written  map[string]string // path -> text we wrote for it
}

// toolCall takes what the child tells of a call: the first makes it, whatever it is called. k.mu is held.
func (k *talk) toolCall(h *acp.HostCall, content json.RawMessage) *call {
	c := k.calls[h.ID]
	fresh := c == nil
	if fresh {
		c = &call{id: k.callID(h.ID), began: time.Now(), written: map[string]string{}}
		k.calls[h.ID] = c
		k.order = append(k.order, c)
	}
	if c.done {
		if !fresh && (len(content) > 0 || h.RawOutput != nil) { // it has its result: what comes after it is kept as it is
			k.t.Note(providerEvent(k.c.spec.Provider, acp.MethodUpdate, protocol.MustMarshal(object{"toolCallId": h.ID, "content": content, "rawOutput": h.RawOutput})))
		}
		return c
	}
	c.learn(h, content)
	if fresh {
		k.request(c, h.Status == acp.StatusInProgress || h.Status == acp.StatusCompleted)
	} else if h.Status == acp.StatusInProgress || h.Status == acp.StatusCompleted {
		k.start(c)
	}
	switch h.Status {
	case acp.StatusCompleted:
		k.end(c, protocol.ToolCompleted, "")
	case acp.StatusFailed:
		k.end(c, protocol.ToolFailed, c.refusal())
	default:
		if !fresh && len(content) > 0 {
			k.progress(c)
		}
	}
	return c
}

// refusal is why a call failed that was refused; "" for one that was not.
func (c *call) refusal() string {
	if c.rejected && !c.approved {
		return "The user rejected this."
	}
	return ""
}

// callID is our id of a call: unlike those of other children, and fit to be one.
func (k *talk) callID(theirs string) string {
	id := k.c.tag + "_" + theirs
	if theirs == "" || len(id) > 128 || strings.ContainsFunc(theirs, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		id = k.c.tag + "_" + k.t.NewID()[:16]
	}
	return id
}

// learn takes over what is told of a call.
func (c *call) learn(h *acp.HostCall, content json.RawMessage) {
	if h.Title != nil && *h.Title != "" {
		c.title = oneLine(*h.Title, 300)
	}
	if h.Name != "" {
		c.name = oneLine(h.Name, 100)
	}
	if h.ToolKind != "" {
		c.kind = oneLine(h.ToolKind, 40)
	}
	if len(h.RawInput) > 0 && string(h.RawInput) != "null" {
		c.args = slices.Clone(h.RawInput)
	}
	if len(h.RawOutput) > 0 && string(h.RawOutput) != "null" {
		c.output = slices.Clone(h.RawOutput)
	}
	if len(content) > 0 && string(content) != "null" {
		c.shown = acp.ReadHostContent(content)
	}
	for _, l := range h.Locations {
		c.about(protocol.Place(l))
	}
	for _, s := range c.shown {
		if s.Diff != nil {
			c.about(protocol.Place{Path: s.Diff.Path})
		}
	}
}

// about adds a place, once.
func (c *call) about(p protocol.Place) {
	if len(c.places) < maxPlaces && !slices.Contains(c.places, p) && (p.Line != 0 || !c.touches(p.Path)) {
		c.places = append(c.places, p)
	}
}

// touches reports whether a file is among those the call is about.
func (c *call) touches(path string) bool {
	return slices.ContainsFunc(c.places, func(p protocol.Place) bool { return filepath.Clean(p.Path) == filepath.Clean(path) })
}

// view is what the call shows before it runs. A change that is too long to be told is named.
func (c *call) view() *protocol.CallView {
	v := &protocol.CallView{Kind: c.kind}
	for _, p := range c.places {
		if filepath.IsAbs(p.Path) {
			v.Places = append(v.Places, p)
		}
	}
	left := 4 * maxToldText
	var texts []string
	for _, s := range c.shown {
		if s.Diff == nil {
			if s.Text != "" {
				texts = append(texts, s.Text)
			}
			continue
		}
		size := len(s.Diff.New)
		if s.Diff.Old != nil {
			size += len(*s.Diff.Old)
		}
		if size > left || !filepath.IsAbs(s.Diff.Path) {
			texts = append(texts, oneLine(s.Diff.Path, 300)+": a change that cannot be shown here")
			continue
		}
		left -= size
		v.Diffs = append(v.Diffs, protocol.ViewDiff{Path: s.Diff.Path, Old: s.Diff.Old, New: s.Diff.New})
	}
	v.Text = protocol.Prefix(strings.Join(texts, "\n"), maxToldText)
	return v
}

// tool is what the call is named.
func (c *call) tool() string {
	switch {
	case c.name == "update_plan": // ours shows no call
		return "agent_update_plan"
	case c.name != "":
		return c.name
	case c.kind != "":
		return c.kind
	}
	return "other"
}

// request records a call, with its start where it runs already. k.mu is held.
func (k *talk) request(c *call, started bool) {
	k.flush(k.requestBodies(c, started)...)
}

func (k *talk) requestBodies(c *call, started bool) []protocol.Body {
	if k.step == "" && k.message == "" {
		k.step = k.t.NewID()
	}
	step := k.step
	if k.message != "" {
		step = k.message
	}
	c.name = c.tool()
	bodies := []protocol.Body{session.RequestedBy(c.id, step, c.name, c.title, c.args, c.view())}
	if started {
		c.started = true
		bodies = append(bodies, &protocol.ToolCallStarted{ToolCallID: c.id, ToolName: c.name})
	}
	return bodies
}

// start records that a call runs. k.mu is held.
func (k *talk) start(c *call) {
	if c.started || c.done {
		return
	}
	c.started = true
	k.record(&protocol.ToolCallStarted{ToolCallID: c.id, ToolName: c.name})
}

// progress tells what a call shows so far, four times a second at most. k.mu is held.
func (k *talk) progress(c *call) {
	every := k.host.hosts.cfg.times.progress
	if wait := every - time.Since(c.told); wait > 0 {
		if c.timer == nil {
			c.timer = time.AfterFunc(wait, func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				c.timer = nil
				if !c.done && !k.closed {
					k.progress(c)
				}
			})
		}
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

// shownText is what a call shows as text; diffs are told as changes.
func (k *talk) shownText(c *call) string {
	var b strings.Builder
	for _, s := range c.shown {
		text := s.Text
		if s.Terminal != "" {
			text = k.c.terminalText(s.Terminal)
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

// end records how a call ended. k.mu is held.
func (k *talk) end(c *call, status, why string) {
	c.done = true
	if c.timer != nil {
		c.timer.Stop()
	}
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
		r.Data = data
		r.Changes = k.changes(c)
	case protocol.ToolCancelled:
		r.ErrorType, r.Error = protocol.ErrCancelled, "The turn was cancelled before this call finished."
	default:
		if status != protocol.ToolRejected {
			r.ErrorType = protocol.ErrInternal
		} else {
			r.ErrorType = protocol.ErrApprovalRejected
		}
		if r.Error = why; why == "" {
			r.Error = text
		}
		if r.Error == "" {
			r.Error = "The agent says that this call failed."
		}
		if len(c.output) > 0 {
			r.Data = data
		}
	}
	bodies, err := k.t.CallEnd(c.id, c.name, r, time.Since(c.began))
	if err != nil {
		if k.err == nil {
			k.err = err
		}
		return
	}
	k.record(bodies...)
}

// changes are the changes of files a call tells of, but for those we made for it.
func (k *talk) changes(c *call) []protocol.FileChange {
	var out []protocol.FileChange
	for _, s := range c.shown {
		if s.Diff == nil || !filepath.IsAbs(s.Diff.Path) {
			continue
		}
		if _, ours := c.written[filepath.Clean(s.Diff.Path)]; ours {
			continue
		}
		before, created := "", s.Diff.Old == nil
		if !created {
			before = *s.Diff.Old
		}
		out = append(out, change(s.Diff.Path, before, s.Diff.New, created))
	}
	return out
}

// change tells what became of a file. Only pieces of it may be known.
func change(path, before, after string, created bool) protocol.FileChange {
	ch := protocol.FileChange{FilePath: filepath.ToSlash(path), Lines: []protocol.DiffLine{}}
	chars := 0
	take := func(kind, text string) (n int) {
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimRight(line, "\r\n")
			if chars += protocol.CharLen(line); len(ch.Lines) < maxLines && chars <= maxChars {
				ch.Lines = append(ch.Lines, protocol.DiffLine{Kind: kind, Text: line})
			} else {
				chars = maxChars + 1 // nothing behind the first that is left out
			}
		}
		return n
	}
	if len(before)+len(after) > 4<<20 { // not worth the time
		take("removed", protocol.Prefix(before, maxChars/2))
		take("added", protocol.Prefix(after, maxChars/2))
		ch.More.Added, ch.More.Removed = strings.Count(after, "\n"), strings.Count(before, "\n")
	} else {
		for _, e := range udiff.Lines(before, after) {
			ch.More.Removed += take("removed", before[e.Start:e.End])
			ch.More.Added += take("added", e.New)
		}
	}
	ch.More.Created = created
	if len(before) <= maxToldText && len(after) <= maxToldText {
		if ch.More.NewText = &after; !created {
			ch.More.OldText = &before
		}
	}
	return ch
}

// ours makes a call of our own, for what the child asks us to do beside the calls it told of. k.mu is held.
func (k *talk) ours(name, title, kind string, args any) *call {
	c := &call{
		id: k.c.tag + "_rind_" + strconv.Itoa(len(k.order)+1) + k.t.NewID()[:8], name: name, title: title, kind: kind, args: protocol.MustMarshal(args), began: time.Now(),
		written: map[string]string{},
	}
	k.order = append(k.order, c)
	k.request(c, false)
	return c
}

// open lists the calls without a result, newest first. k.mu is held.
func (k *talk) open() []*call {
	var out []*call
	for i := len(k.order) - 1; i >= 0; i-- {
		if !k.order[i].done {
			out = append(out, k.order[i])
		}
	}
	return out
}

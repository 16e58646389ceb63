package acpagent

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// Bounds of what a call tells.
const (
	maxToldText = 64 << 10 // of each text a change carries whole
	maxPlaces   = 64
)

// call is one tool call of the child, or one of ours for what it asks us to do: what is known of it, and how far it is. It belongs to its talk,
// whose lock guards it.
type call struct {
	id     string // ours
	name   string
	title  string
	kind   string
	args   json.RawMessage
	shown  []acp.HostContent
	places []protocol.Place // it is about
	output json.RawMessage

	began   time.Time
	started bool
	done    bool
	told    time.Time   // of its newest progress
	timer   *time.Timer // of the next; nil for none

	approved bool            // a person allowed it, or the mode
	rejected bool            // likewise
	deeds    []string        // in it that were allowed one by one
	written  map[string]bool // files we wrote for it
}

func newCall(id string) *call {
	return &call{id: id, began: time.Now(), written: map[string]bool{}}
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
	if present(h.RawInput) {
		c.args = slices.Clone(h.RawInput)
	}
	if present(h.RawOutput) {
		c.output = slices.Clone(h.RawOutput)
	}
	if present(content) {
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

// present reports whether a member of an update says something.
func present(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

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

// arguments are what the call is made with, as an object.
func (c *call) arguments() json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(c.args, &object) == nil && object != nil {
		return c.args
	}
	return json.RawMessage(`{}`)
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

// refusal is why a call failed that was refused; "" for one that was not.
func (c *call) refusal() string {
	if c.rejected && !c.approved {
		return refusedByUser
	}
	return ""
}

// changes are the changes of files the call tells of, but for those we made for it.
func (c *call) changes() []protocol.FileChange {
	var out []protocol.FileChange
	for _, s := range c.shown {
		if s.Diff == nil || !filepath.IsAbs(s.Diff.Path) || c.written[filepath.Clean(s.Diff.Path)] {
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

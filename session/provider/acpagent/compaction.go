package acpagent

import (
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

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
	c := k.compaction(u)
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
		k.compacted(c)
	case acp.StatusFailed, "cancelled":
		k.notCompacted(c, u)
	case acp.StatusInProgress:
	default:
		k.event(u)
	}
}

// compaction is the one that an update is about; nil where it names none, or one too many.
func (k *talk) compaction(u *acp.HostUpdate) *compaction {
	c := k.compactions[u.Compaction]
	if c != nil || u.Compaction == "" || len(k.compactions) == maxCompactions {
		return c
	}
	c = &compaction{}
	k.compactions[u.Compaction] = c
	if u.Kind == acp.CompactionChunk || u.Status == acp.StatusInProgress {
		k.t.Note(noticeOf("info", "The agent makes room in its context.", u.Raw))
	}
	return c
}

// compacted records a compaction that is complete.
func (k *talk) compacted(c *compaction) {
	c.done = true
	k.flush()
	if b, err := k.t.Compacted(k.c.spec.Provider, c.summary.String(), k.prompt.compact); err == nil {
		k.record(b)
	}
}

// notCompacted shows that a compaction failed.
func (k *talk) notCompacted(c *compaction, u *acp.HostUpdate) {
	c.done = true
	text := "The agent could not make room in its context."
	if u.Error != nil && *u.Error != "" {
		text = "The agent could not make room in its context: " + oneLine(k.c.mask(*u.Error), 500)
	}
	k.t.Note(noticeOf("warning", text, u.Raw))
}

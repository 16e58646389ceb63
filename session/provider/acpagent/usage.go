package acpagent

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// level takes how full the child's context is. k.mu is held.
func (k *talk) level(u *acp.HostUpdate) {
	if u.Used == nil || u.Size == nil || *u.Size <= 0 {
		k.event(u)
		return
	}
	k.c.seenTo(acp.UsageUpdate)
	b := k.stats(*u.Used, 0, 0, 0)
	b.More.Level = true
	b.Stats.ContextWindowTokens, b.Stats.ContextUsagePercent = *u.Size, float64(*u.Used)/float64(*u.Size)
	var cost struct {
		Amount   *float64 `json:"amount"`
		Currency string   `json:"currency"`
	}
	if json.Unmarshal(u.Cost, &cost) == nil && cost.Amount != nil && (cost.Currency == "USD" || cost.Currency == "") {
		if more := k.c.spent.upTo(*cost.Amount); more > 0 {
			b.More.Cost = &more
		}
	}
	k.t.Note(b)
}

// spent is what the child's session has cost so far, in US dollars, as the child says: each time the whole of it.
type spent struct {
	amount  float64
	guessed bool // it came back, and amount is what our log knows of the session
}

// upTo takes a new amount and returns what came to it. One that is less than before began anew.
func (s *spent) upTo(amount float64) (more float64) {
	more = amount - s.amount
	switch {
	case more >= 0:
	case s.guessed: // others had a part in what the log knows
		more = 0
	default:
		more = amount
	}
	*s = spent{amount: amount}
	return more
}

// used takes what the turn used.
func (k *talk) used(u *acp.HostUsage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	k.c.seenTo(acp.UsageUpdate)
	k.t.Note(k.stats(u.Input, u.Cached, u.Output, u.Thought))
}

func (k *talk) stats(in, cached, out, thought int) *protocol.TokenStatsUpdated {
	b := &protocol.TokenStatsUpdated{}
	b.Stats = protocol.Stats{
		SamplingKind: "assistant", InputTokens: in, CachedInputTokens: cached, OutputTokens: out, ReasoningOutputTokens: thought,
		TotalTokens: in + out, Anchor: "provider",
	}
	if in > 0 {
		b.Stats.CacheHitRate = float64(cached) / float64(in)
	}
	b.More.Model, b.More.Provider = k.t.Selection.Model, k.c.spec.Provider
	return b
}

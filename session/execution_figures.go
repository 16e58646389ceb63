package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Figures are what the sessions of a process did since it started, and do now: numbers only.
type Figures struct {
	Ended   map[EndedExecution]int64
	Open    map[string]int64 // by state: queued, running, awaiting, cancelling
	Tokens  map[string]int64 // input, cached, output, reasoning
	Appends AppendTimes
}

// EndedExecution is a way in which executions end.
type EndedExecution struct{ Provider, State string }

// AppendTimes is a histogram of how long appends took. Counts[i] are those within Bounds[i], and beyond the bound before.
type AppendTimes struct {
	Bounds  []float64 // seconds
	Counts  []int64
	Total   int64
	Seconds float64
}

var appendBounds = []float64{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5}

// figures counts. nil counts nothing. Safe for concurrent use.
type figures struct {
	mu      sync.Mutex
	ended   map[EndedExecution]int64
	tokens  [4]int64
	counts  []int64
	total   int64
	seconds float64
}

func newFigures() *figures {
	return &figures{ended: map[EndedExecution]int64{}, counts: make([]int64, len(appendBounds))}
}

// appended counts an append that was acknowledged.
func (f *figures) appended(took time.Duration) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := took.Seconds()
	f.total++
	f.seconds += s
	for i, bound := range appendBounds {
		if s <= bound {
			f.counts[i]++
			break
		}
	}
}

// told counts what an acknowledged entry says; t is its turn before it, nil for none.
func (f *figures) told(t *OpenTurn, b protocol.Body) {
	if f == nil {
		return
	}
	state := ""
	switch b := b.(type) {
	case *protocol.TokenStatsUpdated:
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, n := range []int{b.Stats.InputTokens, b.Stats.CachedInputTokens, b.Stats.OutputTokens, b.Stats.ReasoningOutputTokens} {
			f.tokens[i] += int64(n)
		}
		return
	case *protocol.TurnCompleted:
		state = "succeeded"
	case *protocol.TurnFailed:
		state = "failed"
	case *protocol.TurnCancelled:
		state = "cancelled"
	}
	if state == "" || t == nil || !t.Execution {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[EndedExecution{t.Provider, state}]++
}

// Figures tells what was counted; nothing is unless ExecutionOptions say so.
func (ss *Sessions) Figures(ctx context.Context) Figures {
	out := Figures{
		Ended: map[EndedExecution]int64{}, Open: map[string]int64{"queued": 0, "running": 0, "awaiting": 0, "cancelling": 0}, Tokens: map[string]int64{},
		Appends: AppendTimes{Bounds: appendBounds, Counts: make([]int64, len(appendBounds))},
	}
	if f := ss.figures; f != nil {
		f.mu.Lock()
		maps.Copy(out.Ended, f.ended)
		for i, name := range []string{"input", "cached", "output", "reasoning"} {
			out.Tokens[name] = f.tokens[i]
		}
		copy(out.Appends.Counts, f.counts)
		out.Appends.Total, out.Appends.Seconds = f.total, f.seconds
		f.mu.Unlock()
	}
	for _, s := range ss.opened() {
		var open map[string]int64
		if s.InspectNow(ctx, func(v *View) { open = v.openExecutions() }) != nil {
			continue // gone, or ctx is over
		}
		for state, n := range open {
			out.Open[state] += n
		}
	}
	return out
}

// openExecutions counts the executions of the session that have no end, by their state.
func (v *View) openExecutions() map[string]int64 {
	open := map[string]int64{}
	turns := slices.Concat([]*OpenTurn{v.Serial}, v.Queued, slices.Collect(maps.Values(v.Parallel)))
	for _, t := range turns {
		switch {
		case t == nil || !t.Execution:
		case t.Cancel != nil:
			open["cancelling"]++
		case !t.Started:
			open["queued"]++
		case len(t.Actions) > 0:
			open["awaiting"]++
		default:
			open["running"]++
		}
	}
	return open
}

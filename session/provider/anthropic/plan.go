package anthropic

import (
	"fmt"
	"strings"

	"github.com/rind-dev/rind/session"
)

type thinking struct {
	Type    string `json:"type"`
	Budget  int    `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

// leastBudget is the smallest budget the API takes.
const leastBudget = 1024

// plan is how a request makes its model think.
type plan struct {
	max      int // max_tokens
	thinking *thinking
	output   *outputConfig
	gives    bool // thinking of before goes back
}

// plan decides how r is asked: what the effort means for this model, without what it is found to refuse.
func (m *Model) plan(r *session.ModelRequest) (plan, error) {
	f := m.facts(r.Model)
	way := m.way(r, f.thinking)
	p := plan{max: r.MaxOutput, gives: way != thinksNot && !m.refuses(oldThinking(r.Session))}
	if p.max <= 0 {
		p.max = f.room()
	}
	if limit := m.limitOf(r.Model); limit > 0 {
		f.output, p.max = limit, min(p.max, limit)
	}
	switch {
	case r.Effort == "", way == thinksNot:
		// A model that takes a budget thinks only with one; the others do as they see fit.
		p.gives = p.gives && way == thinksFree
	case way == thinksFree:
		p.raise(rooms[r.Effort], f.output)
		p.thinking = &thinking{Type: thinksFree}
		if !m.refuses(display(r.Model)) {
			p.thinking.Display = "summarized" // some models show nothing otherwise
		}
		if !m.refuses(effort(r.Model)) {
			p.output = &outputConfig{Effort: r.Effort}
		}
	default:
		room := rooms[r.Effort]
		if room == 0 {
			return p, &session.ModelError{
				Fault:   session.FaultRejected,
				Message: m.at.Line(fmt.Sprintf("%s knows no effort %q; choose one of %s.", r.Model, r.Effort, strings.Join(budgetEfforts, ", "))),
			}
		}
		p.raise(room, f.output)
		if room = min(room, p.max-leastBudget); room >= leastBudget {
			p.thinking = &thinking{Type: thinksOn, Budget: room}
		}
		p.gives = p.gives && p.thinking != nil
	}
	return p, nil
}

// raise makes room for thinking, up to what the model can give; it never lowers what was asked for.
func (p *plan) raise(room, most int) {
	raised := p.max + room
	if most > 0 {
		raised = min(raised, most)
	}
	p.max = max(p.max, raised)
}

// way is the way a model can be told to think, once those it is found to refuse are left out.
func (m *Model) way(r *session.ModelRequest, known string) string {
	ways := []string{known}
	switch known {
	case thinksOn:
		ways = append(ways, thinksFree)
	case thinksFree:
		ways = append(ways, thinksOn)
	}
	for _, w := range ways {
		// Where old thinking cannot go back, a budget cannot either: with one, a step behind calls has to begin with its thinking.
		if m.refuses(thinkingWay(w, r.Model)) || w == thinksOn && m.refuses(oldThinking(r.Session)) {
			continue
		}
		return w
	}
	return thinksNot
}

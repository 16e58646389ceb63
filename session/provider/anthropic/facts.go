package anthropic

import (
	"slices"
	"strings"

	"github.com/rind-dev/rind/session"
)

// Ways a model can be told to think.
const (
	thinksNot  = ""
	thinksOn   = "enabled"  // as much as it is given tokens for
	thinksFree = "adaptive" // as it sees fit, at an effort
)

// facts is what requests and lists need to know of a model (docs/models.md). Numbers are tokens, 0 for unknown.
type facts struct {
	window   int
	output   int // largest max_tokens
	thinking string
	efforts  []string
	images   *bool
}

// Defaults of max_tokens.
const (
	answerRoom        = 32_000 // of Anthropic's own models, where they can give that much
	answerRoomUnknown = 8192   // of models we know nothing of
)

var (
	budgetEfforts = []string{"low", "medium", "high"} // our words: these models take a number of tokens
	effortLevels  = []string{"low", "medium", "high", "xhigh", "max"}
)

// rooms are the tokens for thinking at an effort: the budget of a model that takes one, and what max_tokens is raised by, since thinking
// counts towards it.
var rooms = map[string]int{"low": 4096, "medium": 12_288, "high": 24_576, "xhigh": 32_000, "max": 32_000}

// table holds what is known of models without asking the endpoint, the longest prefix first. Newer models are left to the last row but one
// and to what the endpoint says of them: their numbers are not guessed.
var table = []struct {
	prefix string
	facts
}{
	{"claude-3-7-", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-3-5-", facts{200_000, 8192, thinksNot, nil, nil}},
	{"claude-3-", facts{200_000, 4096, thinksNot, nil, nil}},
	{"claude-opus-4-0", facts{200_000, 32_000, thinksOn, budgetEfforts, nil}},
	{"claude-opus-4-1", facts{200_000, 32_000, thinksOn, budgetEfforts, nil}},
	{"claude-opus-4-2", facts{200_000, 32_000, thinksOn, budgetEfforts, nil}}, // 4.0 by its date
	{"claude-sonnet-4-0", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-sonnet-4-2", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-opus-4-5", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-sonnet-4-5", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-haiku-4-5", facts{200_000, 64_000, thinksOn, budgetEfforts, nil}},
	{"claude-opus-4-6", facts{200_000, 128_000, thinksFree, []string{"low", "medium", "high", "max"}, nil}},
	{"claude-sonnet-4-6", facts{200_000, 64_000, thinksFree, []string{"low", "medium", "high", "max"}, nil}},
	{"claude-", facts{0, 64_000, thinksFree, budgetEfforts, nil}},
	{"", facts{0, 0, thinksOn, budgetEfforts, nil}}, // of other makers: budgets are what they take, where they think at all
}

// plain is a model's name as the table has it: routers write vendor/ before it, dots and @ within it.
func plain(model string) string {
	name := strings.NewReplacer(".", "-", "@", "-", "_", "-").Replace(strings.ToLower(model))
	if i := strings.LastIndex(name, "claude-"); i >= 0 {
		name = name[i:]
	}
	return name
}

// facts returns what is known of a model: the endpoint's own word before the table.
func (m *Model) facts(model string) facts {
	m.mu.Lock()
	f, known := m.told[model]
	m.mu.Unlock()
	if known {
		return f
	}
	return tabled(model)
}

func tabled(model string) facts {
	name := plain(model)
	for _, row := range table {
		if strings.HasPrefix(name, row.prefix) {
			return row.facts
		}
	}
	return facts{} // not reached: the last row has no prefix
}

// Info describes a model by what is known of it without asking the endpoint now.
func (m *Model) Info(model string) session.ModelInfo {
	f := m.facts(model)
	return session.ModelInfo{
		Provider: m.at.Name, ID: model, Name: model, API: API, Window: f.window, Efforts: slices.Clone(f.efforts), Images: f.images,
	}
}

// room is the default of max_tokens.
func (f facts) room() int {
	switch {
	case f.output == 0:
		return answerRoomUnknown
	case f.output < answerRoom:
		return f.output
	}
	return answerRoom
}

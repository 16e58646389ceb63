package anthropic

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// A refusal is a field some models or endpoints refuse, under a name that says for whom it holds: a request without it is worth as much or
// nearly so. What is found refused is left out from then on, at the price of one request.

func marks() string                          { return "cache_control" }
func display(model string) string            { return "display " + model }
func effort(model string) string             { return "effort " + model }
func thinkingWay(way, model string) string   { return "thinking " + way + " " + model }
func oldThinking(s session.SessionID) string { return "old thinking " + string(s) } // of one conversation: others are not to lose theirs

// mostTries bounds the requests of one completion.
const mostTries = 5

// ask sends the request, again when it holds something the endpoint is found to refuse.
func (m *Model) ask(a *modelhttp.Answer, r session.ModelRequest) error {
	for try := 1; ; try++ {
		body, err := m.request(&r)
		if err != nil {
			return err
		}
		err = a.Post("/v1/messages", body)
		if err == nil || try == mostTries || !m.learn(err, &r, body) {
			return err
		}
	}
}

// Words of messages that refuse a field, in lower case.
var (
	limitWords   = []string{"maximum allowed number of output tokens"}
	thoughtWords = []string{"signature", "thinking block", "redacted_thinking"}
	effortWords  = []string{"effort parameter", "not support effort", "output_config: extra", "output_config.effort: extra"}
)

// learn finds what err refuses of a request; false when there is nothing, or it is known and was left out.
func (m *Model) learn(err error, r *session.ModelRequest, sent *request) bool {
	e, ok := errors.AsType[*session.ModelError](err)
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	low := strings.ToLower(e.Message)
	think := sent.Thinking
	switch {
	case strings.Contains(low, "cache_control"):
		return m.note(marks())
	case modelhttp.Has(low, limitWords):
		return m.noteLimit(r.Model, low, sent.MaxTokens)
	case (sent.gives || think != nil) && modelhttp.Has(low, thoughtWords):
		return m.note(oldThinking(r.Session))
	case sent.OutputConfig != nil && modelhttp.Has(low, effortWords):
		return m.note(effort(r.Model))
	case think != nil && think.Display != "" && strings.Contains(low, "display"):
		return m.note(display(r.Model))
	case think != nil && strings.Contains(low, "thinking"):
		return m.note(thinkingWay(think.Type, r.Model))
	}
	return false
}

func (m *Model) note(refusal string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.refuse[refusal]
	m.refuse[refusal] = true
	return !known
}

func (m *Model) refuses(refusal string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuse[refusal]
}

// noteLimit reads the limit from "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens …".
func (m *Model) noteLimit(model, message string, sent int) bool {
	_, rest, _ := strings.Cut(message, ">")
	digits, _, _ := strings.Cut(strings.TrimSpace(rest), ",")
	limit, err := strconv.Atoi(digits)
	if err != nil || limit <= 0 || limit >= sent {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit[model] = limit
	return true
}

func (m *Model) limitOf(model string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit[model]
}

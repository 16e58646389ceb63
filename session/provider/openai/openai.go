// Package openai is the model adapter for OpenAI's API and every endpoint that speaks it: Ollama, llama.cpp, vLLM, OpenRouter and others
// through chat completions, OpenAI itself through the Responses API, with store=false.
//
// It reads the event stream itself: what a turn needs to know (the end mark, raw arguments, keep-alives, an error inside a 200, calls whose
// pieces carry no index) is what client libraries smooth over. It promises what session.Model asks for, and that neither keys nor
// passwords nor the values of custom headers are found in any error.
//
// One Generate is one HTTP request; only an endpoint that refuses a field we can do without is asked a second time, without it. The
// package owns no goroutine: those of net/http end with the answer, or for an idle connection after 30 s or with Close.
package openai

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// APIs an endpoint may speak.
const (
	Chat      = "openai-chat"
	Responses = "openai-responses"
)

// Config names an endpoint; BaseURL is as https://api.openai.com/v1, the key goes into Authorization.
type Config = modelhttp.Config

// Model talks to one endpoint. Safe for concurrent use.
type Model struct {
	at     *modelhttp.Endpoint
	api    string
	heard  sync.Map // model -> session.ModelInfo: what the endpoint's list said
	refuse sync.Map // refusal -> true: fields the endpoint is known to refuse, per model where it depends on that
}

var _ session.Model = (*Model)(nil)

// New checks the configuration and the API, "" for Chat; it connects to nothing.
func New(cfg Config, api string) (*Model, error) {
	switch api {
	case "":
		api = Chat
	case Chat, Responses:
	default:
		return nil, fmt.Errorf("provider %s: there is no API %q, only %s and %s", cfg.Name, api, Chat, Responses)
	}
	cfg.BaseURL = modelhttp.Base(cfg.BaseURL)
	at, err := modelhttp.New(cfg, modelhttp.API{Sign: sign, Parse: parseError, Sort: sortFault})
	if err != nil {
		return nil, err
	}
	return &Model{at: at, api: api}, nil
}

func sign(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// Close closes the connections that wait for the next request. The Model stays usable.
func (m *Model) Close() error { return m.at.Close() }

// Generate implements session.Model.
func (m *Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	r.Messages = session.EndWithUser(r.Messages)
	return m.at.Generate(ctx, func(a *modelhttp.Answer) error {
		if m.api == Responses {
			return m.responses(a, r)
		}
		return m.chat(a, r)
	})
}

// refusal is a field some endpoints refuse; a request without it is worth as much or nearly so.
type refusal struct {
	field string
	model string   // "" where it does not depend on the model
	words []string // one of them is in the message of an endpoint that refuses the field
}

// ask posts what build makes, once more for each of the fields the endpoint is found to refuse: build leaves out what is known.
func (m *Model) ask(a *modelhttp.Answer, path string, build func() any, fields ...refusal) error {
	for {
		known := make([]bool, len(fields))
		for i, f := range fields {
			known[i] = m.refuses(f)
		}
		err := a.Post(path, build())
		i := refused(err, fields)
		if i < 0 || known[i] {
			return err
		}
		m.refuse.Store(fields[i].field+" "+fields[i].model, true)
	}
}

// refused finds the field err refuses, -1 for none.
func refused(err error, fields []refusal) int {
	e, ok := errors.AsType[*session.ModelError](err)
	if !ok || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return -1
	}
	low := strings.ToLower(e.Message)
	return slices.IndexFunc(fields, func(f refusal) bool { return modelhttp.Has(low, f.words) })
}

func (m *Model) refuses(f refusal) bool {
	_, known := m.refuse.Load(f.field + " " + f.model)
	return known
}

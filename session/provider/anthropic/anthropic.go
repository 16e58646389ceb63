// Package anthropic is the model adapter for Anthropic's Messages API and the endpoints that speak it.
//
// It reads the event stream itself, as the adapter for OpenAI's APIs does and for the same reasons: a client library calls a stream that
// was cut a complete one, hides keep-alives and takes a JSON error for an empty answer. It promises what session.Model asks for, and that
// neither keys nor passwords nor the values of custom headers are found in any error.
//
// One Generate is one HTTP request; only a model that refuses a field we can do without, or writes down a smaller limit, is asked again,
// without it. The package owns no goroutine: those of net/http end with the answer, or for an idle connection after 30 s or with Close.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// API is the name of what the endpoint speaks, as settings and lists of models say it.
const API = "anthropic"

// DefaultBaseURL is Anthropic's own endpoint.
const DefaultBaseURL = "https://api.anthropic.com"

// version is the version of the API that requests ask for.
const version = "2023-06-01"

// Config names an endpoint; BaseURL is with or without /v1, DefaultBaseURL for "", and the key goes into X-Api-Key.
type Config = modelhttp.Config

// Model talks to one endpoint. Safe for concurrent use.
type Model struct {
	at *modelhttp.Endpoint

	mu     sync.Mutex       // guards the maps; never held over I/O
	told   map[string]facts // what the endpoint says of its models, by id
	refuse map[string]bool  // fields found to be refused, see refusal
	limit  map[string]int   // largest max_tokens the endpoint named when it refused more, by model
}

var _ session.Model = (*Model)(nil)

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Model, error) {
	cfg.BaseURL = strings.TrimSuffix(modelhttp.Base(cfg.BaseURL), "/v1") // other clients want it there, and people copy it
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	at, err := modelhttp.New(cfg, modelhttp.API{Sign: sign, Parse: parseError, Sort: sortFault})
	if err != nil {
		return nil, err
	}
	return &Model{at: at, told: map[string]facts{}, refuse: map[string]bool{}, limit: map[string]int{}}, nil
}

func sign(h http.Header, key string) {
	h.Set("Anthropic-Version", version)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

// Close closes the connections that wait for the next request. The Model stays usable.
func (m *Model) Close() error { return m.at.Close() }

// Generate implements session.Model.
func (m *Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	r.Messages = session.EndWithUser(r.Messages)
	return m.at.Generate(ctx, func(a *modelhttp.Answer) error { return m.answer(a, r) })
}

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
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

// APIs an endpoint may speak.
const (
	Chat      = "openai-chat"
	Responses = "openai-responses"
)

// Config names an endpoint.
type Config struct {
	Name      string            // of the provider, for reasoning that may only go back to it
	BaseURL   string            // as https://api.openai.com/v1
	Key       string            // "" sends no Authorization header
	API       string            // Chat (default), Responses
	Headers   map[string]string // sent with every request; they win over ours
	CAFile    string            // PEM file with further certificate authorities
	Idle      time.Duration     // longest silence of the stream; keep-alives count as life. Default 2 min
	Total     time.Duration     // longest life on keep-alives alone. Default 10 min
	Connect   time.Duration     // longest wait for the connection. Default 20 s
	Transport http.RoundTripper // in place of our own; CAFile and Connect are its maker's business then
}

// Model talks to one endpoint. Safe for concurrent use.
type Model struct {
	cfg    Config
	base   *url.URL
	client *http.Client
	hide   *strings.Replacer
	heard  sync.Map // model -> session.ModelInfo: what the endpoint's list said
	refuse sync.Map // refusal -> true: fields the endpoint is known to refuse, per model where it depends on that
}

var _ session.Model = (*Model)(nil)

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Model, error) {
	cfg.Key = strings.TrimSpace(cfg.Key)
	cfg.BaseURL = strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/")
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("provider %s: baseUrl must be an http or https address", cfg.Name)
	}
	switch cfg.API {
	case "":
		cfg.API = Chat
	case Chat, Responses:
	default:
		return nil, fmt.Errorf("provider %s: there is no API %q, only %s and %s", cfg.Name, cfg.API, Chat, Responses)
	}
	if err := checkHeaders(cfg); err != nil {
		return nil, err
	}
	cfg.Idle = orDefault(cfg.Idle, 2*time.Minute)
	cfg.Total = orDefault(cfg.Total, 10*time.Minute)
	cfg.Connect = orDefault(cfg.Connect, 20*time.Second)
	m := &Model{cfg: cfg, base: u, hide: replacer(secrets(cfg, u))}
	m.client = &http.Client{Transport: cfg.Transport, CheckRedirect: sameHost}
	if cfg.Transport == nil {
		if m.client.Transport, err = transport(cfg); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Close closes the connections that wait for the next request. The Model stays usable.
func (m *Model) Close() error {
	m.client.CloseIdleConnections()
	return nil
}

// Generate implements session.Model.
func (m *Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		r.Messages = session.EndWithUser(r.Messages)
		answer := m.chat
		if m.cfg.API == Responses {
			answer = m.responses
		}
		err := answer(ctx, cancel, r, yield)
		if err == nil || errors.Is(err, errStopped) {
			return
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errIdle) {
			err = cause
		}
		yield(session.Chunk{}, err)
	}
}

// errStopped: the consumer wants no more.
var errStopped = errors.New("consumer stopped")

// post sends a request and returns the open stream. Anything but a 200 that streams events is a *session.ModelError.
func (m *Model) post(ctx context.Context, cancel context.CancelCauseFunc, path string, body any) (*stream, error) {
	j, err := marshal(body)
	if err != nil {
		return nil, &session.ModelError{Fault: session.FaultRejected, Message: "The request cannot be written as JSON.", Cause: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.cfg.BaseURL+path, bytes.NewReader(j))
	if err != nil {
		return nil, &session.ModelError{Fault: session.FaultConfig, Message: "The address of the provider is not usable; check baseUrl.", Cause: m.redacted(err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	m.headers(req)
	dog := newWatchdog(m.cfg.Idle, m.cfg.Total, cancel)
	resp, err := m.client.Do(req)
	dog.rest()
	if err != nil {
		return nil, m.network(ctx, err)
	}
	s := &stream{ctx: ctx, body: resp.Body, dog: dog}
	in := bufio.NewReaderSize(watched{resp.Body, dog}, 512)
	if resp.StatusCode == http.StatusOK && streams(resp, in) {
		s.r = in // its small buffer is passed by: what events asks for is larger
		return s, nil
	}
	defer s.close()
	dog.within(m.cfg.Connect) // an error that dribbles in is cut short
	text, err := io.ReadAll(io.LimitReader(in, 64<<10))
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, errIdle) {
		return nil, cause
	}
	if err != nil && resp.StatusCode == http.StatusOK {
		return nil, m.broken(ctx, err, false)
	}
	return nil, m.refused(resp, text)
}

// streams tells from the first byte, where it can, whether a 200 holds events: servers forget the content type, and send an error
// or a login page under a false one.
func streams(resp *http.Response, in *bufio.Reader) bool {
	for {
		b, err := in.Peek(1)
		if err != nil {
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = in.Discard(1)
		case '{', '[', '<':
			return false
		case ':', 'd', 'e', 'i', 'r', mark[0]: // comment, data, event, id, retry
			return true
		default:
			return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		}
	}
}

func (m *Model) headers(req *http.Request) {
	if m.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.Key)
	}
	for k, v := range m.cfg.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
}

func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// refusal is a field some endpoints refuse; a request without it is worth as much or nearly so.
type refusal struct {
	field string
	model string   // "" where it does not depend on the model
	words []string // one of them is in the message of an endpoint that refuses the field
}

// ask posts what build makes, once more for each of the fields the endpoint is found to refuse: build leaves out what is known.
func (m *Model) ask(ctx context.Context, cancel context.CancelCauseFunc, path string, build func() any, fields ...refusal) (*stream, error) {
	for {
		known := make([]bool, len(fields))
		for i, f := range fields {
			known[i] = m.refuses(f)
		}
		s, err := m.post(ctx, cancel, path, build())
		i := refused(err, fields)
		if i < 0 || known[i] {
			return s, err
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
	return slices.IndexFunc(fields, func(f refusal) bool {
		return slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(low, w) })
	})
}

func (m *Model) refuses(f refusal) bool {
	_, known := m.refuse.Load(f.field + " " + f.model)
	return known
}

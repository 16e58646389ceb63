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
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

// API is the name of what the endpoint speaks, as settings and lists of models say it.
const API = "anthropic"

// DefaultBaseURL is Anthropic's own endpoint.
const DefaultBaseURL = "https://api.anthropic.com"

// version is the version of the API that requests ask for.
const version = "2023-06-01"

// Config names an endpoint.
type Config struct {
	Name      string            // of the provider, for reasoning that may only go back to it
	BaseURL   string            // with or without /v1; DefaultBaseURL for ""
	Key       string            // "" sends no x-api-key header
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

	mu     sync.Mutex       // guards the maps; never held over I/O
	told   map[string]facts // what the endpoint says of its models, by id
	refuse map[string]bool  // fields found to be refused, see refusal
	limit  map[string]int   // largest max_tokens the endpoint named when it refused more, by model
}

var _ session.Model = (*Model)(nil)

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Model, error) {
	cfg.Key = strings.TrimSpace(cfg.Key)
	cfg.BaseURL = strings.TrimRight(strings.TrimSpace(cfg.BaseURL), "/")
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/v1") // other clients want it there, and people copy it
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("provider %s: baseUrl must be an http or https address", cfg.Name)
	}
	if err := checkHeaders(cfg); err != nil {
		return nil, err
	}
	cfg.Idle = orDefault(cfg.Idle, 2*time.Minute)
	cfg.Total = orDefault(cfg.Total, 10*time.Minute)
	cfg.Connect = orDefault(cfg.Connect, 20*time.Second)
	m := &Model{
		cfg: cfg, base: u, hide: replacer(secrets(cfg, u)),
		told: map[string]facts{}, refuse: map[string]bool{}, limit: map[string]int{},
	}
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

// errStopped: the consumer wants no more.
var errStopped = errors.New("consumer stopped")

// Generate implements session.Model.
func (m *Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := m.answer(ctx, cancel, r, yield)
		if err == nil || errors.Is(err, errStopped) {
			return
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errIdle) {
			err = cause
		}
		yield(session.Chunk{}, err)
	}
}

// post sends a request and returns the open stream. Anything but a 200 that streams events is a *session.ModelError.
func (m *Model) post(ctx context.Context, cancel context.CancelCauseFunc, body *request) (*stream, error) {
	j, err := marshal(body)
	if err != nil {
		return nil, &session.ModelError{Fault: session.FaultRejected, Message: "The request cannot be written as JSON.", Cause: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.cfg.BaseURL+"/v1/messages", bytes.NewReader(j))
	if err != nil {
		return nil, m.unusable(err)
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
	req.Header.Set("Anthropic-Version", version)
	if m.cfg.Key != "" {
		req.Header.Set("X-Api-Key", m.cfg.Key)
	}
	for k, v := range m.cfg.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
}

func (m *Model) unusable(err error) error {
	return &session.ModelError{Fault: session.FaultConfig, Message: "The address of the provider is not usable; check baseUrl.", Cause: m.redacted(err)}
}

func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// Package openai is the model adapter for OpenAI's API and every endpoint that speaks it: Ollama, llama.cpp, vLLM, OpenRouter and others
// through chat completions, OpenAI itself through the Responses API, with store=false.
//
// It reads the event stream itself: what a turn needs to know (the end mark, raw arguments, keep-alives, an error inside a 200, calls whose
// pieces carry no index) is what client libraries smooth over. One Generate is one HTTP request; the adapter
// retries nothing and owns no goroutine that outlives the call.
package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
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
	Name    string // of the provider, for reasoning that may only go back to it
	BaseURL string // as https://api.openai.com/v1
	Key     string // "" sends no Authorization header
	API     string // Chat (default), Responses
	Headers map[string]string
	CAFile  string        // PEM file with further certificate authorities
	Idle    time.Duration // longest silence of the stream; keep-alives count as life. Default 2 min
	Total   time.Duration // longest life on keep-alives alone. Default 10 min
	Connect time.Duration // longest wait for the connection. Default 20 s
}

// Model talks to one endpoint. Safe for concurrent use.
type Model struct {
	cfg    Config
	client *http.Client
	hide   []string
	plain  sync.Map // "no stream_options" once the endpoint refused them
}

var _ session.Model = (*Model)(nil)

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Model, error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("provider %s: baseUrl must be an http or https address", cfg.Name)
	}
	if cfg.Idle == 0 {
		cfg.Idle = 2 * time.Minute
	}
	if cfg.Total == 0 {
		cfg.Total = 10 * time.Minute
	}
	if cfg.Connect == 0 {
		cfg.Connect = 20 * time.Second
	}
	if cfg.API == "" {
		cfg.API = Chat
	}
	m := &Model{cfg: cfg, hide: secrets(cfg, u)}
	tlsConfig, err := authorities(cfg)
	if err != nil {
		return nil, err
	}
	m.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: cfg.Connect, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig: tlsConfig, TLSHandshakeTimeout: cfg.Connect, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
			DisableCompression: true,
		},
		// A redirect to another host would take the key and the conversation there.
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != via[0].URL.Host || len(via) > 3 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	return m, nil
}

func authorities(cfg Config) (*tls.Config, error) {
	if cfg.CAFile == "" {
		return nil, nil // no file: the system authorities
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("provider %s: caFile: %w", cfg.Name, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("provider %s: caFile %s holds no certificate", cfg.Name, cfg.CAFile)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// secrets are the texts that must never be shown.
func secrets(cfg Config, u *url.URL) []string {
	var out []string
	add := func(s string) {
		if len(s) > 3 {
			out = append(out, s)
		}
	}
	add(cfg.Key)
	for _, v := range cfg.Headers {
		add(v)
	}
	if u.User != nil {
		pw, _ := u.User.Password()
		add(pw)
		add(u.User.String())
	}
	return out
}

// Generate implements session.Model.
func (m *Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var err error
		if m.cfg.API == Responses {
			err = m.responses(ctx, cancel, r, yield)
		} else {
			err = m.chat(ctx, cancel, r, yield)
		}
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

// post sends a request and returns the open stream. Anything but a 200 event stream is a *session.ModelError.
func (m *Model) post(ctx context.Context, cancel context.CancelCauseFunc, path string, body any) (*stream, error) {
	j, err := marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(m.cfg.BaseURL, "/")+path, bytes.NewReader(j))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	m.headers(req)
	s := newStream(m, cancel)
	resp, err := m.client.Do(req)
	if err != nil {
		s.close()
		return nil, m.network(ctx, err)
	}
	s.body = resp.Body
	s.alive()
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return s, nil
	}
	defer s.close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode == http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && looksLikeStream(text) {
		s.lines.Reset(io.MultiReader(bytes.NewReader(text), resp.Body)) // a server that forgot the content type
		s.body, s.keep = resp.Body, true
		return s, nil
	}
	return nil, m.refused(resp, text)
}

func looksLikeStream(text []byte) bool {
	return bytes.HasPrefix(text, []byte("data:")) || bytes.HasPrefix(text, []byte(":")) || bytes.HasPrefix(text, []byte("event:"))
}

func (m *Model) headers(req *http.Request) {
	if m.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.Key)
	}
	for k, v := range m.cfg.Headers {
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

// List asks the endpoint for its models.
func (m *Model) List(ctx context.Context) ([]session.ModelInfo, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(m.cfg.BaseURL, "/")+"/models", nil)
	if err != nil {
		return nil, err
	}
	m.headers(req)
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, m.network(ctx, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return nil, m.network(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, m.refused(resp, text)
	}
	var list struct {
		Data []struct {
			ID            string `json:"id"`
			Name          string `json:"name"`
			ContextLength int    `json:"context_length"`
			MaxModelLen   int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, &session.ModelError{Fault: session.FaultBadReply, Status: resp.StatusCode, Message: "The endpoint's list of models is not readable.", Cause: err}
	}
	out := make([]session.ModelInfo, 0, len(list.Data))
	for _, d := range list.Data {
		if d.ID == "" {
			continue
		}
		info := session.ModelInfo{Provider: m.cfg.Name, ID: d.ID, Name: d.Name, API: m.cfg.API, Window: max(d.ContextLength, d.MaxModelLen)}
		if info.Name == "" {
			info.Name = d.ID
		}
		out = append(out, info)
	}
	return out, nil
}

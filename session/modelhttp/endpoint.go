// Package modelhttp is what adapters for models have in common that ask over HTTP and read server-sent events: the connection with its
// proxies, authorities and headers, the stream and who watches over its silence, faults by their status, and what of an error may be shown.
// What an API says in its own way, an adapter tells in an API.
//
// It promises that neither keys nor passwords nor the values of custom headers are in any error, that a redirect takes them nowhere else, that
// a stream which breaks is told from one which ends, and that a silent provider is not waited for. It owns no goroutine: those of net/http
// end with the answer, or for an idle connection after 30 s or with Close.
package modelhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// Config names an endpoint.
type Config struct {
	Name      string            // of the provider, for reasoning that may only go back to it
	BaseURL   string            // http or https; paths are put behind it
	Key       string            // "" sends none
	Headers   map[string]string // sent with every request; they win over the adapter's
	CAFile    string            // PEM file with further certificate authorities
	Idle      time.Duration     // longest silence of the stream; keep-alives count as life. Default 2 min
	Total     time.Duration     // longest life on keep-alives alone. Default 10 min
	Connect   time.Duration     // longest wait for the connection. Default 20 s
	Transport http.RoundTripper // in place of our own; CAFile and Connect are its maker's business then
}

// API is what a family of providers says in its own way.
type API struct {
	// Sign puts the key, "" for none, and what else each request carries into its headers.
	Sign func(h http.Header, key string)
	// Parse finds the provider's words in the body of an error; false when it is none.
	Parse func(body []byte) (Told, bool)
	// Sort says what kind of fault it is. after is what the provider asks to wait, 0 for nothing.
	Sort func(t Told, after time.Duration) session.Fault
}

// Endpoint is one address with what is needed to ask it. Safe for concurrent use.
type Endpoint struct {
	Config
	api    API
	host   string
	client *http.Client
	hide   *strings.Replacer
}

// New checks the configuration; it connects to nothing. Errors name the provider, and none of its secrets.
func New(cfg Config, api API) (*Endpoint, error) {
	cfg.Key = strings.TrimSpace(cfg.Key)
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
	e := &Endpoint{Config: cfg, api: api, host: u.Host, hide: replacer(secrets(cfg, u))}
	e.client = &http.Client{Transport: cfg.Transport, CheckRedirect: sameHost}
	if cfg.Transport == nil {
		if e.client.Transport, err = transport(cfg); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Base is an address as people write it, without the blanks and slashes around it.
func Base(address string) string { return strings.TrimRight(strings.TrimSpace(address), "/") }

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// Close closes the connections that wait for the next request. The Endpoint stays usable.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// Do asks an address of the endpoint with its key and headers: a POST of body as JSON, or a GET where body is nil. An error is a
// *session.ModelError or the cause of ctx; any status is an answer.
func (e *Endpoint) Do(ctx context.Context, address, accept string, body any) (*http.Response, error) {
	method, in := http.MethodGet, io.Reader(nil)
	if body != nil {
		j, err := Marshal(body)
		if err != nil {
			return nil, &session.ModelError{Fault: session.FaultRejected, Message: "The request cannot be written as JSON.", Cause: err}
		}
		method, in = http.MethodPost, bytes.NewReader(j)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, in)
	if err != nil {
		return nil, &session.ModelError{Fault: session.FaultConfig, Message: "The address of the provider is not usable; check baseUrl.", Cause: e.redacted(err)}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", accept)
	e.api.Sign(req.Header, e.Key)
	for name, value := range e.Headers {
		if strings.EqualFold(name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, e.network(ctx, err)
	}
	return resp, nil
}

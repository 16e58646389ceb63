package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// retryCap bounds what a provider may ask us to wait.
const retryCap = 60 * time.Second

// network is a request that got no answer.
func (m *Model) network(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errIdle) {
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The provider did not answer in time.", Cause: cause}
		}
		return cause
	}
	e := &session.ModelError{Fault: session.FaultNetwork, Cause: err}
	var cert *tls.CertificateVerificationError
	var dns *net.DNSError
	var timeout net.Error
	host := m.host()
	switch {
	case errors.As(err, &cert):
		e.Message = "The certificate of " + host + " cannot be verified; for an own authority set caFile."
	case errors.As(err, &dns):
		e.Message = "The host " + host + " cannot be found; check baseUrl and the network."
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Fault, e.Message = session.FaultTimeout, "The connection to "+host+" timed out."
	case strings.Contains(err.Error(), "refused"):
		e.Message = "Nothing listens at " + host + "; is the server running?"
	default:
		e.Message = m.line("The connection to " + host + " failed: " + rootText(err))
	}
	return e
}

func (m *Model) host() string {
	_, rest, _ := strings.Cut(m.cfg.BaseURL, "://")
	host, _, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	return host
}

func rootText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// errorBody is an error as providers write it; code may be text or number.
type errorBody struct {
	Error json.RawMessage `json:"error"`
	// Some servers put it at the top.
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

type errorText struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"`
	Metadata struct {
		Raw string `json:"raw"`
	} `json:"metadata"`
}

// parseError finds the provider's words and codes in a body.
func parseError(body []byte) (message, kind string, status int, ok bool) {
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		return "", "", 0, false
	}
	t := errorText{Message: b.Message, Type: b.Type, Code: b.Code}
	switch {
	case len(b.Error) > 0 && b.Error[0] == '{':
		if json.Unmarshal(b.Error, &t) != nil {
			return "", "", 0, false
		}
		if t.Metadata.Raw != "" {
			t.Message += ": " + t.Metadata.Raw
		}
	case len(b.Error) > 0 && b.Error[0] == '"':
		_ = json.Unmarshal(b.Error, &t.Message)
	case b.Message != "" && (b.Object == "error" || b.Type == "error" || b.Code != nil):
	case len(b.Detail) > 0:
		if json.Unmarshal(b.Detail, &t.Message) != nil {
			t.Message = string(b.Detail)
		}
	default:
		return "", "", 0, false
	}
	code := strings.Trim(string(t.Code), `"`)
	status, _ = strconv.Atoi(code)
	return t.Message, t.Type + " " + code, status, true
}

// refused is an answer that is no stream.
func (m *Model) refused(resp *http.Response, body []byte) error {
	message, kind, status, ok := parseError(body)
	if resp.StatusCode != http.StatusOK {
		status = resp.StatusCode
	}
	if !ok || message == "" {
		switch {
		case resp.StatusCode == http.StatusOK:
			return &session.ModelError{
				Fault: session.FaultBadReply, Status: 200, Message: m.line("The endpoint answered with " + contentType(resp) + " instead of an event stream; check baseUrl."),
			}
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			return &session.ModelError{Fault: session.FaultRejected, Status: resp.StatusCode, Message: "The endpoint redirects elsewhere; set baseUrl to where it leads."}
		}
		message = http.StatusText(resp.StatusCode)
		if text := strings.TrimSpace(string(body)); text != "" && !strings.HasPrefix(text, "<") {
			message += ": " + text
		}
	}
	return m.fault(status, message, kind, retryAfter(resp.Header, time.Now()))
}

func contentType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if t == "" {
		return "no content type"
	}
	return protocol.Prefix(t, 60)
}

// fault sorts a provider's error.
func (m *Model) fault(status int, message, kind string, after time.Duration) *session.ModelError {
	e := &session.ModelError{Status: status, Message: m.line(message), RetryAfter: after}
	low := strings.ToLower(message + " " + kind)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusRequestEntityTooLarge, has("context_length_exceeded", "context length", "context window", "maximum context", "prompt is too long", "too many tokens", "exceeds the available context", "exceed_context_size", "input is too long", "n_ctx"):
		e.Fault = session.FaultContext
	case has("insufficient_quota", "exceeded your current quota", "billing", "credit balance") || status == http.StatusPaymentRequired:
		e.Fault = session.FaultQuota
	case status == http.StatusUnauthorized, status == http.StatusForbidden, has("invalid_api_key", "authentication_error"):
		e.Fault = session.FaultAuth
	case status == http.StatusNotFound, has("model_not_found"):
		e.Fault = session.FaultModel
	case status == http.StatusTooManyRequests, has("rate_limit", "rate limit", "too many requests"):
		e.Fault = session.FaultRate
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		e.Fault = session.FaultTimeout
	case status >= 500, has("overloaded", "server_error", "internal error", "service unavailable"):
		e.Fault = session.FaultServer
	default:
		e.Fault = session.FaultRejected
	}
	if e.Message == "" {
		e.Message = "The provider refused the request."
	}
	return e
}

// line makes text from outside fit to be shown: one line, short, without keys and control characters.
func (m *Model) line(text string) string {
	for _, s := range m.hide {
		text = strings.ReplaceAll(text, s, "[hidden]")
	}
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if short := protocol.Prefix(text, 500); short != text {
		return short + "…"
	}
	return text
}

// retryAfter reads what the provider asks to wait: seconds or a date. Nonsense, the past and too far a future are nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s <= 0 || s != s {
			return 0
		}
		return min(time.Duration(min(s, 1e6)*float64(time.Second)), retryCap)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // the server's own clock: ours may be off
	}
	if d := at.Sub(now); d > 0 {
		return min(d, retryCap)
	}
	return 0
}

package openai

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"math"
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
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The provider at " + m.base.Host + " did not answer in time.", Cause: cause}
		}
		return cause
	}
	e := &session.ModelError{Fault: session.FaultNetwork, Cause: m.redacted(err)}
	timeout, timed := errors.AsType[net.Error](err)
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	host := m.base.Host
	switch {
	case cert:
		e.Message = "The certificate of " + host + " cannot be verified; for an own authority set caFile."
	case timed && timeout.Timeout():
		e.Fault, e.Message = session.FaultTimeout, "The connection to "+host+" timed out."
	case dns:
		e.Message = "The host " + host + " cannot be found; check baseUrl and the network."
	case strings.Contains(err.Error(), "refused"): // the word of every system, whatever its number
		e.Message = "Nothing listens at " + host + "; is the server running?"
	default:
		e.Message = "The connection to " + host + " failed: " + innermost(err)
	}
	e.Message = m.line(e.Message)
	return e
}

func innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// errorBody is an error as providers write it: under error, as an object or a text, or at the top.
type errorBody struct {
	Error json.RawMessage `json:"error"`
	errorText
	Detail loose  `json:"detail"`
	Object string `json:"object"`
}

type errorText struct {
	Message  loose `json:"message"`
	Type     loose `json:"type"`
	Code     loose `json:"code"`
	Status   loose `json:"status"`
	Metadata struct {
		Raw loose `json:"raw"` // OpenRouter: the words of the provider behind it
	} `json:"metadata"`
}

// told is an error in the provider's words.
type told struct {
	message string
	kind    string // its types and codes
	status  int    // where a code is an HTTP status
}

// parseError finds the provider's words and codes in a body; false when it is no error.
func parseError(body []byte) (told, bool) {
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		return told{}, false
	}
	t := b.errorText
	switch {
	case len(b.Error) > 0 && b.Error[0] == '{':
		t = errorText{}
		if json.Unmarshal(b.Error, &t) != nil {
			return told{}, false
		}
		if raw := string(t.Metadata.Raw); raw != "" {
			if behind, ok := parseError([]byte(raw)); ok && behind.message != "" {
				raw = behind.message
			}
			t.Message += loose(": " + raw)
		}
	case len(b.Error) > 0 && b.Error[0] == '"':
		var text loose
		_ = json.Unmarshal(b.Error, &text) // it is a string
		if t.Message != "" {
			t.Type += loose(" " + text) // Hugging Face and others: error is the kind, message the words
		} else {
			t.Message = text
		}
	case b.Message != "" && (b.Object == "error" || b.Type != "" || b.Code != ""):
	case b.Detail != "":
		t.Message = b.Detail
	default:
		return told{}, false
	}
	out := told{message: string(t.Message), kind: strings.TrimSpace(string(t.Type + " " + t.Code + " " + t.Status))}
	if n, err := strconv.Atoi(string(t.Code)); err == nil && n >= 400 && n < 600 {
		out.status = n
	}
	return out, true
}

// refused is an answer that is no stream.
func (m *Model) refused(resp *http.Response, body []byte) error {
	t, ok := parseError(body)
	if resp.StatusCode != http.StatusOK {
		t.status = resp.StatusCode
	}
	if !ok || t.message == "" {
		switch {
		case resp.StatusCode == http.StatusOK && !ok:
			return &session.ModelError{
				Fault: session.FaultBadReply, Status: 200, Message: m.line("The endpoint answered with " + contentType(resp) + " instead of an event stream; check baseUrl."),
			}
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			return &session.ModelError{Fault: session.FaultRejected, Status: resp.StatusCode, Message: "The endpoint redirects elsewhere; set baseUrl to where it leads."}
		}
		t.message = strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
		if text := strings.TrimSpace(string(body)); text != "" && !strings.HasPrefix(text, "<") {
			t.message += ": " + text
		}
	}
	return m.fault(t, retryAfter(resp.Header, time.Now()))
}

func contentType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if t == "" {
		return "no content type"
	}
	return protocol.Prefix(t, 60)
}

// Words by which providers name a fault, in lower case.
var (
	contextWords = []string{
		"context_length_exceeded", "context length", "context window", "maximum context", "context size", "exceed_context_size", "n_ctx",
		"prompt is too long", "input is too long", "input too long", "prompt too long", "too many tokens", "when context the overflows",
		"maximum input length", "range of input length", "reduce the length of",
	}
	quotaWords = []string{"insufficient_quota", "insufficient quota", "insufficient balance", "insufficient credits", "credit balance", "billing_hard_limit", "billing hard limit"}
	modelWords = []string{"model_not_found", "not a valid model", "model not found", "does not exist or you do not have access"}
	rateWords  = []string{"rate_limit", "rate limit", "too many requests", "resource_exhausted"}
	keyWords   = []string{"invalid_api_key", "authentication_error", "invalid api key", "incorrect api key"}
	busyWords  = []string{"overloaded", "server_error", "internal error", "internal_error", "service unavailable", "temporarily unavailable", "unavailable"}
)

// fault sorts a provider's error.
func (m *Model) fault(t told, after time.Duration) *session.ModelError {
	e := &session.ModelError{Status: t.status, Message: m.line(t.message), RetryAfter: after}
	low := strings.ToLower(t.message + " " + t.kind)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch s := t.status; {
	case s == http.StatusRequestEntityTooLarge,
		s != http.StatusTooManyRequests && s != http.StatusUnauthorized && s != http.StatusForbidden && has(contextWords),
		s == http.StatusTooManyRequests && strings.Contains(low, "request too large"): // more than a minute's allowance: waiting does not help
		e.Fault = session.FaultContext
	case s == http.StatusPaymentRequired, has(quotaWords),
		strings.Contains(low, "quota") && after == 0 && (s == 0 || s == http.StatusTooManyRequests || s == http.StatusForbidden):
		e.Fault = session.FaultQuota // a quota that comes back by itself says when
	case has(modelWords):
		e.Fault = session.FaultModel
	case s == http.StatusUnauthorized, s == http.StatusForbidden, has(keyWords):
		e.Fault = session.FaultAuth
	case s == http.StatusNotFound:
		e.Fault = session.FaultModel
	case s == http.StatusTooManyRequests, has(rateWords):
		e.Fault = session.FaultRate
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout:
		e.Fault = session.FaultTimeout
	case s >= 500, has(busyWords):
		e.Fault = session.FaultServer
	default:
		e.Fault = session.FaultRejected
	}
	if e.Message == "" {
		e.Message = "The provider refused the request without saying why."
	}
	return e
}

// retryAfter reads what the provider asks to wait, at most 60 s: milliseconds, seconds or a date. Nonsense and the past are 0.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := span(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d := span(v, time.Second); d > 0 {
		return d
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date // by the server's own clock: ours may be off
	}
	return min(max(at.Sub(now), 0), retryCap)
}

func span(v string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(retryCap)))
}

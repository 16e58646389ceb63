package anthropic

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

// errorBody is an error as the API writes it, under error; endpoints that only speak its language also write a text there, or put the
// message at the top.
type errorBody struct {
	Error  json.RawMessage `json:"error"`
	Detail loose           `json:"detail"`
	errorText
}

type errorText struct {
	Type    loose `json:"type"`
	Message loose `json:"message"`
	Details struct {
		Code loose `json:"error_code"`
	} `json:"details"`
}

// told is an error in the provider's words.
type told struct {
	message string
	kind    string // its type
	code    string // why, where the type is too wide
	status  int    // HTTP; 0 inside a stream
}

// parseError finds the provider's words and type in a body; false when it is no error.
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
	case len(b.Error) > 0 && b.Error[0] == '"':
		var text loose
		_ = json.Unmarshal(b.Error, &text) // it is a string
		if t.Message == "" {
			t.Message = text
		}
	case b.Message != "":
	case b.Detail != "":
		t.Message = b.Detail
	default:
		return told{}, false
	}
	return told{message: string(t.Message), kind: string(t.Type), code: string(t.Details.Code)}, true
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
		if text := strings.TrimSpace(string(body)); text != "" && !strings.HasPrefix(text, "<") && !ok {
			t.message += ": " + text
		}
	}
	e := m.fault(t, retryAfter(resp.Header, time.Now()))
	if id := resp.Header.Get("Request-Id"); id != "" {
		e.Cause = m.redacted(errors.New("request " + id)) // what the provider's support asks for
	}
	return e
}

func contentType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if t == "" {
		return "no content type"
	}
	return protocol.Prefix(t, 60)
}

// Words by which a fault is told apart where types and statuses do not: all of them come as invalid_request_error too. Lower case.
var (
	contextWords = []string{
		"prompt is too long", "exceed context limit", "exceeds the context", "context window", "context length", "maximum context",
		"input is too long", "input length", "too many total text bytes", "too many tokens",
	}
	quotaWords = []string{"credit balance", "usage limit", "spend_limit", "spend limit", "insufficient_quota", "extra usage is required"}
)

// kinds are the types of errors, for those inside a stream, which have no status, and where a proxy changed the status.
var kinds = map[string]session.Fault{
	"authentication_error": session.FaultAuth,
	"permission_error":     session.FaultAuth,
	"billing_error":        session.FaultQuota,
	"not_found_error":      session.FaultModel,
	"request_too_large":    session.FaultContext,
	"rate_limit_error":     session.FaultRate,
	"timeout_error":        session.FaultTimeout,
	"overloaded_error":     session.FaultServer,
	"api_error":            session.FaultServer,
}

// fault sorts a provider's error.
func (m *Model) fault(t told, after time.Duration) *session.ModelError {
	e := &session.ModelError{Status: t.status, Message: m.line(t.message), RetryAfter: after}
	low := strings.ToLower(t.message + " " + t.code)
	named := kinds[t.kind]
	refusal := t.status == 0 || t.status == http.StatusBadRequest || t.status == http.StatusUnprocessableEntity
	// A limit that comes back by itself says when.
	paid := refusal || t.status == http.StatusForbidden || t.status == http.StatusTooManyRequests && after == 0
	switch s := t.status; {
	case s == http.StatusRequestEntityTooLarge, refusal && named == "" && has(low, contextWords):
		e.Fault = session.FaultContext
	case s == http.StatusPaymentRequired, paid && has(low, quotaWords):
		e.Fault = session.FaultQuota
	case named != "":
		e.Fault = named
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		e.Fault = session.FaultAuth
	case s == http.StatusNotFound:
		e.Fault = session.FaultModel
	case s == http.StatusTooManyRequests:
		e.Fault = session.FaultRate
	case s == http.StatusRequestTimeout, s == http.StatusGatewayTimeout:
		e.Fault = session.FaultTimeout
	case s >= 500:
		e.Fault = session.FaultServer
	default:
		e.Fault = session.FaultRejected
	}
	if e.Message == "" {
		e.Message = "The provider refused the request without saying why."
	}
	return e
}

func has(text string, words []string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
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

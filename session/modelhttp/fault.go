package modelhttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// retryCap bounds what a provider may ask us to wait.
const retryCap = 60 * time.Second

// network is a request that got no answer.
func (e *Endpoint) network(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errIdle) {
			return &session.ModelError{Fault: session.FaultTimeout, Message: "The provider at " + e.host + " did not answer in time.", Cause: cause}
		}
		return cause
	}
	out := &session.ModelError{Fault: session.FaultNetwork, Cause: e.redacted(err)}
	timeout, timed := errors.AsType[net.Error](err)
	cert, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, dns := errors.AsType[*net.DNSError](err)
	host := e.host
	switch {
	case untrusted: // it stays so, however often it is asked
		out.Fault, out.Message = session.FaultConfig, certificate(host, e.Name, cert.Err)
	case strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		out.Fault, out.Message = session.FaultConfig, host+" speaks http, not https: correct baseUrl of provider "+e.Name+"."
	case timed && timeout.Timeout():
		out.Fault, out.Message = session.FaultTimeout, "The connection to "+host+" timed out."
	case dns:
		out.Message = "The host " + host + " cannot be found: check the network, and baseUrl of provider " + e.Name + "."
	case strings.Contains(err.Error(), "refused"): // the word of every system, whatever its number
		out.Message = "Nothing listens at " + host + ": start the server, or correct baseUrl of provider " + e.Name + "."
	default:
		out.Message = "The connection to " + host + " failed: " + protocol.Innermost(err).Error()
	}
	out.Message = e.Line(out.Message)
	return out
}

// certificate says why one was not accepted, and what would help.
func certificate(host, provider string, err error) string {
	if _, other := errors.AsType[x509.HostnameError](err); other {
		return "The certificate of " + host + " is for another host: correct baseUrl of provider " + provider + "."
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "The certificate of " + host + " has expired or is not valid yet: check the clock of this machine, then the server."
	}
	return "The certificate of " + host + " is of no authority this system trusts: name its authority in caFile of provider " + provider + "."
}

// Told is an error in the provider's words.
type Told struct {
	Message string
	Kind    string // its types and codes
	Code    string // why, where the kind is too wide
	Status  int    // HTTP; 0 inside a stream that names none
}

// refused is an answer that is not what was asked for.
func (e *Endpoint) refused(resp *http.Response, body []byte) error {
	t, ok := e.api.Parse(body)
	if resp.StatusCode != http.StatusOK {
		t.Status = resp.StatusCode
	}
	if !ok || t.Message == "" {
		switch {
		case resp.StatusCode == http.StatusOK && !ok:
			return &session.ModelError{
				Fault: session.FaultBadReply, Status: 200, Message: e.Line("The endpoint answered with " + contentType(resp) + " instead of an event stream; check baseUrl."),
			}
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			return &session.ModelError{Fault: session.FaultRejected, Status: resp.StatusCode, Message: "The endpoint redirects elsewhere; set baseUrl to where it leads."}
		}
		t.Message = strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
		if text := strings.TrimSpace(string(body)); text != "" && !strings.HasPrefix(text, "<") && !ok {
			t.Message += ": " + text
		}
	}
	err := e.fault(t, retryAfter(resp.Header, time.Now()))
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		if id := resp.Header.Get(name); id != "" {
			err.Cause = e.redacted(errors.New("request " + id)) // what the provider's support asks for
		}
	}
	return err
}

func contentType(resp *http.Response) string {
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if t == "" {
		return "no content type"
	}
	return protocol.Prefix(t, 60)
}

// fault is an error the provider told.
func (e *Endpoint) fault(t Told, after time.Duration) *session.ModelError {
	err := &session.ModelError{Fault: e.api.Sort(t, after), Status: t.Status, Message: e.Line(t.Message), RetryAfter: after}
	if err.Message == "" {
		err.Message = "The provider refused the request without saying why."
	}
	if next := e.next(err.Fault); next != "" {
		if room := messageChars - protocol.CharLen(next) - 2; protocol.CharLen(err.Message) > room {
			err.Message = protocol.Prefix(err.Message, room-1) + "…"
		}
		if !strings.ContainsAny(err.Message[len(err.Message)-1:], ".!?") {
			err.Message += "."
		}
		err.Message += " " + next
	}
	return err
}

// next is what a person can do about a fault the provider told of in words of its own.
func (e *Endpoint) next(f session.Fault) string {
	switch f {
	case session.FaultAuth:
		return "To set another key of provider " + e.Name + ": rind login " + e.Name
	case session.FaultModel:
		return "What there is: rind models --provider " + e.Name
	case session.FaultQuota:
		return "Provider " + e.Name + " gives no more for now; other models: rind models"
	case session.FaultContext:
		return "Ask for less at once, or begin a new session."
	}
	return ""
}

// ByStatus sorts a fault by its HTTP status alone; 0 and whatever says nothing of its own are FaultRejected.
func ByStatus(status int) session.Fault {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return session.FaultAuth
	case status == http.StatusNotFound:
		return session.FaultModel
	case status == http.StatusTooManyRequests:
		return session.FaultRate
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout:
		return session.FaultTimeout
	case status >= 500:
		return session.FaultServer
	}
	return session.FaultRejected
}

// Has tells whether one of the words is in a text, which is in lower case as they are.
func Has(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
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

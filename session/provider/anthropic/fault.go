package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// errorBody is an error as the API writes it, under error; endpoints that only speak its language also write a text there, or put the
// message at the top.
type errorBody struct {
	Error  json.RawMessage `json:"error"`
	Detail modelhttp.Loose `json:"detail"`
	errorText
}

type errorText struct {
	Type    modelhttp.Loose `json:"type"`
	Message modelhttp.Loose `json:"message"`
	Details struct {
		Code modelhttp.Loose `json:"error_code"`
	} `json:"details"`
}

// parseError finds the provider's words and type in a body; false when it is no error.
func parseError(body []byte) (modelhttp.Told, bool) {
	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		return modelhttp.Told{}, false
	}
	t := b.errorText
	switch {
	case len(b.Error) > 0 && b.Error[0] == '{':
		t = errorText{}
		if json.Unmarshal(b.Error, &t) != nil {
			return modelhttp.Told{}, false
		}
	case len(b.Error) > 0 && b.Error[0] == '"':
		var text modelhttp.Loose
		_ = json.Unmarshal(b.Error, &text) // it is a string
		if t.Message == "" {
			t.Message = text
		}
	case b.Message != "":
	case b.Detail != "":
		t.Message = b.Detail
	default:
		return modelhttp.Told{}, false
	}
	return modelhttp.Told{Message: string(t.Message), Kind: string(t.Type), Code: string(t.Details.Code)}, true
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

// sortFault sorts a provider's error.
func sortFault(t modelhttp.Told, after time.Duration) session.Fault {
	low := strings.ToLower(t.Message + " " + t.Code)
	named := kinds[t.Kind]
	refusal := t.Status == 0 || t.Status == http.StatusBadRequest || t.Status == http.StatusUnprocessableEntity
	// A limit that comes back by itself says when.
	paid := refusal || t.Status == http.StatusForbidden || t.Status == http.StatusTooManyRequests && after == 0
	switch s := t.Status; {
	case s == http.StatusRequestEntityTooLarge, refusal && named == "" && modelhttp.Has(low, contextWords):
		return session.FaultContext
	case s == http.StatusPaymentRequired, paid && modelhttp.Has(low, quotaWords):
		return session.FaultQuota
	case named != "":
		return named
	}
	return modelhttp.ByStatus(t.Status)
}

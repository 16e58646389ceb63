package openai

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// errorBody is an error as providers write it: under error, as an object or a text, or at the top.
type errorBody struct {
	Error json.RawMessage `json:"error"`
	errorText
	Detail modelhttp.Loose `json:"detail"`
	Object string          `json:"object"`
}

type errorText struct {
	Message  modelhttp.Loose `json:"message"`
	Type     modelhttp.Loose `json:"type"`
	Code     modelhttp.Loose `json:"code"`
	Status   modelhttp.Loose `json:"status"`
	Metadata struct {
		Raw modelhttp.Loose `json:"raw"` // OpenRouter: the words of the provider behind it
	} `json:"metadata"`
}

// parseError finds the provider's words and codes in a body; false when it is no error.
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
		if raw := string(t.Metadata.Raw); raw != "" {
			if behind, ok := parseError([]byte(raw)); ok && behind.Message != "" {
				raw = behind.Message
			}
			t.Message += modelhttp.Loose(": " + raw)
		}
	case len(b.Error) > 0 && b.Error[0] == '"':
		var text modelhttp.Loose
		_ = json.Unmarshal(b.Error, &text) // it is a string
		if t.Message != "" {
			t.Type += modelhttp.Loose(" " + text) // Hugging Face and others: error is the kind, message the words
		} else {
			t.Message = text
		}
	case b.Message != "" && (b.Object == "error" || b.Type != "" || b.Code != ""):
	case b.Detail != "":
		t.Message = b.Detail
	default:
		return modelhttp.Told{}, false
	}
	out := modelhttp.Told{Message: string(t.Message), Kind: strings.TrimSpace(string(t.Type + " " + t.Code + " " + t.Status))}
	if n, err := strconv.Atoi(string(t.Code)); err == nil && n >= 400 && n < 600 {
		out.Status = n
	}
	return out, true
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

// sortFault sorts a provider's error.
func sortFault(t modelhttp.Told, after time.Duration) session.Fault {
	low := strings.ToLower(t.Message + " " + t.Kind)
	fault := modelhttp.ByStatus(t.Status)
	switch s := t.Status; {
	case s == http.StatusRequestEntityTooLarge,
		fault != session.FaultRate && fault != session.FaultAuth && modelhttp.Has(low, contextWords),
		s == http.StatusTooManyRequests && strings.Contains(low, "request too large"): // more than a minute's allowance: waiting does not help
		return session.FaultContext
	case s == http.StatusPaymentRequired, modelhttp.Has(low, quotaWords),
		strings.Contains(low, "quota") && after == 0 && (s == 0 || s == http.StatusTooManyRequests || s == http.StatusForbidden):
		return session.FaultQuota // a quota that comes back by itself says when
	case modelhttp.Has(low, modelWords):
		return session.FaultModel
	case modelhttp.Has(low, keyWords):
		return session.FaultAuth
	case fault == session.FaultAuth, fault == session.FaultModel:
		return fault
	case modelhttp.Has(low, rateWords):
		return session.FaultRate
	case fault == session.FaultRejected && modelhttp.Has(low, busyWords):
		return session.FaultServer
	}
	return fault
}

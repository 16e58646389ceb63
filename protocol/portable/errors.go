package portable

import (
	"errors"
	"net/http"

	"github.com/rind-dev/rind/protocol"
)

// Code is what clients branch on (docs/protocol/portable-2026-09-02.md section 3).
type Code string

// The closed set of codes.
const (
	Validation     Code = "VALIDATION_ERROR"
	Unauthorized   Code = "UNAUTHENTICATED"
	Forbidden      Code = "FORBIDDEN"
	NotFound       Code = "NOT_FOUND"
	NoProvider     Code = "PROVIDER_NOT_FOUND"
	NoAction       Code = "ACTION_NOT_FOUND"
	BadMethod      Code = "METHOD_NOT_ALLOWED"
	KeyConflict    Code = "IDEMPOTENCY_CONFLICT"
	ActionResolved Code = "ACTION_ALREADY_RESOLVED"
	InvalidState   Code = "INVALID_STATE"
	TooLarge       Code = "PAYLOAD_TOO_LARGE"
	BadMedia       Code = "UNSUPPORTED_MEDIA_TYPE"
	Unsupported    Code = "CAPABILITY_UNSUPPORTED"
	Internal       Code = "INTERNAL_ERROR"
	Unavailable    Code = "UNAVAILABLE"
)

// ProviderFailed is the code of run.failed and of a failed execution; it is never the code of an answer.
const ProviderFailed = "PROVIDER_ERROR"

// statuses is the one table of codes and HTTP statuses.
var statuses = map[Code]int{
	Validation: http.StatusBadRequest, Unauthorized: http.StatusUnauthorized, Forbidden: http.StatusForbidden, NotFound: http.StatusNotFound,
	NoProvider: http.StatusNotFound, NoAction: http.StatusNotFound, BadMethod: http.StatusMethodNotAllowed, KeyConflict: http.StatusConflict,
	ActionResolved: http.StatusConflict, InvalidState: http.StatusConflict, TooLarge: http.StatusRequestEntityTooLarge,
	BadMedia: http.StatusUnsupportedMediaType, Unsupported: http.StatusUnprocessableEntity, Internal: http.StatusInternalServerError,
	Unavailable: http.StatusServiceUnavailable,
}

// types is the one table of codes and types of errors on lines (section 13). What is not in it does not happen there.
var types = map[Code]protocol.ErrorKind{
	Validation: protocol.InvalidRequest, NotFound: protocol.NotFound, NoProvider: protocol.NotFound, NoAction: protocol.NotFound,
	KeyConflict: protocol.Conflict, ActionResolved: protocol.Conflict, InvalidState: protocol.Conflict, Unsupported: protocol.Unsupported,
	Unavailable: protocol.Unavailable,
}

// kinds is the one table of what the runtime's errors are answered with. The text is that of section 3 where it names one; an empty text
// keeps the error's own, which is fit for a client.
var kinds = map[protocol.ErrorKind]struct {
	code Code
	text string
}{
	protocol.InvalidRequest:        {Validation, ""},
	protocol.SessionNotFound:       {NotFound, ""},
	protocol.NotFound:              {NotFound, ""},
	protocol.ActionNotFound:        {NoAction, ""},
	protocol.QuestionNotFound:      {NoAction, ""},
	protocol.ActionAlreadyResolved: {ActionResolved, ""},
	protocol.IdempotencyConflict:   {KeyConflict, "Idempotency key was already used for a different request"},
	protocol.TurnNotActive:         {InvalidState, ""},
	protocol.ServerStopping:        {Unavailable, "Runtime is stopping"},
	protocol.PersistenceError:      {Unavailable, "Storage is unavailable"},
	protocol.Overloaded:            {Unavailable, "Too many executions are queued"},
	protocol.SessionBusy:           {Unavailable, "Conversation is in use by another process"},
}

// Error is an error a client is answered with: the body of every answer that is no success.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
	Status  int            `json:"-"` // HTTP status, where it is not the code's own; 0 for that
	Cause   error          `json:"-"` // for the log file only
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// HTTPStatus is the status of the answer.
func (e *Error) HTTPStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	return statuses[e.Code]
}

// Line is the error as an answer on a line: {type, message, code, details?} (section 13). INTERNAL_ERROR is for the caller to word.
func (e *Error) Line() *protocol.Error {
	kind, ok := types[e.Code]
	if !ok {
		kind = protocol.InternalError
	}
	details := map[string]any{"code": e.Code}
	if e.Details != nil {
		details["details"] = e.Details
	}
	return &protocol.Error{Kind: kind, Message: e.Message, Details: details, Cause: e}
}

// newError makes an error; id, where there is one, is put behind the text, at most 200 characters of it.
func newError(c Code, text, id string) *Error {
	return &Error{Code: c, Message: text + protocol.Prefix(id, 200)}
}

// Invalid is a request that cannot be read.
func Invalid(text string) *Error { return newError(Validation, text, "") }

// ConversationNotFound and the others name what is not there.
func ConversationNotFound(id string) *Error {
	return newError(NotFound, "Conversation not found: ", id)
}

// ExecutionNotFound names an execution that is not there.
func ExecutionNotFound(id string) *Error { return newError(NotFound, "Execution not found: ", id) }

// ProviderNotFound names a provider that is not there.
func ProviderNotFound(id string) *Error { return newError(NoProvider, "Provider not found: ", id) }

// ActionNotFound names an action that is unknown, of another execution, or dead.
func ActionNotFound(id string) *Error { return newError(NoAction, "Action not found: ", id) }

// ActionAlreadyResolved names an action that has its answer.
func ActionAlreadyResolved(id string) *Error {
	return newError(ActionResolved, "Action already resolved: ", id)
}

// FromError turns any error into what a client is told. What the table does not know is INTERNAL_ERROR, without its text.
func FromError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		if row, known := kinds[e.Kind]; known {
			text := row.text
			if text == "" {
				text = e.Message
			}
			return &Error{Code: row.code, Message: text, Cause: err}
		}
	}
	return &Error{Code: Internal, Message: "Unexpected server error", Cause: err}
}

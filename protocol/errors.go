package protocol

import (
	"errors"
	"fmt"
)

// ErrorKind tells what went wrong, in the words of docs/protocol/rind-v2.md section 12. Each codec has one table from these
// kinds to its own wire errors.
type ErrorKind string

// The complete set of error kinds a request can be answered with.
const (
	ParseError            ErrorKind = "ParseError"
	InvalidRequest        ErrorKind = "InvalidRequest"
	MethodNotFound        ErrorKind = "MethodNotFound"
	UnsupportedOperation  ErrorKind = "UnsupportedOperation"
	Conflict              ErrorKind = "Conflict"
	Unsupported           ErrorKind = "Unsupported"
	Unavailable           ErrorKind = "Unavailable"
	ServerNotReady        ErrorKind = "ServerNotReady"
	ServerStopping        ErrorKind = "ServerStopping"
	ShutdownFailed        ErrorKind = "ShutdownFailed"
	Overloaded            ErrorKind = "Overloaded"
	SessionNotFound       ErrorKind = "SessionNotFound"
	SessionBusy           ErrorKind = "SessionBusy"
	TurnActive            ErrorKind = "TurnActive"
	TurnNotActive         ErrorKind = "TurnNotActive"
	InputTooLong          ErrorKind = "InputTooLong"
	InputQueueFull        ErrorKind = "InputQueueFull"
	InputNotPending       ErrorKind = "InputNotPending"
	QuestionNotFound      ErrorKind = "QuestionNotFound"
	ActionNotFound        ErrorKind = "ActionNotFound"
	ActionAlreadyResolved ErrorKind = "ActionAlreadyResolved"
	NotFound              ErrorKind = "NotFound"
	TaskNotOwned          ErrorKind = "TaskNotOwned"
	IdempotencyConflict   ErrorKind = "IdempotencyConflict"
	RequestFailed         ErrorKind = "RequestFailed"
	ConfigurationError    ErrorKind = "ConfigurationError"
	ProviderError         ErrorKind = "ProviderError"
	PersistenceError      ErrorKind = "PersistenceError"
	InternalError         ErrorKind = "InternalError"
)

// Error is a failure a client is told: one line saying what happened and, where there is something to do, what to do.
// Message never holds a secret or an internal detail.
type Error struct {
	Kind    ErrorKind
	Message string
	Details map[string]any // further members of the wire error, nil for most
	Cause   error          // for the log file only; never shown
}

func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

// Unwrap returns the cause, so that errors.Is sees through a wire error.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an Error of kind k with a formatted message. A %w argument becomes the cause; its text is shown.
func Errorf(k ErrorKind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Innermost is the last, exact part of a chain of errors, as the operating system or a library named it.
func Innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// KindOf returns the kind of the first *Error in err's chain, or InternalError for any other non-nil error.
func KindOf(err error) ErrorKind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return InternalError
}

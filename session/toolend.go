package session

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rind-dev/rind/protocol"
)

// The ends of calls that tools share (docs/protocol/rind-v2.md section 9).

// Refusal is an error that a user or a model can cause, and that says how a call ends with it; its text is one line for both.
// Those of session/roots are.
type Refusal interface {
	error
	Outcome() (status, errorType string)
}

// Refused is the result of a call that ends with a Refusal. Any other error comes back as it is.
func Refused(err error) (ToolResult, error) {
	r, ok := errors.AsType[Refusal](err)
	if !ok {
		return ToolResult{}, err
	}
	status, errorType := r.Outcome()
	return ToolResult{Status: status, ErrorType: errorType, Error: r.Error()}, nil
}

// InvalidArguments is the result of a call whose arguments say what cannot be done; format says what and why.
func InvalidArguments(tool, format string, args ...any) ToolResult {
	return ToolResult{
		Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments, Error: "Invalid arguments for " + tool + ": " + fmt.Sprintf(format, args...),
	}
}

// Decode reads the arguments of the call; a result refuses them, nil does not. Numbers belong in float64 fields: 1.0 is an integer, too.
func (c *ToolCall) Decode(into any) *ToolResult {
	if err := json.Unmarshal(c.Arguments, into); err != nil {
		r := InvalidArguments(c.Name, "%v.", err)
		return &r
	}
	return nil
}

// Ended is what a tool returns that does not go on: refused, or the error.
func Ended(refused *ToolResult, err error) (ToolResult, error) {
	if err != nil {
		return ToolResult{}, err
	}
	return *refused, nil
}

package shell

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// request is what a call asks for.
type request struct {
	command string
	cwd     string
	yield   time.Duration // how long the call waits before the command goes on in the background
	notify  string
	timeout time.Duration // 0 for none
}

type arguments struct {
	Command    *string  `json:"command"`
	CWD        *string  `json:"cwd"`
	Yield      *float64 `json:"yield_time_ms"` // numbers: 1.0 is an integer, too
	Timeout    *float64 `json:"timeout_ms"`
	Notify     *string  `json:"notify"`
	Background *bool    `json:"run_in_background"`
	Wait       *float64 `json:"wait_ms"`
}

const (
	defaultYield = 10 * time.Second
	maxYield     = time.Minute
	longest      = 1e12 // milliseconds: a command that may take longer than a lifetime
)

func invalid(format string, args ...any) *session.ToolResult {
	r := session.InvalidArguments("bash", format, args...)
	return &r
}

// readRequest reads the arguments of a call, in either form.
func readRequest(call session.ToolCall) (request, *session.ToolResult) {
	var a arguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return request{}, invalid("%s.", strings.Join(strings.Fields(err.Error()), " "))
	}
	older := a.Background != nil || a.Wait != nil
	switch {
	case a.Command == nil:
		return request{}, invalid("command is missing.")
	case strings.TrimSpace(*a.Command) == "":
		return request{}, invalid("the command is empty.")
	case strings.IndexByte(*a.Command, 0) >= 0:
		return request{}, invalid("the command holds a NUL character.")
	case len(*a.Command) > maxCommand:
		return request{}, invalid("the command has %d bytes, at most %d can be run; put it into a file.", len(*a.Command), maxCommand)
	case older && (a.Yield != nil || a.Notify != nil):
		return request{}, invalid("run_in_background and wait_ms cannot be mixed with yield_time_ms and notify.")
	case a.Notify != nil && *a.Notify != "on_exit" && *a.Notify != "manual":
		return request{}, invalid("notify is neither on_exit nor manual.")
	case outside(a.Yield, 0, maxYield) || outside(a.Wait, 0, maxYield):
		return request{}, invalid("the time to wait is not 0 to %d.", maxYield.Milliseconds())
	case a.Timeout != nil && *a.Timeout < 1:
		return request{}, invalid("timeout_ms is not positive.")
	}
	r := request{command: *a.Command, yield: defaultYield, notify: protocol.NotifyOnExit}
	if a.CWD != nil {
		r.cwd = *a.CWD
	}
	switch {
	case a.Yield != nil:
		r.yield = milliseconds(*a.Yield)
	case a.Wait != nil:
		r.yield = milliseconds(*a.Wait)
	case a.Background != nil && *a.Background:
		r.yield = 0
	}
	if a.Notify != nil {
		r.notify = *a.Notify
	} else if a.Background != nil && *a.Background {
		r.notify = "manual" // who used it asked for the output again and again
	}
	if a.Timeout != nil {
		r.timeout = milliseconds(min(*a.Timeout, longest))
	}
	return r, nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

func outside(ms *float64, low, high time.Duration) bool {
	return ms != nil && (*ms < float64(low.Milliseconds()) || *ms > float64(high.Milliseconds()))
}

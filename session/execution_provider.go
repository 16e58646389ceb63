package session

import (
	"context"
	"strings"
	"time"
)

// Runner is a provider of the parallel lane (docs/protocol/portable-2026-09-02.md section 9). Safe for concurrent use.
type Runner interface {
	// Run answers one execution and returns its final output. ctx ends when the execution is cancelled; what Run does after the end
	// of its execution is dropped. The text of an error is the text of run.failed.
	Run(ctx context.Context, x *Execution) (final string, err error)
}

// CleanupRunner is a Runner with a cancel hook, called once for each execution that is cancelled, also when Run was never called, or will be only
// now.
type CleanupRunner interface {
	Runner
	Cancel(ctx context.Context, x *Execution, reason *string) error
}

// ExecutionOptions bound the executions of a process.
type ExecutionOptions struct {
	Cleanup time.Duration // of a cancel hook; 0 is 10 s
	Running int           // executions at one time; 0 is no bound
	Figures bool          // count what Sessions.Figures tells
	Mask    func(text string) string
}

// SetExecutions sets the bounds of executions. Call it before any session is used.
func (ss *Sessions) SetExecutions(o ExecutionOptions) {
	ss.execution, ss.places.most = o, o.Running
	if o.Figures {
		ss.figures = newFigures()
	}
}

func (ss *Sessions) cleanup() time.Duration {
	if ss.execution.Cleanup > 0 {
		return ss.execution.Cleanup
	}
	return defaultCleanup
}

// runnerFault is a failure whose text clients are shown as it is.
type runnerFault string

func (f runnerFault) Error() string { return string(f) }

// words is the text of a provider's error: one that fits a client.
func (run *besideRun) words(err error) string {
	text := err.Error()
	if mask := run.s.all.execution.Mask; mask != nil {
		text = mask(text)
	}
	if text = firstBytes(text, 4096); text == "" {
		return executionFailed
	}
	return text
}

// firstBytes returns at most n bytes of text, and no part of a character.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

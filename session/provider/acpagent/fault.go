package acpagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// This file is what a person is told when an agent fails.

// fail is the failure of a turn by its agent.
func fail(kind, text string) *session.Failure {
	f := &session.Failure{Type: kind, Status: "failed", Source: "provider", Message: text}
	switch kind {
	case protocol.FailUnavailable:
		f.Status = "unavailable"
	case protocol.FailStalled, protocol.FailTimeout:
		f.Status = "timed_out"
	case protocol.FailConfiguration, protocol.FailRejected:
		f.Status = "rejected"
	}
	return f
}

// unfit is the failure of an agent that speaks the protocol, but not as we can.
func unfit(err error) error {
	return fail(protocol.FailUnavailable, "The agent cannot be used: "+err.Error()+".")
}

// startFault turns what went wrong before the first prompt into the failure of the turn.
func (c *child) startFault(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if f, ok := errors.AsType[*session.Failure](err); ok {
		return f
	}
	if isAuth(err) {
		return c.noCredentials(err)
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fail(protocol.FailUnavailable, "The agent refused to start: "+c.errorText(e))
	}
	return c.breakFault(err)
}

// promptFault turns an error that the child answered a prompt with into the failure of the turn.
func (c *child) promptFault(err error) error {
	if isAuth(err) {
		return c.noCredentials(err)
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fail(protocol.FailRejected, "The agent failed: "+c.errorText(e))
	}
	return fail(protocol.FailUnavailable, "The agent failed: "+oneLine(c.mask(err.Error()), 500))
}

// breakFault is the failure of a turn whose child cannot be used any more.
func (c *child) breakFault(why error) error {
	if errors.Is(why, errClosed) {
		return c.endFault()
	}
	kind := protocol.FailUnavailable // it is alive, as far as we know
	if errors.Is(why, errTooLong) {
		kind = protocol.FailCrashed
	}
	text := "The agent cannot be used: " + oneLine(c.mask(why.Error()), 500) + "."
	if last := lastLine(c.lastWords()); last != "" && !c.wasSeenTo(answered) {
		text += " Its last words: " + oneLine(last, 300)
	}
	return fail(kind, text)
}

// endFault is the failure of a turn whose child ended: how it did, and the last it wrote on standard error. Before its first answer, a missing
// credential is a likely reason.
func (c *child) endFault() error {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	text := "The agent closed its output"
	select {
	case <-c.done:
		text = "The agent " + c.exit()
	case <-timer.C:
	}
	tail := c.lastWords()
	if tail != "" {
		text += ": " + oneLine(lastLine(tail), 300)
	} else {
		text += "."
	}
	if !c.wasSeenTo(answered) {
		text = c.hinted(text)
	}
	if strings.Contains(tail, "\n") {
		text += "\n" + tail
	}
	return fail(protocol.FailCrashed, text)
}

// lastWords are the last the child wrote on standard error.
func (c *child) lastWords() string {
	tail, _ := c.stderr.tail(stderrShown, true)
	return strings.TrimSpace(c.mask(tail))
}

// errorText is what an agent's error says, with its code.
func (c *child) errorText(e *protocol.Error) string {
	text := oneLine(c.mask(e.Message), 1000)
	if code, ok := e.Details["code"]; ok {
		text = fmt.Sprintf("%s (%v)", text, code)
	}
	return text
}

func isAuth(err error) bool {
	e, ok := errors.AsType[*protocol.Error](err)
	return ok && e.Details["code"] == acp.CodeAuthRequired
}

// noCredentials is the failure of an agent that lacks credentials.
func (c *child) noCredentials(err error) error {
	text := "The agent lacks credentials"
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Message != "" {
		text += ": " + strings.TrimRight(oneLine(c.mask(e.Message), 500), ".")
	}
	var names []string
	for _, m := range c.about.Auth {
		names = append(names, oneLine(m.ID, 60))
	}
	if len(names) > 0 {
		text += "; it offers " + strings.Join(names, ", ") + " (authMethod)"
	}
	return fail(protocol.FailConfiguration, c.hinted(text+"."))
}

// hinted adds which credentials the child was not given.
func (c *child) hinted(text string) string {
	if h := hint(c.host.cfg.Environ(), c.env); h != "" {
		return text + " " + h
	}
	return text
}

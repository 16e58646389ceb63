package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/session"
)

// step is one parsed step. Which fields count depends on the verb.
type step struct {
	path   string // where it stands in the script
	verb   string
	text   string          // text, delta, final, reasoning; call and tool: the tool's name; gate: its name
	pace   pace            // of what is said
	raw    json.RawMessage // opaque; call and tool: the raw arguments
	callID string          // call; "" makes one
	usage  session.Usage
	finish session.Finish
	fail   *session.ModelError
	wait   time.Duration // sleepMs
	expect *expectation
	times  int // repeat
	steps  []step
}

// pace says how text is cut into chunks: of chunk characters (0: one chunk), delay between two.
type pace struct {
	chunk int
	delay time.Duration
}

// elsewhere are steps of the portable protocol's script that only an execution can do.
var elsewhere = map[string]bool{"approval": true, "input": true, "artifact": true, "event": true}

// paced are the verbs that take chunk and delayMs.
var paced = map[string]bool{"text": true, "delta": true, "final": true, "reasoning": true, "echo": true, "call": true}

// verbs parses the value of each verb. An error is the end of a sentence that begins with the verb.
var verbs map[string]func(s *Script, st *step, value json.RawMessage, times int) error

func init() { // a map literal would refer to itself by way of repeat
	verbs = map[string]func(s *Script, st *step, value json.RawMessage, times int) error{
		"text": parseText, "delta": parseText, "final": parseText, "reasoning": parseText,
		"echo": parseTrue, "hang": parseTrue, "cut": parseTrue, "reset": parseTrue, "alive": parseTrue,
		"sleepMs": parseSleep, "opaque": parseOpaque, "call": parseCall, "tool": parseTool, "usage": parseUsage,
		"finish": parseFinish, "fail": parseFail, "repeat": parseRepeat, "expect": parseExpect, "gate": parseGate,
	}
}

func parseText(_ *Script, st *step, value json.RawMessage, _ int) error {
	if json.Unmarshal(value, &st.text) != nil || string(value) == "null" {
		return errors.New("is no string")
	}
	return nil
}

func parseTrue(_ *Script, _ *step, value json.RawMessage, _ int) error {
	if string(value) != "true" {
		return errors.New("can only be true")
	}
	return nil
}

func parseSleep(_ *Script, st *step, value json.RawMessage, _ int) (err error) {
	st.wait, err = milliseconds(value)
	return err
}

func parseOpaque(_ *Script, st *step, value json.RawMessage, _ int) error {
	st.raw = value
	return nil
}

func parseCall(_ *Script, st *step, value json.RawMessage, _ int) error {
	var c struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Chunk     int             `json:"chunk"`
		DelayMS   json.RawMessage `json:"delayMs"`
	}
	if err := decode(value, &c); err != nil {
		return err
	}
	if c.Name == "" {
		return errors.New("names no tool")
	}
	if c.Chunk < 0 {
		return errors.New("has a chunk below 0")
	}
	st.callID, st.text = c.ID, c.Name
	if c.Chunk > 0 {
		st.pace.chunk = c.Chunk
	}
	if c.DelayMS != nil {
		d, err := milliseconds(c.DelayMS)
		if err != nil {
			return fmt.Errorf("has a delayMs that %w", err)
		}
		st.pace.delay = d
	}
	var text string
	switch {
	case c.Arguments == nil:
		st.raw = json.RawMessage(`{}`)
	case json.Unmarshal(c.Arguments, &text) == nil && c.Arguments[0] == '"':
		st.raw = json.RawMessage(text) // as a model may write it: not even JSON
	case c.Arguments[0] == '{':
		st.raw = c.Arguments
	default:
		return errors.New("has arguments that are neither an object nor the raw text of one")
	}
	return nil
}

// parseTool reads the portable protocol's word for a call. The result the script wrote down is not used: in the loop the tool itself
// answers.
func parseTool(_ *Script, st *step, value json.RawMessage, _ int) error {
	var t struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Result    json.RawMessage `json:"result"`
		Status    json.RawMessage `json:"status"`
	}
	if err := decode(value, &t); err != nil {
		return err
	}
	if t.Name == "" {
		return errors.New("names no tool")
	}
	st.text, st.raw = t.Name, json.RawMessage(`{}`)
	if t.Arguments != nil {
		if t.Arguments[0] != '{' {
			return errors.New("has arguments that are no object")
		}
		st.raw = t.Arguments
	}
	return nil
}

func parseUsage(_ *Script, st *step, value json.RawMessage, _ int) error {
	var u struct{ Input, Cached, Output, Reasoning int }
	if err := decode(value, &u); err != nil {
		return err
	}
	if min(u.Input, u.Cached, u.Output, u.Reasoning) < 0 || u.Cached > u.Input {
		return errors.New("counts below 0, or more cached tokens than input")
	}
	st.usage = session.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
	return nil
}

func parseFinish(_ *Script, st *step, value json.RawMessage, _ int) error {
	known := []session.Finish{session.FinishStop, session.FinishCalls, session.FinishLength, session.FinishFilter}
	if json.Unmarshal(value, &st.finish) != nil || !slices.Contains(known, st.finish) {
		return fmt.Errorf("is none of %v", known)
	}
	return nil
}

var faults = []session.Fault{
	session.FaultConfig, session.FaultAuth, session.FaultModel, session.FaultRejected, session.FaultContext, session.FaultQuota,
	session.FaultRate, session.FaultServer, session.FaultNetwork, session.FaultTimeout, session.FaultCut, session.FaultBadReply,
}

func parseFail(_ *Script, st *step, value json.RawMessage, _ int) error {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" { // the portable protocol's form
		st.fail = &session.ModelError{Fault: session.FaultRejected, Message: text}
		return nil
	}
	var f struct {
		Fault        session.Fault   `json:"fault"`
		Status       int             `json:"status"`
		Message      string          `json:"message"`
		RetryAfterMS json.RawMessage `json:"retryAfterMs"`
	}
	if err := decode(value, &f); err != nil {
		return err
	}
	st.fail = &session.ModelError{Fault: f.Fault, Status: f.Status, Message: f.Message}
	if f.Message == "" {
		st.fail.Message = "Failure of the script."
	}
	if f.RetryAfterMS != nil {
		d, err := milliseconds(f.RetryAfterMS)
		if err != nil {
			return fmt.Errorf("has a retryAfterMs that %w", err)
		}
		st.fail.RetryAfter = d
	}
	if f.Fault == "" {
		var err error
		st.fail.Fault, err = faultOf(f.Status)
		return err
	}
	if !slices.Contains(faults, f.Fault) {
		return fmt.Errorf("has fault %q, which is none of %v", f.Fault, faults)
	}
	return nil
}

func parseRepeat(s *Script, st *step, value json.RawMessage, times int) error {
	var r struct {
		Times int             `json:"times"`
		Steps json.RawMessage `json:"steps"`
	}
	if err := decode(value, &r); err != nil {
		return err
	}
	if r.Times < 1 || r.Times > maxRepeat/times {
		return fmt.Errorf("has a times outside 1 to %d, counting the repeats around it", maxRepeat)
	}
	var err error
	st.times = r.Times
	if st.steps, err = s.list(st.path+".repeat.steps", r.Steps, times*r.Times); err != nil {
		return fmt.Errorf("has a bad step: %w", err)
	}
	return nil
}

func parseExpect(_ *Script, st *step, value json.RawMessage, _ int) error {
	st.expect = &expectation{}
	return decode(value, st.expect)
}

func parseGate(s *Script, st *step, value json.RawMessage, _ int) error {
	if json.Unmarshal(value, &st.text) != nil || st.text == "" {
		return errors.New("is no name")
	}
	if s.gates[st.text] == nil {
		s.gates[st.text] = &gate{open: make(chan struct{}), reached: make(chan struct{})}
	}
	return nil
}

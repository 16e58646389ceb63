package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// Bounds of a script.
const (
	maxSteps  = 10_000     // of a list once its repeats with an end in them are written out
	maxRepeat = 10_000_000 // times a step is played by the repeats around it
	maxWaitMS = 24 * 60 * 60 * 1000
)

// parse reads the whole script into s.
func (s *Script) parse(data []byte) error {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		return located(data, err)
	}
	whole = bytes.TrimSpace(whole)
	if len(whole) > 0 && whole[0] == '[' {
		return s.addTurn("", "steps", whole)
	}
	var top struct {
		Turns  []json.RawMessage `json:"turns"`
		Steps  json.RawMessage   `json:"steps"`
		Strict *bool             `json:"strict"`
	}
	if err := decode(whole, &top); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	s.lenient = top.Strict != nil && !*top.Strict
	switch {
	case top.Steps != nil && top.Turns != nil:
		return errors.New("script: has turns and steps, one of them is enough")
	case top.Steps != nil:
		return s.addTurn("", "steps", top.Steps)
	case len(top.Turns) == 0:
		return errors.New("script: has neither turns nor steps")
	}
	for i, raw := range top.Turns {
		path := fmt.Sprintf("turns[%d]", i)
		var t struct {
			Match *string         `json:"match"`
			Steps json.RawMessage `json:"steps"`
		}
		if err := decode(raw, &t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		match := ""
		if t.Match != nil {
			if match = *t.Match; match == "" {
				return fmt.Errorf("%s: match is empty; leave it out to answer in order", path)
			}
		}
		if t.Steps == nil {
			return fmt.Errorf("%s: has no steps", path)
		}
		if err := s.addTurn(match, path+".steps", t.Steps); err != nil {
			return err
		}
	}
	return nil
}

// addTurn parses one list of steps and cuts it into completions.
func (s *Script) addTurn(match, path string, raw json.RawMessage) error {
	list, err := s.list(path, raw, 1)
	if err != nil {
		return err
	}
	if list, err = written(list); err != nil {
		return err
	}
	var done []completion
	n := len(s.free)
	for _, t := range s.turns {
		n += len(t.completions)
	}
	for len(list) > 0 {
		end := slices.IndexFunc(list, func(st step) bool { return ends[st.verb] }) + 1
		if end == 0 {
			end = len(list)
		}
		c := completion{path: list[0].path, n: n + len(done) + 1, steps: list[:end:end]}
		if err := c.describe(); err != nil {
			return err
		}
		done, list = append(done, c), list[end:]
	}
	if match == "" {
		s.free = append(s.free, done...)
	} else {
		s.turns = append(s.turns, turn{match: match, path: strings.TrimSuffix(path, ".steps"), completions: done})
	}
	return nil
}

// ends are the verbs that end their completion.
var ends = map[string]bool{"finish": true, "fail": true, "cut": true, "reset": true, "hang": true, "tool": true}

// describe fills in what choosing and playing need to know of the steps.
func (c *completion) describe() error {
	c.well = true
	usages, only := 0, true
	var err error
	each(c.steps, 1, func(st *step, times int) {
		only = only && st.verb == "usage"
		switch st.verb {
		case "text", "delta", "final":
			c.says = c.says || st.text != ""
			c.final = c.final || st.verb == "final"
		case "echo", "call", "tool":
			c.says = true
		case "finish":
			c.well = st.finish == session.FinishStop || st.finish == session.FinishCalls
		case "fail", "cut", "reset", "hang":
			c.well = false
		case "usage":
			if usages += times; usages > 1 && err == nil {
				err = fmt.Errorf("%s: usage is told once in a completion", st.path)
			}
		}
	})
	if only && err == nil {
		err = fmt.Errorf("%s: usage alone is no completion; put it before the step that ends one", c.path)
	}
	return err
}

// each visits every step but repeats themselves, with how often it is played.
func each(list []step, times int, visit func(st *step, times int)) {
	for i := range list {
		if st := &list[i]; st.verb == "repeat" {
			each(st.steps, times*st.times, visit)
		} else {
			visit(st, times)
		}
	}
}

// written writes out the repeats that end completions, so that each time is a completion of its own. Other repeats stay as they are:
// they may be long.
func written(list []step) ([]step, error) {
	var out []step
	for _, st := range list {
		ending := false
		if st.verb == "repeat" {
			each(st.steps, 1, func(in *step, _ int) { ending = ending || ends[in.verb] })
		}
		if !ending {
			out = append(out, st)
			continue
		}
		inner, err := written(st.steps)
		if err != nil {
			return nil, err
		}
		if len(out)+st.times*len(inner) > maxSteps {
			return nil, fmt.Errorf("%s: repeats completions to more than %d steps", st.path, maxSteps)
		}
		for range st.times {
			out = append(out, inner...)
		}
	}
	return out, nil
}

// list parses a list of steps that is played times times.
func (s *Script) list(path string, raw json.RawMessage, times int) ([]step, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil || raws == nil {
		return nil, fmt.Errorf("%s: is no list of steps", path)
	}
	if len(raws) == 0 {
		return nil, fmt.Errorf("%s: is empty", path)
	}
	out := make([]step, 0, len(raws))
	for i, r := range raws {
		st, err := s.step(fmt.Sprintf("%s[%d]", path, i), r, times)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

// step parses one step: an object with one verb, and for verbs that say something its pace.
func (s *Script) step(path string, raw json.RawMessage, times int) (step, error) {
	st := step{path: path}
	bad := func(format string, args ...any) (step, error) {
		return st, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return bad("is no step, which is an object with one verb")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch {
		case name == "chunk" || name == "delayMs":
		case verbs[name] != nil && st.verb != "":
			return bad("has two verbs, %s and %s", st.verb, name)
		case verbs[name] != nil:
			st.verb = name
		case elsewhere[name]:
			return bad("step %q is for executions of the script provider; a scripted model cannot do it", name)
		default:
			return bad("unknown step %q", name)
		}
	}
	if st.verb == "" {
		return bad("has no verb")
	}
	if err := st.readPace(members); err != nil {
		return bad("%v", err)
	}
	if err := verbs[st.verb](s, &st, members[st.verb], times); err != nil {
		return bad("%s %v", st.verb, err)
	}
	return st, nil
}

// readPace reads the members that stand beside a verb that says something.
func (st *step) readPace(members map[string]json.RawMessage) error {
	for _, name := range []string{"chunk", "delayMs"} {
		if _, ok := members[name]; ok && !paced[st.verb] {
			return fmt.Errorf("%s does not go with %s", name, st.verb)
		}
	}
	if raw, ok := members["chunk"]; ok {
		if json.Unmarshal(raw, &st.pace.chunk) != nil || st.pace.chunk < 1 {
			return errors.New("chunk is no number of at least 1")
		}
	}
	if raw, ok := members["delayMs"]; ok {
		d, err := milliseconds(raw)
		if err != nil {
			return fmt.Errorf("delayMs %w", err)
		}
		st.pace.delay = d
	}
	return nil
}

func milliseconds(raw json.RawMessage) (time.Duration, error) {
	var ms float64
	if err := json.Unmarshal(raw, &ms); err != nil || ms < 0 || ms > maxWaitMS || string(raw) == "null" {
		return 0, errors.New("is no number of milliseconds between 0 and a day")
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// decode reads an object whose members are all known.
func decode(raw json.RawMessage, into any) error {
	if t := bytes.TrimSpace(raw); len(t) == 0 || t[0] != '{' {
		return errors.New("is no object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("has a %s where %q wants something else", e.Value, e.Field)
		}
		return errors.New("has an " + strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// located adds line and column to a syntax error.
func located(data []byte, err error) error {
	at := len(data)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = min(at, int(e.Offset))
	}
	head := data[:at]
	line := bytes.Count(head, []byte("\n")) + 1
	column := at - bytes.LastIndexByte(head, '\n') - 1
	return fmt.Errorf("script: line %d, column %d: %w", line, max(column, 1), err)
}

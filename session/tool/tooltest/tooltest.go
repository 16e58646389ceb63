// Package tooltest is the suite every session.Tool runs: what the loop, the policy and the model rely on, whatever the tool does. It
// starts a goroutine per call and waits for it.
package tooltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// soon is how long a call of the suite may take, with room for a busy machine.
const soon = 5 * time.Second

// Run holds tool against the promises of session.Tool in w, which it may change.
func Run(t *testing.T, tool session.Tool, w *Workspace) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	s := &suite{tool: tool, spec: tool.Spec(), w: w}
	t.Run("says what it is", s.describes)
	t.Run("takes its arguments as a closed object", s.schema)
	if s.props != nil {
		t.Run("refuses paths outside", s.paths)
		t.Run("bears broken arguments", s.broken)
		t.Run("bears random arguments", s.random)
		t.Run("comes back when cancelled", s.cancelled)
	}
	w.Untouched(t)
	goleak.VerifyNone(t, before)
}

type suite struct {
	tool  session.Tool
	spec  session.ToolSpec
	w     *Workspace
	props map[string]*jsonschema.Schema
	need  []string
}

func (s *suite) describes(t *testing.T) {
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`).MatchString(s.spec.Name) {
		t.Errorf("name %q: providers take lower case letters, digits and _ only", s.spec.Name)
	}
	if n := len(s.spec.Description); n == 0 || n > 1024 {
		t.Errorf("the description has %d bytes, not 1 to 1024", n)
	}
	if !slices.Contains([]string{"read", "edit", "search", "execute", "fetch", "think", "other"}, s.spec.Kind) {
		t.Errorf("kind %q is none of a tool", s.spec.Kind)
	}
	if s.spec.ReadOnly && (s.spec.Kind == "edit" || s.spec.Kind == "execute") {
		t.Errorf("a tool of kind %q cannot be read-only", s.spec.Kind)
	}
	again := s.tool.Spec()
	if again.Name != s.spec.Name || !bytes.Equal(again.Schema, s.spec.Schema) {
		t.Error("the spec is not the same each time")
	}
}

func (s *suite) schema(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.spec.Schema, &schema); err != nil {
		t.Fatalf("the schema is none: %v", err)
	}
	if _, err := schema.Resolve(nil); err != nil {
		t.Fatalf("the schema does not resolve: %v", err)
	}
	var top struct {
		Type       string          `json:"type"`
		Additional json.RawMessage `json:"additionalProperties"`
		AnyOf      json.RawMessage `json:"anyOf"`
		OneOf      json.RawMessage `json:"oneOf"`
		AllOf      json.RawMessage `json:"allOf"`
	}
	if err := json.Unmarshal(s.spec.Schema, &top); err != nil {
		t.Fatal(err)
	}
	if top.Type != "object" || string(top.Additional) != "false" {
		t.Errorf("type %q, additionalProperties %s: want an object that takes no further ones", top.Type, top.Additional)
	}
	if top.AnyOf != nil || top.OneOf != nil || top.AllOf != nil {
		t.Error("providers refuse anyOf, oneOf and allOf at the top of a tool's schema")
	}
	for _, name := range schema.Required {
		if schema.Properties[name] == nil {
			t.Errorf("%q is required and not described", name)
		}
	}
	s.need, s.props = schema.Required, schema.Properties
	if s.props == nil {
		s.props = map[string]*jsonschema.Schema{}
	}
}

// quiet is a Progress nobody listens to.
type quiet struct{}

func (quiet) Say(string) {}

func (quiet) Ask(ctx context.Context, _ string, _ []protocol.Choice) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// call runs the tool once and checks what every result promises.
func (s *suite) call(ctx context.Context, t failer, args []byte) session.ToolResult {
	t.Helper()
	type ran struct {
		res session.ToolResult
		err error
	}
	out := make(chan ran, 1)
	go func() {
		var r ran
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic: %v", p)
			}
			out <- r
		}()
		r.res, r.err = s.tool.Run(ctx, s.w.Call(s.tool, args), quiet{})
	}()
	select {
	case r := <-out:
		if r.err != nil && !(ctx.Err() != nil && errors.Is(r.err, context.Cause(ctx))) {
			t.Fatalf("%s: an error is a defect of the tool: %v", args, r.err)
		}
		if r.err == nil {
			s.sound(t, args, r.res)
		}
		return r.res
	case <-time.After(soon):
		t.Fatalf("%s: no result within %v", args, soon)
		return session.ToolResult{}
	}
}

var (
	statuses = []string{
		"", protocol.ToolCompleted, protocol.ToolCancelled, protocol.ToolRejected, protocol.ToolFailed, protocol.ToolTimedOut,
		protocol.ToolUnavailable,
	}
	errorTypes = []string{
		protocol.ErrNotFound, protocol.ErrNotUnique, protocol.ErrInvalidArguments, protocol.ErrLineTooLong, protocol.ErrTooLarge,
		protocol.ErrPermissionDenied, protocol.ErrDangerousCommand, protocol.ErrCancelled, protocol.ErrTimedOut, protocol.ErrQuestionEmpty,
		protocol.ErrQuestionUnsupported, protocol.ErrTaskLimit, protocol.ErrTaskPersistence, protocol.ErrInternal,
	}
)

func (s *suite) sound(t failer, args []byte, r session.ToolResult) {
	t.Helper()
	switch {
	case !slices.Contains(statuses, r.Status):
		t.Fatalf("%s: status %q is none", args, r.Status)
	case r.ErrorType != "" && !slices.Contains(errorTypes, r.ErrorType):
		t.Fatalf("%s: error_type %q is none of a tool", args, r.ErrorType)
	case r.ErrorType != "" && (r.Error == "" || strings.ContainsAny(r.Error, "\n\x00") || !utf8.ValidString(r.Error)):
		t.Fatalf("%s: error text %q is not one line", args, r.Error)
	case r.ErrorType == "" && (r.Error != "" || r.Status != "" && r.Status != protocol.ToolCompleted):
		t.Fatalf("%s: status %q, error %q without an error_type", args, r.Status, r.Error)
	}
	for name, v := range map[string]any{"data": r.Data, "meta": r.Meta, "what the model gets": r.ModelData, "changes": r.Changes} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: the %s does not marshal: %v", args, name, err)
		}
		if bytes.Contains(text, []byte(Canary)) {
			t.Fatalf("%s: the %s holds what lies outside the workspace", args, name)
		}
	}
	for _, p := range r.Attachments {
		if bytes.Contains(p.Data, []byte(Canary)) || strings.Contains(p.Text, Canary) {
			t.Fatalf("%s: the attachment holds what lies outside the workspace", args)
		}
	}
	if s.spec.ReadOnly && len(r.Changes) > 0 {
		t.Fatalf("%s: a read-only tool tells of changes", args)
	}
}

// pathNames are the names parameters that name files have.
var pathNames = []string{"path", "file_path", "cwd"}

func (s *suite) paths(t *testing.T) {
	for _, name := range pathNames {
		if s.props[name] == nil {
			continue
		}
		for _, p := range s.w.waysOut() {
			args := s.plain()
			for _, other := range pathNames {
				delete(args, other)
			}
			args[name] = p
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			r := s.call(t.Context(), t, raw)
			refused := r.ErrorType == protocol.ErrPermissionDenied || r.ErrorType == protocol.ErrInvalidArguments
			if !refused && !(p == "" && !slices.Contains(s.need, name)) { // where it may be left out, nothing stands for nothing
				t.Errorf("%s: error_type %q, want the path refused", raw, r.ErrorType)
			}
			s.w.Untouched(t)
		}
	}
}

// plain are arguments for a harmless call.
func (s *suite) plain() map[string]any {
	args := map[string]any{}
	for _, name := range s.need {
		switch p := s.props[name]; {
		case slices.Contains(pathNames, name):
			args[name] = "a.txt"
		case p.Type == "string":
			args[name] = "x"
		case p.Type == "integer", p.Type == "number":
			args[name] = 1
		case p.Type == "boolean":
			args[name] = false
		case p.Type == "array":
			args[name] = []any{}
		default:
			args[name] = map[string]any{}
		}
	}
	maps.Copy(args, s.w.Args)
	return args
}

func (s *suite) broken(t *testing.T) {
	for _, raw := range []string{
		"", "null", "[]", "{", "{}", `""`, "1", `{"no_such_argument":1}`, `{"path":null}`, `{"path":{}}`, `{"path":"a.txt","offset":"x"}`,
		`{"path":"a.txt","offset":1e400}`, `{"path":"\ud800"}`, `{"pattern":null,"content":null,"command":null}`,
	} {
		s.call(t.Context(), t, []byte(raw))
	}
}

func (s *suite) cancelled(t *testing.T) {
	raw, err := json.Marshal(s.plain())
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the turn was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	s.call(ctx, t, raw)
	for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		ctx, cancel := context.WithCancelCause(t.Context())
		timer := time.AfterFunc(after, func() { cancel(reason) })
		s.call(ctx, t, raw)
		timer.Stop()
		cancel(nil)
	}
}

func (s *suite) random(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(s.draw(t))
		if err != nil {
			t.Fatalf("arguments: %v", err)
		}
		s.call(context.Background(), t, raw)
	})
	s.w.Untouched(t)
}

package rindv2

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// shape is the JSON form of a Go type, from which both descriptions of the protocol are written.
type shape struct {
	word   string // string, integer, number, boolean, any, object; "" for the others
	enum   []string
	items  *shape // list
	values *shape // map with any names
	fields []*member
	ref    string // a named type
	oneOf  []*shape
	null   bool // or null
}

type member struct {
	name     string
	shape    *shape
	optional bool
}

// retyped are members whose Go type does not tell their JSON form, in types that are not ours to tag.
var retyped = map[string]string{
	"ToolRequested.arguments":       "Object",
	"ApprovalRequested.arguments":   "Object",
	"UserQuestionRequested.options": "Choice[]|null",
	"ContextCompacted.record":       "Compaction",
	"TaskUpdated.task":              "Task",
	"TaskOutput.task":               "Task",
}

// shapes collects the named types.
type shapes struct{ named map[string]*shape }

// ErrorObject is the error of a response (section 12). Some errors have further members.
type ErrorObject struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// requestLine, responseLine and callLine are lines of section 2 and 4.10; the id of a call of ours is a text.
type (
	requestLine struct {
		Kind      string `json:"kind" enum:"request"`
		RequestID any    `json:"request_id" wire:"RequestID"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty" wire:"Object"`
	}
	responseLine struct {
		Kind      string       `json:"kind" enum:"response"`
		RequestID any          `json:"request_id" wire:"RequestID|null"`
		Result    any          `json:"result,omitempty" wire:"Any"`
		Error     *ErrorObject `json:"error,omitempty"`
	}
	authPrompt struct {
		Kind    string   `json:"kind"`
		Message string   `json:"message"`
		Options []string `json:"options"`
	}
	authAnswer struct {
		Value string `json:"value"`
	}
)

// describe gathers every type of the protocol: those of methods, lines and events, and what these are made of.
func describe() *shapes {
	s := &shapes{named: map[string]*shape{}}
	for _, m := range Methods() {
		s.of(reflect.TypeOf(m.Params).Elem())
		s.of(reflect.TypeOf(m.Result))
	}
	for _, v := range []any{
		TurnState{},
		Fault{},
		LiveTurn{},
		Message{},
		EventLine{},
		ReplayMessages{},
		ReplayEvents{},
		Provider{},
		Task{},
		Model{},
		Compaction{},
		protocol.BackgroundWait{},
		protocol.Choice{},
		Conversation{},
		ExecutionLine{},
		ExecutionArtifact{},
		AuthUpdateLine{},
	} {
		s.of(reflect.TypeOf(v))
	}
	for name, v := range map[string]any{
		"RequestLine": requestLine{}, "ResponseLine": responseLine{}, "AuthPromptParams": authPrompt{}, "AuthPromptAnswer": authAnswer{},
	} {
		s.named[name] = s.object(reflect.TypeOf(v))
	}
	kinds := make([]string, 0, len(codes))
	for k := range codes {
		if k != RequestCancelled {
			kinds = append(kinds, string(k))
		}
	}
	slices.Sort(kinds)
	s.named["ErrorObject"].fields[0].shape.enum = kinds
	s.events()
	return s
}

// events adds one type an event, and Event for any of them.
func (s *shapes) events() {
	bodies := maps.Clone(Loose)
	for k, row := range told {
		if row.event != "" {
			bodies[row.event] = protocol.Catalogue[k].New()
		}
	}
	anyEvent := &shape{}
	for _, event := range slices.Sorted(maps.Keys(bodies)) {
		t := reflect.TypeOf(bodies[event])
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		o := &shape{fields: []*member{{name: "type", shape: &shape{word: "string", enum: []string{event}}}}}
		for _, name := range []string{"ts", "event_id", "session_id", "turn_id"} {
			o.fields = append(o.fields, &member{name: name, shape: &shape{word: "string"}})
		}
		o.fields = append(o.fields, s.object(t).fields...)
		name := camel(event) + "Event"
		s.named[name] = o
		anyEvent.oneOf = append(anyEvent.oneOf, &shape{ref: name})
	}
	s.named["Event"] = anyEvent
}

func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// of is the shape of a type; named structs are entered and referred to.
func (s *shapes) of(t reflect.Type) *shape {
	if t == reflect.TypeFor[json.RawMessage]() {
		return &shape{word: "any"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		c := *s.of(t.Elem())
		c.null = true
		return &c
	case reflect.String:
		return &shape{word: "string"}
	case reflect.Bool:
		return &shape{word: "boolean"}
	case reflect.Int, reflect.Int64:
		return &shape{word: "integer"}
	case reflect.Float64:
		return &shape{word: "number"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{word: "string"} // base64
		}
		return &shape{items: s.of(t.Elem())}
	case reflect.Map:
		return &shape{values: s.of(t.Elem())}
	case reflect.Interface:
		return &shape{word: "any"}
	case reflect.Struct:
		if t.Name() == "" {
			return s.object(t)
		}
		if _, done := s.named[t.Name()]; !done {
			s.named[t.Name()] = &shape{} // a type may lead to itself
			s.named[t.Name()] = s.object(t)
		}
		return &shape{ref: t.Name()}
	default:
		panic("rindv2: no JSON form for " + t.String())
	}
}

// object is the shape of a struct's members, embedded structs flattened.
func (s *shapes) object(t reflect.Type) *shape {
	o := &shape{fields: []*member{}}
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, opts, _ := strings.Cut(tag, ",")
		switch {
		case f.Name == "_":
			return s.written(f.Tag.Get("wire"))
		case name == "-":
			continue
		case f.Anonymous && name == "":
			o.fields = append(o.fields, s.object(f.Type).fields...)
			continue
		case name == "":
			panic(fmt.Sprintf("rindv2: %s.%s has no name on the wire", t.Name(), f.Name))
		}
		m := &member{name: name, optional: opts == "omitempty" || opts == "omitzero"}
		wire := f.Tag.Get("wire")
		if wire == "" {
			wire = retyped[t.Name()+"."+name]
		}
		if wire != "" {
			m.shape = s.written(wire)
		} else {
			m.shape = s.of(f.Type)
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			m.shape.enum = strings.Split(enum, ",")
		}
		if m.optional {
			m.shape.null = false // left out in place of null
		}
		o.fields = append(o.fields, m)
	}
	return o
}

// written is the shape that a wire tag names: a type, a list T[], null, and a choice of these with |.
func (s *shapes) written(tag string) *shape {
	var of []*shape
	null := false
	for part := range strings.SplitSeq(tag, "|") {
		name, list := strings.CutSuffix(part, "[]")
		var one *shape
		switch name {
		case "null":
			null = true
			continue
		case "Any":
			one = &shape{word: "any"}
		case "Object":
			one = &shape{word: "object"}
		case "string":
			one = &shape{word: "string"}
		case "RequestID":
			one = &shape{oneOf: []*shape{{word: "string"}, {word: "number"}}}
		default:
			one = &shape{ref: name}
		}
		if list {
			one = &shape{items: one}
		}
		of = append(of, one)
	}
	if len(of) == 1 {
		of[0].null = null
		return of[0]
	}
	return &shape{oneOf: of, null: null}
}

package acp

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// Empty is a result without members.
type Empty struct{}

// Implementation names a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Initialized is the result of initialize.
type Initialized struct {
	Version      int64             `json:"protocolVersion"`
	Agent        Implementation    `json:"agentInfo"`
	AuthMethods  []AuthMethod      `json:"authMethods"`
	Capabilities AgentCapabilities `json:"agentCapabilities"`
}

// AuthMethod is a way to log in. Type "" is the agent's own.
type AuthMethod struct {
	Type        string   `json:"type,omitempty"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Args        []string `json:"args,omitempty"`
}

// AgentCapabilities are what an agent offers; a flag is true only where the thing works.
type AgentCapabilities struct {
	Load    bool                     `json:"loadSession"`
	Prompt  PromptCapabilities       `json:"promptCapabilities"`
	MCP     MCPCapabilities          `json:"mcpCapabilities"`
	Session SessionCapabilities      `json:"sessionCapabilities"`
	Auth    Empty                    `json:"auth"`
	Meta    map[string]AnyExtensions `json:"_meta,omitempty"`
}

// AnyExtensions lists our extensions (docs/protocol/acp.md section 4).
type AnyExtensions struct {
	Version int      `json:"version"`
	Methods []string `json:"methods"`
	Meta    []string `json:"meta"`
}

// PromptCapabilities are the content blocks a prompt may have beside text and links.
type PromptCapabilities struct {
	Image    bool `json:"image"`
	Audio    bool `json:"audio"`
	Embedded bool `json:"embeddedContext"`
}

// MCPCapabilities are the transports of servers that may be named, beside stdio.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// SessionCapabilities are the optional methods of sessions; nil is not offered.
type SessionCapabilities struct {
	List   *Empty `json:"list,omitempty"`
	Resume *Empty `json:"resume,omitempty"`
	Close  *Empty `json:"close,omitempty"`
	Delete *Empty `json:"delete,omitempty"`
	Roots  *Empty `json:"additionalDirectories,omitempty"`
	Fork   *Empty `json:"fork,omitempty"` // unstable
}

// Opened is the result of session/new, session/load and session/resume; Session only of the first.
type Opened struct {
	Session protocol.SessionID         `json:"sessionId,omitempty"`
	Modes   *Modes                     `json:"modes,omitempty"`
	Options []Option                   `json:"configOptions"`
	Meta    map[string]json.RawMessage `json:"_meta,omitempty"`
}

// TurnNote is rind/turn: an open turn that nobody works on.
type TurnNote struct {
	Status string          `json:"status"`           // interrupted, waiting
	Turn   protocol.TurnID `json:"turnId,omitempty"` // "" for a command
}

// Modes are the older form of the mode option.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// Mode is one approval mode.
type Mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Option is a setting of a session: a choice of one value.
type Option struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Category    string  `json:"category,omitempty"`
	Type        string  `json:"type"` // select
	Current     string  `json:"currentValue"`
	Values      []Value `json:"options"`
}

// Value is one choice.
type Value struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Options is the result of session/set_config_option.
type Options struct {
	Options []Option `json:"configOptions"`
}

// Prompted is the result of session/prompt.
type Prompted struct {
	Stop string                     `json:"stopReason"`
	Meta map[string]json.RawMessage `json:"_meta,omitempty"`
}

// Listed is the result of session/list.
type Listed struct {
	Sessions []Info  `json:"sessions"`
	Next     *string `json:"nextCursor,omitempty"`
}

// Info describes a stored session.
type Info struct {
	ID      protocol.SessionID `json:"sessionId"`
	CWD     string             `json:"cwd"`
	Roots   []string           `json:"additionalDirectories,omitempty"`
	Title   string             `json:"title,omitempty"`
	Updated string             `json:"updatedAt,omitempty"`
}

// Queued is the result of the methods that add input to a running turn.
type Queued struct {
	ID      string `json:"inputId"`
	Mode    string `json:"mode"`
	Pending int    `json:"pending"`
}

// PermissionRequest are the params of session/request_permission.
type PermissionRequest struct {
	Session protocol.SessionID `json:"sessionId"`
	Call    CallUpdate         `json:"toolCall"`
	Options []PermissionOption `json:"options"`
}

// PermissionOption is one answer a person may choose.
type PermissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// ReadPermission reads the answer to session/request_permission: the option chosen, or cancelled. ok is false where it says neither.
func ReadPermission(result json.RawMessage) (option string, cancelled, ok bool) {
	o := ReadParams(object(ReadParams(object(result))["outcome"]))
	switch outcome, _ := protocol.Text(o["outcome"]); outcome {
	case "cancelled":
		return "", true, true
	case "selected":
		option, ok = protocol.Text(o["optionId"])
	}
	return option, false, ok
}

// Form are the params of elicitation/create in form mode.
type Form struct {
	Session  protocol.SessionID `json:"sessionId"`
	CallID   string             `json:"toolCallId,omitempty"`
	Mode     string             `json:"mode"` // form
	Message  string             `json:"message"`
	Requests FormSchema         `json:"requestedSchema"`
}

// FormSchema says which fields a form has.
type FormSchema struct {
	Type       string               `json:"type"` // object
	Properties map[string]FormField `json:"properties"`
	Required   []string             `json:"required,omitempty"`
}

// FormField is a text, or a choice of one.
type FormField struct {
	Type  string       `json:"type"` // string
	Title string       `json:"title,omitempty"`
	OneOf []FormChoice `json:"oneOf,omitempty"`
}

// FormChoice is one choice.
type FormChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// QuestionForm asks a question: a choice where there are choices, else a text.
func QuestionForm(id protocol.SessionID, callID, question string, choices []protocol.Choice) Form {
	f := Form{Session: id, CallID: callID, Mode: "form", Message: question, Requests: FormSchema{Type: "object", Properties: map[string]FormField{}}}
	if len(choices) == 0 {
		f.Requests.Properties["text"] = FormField{Type: "string", Title: "Answer"}
		f.Requests.Required = []string{"text"}
		return f
	}
	field := FormField{Type: "string", Title: "Choice"}
	for _, c := range choices {
		title := c.Label
		if c.Description != "" {
			title += ": " + c.Description
		}
		field.OneOf = append(field.OneOf, FormChoice{c.Label, title})
	}
	f.Requests.Properties["choice"] = field
	f.Requests.Properties["text"] = FormField{Type: "string", Title: "Or in your own words"}
	return f
}

// ReadForm reads the answer to elicitation/create: what was said, or "" where it was declined.
func ReadForm(result json.RawMessage) string {
	p := ReadParams(object(result))
	if action, _ := protocol.Text(p["action"]); action != "accept" {
		return ""
	}
	c := ReadParams(object(p["content"]))
	if own, ok := protocol.Text(c["text"]); ok && own != "" {
		return own
	}
	choice, _ := protocol.Text(c["choice"])
	return choice
}

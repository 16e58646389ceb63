package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// This file is the other side of the protocol: what a host says to an agent and reads of it (docs/protocol/acp.md section 5).

// Methods an agent calls on its host beside those of a front.
const (
	MethodReadFile        = "fs/read_text_file"
	MethodWriteFile       = "fs/write_text_file"
	MethodTerminalCreate  = "terminal/create"
	MethodTerminalOutput  = "terminal/output"
	MethodTerminalWait    = "terminal/wait_for_exit"
	MethodTerminalKill    = "terminal/kill"
	MethodTerminalRelease = "terminal/release"
)

// CodeAuthRequired is the code with which an agent says that it lacks credentials.
const CodeAuthRequired = -32000

// Errors a host answers an agent with.
const (
	OutsideWorkspace protocol.ErrorKind = "OutsideWorkspace" // a path that leads outside
	NoResource       protocol.ErrorKind = "ResourceNotFound" // no such file or terminal
)

// HostOffer is what a host offers an agent.
type HostOffer struct {
	Version  string // of the host
	FS       bool
	Terminal bool
	Form     bool // questions can be asked
}

// Initialize is the params of initialize, as a host calls it.
func (o HostOffer) Initialize() json.RawMessage {
	type object = map[string]any
	caps := object{
		"fs":       object{"readTextFile": o.FS, "writeTextFile": o.FS},
		"terminal": o.Terminal,
		"session":  object{"notices": object{}, "compaction": object{}, "configOptions": object{"boolean": object{}}},
	}
	if o.Form {
		caps["elicitation"] = object{"form": object{}}
	}
	return protocol.MustMarshal(object{
		"protocolVersion": Version, "clientCapabilities": caps, "clientInfo": Implementation{Name: "rind", Title: "Rind", Version: o.Version},
	})
}

// Hosted is what an agent says of itself.
type Hosted struct {
	Info         json.RawMessage // agentInfo as sent, nil for none
	Capabilities json.RawMessage // agentCapabilities as sent, nil for none
	Load, Resume bool
	Close        bool
	Roots        bool // additionalDirectories
	Image, Audio bool
	Embedded     bool // embedded resources in prompts
	HTTP         bool // MCP servers over HTTP
	Steer        bool // our own extension
	Auth         []AuthMethod
}

// Name is what the agent calls itself, with its version; "" where it does not.
func (h *Hosted) Name() string {
	var info struct{ Name, Title, Version string }
	_ = json.Unmarshal(h.Info, &info)
	if info.Title == "" {
		info.Title = info.Name
	}
	return protocol.Prefix(strings.Join(strings.Fields(info.Title+" "+info.Version), " "), 100)
}

// CommandNames are the names in a list of slash commands; what cannot be read is left out.
func CommandNames(list json.RawMessage) []string {
	var rows []json.RawMessage
	_ = json.Unmarshal(list, &rows)
	var names []string
	for _, raw := range rows {
		var c Command
		if json.Unmarshal(raw, &c) == nil && c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// ReadHosted reads the answer to initialize. Another version than ours is an error.
func ReadHosted(result json.RawMessage) (h Hosted, err error) {
	var r struct {
		Version      json.Number       `json:"protocolVersion"`
		Info         json.RawMessage   `json:"agentInfo"`
		Capabilities json.RawMessage   `json:"agentCapabilities"`
		Auth         []json.RawMessage `json:"authMethods"`
	}
	if err := json.Unmarshal(result, &r); err != nil || r.Version == "" {
		return h, errors.New("its answer to initialize names no protocolVersion; is it an agent of the Agent Client Protocol?")
	}
	if r.Version != "1" {
		return h, fmt.Errorf("it speaks version %s of the Agent Client Protocol, and version 1 is needed", protocol.Prefix(r.Version.String(), 20))
	}
	if !isNull(r.Info) {
		h.Info = r.Info
	}
	if !isNull(r.Capabilities) {
		h.Capabilities = r.Capabilities
	}
	caps := ReadParams(object(r.Capabilities))
	h.Load = isTrue(caps["loadSession"])
	p := ReadParams(object(caps["promptCapabilities"]))
	h.Image, h.Audio, h.Embedded = isTrue(p["image"]), isTrue(p["audio"]), isTrue(p["embeddedContext"])
	h.HTTP = isTrue(ReadParams(object(caps["mcpCapabilities"]))["http"])
	s := ReadParams(object(caps["sessionCapabilities"]))
	h.Resume, h.Close, h.Roots = offered(s["resume"]), offered(s["close"]), offered(s["additionalDirectories"])
	if ext := ReadParams(object(ReadParams(object(caps["_meta"]))[MetaExtensions])); ext["methods"] != nil {
		h.Steer = strings.Contains(string(ext["methods"]), `"`+MethodSteer+`"`)
	}
	for _, raw := range r.Auth {
		var m AuthMethod
		if json.Unmarshal(raw, &m) == nil && m.ID != "" {
			h.Auth = append(h.Auth, m)
		}
	}
	return h, nil
}

// offered reports whether a capability is there: an object, or true from agents that write it so.
func offered(v json.RawMessage) bool { return isTrue(v) || len(v) > 0 && v[0] == '{' }

// HostOption is a setting an agent offers: a select of values.
type HostOption struct {
	ID       string
	Category string // mode, model, thought_level
	Current  string
	Values   []Value
}

// HostSession is what an agent answers session/new, load and resume with.
type HostSession struct {
	ID      string
	Options []HostOption
	Modes   []string // legacy: the ids
	Mode    string
}

// Option finds a setting by category; nil for none.
func (s HostSession) Option(category string) *HostOption {
	for i := range s.Options {
		if s.Options[i].Category == category {
			return &s.Options[i]
		}
	}
	return nil
}

// ReadHostSession reads such an answer; id is that of a session that was loaded or resumed. Null is taken for an empty one.
func ReadHostSession(result json.RawMessage, id string) (HostSession, error) {
	s := HostSession{ID: id}
	p := ReadParams(object(result))
	if found, ok := protocol.Text(p["sessionId"]); ok && found != "" && id == "" {
		s.ID = found
	}
	if s.ID == "" {
		return s, errors.New("its answer to session/new names no sessionId")
	}
	s.Options = ReadHostOptions(p["configOptions"])
	modes := ReadParams(object(p["modes"]))
	s.Mode, _ = protocol.Text(modes["currentModeId"])
	var list []struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(modes["availableModes"], &list) == nil {
		for _, m := range list {
			s.Modes = append(s.Modes, m.ID)
		}
	}
	return s, nil
}

// ReadHostOptions reads a list of settings. Those that are no select are left out, as is what cannot be read; groups are flattened.
func ReadHostOptions(raw json.RawMessage) []HostOption {
	var rows []json.RawMessage
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var out []HostOption
	for _, row := range rows {
		p := ReadParams(object(row))
		var o HostOption
		o.ID, _ = protocol.Text(p["id"])
		o.Category, _ = protocol.Text(p["category"])
		o.Current, _ = protocol.Text(p["currentValue"])
		if kind, _ := protocol.Text(p["type"]); kind != "select" || o.ID == "" {
			continue
		}
		o.Values = readValues(p["options"])
		out = append(out, o)
	}
	return out
}

func readValues(raw json.RawMessage) []Value {
	var rows []struct {
		Value
		Options json.RawMessage `json:"options"` // of a group
	}
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var out []Value
	for _, r := range rows {
		if r.Options != nil {
			out = append(out, readValues(r.Options)...)
		} else if r.Value.Value != "" {
			out = append(out, r.Value)
		}
	}
	return out
}

// Has reports whether v is among the values of a setting.
func (o *HostOption) Has(v string) bool {
	for _, c := range o.Values {
		if c.Value == v {
			return true
		}
	}
	return false
}

// HostUpdate is one session/update of an agent. What its kind does not have is empty; Raw is the update as it was sent.
type HostUpdate struct {
	Kind      string          `json:"sessionUpdate"`
	MessageID string          `json:"messageId"`
	Content   json.RawMessage `json:"content"` // a block of a chunk, a list of a tool call
	HostCall
	Entries    []PlanEntry     `json:"entries"`
	Used       *int            `json:"used"`
	Size       *int            `json:"size"`
	Cost       json.RawMessage `json:"cost"`
	Options    json.RawMessage `json:"configOptions"`
	Mode       string          `json:"currentModeId"`
	Commands   json.RawMessage `json:"availableCommands"`
	Severity   string          `json:"severity"`
	Compaction string          `json:"compactionId"`
	Summary    json.RawMessage `json:"summary"` // of a compaction: a list of blocks
	Error      *string         `json:"error"`   // of a compaction
	Raw        json.RawMessage `json:"-"`
}

// HostCall is what an agent tells of a tool call; nil members stay as they were.
type HostCall struct {
	ID        string          `json:"toolCallId"`
	Title     *string         `json:"title"`
	Name      string          `json:"name"`
	ToolKind  string          `json:"kind"`
	Status    string          `json:"status"`
	Locations []Location      `json:"locations"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
}

// ReadHostUpdate reads the params of session/update. ok is false where they are not what the schema says: the session is then named as far as it
// is known.
func ReadHostUpdate(params json.RawMessage) (session string, u HostUpdate, ok bool) {
	var p struct {
		Session string          `json:"sessionId"`
		Update  json.RawMessage `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil {
		return p.Session, u, false
	}
	if len(p.Update) == 0 || p.Update[0] != '{' || json.Unmarshal(p.Update, &u) != nil {
		return p.Session, HostUpdate{Raw: p.Update}, false
	}
	u.Raw = p.Update
	return p.Session, u, u.Kind != ""
}

// HostBlock is a content block an agent sends. Text is what a person reads of it; Plain says that it is nothing but text.
type HostBlock struct {
	Text  string
	Plain bool
}

// ReadHostBlock reads a content block.
func ReadHostBlock(raw json.RawMessage) HostBlock {
	var b struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		URI      string  `json:"uri"`
		Name     string  `json:"name"`
		MIME     string  `json:"mimeType"`
		Resource struct {
			URI  string  `json:"uri"`
			Text *string `json:"text"`
		} `json:"resource"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return HostBlock{}
	}
	switch {
	case b.Type == "text" && b.Text != nil:
		return HostBlock{*b.Text, true}
	case b.Type == "resource_link":
		return HostBlock{Text: "[" + b.Name + "](" + b.URI + ")"}
	case b.Type == "resource" && b.Resource.Text != nil:
		return HostBlock{Text: *b.Resource.Text}
	case b.Type == "resource":
		return HostBlock{Text: "[" + b.Resource.URI + "]"}
	case b.Type == "image", b.Type == "audio":
		return HostBlock{Text: "[" + b.Type + " " + b.MIME + "]"}
	}
	return HostBlock{}
}

// BlocksText is what a person reads of a list of content blocks.
func BlocksText(raw json.RawMessage) string {
	var rows []json.RawMessage
	_ = json.Unmarshal(raw, &rows)
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(ReadHostBlock(row).Text)
	}
	return b.String()
}

// HostContent is one piece of what a tool call shows: text, a diff, or a terminal of the host.
type HostContent struct {
	Text     string
	Diff     *Diff
	Terminal string
}

// ReadHostContent reads the content list of a tool call; what is unknown is left out.
func ReadHostContent(raw json.RawMessage) []HostContent {
	var rows []struct {
		Type     string          `json:"type"`
		Content  json.RawMessage `json:"content"`
		Terminal string          `json:"terminalId"`
		Diff
	}
	if json.Unmarshal(raw, &rows) != nil {
		return nil
	}
	var out []HostContent
	for _, r := range rows {
		switch r.Type {
		case "content":
			if b := ReadHostBlock(r.Content); b.Text != "" {
				out = append(out, HostContent{Text: b.Text})
			}
		case "diff":
			d := r.Diff
			out = append(out, HostContent{Diff: &d})
		case "terminal":
			out = append(out, HostContent{Terminal: r.Terminal})
		}
	}
	return out
}

// HostPermission is an agent's request for consent.
type HostPermission struct {
	Session string           `json:"sessionId"`
	Call    HostCallContent  `json:"toolCall"`
	Options []HostPermOption `json:"options"`
}

// HostCallContent is a tool call with what it shows.
type HostCallContent struct {
	HostCall
	Content json.RawMessage `json:"content"`
}

// HostPermOption is one answer an agent offers.
type HostPermOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Selected is the answer to a request for consent; option "" is cancelled.
func Selected(option string) any {
	type outcome struct {
		Outcome string `json:"outcome"`
		Option  string `json:"optionId,omitempty"`
	}
	o := outcome{"selected", option}
	if option == "" {
		o.Outcome = "cancelled"
	}
	return struct {
		Outcome outcome `json:"outcome"`
	}{o}
}

// HostStop is how an agent answers a prompt.
type HostStop struct {
	Reason  string
	Usage   *HostUsage // nil when it tells none
	Dropped []string   // ids of inputs that never reached its model (our own extension)
}

// HostUsage counts the tokens of a turn.
type HostUsage struct{ Input, Cached, Output, Thought int }

// ReadHostStop reads the answer to session/prompt: Reason is "" where there is none.
func ReadHostStop(result json.RawMessage) (s HostStop) {
	var r struct {
		Stop  string `json:"stopReason"`
		Usage *struct {
			Input   int `json:"inputTokens"`
			Output  int `json:"outputTokens"`
			Cached  int `json:"cachedReadTokens"`
			Thought int `json:"thoughtTokens"`
		} `json:"usage"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(result, &r)
	s.Reason = r.Stop
	_ = json.Unmarshal(r.Meta[MetaDropped], &s.Dropped)
	if r.Usage != nil {
		s.Usage = &HostUsage{r.Usage.Input, r.Usage.Cached, r.Usage.Output, r.Usage.Thought}
		return s
	}
	var own protocol.Stats
	if raw := r.Meta[MetaUsage]; raw != nil && json.Unmarshal(raw, &own) == nil && own.InputTokens+own.OutputTokens > 0 {
		s.Usage = &HostUsage{own.InputTokens, own.CachedInputTokens, own.OutputTokens, own.ReasoningOutputTokens}
	}
	return s
}

// HostQueued reads an agent's answer to a steering: its id of the input, "" where it names none.
func HostQueued(result json.RawMessage) string {
	id, _ := protocol.Text(ReadParams(object(result))["inputId"])
	return id
}

// PromptBlocks are the blocks of a prompt to an agent: first what is said before it, then the text and what it carries. What the agent does not
// take becomes text where that keeps its meaning; an image or a sound it does not take is an error.
func PromptBlocks(h *Hosted, before []string, input string, parts []protocol.Part) ([]Content, error) {
	blocks := []Content{}
	for _, s := range before {
		blocks = append(blocks, TextContent(s))
	}
	if input != "" || len(parts) == 0 {
		blocks = append(blocks, TextContent(input))
	}
	for _, p := range parts {
		switch {
		case p.Kind == "image" && !h.Image:
			return nil, errors.New("it takes no images; send the prompt without them")
		case p.Kind == "audio" && !h.Audio:
			return nil, errors.New("it takes no sound; send the prompt without it")
		case p.Kind == "resource" && !h.Embedded && len(p.Data) == 0:
			blocks = append(blocks, TextContent("Content of "+p.URI+":\n"+p.Text))
		case p.Kind == "resource" && !h.Embedded:
			name := p.Name
			blocks = append(blocks, Content{Type: "resource_link", URI: p.URI, MIME: p.MIME, Name: &name})
		default:
			blocks = append(blocks, wholePart(p))
		}
	}
	return blocks, nil
}

// AppendNotification adds the line of a notification to an agent, without its newline.
func AppendNotification(dst []byte, method string, params any) []byte {
	dst = protocol.AppendString(append(dst, `{"jsonrpc":"2.0","method":`...), method)
	dst = append(append(dst, `,"params":`...), protocol.MustMarshal(params)...)
	return append(dst, '}')
}

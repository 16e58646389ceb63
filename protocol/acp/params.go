package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/rind-dev/rind/protocol"
)

// Bad is the answer to params that are wrong.
func Bad(format string, args ...any) *protocol.Error {
	return &protocol.Error{Kind: protocol.InvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// Params are the members of a request's params, raw; names are exact, and null counts as absent.
type Params map[string]json.RawMessage

// ReadParams splits params, which Decode checked to be an object or nothing.
func ReadParams(raw json.RawMessage) Params {
	var m map[string]json.RawMessage
	if raw != nil {
		_ = json.Unmarshal(raw, &m)
	}
	for k, v := range m {
		if isNull(v) {
			delete(m, k)
		}
	}
	return m
}

// Text reads a string that must be there.
func (p Params) Text(name string) (string, error) {
	s, ok := protocol.Text(p[name])
	if !ok {
		return "", Bad("%s must be a string.", name)
	}
	return s, nil
}

// Session reads sessionId.
func (p Params) Session() (protocol.SessionID, error) {
	s, err := p.Text("sessionId")
	return protocol.SessionID(s), err
}

// Meta reads a string of _meta; "" when it is absent, an error when it is something else or empty: what it is for would be left out silently.
func (p Params) Meta(key string) (string, error) {
	v := ReadParams(object(p["_meta"]))[key]
	if v == nil {
		return "", nil
	}
	s, ok := protocol.Text(v)
	if !ok || s == "" {
		return "", Bad("_meta %s must be a string, and not empty.", key)
	}
	return s, nil
}

// ClientCapabilities are what a client offers. What is absent or malformed is not offered.
type ClientCapabilities struct {
	ReadFile, WriteFile bool
	Terminal            bool
	Form                bool // elicitation
	Notices             bool
	Compaction          bool
	TerminalLogin       bool
}

// InitializeParams are the params of initialize.
type InitializeParams struct {
	Version      int64
	Capabilities ClientCapabilities
	Client       string // name and version, for the log
}

// ReadInitialize reads the params of initialize: only a version that is no integer is an error.
func ReadInitialize(p Params) (InitializeParams, error) {
	var in InitializeParams
	if json.Unmarshal(p["protocolVersion"], &in.Version) != nil && !isInteger(p["protocolVersion"]) {
		return in, Bad("protocolVersion must be an integer.")
	}
	caps := ReadParams(object(p["clientCapabilities"]))
	fs := ReadParams(object(caps["fs"]))
	in.Capabilities.ReadFile, in.Capabilities.WriteFile = isTrue(fs["readTextFile"]), isTrue(fs["writeTextFile"])
	in.Capabilities.Terminal = isTrue(caps["terminal"])
	in.Capabilities.Form = object(ReadParams(object(caps["elicitation"]))["form"]) != nil
	s := ReadParams(object(caps["session"]))
	in.Capabilities.Notices, in.Capabilities.Compaction = object(s["notices"]) != nil, object(s["compaction"]) != nil
	in.Capabilities.TerminalLogin = isTrue(ReadParams(object(caps["auth"]))["terminal"])
	info := ReadParams(object(p["clientInfo"]))
	name, _ := protocol.Text(info["name"])
	version, _ := protocol.Text(info["version"])
	in.Client = protocol.Prefix(name+" "+version, 100)
	return in, nil
}

func object(v json.RawMessage) json.RawMessage {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	return v
}

// isInteger reports whether a value is a whole number, of any size.
func isInteger(v json.RawMessage) bool {
	digits := bytes.TrimPrefix(v, []byte("-"))
	return len(digits) > 0 && len(bytes.Trim(digits, "0123456789")) == 0
}

func isTrue(v json.RawMessage) bool { return string(v) == "true" }

// Server is a server of the Model Context Protocol that a client names.
type Server struct {
	Type    string // stdio, http
	Name    string
	Command string
	Args    []string
	Env     []Pair
	URL     string
	Headers []Pair
}

// Pair is a variable or a header.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OpenParams are the params of session/new, session/load and session/resume.
type OpenParams struct {
	Session protocol.SessionID // of load and resume
	CWD     string             // absolute
	Roots   []string           // additionalDirectories, absolute
	Servers []Server
	After   *protocol.Seq // rind/afterCursor
}

// ReadOpen reads them; existing says that sessionId is due.
func ReadOpen(p Params, existing bool) (o OpenParams, err error) {
	if existing {
		if o.Session, err = p.Session(); err != nil {
			return o, err
		}
	}
	if o.CWD, err = p.Text("cwd"); err != nil {
		return o, err
	}
	if !filepath.IsAbs(o.CWD) {
		return o, Bad("cwd must be an absolute path.")
	}
	if raw := p["additionalDirectories"]; raw != nil && json.Unmarshal(raw, &o.Roots) != nil {
		return o, Bad("additionalDirectories must be a list of paths.")
	}
	for _, r := range o.Roots {
		if !filepath.IsAbs(r) {
			return o, Bad("additionalDirectories must be absolute paths.")
		}
	}
	if o.Servers, err = readServers(p["mcpServers"]); err != nil {
		return o, err
	}
	after, err := p.Meta(MetaAfter)
	if err != nil || after == "" {
		return o, err
	}
	seq, err := ParseCursor(after)
	o.After = &seq
	return o, err
}

// ReadReplayFrom reads where the draft of version 2 lets session/resume begin to tell (docs/protocol/acp.md section 1): the cursor after which
// it does, nil where replayFrom is absent. There a cursor names the first that is told.
func ReadReplayFrom(p Params) (*protocol.Seq, error) {
	if p["replayFrom"] == nil {
		return nil, nil
	}
	from := ReadParams(object(p["replayFrom"]))
	switch kind, _ := protocol.Text(from["type"]); kind {
	case "start":
		return new(protocol.Seq), nil
	case "_rind_cursor":
		at, _ := protocol.Text(from["cursor"])
		seq, err := ParseCursor(at)
		if err != nil || seq < 1 {
			return nil, Bad("replayFrom.cursor is not one of ours.")
		}
		seq--
		return &seq, nil
	default:
		return nil, Bad("replayFrom of type %q is not known.", protocol.Prefix(kind, 40))
	}
}

func readServers(raw json.RawMessage) ([]Server, error) {
	if raw == nil {
		return nil, nil
	}
	var rows []json.RawMessage
	if json.Unmarshal(raw, &rows) != nil {
		return nil, Bad("mcpServers must be a list.")
	}
	var out []Server
	for i, row := range rows {
		p := ReadParams(object(row))
		s := Server{Type: "stdio"}
		if p["type"] != nil {
			s.Type, _ = protocol.Text(p["type"])
		}
		var err error
		if s.Name, err = p.Text("name"); err != nil {
			return nil, Bad("mcpServers[%d].name must be a string.", i)
		}
		switch s.Type {
		case "stdio":
			if s.Command, err = p.Text("command"); err != nil || s.Command == "" {
				return nil, Bad("mcpServers[%d].command must be a path.", i)
			}
			if p["args"] != nil && json.Unmarshal(p["args"], &s.Args) != nil || p["env"] != nil && json.Unmarshal(p["env"], &s.Env) != nil {
				return nil, Bad("mcpServers[%d]: args must be strings, env a list of name and value.", i)
			}
		case "http":
			if s.URL, err = p.Text("url"); err != nil {
				return nil, Bad("mcpServers[%d].url must be a string.", i)
			}
			if p["headers"] != nil && json.Unmarshal(p["headers"], &s.Headers) != nil {
				return nil, Bad("mcpServers[%d].headers must be a list of name and value.", i)
			}
		default:
			return nil, Bad("mcpServers[%d]: transport %q is not offered.", i, protocol.Prefix(s.Type, 40))
		}
		out = append(out, s)
	}
	return out, nil
}

// SetOption are the params of session/set_config_option.
type SetOption struct {
	Session protocol.SessionID
	ID      string
	Value   string
}

// ReadSetOption reads them; no option of ours is a boolean.
func ReadSetOption(p Params) (o SetOption, err error) {
	if o.Session, err = p.Session(); err != nil {
		return o, err
	}
	if o.ID, err = p.Text("configId"); err != nil {
		return o, err
	}
	if kind, ok := protocol.Text(p["type"]); ok && kind == "boolean" {
		return o, Bad("There is no boolean option.")
	}
	o.Value, err = p.Text("value")
	return o, err
}

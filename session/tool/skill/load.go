// Package skill holds the tools skill, which loads a skill by name, and skill_create, which writes one (docs/protocol/rind-v2.md sections 8
// and 9). Skills are found and read by the session's Guide; written are those of a project through session/roots, those of the user in
// the data root. The package owns no goroutine.
package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

const maxNamed = 40 // skills named to a model that asked for one that is not there

type load struct{ guide session.Guide }

// Load is the tool skill.
func Load(guide session.Guide) session.Tool { return load{guide} }

// Spec implements session.Tool.
func (load) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: "skill", Kind: "read", ReadOnly: true,
		Description: "Load a skill: instructions for one kind of work, listed by name in the system message. Load it before you begin such work, once. " +
			"Files it speaks of lie beside meta.path.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","description":"the skill's name, as listed"}},` +
			`"required":["name"],"additionalProperties":false}`),
	}
}

// Run implements session.Tool. Data is the skill's text; meta {name, scope, path}.
func (l load) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	var args struct {
		Name string `json:"name"`
	}
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	name := strings.ToLower(strings.TrimSpace(args.Name))
	if name == "" {
		return session.InvalidArguments("skill", "name is missing."), nil
	}
	workspace := call.Roots[0]
	s, ok := l.guide.Skill(workspace, name)
	if !ok {
		return session.ToolResult{
			Status: protocol.ToolUnavailable, ErrorType: protocol.ErrNotFound,
			Error: fmt.Sprintf("There is no skill %q. %s", protocol.Prefix(args.Name, 100), l.offered(workspace)),
		}, nil
	}
	path := s.Path
	if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return session.ToolResult{Data: s.Text, Meta: map[string]any{"name": s.Name, "scope": s.Scope, "path": filepath.ToSlash(path)}}, nil
}

// offered says what can be loaded.
func (l load) offered(workspace string) string {
	all := l.guide.Skills(workspace)
	if len(all) == 0 {
		return "There are none."
	}
	var names []string
	for _, s := range all[:min(len(all), maxNamed)] {
		names = append(names, s.Name)
	}
	text := "Skills: " + strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Bounds of a skill (docs/skills.md).
const (
	maxBodyBytes        = 64 << 10
	maxDescriptionChars = 1024
)

const (
	scopeProject = "project"
	scopeUser    = "user"
	createName   = "skill_create"
	projectShelf = ".rind/skills/"
)

var skillName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

// Config says where skills are written.
type Config struct {
	DataRoot string // the user's skills lie in its folder skills; "" for none
	// Trusted tells whether a person trusts what the workspace enables now. nil: none is trusted.
	Trusted func(workspace string) bool
	Images  session.Images // keeps what is replaced in the workspace; nil keeps nothing
}

type create struct{ Config }

// Create is the tool skill_create.
func Create(cfg Config) session.Tool {
	if cfg.Trusted == nil {
		cfg.Trusted = func(string) bool { return false }
	}
	return create{cfg}
}

// Spec implements session.Tool.
func (create) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name: createName, Kind: "edit",
		Description: "Write a skill: instructions for one kind of work that comes again, for later sessions. Do so when the person asks for it. " +
			"A project's skill lies in .rind/skills of the workspace and is used once a person trusts the workspace with it; a user's counts everywhere.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"name":{"type":"string","description":"a-z, 0-9 and -, at most 64"},` +
			`"description":{"type":"string","description":"one line: what it is for and when to load it"},` +
			`"body":{"type":"string","description":"the instructions, Markdown"},` +
			`"scope":{"type":"string","enum":["project","user"],"default":"project"},` +
			`"overwrite":{"type":"boolean","default":false,"description":"replace a skill of that name"}},` +
			`"required":["name","description","body"],"additionalProperties":false}`),
	}
}

type createArgs struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Body        string `json:"body"`
	Scope       string `json:"scope"`
	Overwrite   bool   `json:"overwrite"`
}

// check puts the arguments in order; a text says why they are no skill.
func (a *createArgs) check() string {
	a.Description = strings.Join(strings.Fields(a.Description), " ")
	a.Body = strings.ReplaceAll(strings.ReplaceAll(a.Body, "\r\n", "\n"), "\r", "\n")
	a.Body = strings.TrimRight(strings.TrimLeft(a.Body, "\n"), " \t\n")
	if a.Scope == "" {
		a.Scope = scopeProject
	}
	switch {
	case !skillName().MatchString(a.Name):
		return fmt.Sprintf("%q is no name of a skill: a-z, 0-9 and -, at most 64.", protocol.Prefix(a.Name, 80))
	case a.Description == "":
		return "the description is blank."
	case protocol.CharLen(a.Description) > maxDescriptionChars:
		return fmt.Sprintf("the description is longer than %d characters.", maxDescriptionChars)
	case strings.TrimSpace(a.Body) == "":
		return "the body is blank."
	case len(a.Body) > maxBodyBytes:
		return fmt.Sprintf("the body has %d bytes; at most %d can be loaded. Put details into files beside it.", len(a.Body), maxBodyBytes)
	case strings.ContainsRune(a.Description+a.Body, 0):
		return "description and body are text, without NUL characters."
	case a.Scope != scopeProject && a.Scope != scopeUser:
		return fmt.Sprintf("the scope is %q; it is project or user.", protocol.Prefix(a.Scope, 40))
	}
	return ""
}

// text is the file of the skill. A JSON string is a quoted YAML value, too.
func (a *createArgs) text() string {
	return "---\nname: " + a.Name + "\ndescription: " + string(protocol.MustMarshal(a.Description)) + "\n---\n\n" + a.Body + "\n"
}

// Run implements session.Tool. Data is the path, relative to the workspace where it lies in it; meta {name, scope, created, note?}: note
// says what a person has to do before the skill counts.
func (c create) Run(ctx context.Context, call session.ToolCall, _ session.Progress) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	var args createArgs
	if refused := call.Decode(&args); refused != nil {
		return *refused, nil
	}
	if why := args.check(); why != "" {
		return session.InvalidArguments(createName, "%s", why), nil
	}
	if args.Scope == scopeProject && c.holdsDataRoot(call.Roots[0]) {
		args.Scope = scopeUser
	}
	if args.Scope == scopeUser {
		return c.forUser(ctx, &args)
	}
	return c.forProject(ctx, call, &args)
}

// holdsDataRoot reports whether the data root is the workspace's .rind, as in a home folder: what lies there is the user's.
func (c create) holdsDataRoot(workspace string) bool {
	if c.DataRoot == "" {
		return false
	}
	own, err := os.Stat(c.DataRoot)
	if err != nil {
		return false
	}
	there, err := os.Stat(filepath.Join(workspace, ".rind"))
	return err == nil && os.SameFile(own, there)
}

func (c create) forProject(ctx context.Context, call session.ToolCall, args *createArgs) (session.ToolResult, error) {
	workspace := call.Roots[0]
	r, err := roots.Open(workspace)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	w := &writing{r: r, args: args, shelf: projectShelf, images: c.Images, session: call.Session}
	trusted := c.Trusted(workspace)
	res, err := w.write(ctx)
	if err != nil || res.ErrorType != "" || c.Trusted(workspace) {
		return res, err
	}
	note := "The skill can be loaded once a person trusts the workspace with it: ask them to look at it and run /trust."
	if trusted {
		note = "What the workspace enables has changed, so it is no longer trusted and none of its skills and settings count: " +
			"ask the person to look at the new skill and run /trust."
	}
	res.Meta["note"] = note
	return res, nil
}

func (c create) forUser(ctx context.Context, args *createArgs) (session.ToolResult, error) {
	if c.DataRoot == "" {
		return session.ToolResult{
			Status: protocol.ToolUnavailable, ErrorType: protocol.ErrNotFound, Error: "There is no data folder, so the user can have no skills; use the scope project.",
		}, nil
	}
	shelf := filepath.Join(c.DataRoot, "skills")
	if err := os.MkdirAll(shelf, 0o700); err != nil {
		return unwritable(shelf, err), nil
	}
	r, err := roots.Open(shelf)
	if err != nil {
		return session.Refused(err)
	}
	defer r.Close()
	w := &writing{r: r, args: args, private: true}
	return w.write(ctx)
}

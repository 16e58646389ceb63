// Package consent decides what a tool call may do: allow, ask a person, or deny (docs/protocol/rind-v2.md section 7.7). It reads commands
// with a shell parser, follows paths to where they lead, and knows the rules people left; it starts nothing and writes nothing but rules.
//
// It promises: what is never done is denied in every mode, however it is spelled, as far as the parser sees words; a command is no better
// than its worst part; what it does not understand asks; a rule covers what it names and nothing wider.
//
// It owns no goroutine. A Policy may be used by several at once.
package consent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Config is what a Policy stands on.
type Config struct {
	Rules    session.Rules    // remembered consent
	Home     string           // the user's home: what ~ and $HOME name
	DataRoot string           // rind's own data folder; it holds keys, so all of it is secret
	Temp     string           // what $TMPDIR names; not inside the roots
	Path     string           // $PATH of commands: a program it finds in the workspace may be anybody's
	Now      func() time.Time // default time.Now
}

// Policy implements session.Policy.
type Policy struct {
	cfg    Config
	data   []string // DataRoot as named and as resolved, folded
	parses bool     // commands are of a shell we can read

	mu    sync.Mutex // guards what follows; never held over I/O
	known map[string]remembered
	turn  int // grows with every change, so that rules read before one are not kept after it
}

var _ session.Policy = (*Policy)(nil)

// New makes a Policy.
func New(cfg Config) *Policy {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Policy{cfg: cfg, parses: runtime.GOOS != "windows", known: map[string]remembered{}}
	if cfg.DataRoot != "" {
		p.data = []string{filepath.Clean(cfg.DataRoot)}
		if real := resolved(p.data[0]); real != p.data[0] {
			p.data = append(p.data, real)
		}
		for i := range p.data {
			p.data[i] = folded(p.data[i])
		}
	}
	return p
}

// resolved follows the links of a path, of which the end may not be there yet.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(resolved(dir), filepath.Base(path))
	}
	return path
}

// Effects of a Verdict.
const (
	allow = "allow"
	ask   = "ask"
	deny  = "deny"
)

// Approval modes. Any other word counts as modeAsk.
const (
	modeAsk  = "ask"
	modeEdit = "edit"
	modeRead = "read"
	modeFull = "full"
)

// request is one call to be judged.
type request struct {
	p     *Policy
	mode  string
	spec  session.ToolSpec
	call  session.ToolCall
	args  map[string]any
	rules ruleset
}

// Judge implements session.Policy. An error means that rules could not be read: nothing is decided without them.
func (p *Policy) Judge(ctx context.Context, mode string, spec session.ToolSpec, call session.ToolCall) (session.Verdict, error) {
	r := &request{p: p, mode: mode, spec: spec, call: call}
	if mode != modeEdit && mode != modeRead && mode != modeFull {
		r.mode = modeAsk
	}
	_ = json.Unmarshal(call.Arguments, &r.args) // they were checked; of anything else no argument is known
	if own[spec.Name] || spec.Kind == "think" {
		return session.Verdict{Effect: allow}, nil
	}
	workspace := ""
	if len(call.Roots) > 0 {
		workspace = call.Roots[0]
	}
	rules, err := p.remembered(ctx, workspace)
	if err != nil {
		return session.Verdict{}, protocol.Errorf(protocol.PersistenceError, "read remembered consent: %w", err)
	}
	r.rules = rules
	switch f, isFile := r.file(); {
	case spec.Name == "bash":
		return r.command(), nil
	case isFile:
		return r.files(f), nil
	case spec.Name == "skill_create":
		return r.skill(), nil
	case spec.Kind == "fetch":
		return r.fetch(), nil
	case spec.ReadOnly && (spec.Kind == "read" || spec.Kind == "search"):
		return session.Verdict{Effect: allow}, nil
	}
	return r.unknown(), nil
}

// own are tools of ours that touch nothing but the session and what it started itself.
var own = map[string]bool{
	"ask_user_question": true, "update_plan": true, "update_goal": true, "skill": true, "task_control": true, "bash_output": true,
}

// text is a string argument, "" when it is absent or something else.
func (r *request) text(names ...string) string {
	for _, n := range names {
		if s, ok := r.args[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func denied(errorType, reason string) session.Verdict {
	return session.Verdict{Effect: deny, ErrorType: errorType, Reason: reason}
}

func (r *request) ruledOut(pattern string) session.Verdict {
	return denied(protocol.ErrApprovalRejected, "The user rejected "+oneLine(pattern, 200)+" for this workspace for good. Do it another way, or ask the user to revoke the rule with /permissions.")
}

func (r *request) readMode(what string) session.Verdict {
	return denied(protocol.ErrPermissionDenied, "The approval mode is read: "+what+". Ask the user to change the mode if it is needed.")
}

// skill judges skill_create, which writes a file of instructions for later.
func (r *request) skill() session.Verdict {
	scope := "project"
	if r.text("scope") == "user" {
		scope = "user"
	}
	return r.other(scope, "Create "+scope+" skill: "+oneLine(r.text("name"), 100), false)
}

// unknown judges tools nobody here knows: those of MCP servers.
func (r *request) unknown() session.Verdict {
	return r.other("*", "Use tool: "+oneLine(r.spec.Name, 100), r.spec.ReadOnly)
}

// other judges what only its rule pattern tells apart. reads: it changes nothing, as its tool says.
func (r *request) other(pattern, title string, reads bool) session.Verdict {
	switch known, allowed := r.rules.of(r.spec.Name, pattern); {
	case known && !allowed:
		return r.ruledOut(r.spec.Name)
	case r.mode == modeFull:
		return session.Verdict{Effect: allow}
	case r.mode == modeRead && !reads:
		return r.readMode(oneLine(r.spec.Name, 100) + " may change something")
	case known:
		return session.Verdict{Effect: allow}
	}
	return session.Verdict{Effect: ask, Title: title, Rule: encodeRule(r.spec.Name, pattern)}
}

// oneLine shows text on one line of at most n characters, its middle left out. Characters that could make it look like something else
// are replaced.
func oneLine(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > 16*n { // its middle is not shown anyway
		s = s[:8*n] + s[len(s)-8*n:]
	}
	rs := make([]rune, 0, min(len(s), 4*n))
	for _, c := range s {
		switch {
		case c == '\n':
			c = '⏎'
		case c == '\t':
			c = ' '
		case c == '\r', c < ' ', c == 0x7f, c >= 0x80 && c < 0xa0, c >= 0x200b && c <= 0x200f, c >= 0x2028 && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0xfeff:
			c = '�'
		}
		rs = append(rs, c)
	}
	if len(rs) > n {
		head := n * 2 / 3
		rs = append(append(rs[:head:head], []rune(" … ")...), rs[len(rs)-(n-head-3):]...)
	}
	return string(rs)
}

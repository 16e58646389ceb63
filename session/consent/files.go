package consent

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// fileCall is a call of a tool that reads or writes below a path.
type fileCall struct {
	path   string // as given
	glob   string // a filter that may name files; "" for none
	writes bool
	verb   string // of titles
}

// file tells whether the call is one of a file tool, and what it names.
func (r *request) file() (fileCall, bool) {
	f := fileCall{path: r.text("path", "file_path")}
	switch r.spec.Name {
	case "read_file":
		f.verb = "Read"
	case "write_file":
		f.verb, f.writes = "Write", true
	case "edit_file":
		f.verb, f.writes = "Edit", true
	case "grep":
		f.verb, f.glob = "Search", r.text("glob")
	case "glob":
		f.verb, f.glob = "List", r.text("pattern")
		f.path = globBase(f.path, f.glob)
	default: // a tool of somebody else that says what it is and where it works
		switch {
		case f.path == "":
			return f, false
		case r.spec.Kind == "edit":
			f.verb, f.writes = "Change", true
		case r.spec.ReadOnly && (r.spec.Kind == "read" || r.spec.Kind == "search"):
			f.verb = "Read"
		default:
			return f, false
		}
	}
	if f.path == "" {
		f.path = "."
	}
	return f, true
}

// globBase is the folder a search for names starts in: a pattern may be absolute or lead upwards by itself.
func globBase(dir, pattern string) string {
	slashed := filepath.ToSlash(pattern)
	if !filepath.IsAbs(pattern) && !strings.HasPrefix(slashed, "/") && !strings.Contains("/"+slashed+"/", "/../") {
		return dir
	}
	fixed := slashed
	if i := strings.IndexAny(fixed, `*?[{\`); i >= 0 {
		fixed = fixed[:i]
	}
	if i := strings.LastIndexByte(fixed, '/'); i >= 0 {
		fixed = fixed[:i+1]
	}
	if filepath.IsAbs(pattern) || strings.HasPrefix(slashed, "/") || dir == "" {
		return fixed
	}
	return dir + "/" + fixed
}

// guarded are folders whose files make programs run, or decide what is trusted: changing them is more than changing the work.
var guarded = []string{".git", ".hg", ".rind"}

func isGuarded(rel string) bool {
	for part := range strings.SplitSeq(folded(filepath.ToSlash(rel)), "/") {
		if slices.Contains(guarded, part) {
			return true
		}
	}
	return false
}

// files judges a call of a file tool.
func (r *request) files(f fileCall) session.Verdict {
	if f.writes && r.mode == modeRead {
		return r.readMode("nothing may be written")
	}
	open, err := roots.Open(r.call.Roots...)
	if err != nil {
		return refusal(err)
	}
	defer open.Close()
	place, err := open.Resolve(f.path)
	outside := ""
	if err != nil {
		e, ok := errors.AsType[*roots.PathError](err)
		if !ok || e.Reason != roots.Outside {
			return refusal(err)
		}
		outside = e.Resolved
		place.Abs = outside
	}
	shown := place.Abs
	if outside == "" {
		shown = open.Show(place)
	}
	exact := exactly(shown)
	patterns := []string{exact}
	if f.writes && outside == "" {
		for dir := shown; ; {
			i := strings.LastIndexByte(dir, '/')
			if i <= 0 {
				break
			}
			dir = dir[:i]
			patterns = append(patterns, dir+"/**")
		}
	}
	secret := r.p.secret(f.path) || r.p.secret(place.Abs) || secretGlob(f.glob)
	if !f.writes && secretGlob(f.glob) {
		patterns[0] = exactly(shown + " " + f.glob)
		exact = patterns[0]
	}
	known, allowed := r.rules.of(r.spec.Name, patterns...)
	verdict := session.Verdict{Effect: allow}
	if outside != "" {
		verdict.Outside = []string{outside}
	}
	verb := f.verb
	switch {
	case known && !allowed:
		return r.ruledOut(shown)
	case outside != "" && r.mode == modeFull:
		return denied(protocol.ErrPermissionDenied, oneLine(f.path, 200)+" leads to "+oneLine(outside, 200)+", outside the workspace. The approval mode full asks nobody, so it is refused.")
	case r.mode == modeFull || r.rules.allows(r.spec.Name, exact):
		return verdict
	case outside != "" && secret:
		verb += " a secret file outside the workspace"
	case outside != "":
		verb += " outside the workspace"
	case secret && f.writes:
		verb += " a secret file"
	case secret:
		verb += " secret files"
		if f.verb == "Read" {
			verb = "Read a secret file"
		}
	case !f.writes:
		return verdict
	case isGuarded(shown):
		verb += " a file that other programs obey"
	case r.mode == modeEdit || allowed:
		return verdict
	}
	pattern := exact
	if len(patterns) > 1 && !secret && !isGuarded(shown) {
		pattern = patterns[1] // its folder
	}
	what := oneLine(shown, 200)
	if f.glob != "" && secretGlob(f.glob) {
		what += " " + oneLine(f.glob, 100)
	}
	verdict.Effect, verdict.Title, verdict.Rule = ask, verb+": "+what, encodeRule(r.spec.Name, pattern)
	return verdict
}

// exactly is the pattern of one thing alone. What would read as more is marked.
func exactly(text string) string {
	if strings.HasSuffix(text, " *") || strings.HasSuffix(text, "/**") || text == "*" || strings.HasPrefix(text, "exactly: ") {
		return "exactly: " + text
	}
	return text
}

// refusal is the verdict on a path no tool will open: asking a person would be in vain.
func refusal(err error) session.Verdict {
	if e, ok := errors.AsType[*roots.PathError](err); ok {
		_, errorType := e.Outcome()
		return denied(errorType, e.Text)
	}
	return denied(protocol.ErrPermissionDenied, "The path cannot be followed: "+oneLine(err.Error(), 200)+".")
}

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

// blanks are what a shell skips before and behind a command; any other space is a letter of a word.
const blanks = " \t\n"

// judged is a command taken apart and looked at.
type judged struct {
	steps   []step
	seen    []seen
	reads   []bool // of each step: it only reads what lies inside the roots, or would if it were not secret
	blocked string // why it is never run
	unread  bool   // it could not be taken apart
	outside string // the folder it starts in, when that is outside
	secret  string
	place   string // "in FOLDER: " where it does not start in the workspace's own folder
}

// judgeCommand takes a command apart. The error is of the folder it is to start in.
func (p *Policy) judgeCommand(open *roots.Roots, text, cwd string) (*judged, error) {
	j := &judged{}
	dir := open.Base()
	start := true
	if cwd != "" {
		place, err := open.Resolve(cwd)
		if err != nil {
			e, ok := errors.AsType[*roots.PathError](err)
			if !ok || e.Reason != roots.Outside {
				return nil, err
			}
			j.outside, place.Abs = e.Resolved, e.Resolved
		}
		if start = place.Abs == dir; !start {
			j.place = "in " + open.Show(place) + ": "
			if j.outside != "" {
				j.place = "in " + j.outside + ": "
			}
		}
		dir = place.Abs
	}
	if !p.parses {
		j.unread, j.blocked, j.secret = true, blunt(text), mentions(text)
		return j, nil
	}
	s := &scanner{home: filepath.ToSlash(p.cfg.Home), temp: filepath.ToSlash(p.cfg.Temp), vars: map[string]string{}, functions: map[string]bool{}}
	s.scan(text, state{dirs: []string{dir}, start: start})
	j.blocked = s.danger()
	if s.failed != nil {
		j.unread = true
		j.secret = mentions(text)
		if j.blocked == "" {
			j.blocked = blunt(text)
		}
	}
	j.steps = s.steps
	if j.blocked != "" {
		return j, nil
	}
	l := &look{p: p, open: open}
	for i := range j.steps {
		st := &j.steps[i]
		at := l.step(st)
		if j.secret == "" {
			j.secret = at.secret
		}
		reads := st.other == "" && st.literal && len(st.argv) > 0 && !s.functions[st.argv[0].text] && reads(st.argv)
		if st.other == "redirection" {
			reads = !st.writes && st.target.known
		}
		if reads && (st.other == "redirection" || readsNames(st.argv)) {
			for _, d := range st.dirs {
				if d == elsewhere {
					continue
				}
				here := l.resolve(d, d)
				at.lost = at.lost || here.outside != "" || here.lost
			}
			at.lost = at.lost || lost(st.dirs)
		}
		reads = reads && at.outside == "" && !at.lost
		j.seen, j.reads = append(j.seen, at), append(j.reads, reads)
	}
	return j, nil
}

// readsNames tells whether where a reader runs matters to it.
func readsNames(argv []word) bool { return readers[programName(argv[0].text)].text != -1 }

// command judges a call of bash.
func (r *request) command() session.Verdict {
	text := strings.Trim(r.text("command"), blanks)
	open, err := roots.Open(r.call.Roots...)
	if err != nil {
		return refusal(err)
	}
	defer open.Close()
	j, err := r.p.judgeCommand(open, text, r.text("cwd"))
	if err != nil {
		return refusal(err)
	}
	if j.blocked != "" {
		return denied(protocol.ErrDangerousCommand, "Not run: "+j.blocked+". This is refused in every approval mode; a person has to do it by hand.")
	}
	tool := r.spec.Name
	whole := exactly(j.place + text)
	if r.rules.denies(tool, whole) {
		return r.ruledOut(whole)
	}
	for i := range j.steps {
		for _, pattern := range rejections(&j.steps[i]) {
			if r.rules.denies(tool, pattern) {
				return r.ruledOut(pattern)
			}
		}
	}
	reads := !j.unread && j.outside == ""
	for i := range j.steps {
		reads = reads && (j.reads[i] || j.covered(i))
	}
	verdict := session.Verdict{Effect: allow}
	if j.outside != "" {
		verdict.Outside = []string{j.outside}
	}
	switch {
	case r.mode == modeFull && j.outside != "":
		return denied(protocol.ErrPermissionDenied, "The command is to start in "+oneLine(j.outside, 200)+", outside the workspace. The approval mode full asks nobody, so it is refused.")
	case r.mode == modeFull:
		return verdict
	case reads && j.secret == "":
		verdict.Reads = true
		return verdict
	case r.mode == modeRead && !reads:
		return r.readMode("only commands that are known to read are run, and only within the workspace")
	case r.rules.allows(tool, whole):
		return verdict
	}
	parts, byThemselves := r.parts(j)
	if byThemselves {
		parts = slices.DeleteFunc(parts, func(p string) bool { return r.rules.allows(tool, p) })
		if len(parts) == 0 {
			return verdict
		}
	}
	verdict.Effect, verdict.Title = ask, title(text, j)
	switch {
	case byThemselves && len(parts) == 1:
		verdict.Rule = encodeRule(tool, parts[0])
	case byThemselves:
		verdict.Rule = encodeRule(tool, whole, parts...)
	default:
		verdict.Rule = encodeRule(tool, whole)
	}
	return verdict
}

// covered tells whether a step was judged with the one it was found in: what stands behind timeout, nice, or the -exec of find.
func (j *judged) covered(i int) bool {
	by := j.steps[i].by - 1
	if by < 0 || by >= i {
		return false
	}
	name := j.steps[by].program()
	return (name == "timeout" || name == "nice" || name == "find") && (j.reads[by] || j.covered(by))
}

// parts are the patterns of the steps that ask, each once. They can be allowed by themselves only when each of them is known to the
// letter and touches nothing that has to be named exactly.
func (r *request) parts(j *judged) (patterns []string, byThemselves bool) {
	if j.unread || j.outside != "" || j.secret != "" {
		return nil, false
	}
	for i := range j.steps {
		st := &j.steps[i]
		if st.within || j.reads[i] {
			continue
		}
		if st.other != "" || !st.plain || len(st.argv) == 0 || j.seen[i].outside != "" || j.seen[i].lost || j.seen[i].guarded || lost(st.dirs) {
			return nil, false
		}
		if stateful[st.program()] && len(j.steps) > 1 {
			return nil, false // what comes behind it means something else
		}
		p, wide := pattern(st)
		if (!wide || strings.Contains(st.argv[0].text, "/")) && (!st.start || j.place != "" || st.piped) {
			return nil, false // the same words mean something else there
		}
		if !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	return patterns, len(patterns) > 0
}

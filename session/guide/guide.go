// Package guide is what a model is told before the conversation: our own words, the notes of the user and of the project, and the skills
// it can load (docs/protocol/rind-v2.md section 8).
//
// It promises: files are looked at anew each time, so that a change holds from the next request on, and read again only where they
// changed; what cannot be read is left out and named by Problems; nothing of a workspace is read that lies outside it, and of an untrusted
// one nothing but its notes, which are words for the model and lift no policy; no file, however large or odd, costs more than its bounds.
//
// It owns no goroutine.
package guide

import (
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// Keys and labels of the parts (context/inspect, docs/protocol/rind-v2.md section 4.10).
const (
	keySystem  = "system"
	keyUser    = "user_doc"
	keyProject = "project_doc"
	keySkills  = "skills"

	scopeUser    = "user"
	scopeProject = "project"
)

// Config says what a Guide reads and tells.
type Config struct {
	DataRoot string // folder of the user's notes and skills; "" for none
	Home     string // the user's home folder: shown as ~
	// Trusted tells whether a person trusts exactly what the workspace (absolute, links resolved) enables now. It is asked at each request,
	// so it should be cheap. nil: none is trusted.
	Trusted    func(workspace string) bool
	Unattended bool   // nobody can be asked
	OS         string // as told to the model; "" is this system
	Shell      string // what commands run in; "" is bash
}

// Guide implements session.Guide. Safe for concurrent use.
type Guide struct {
	cfg  Config
	seen memory
}

var _ session.Guide = (*Guide)(nil)

// New returns a Guide. It reads nothing yet.
func New(cfg Config) *Guide {
	if cfg.Trusted == nil {
		cfg.Trusted = func(string) bool { return false }
	}
	if cfg.OS == "" {
		cfg.OS = systemName(runtime.GOOS)
	}
	if cfg.Shell == "" {
		cfg.Shell = "bash"
	}
	return &Guide{cfg: cfg}
}

// Parts implements session.Guide: our words, the user's notes, the project's, the list of skills.
func (g *Guide) Parts(workspace string) []session.GuidePart { return g.PartsIn(workspace, ".") }

// PartsIn is Parts for somebody who works in a folder below the workspace root, given relative to it: of the notes beside RIND.md the
// nearest counts.
func (g *Guide) PartsIn(workspace, folder string) []session.GuidePart {
	v := g.visit(workspace)
	defer v.close()
	parts := []session.GuidePart{{Key: keySystem, Label: "System prompt", Text: systemPrompt(g.cfg, workspace)}}
	parts = append(parts, v.documents(folder)...)
	if p, ok := skillsPart(v.skills()); ok {
		parts = append(parts, p)
	}
	return parts
}

// HasDoc reports whether there is a RIND.md in the workspace.
func (g *Guide) HasDoc(workspace string) bool {
	r, err := openWorkspace(workspace)
	if err != nil {
		return false
	}
	defer r.Close()
	info, err := r.Stat(ownDoc)
	return err == nil && info.Mode().IsRegular()
}

// Problems tells, one line each, which notes and skills are there and left out, and why.
func (g *Guide) Problems(workspace string) []string {
	v := g.visit(workspace)
	defer v.close()
	v.documents(".")
	v.skills()
	v.untrusted()
	return v.problems
}

// visit is one look at everything, for one request.
type visit struct {
	g         *Guide
	workspace string
	r         *roots.Roots // nil when the workspace cannot be opened
	top       *roots.Dir   // the workspace root
	shelf     *roots.Dir   // .rind/skills while it is looked through; nil for none
	trusted   bool
	problems  []string
}

func (g *Guide) visit(workspace string) *visit {
	v := &visit{g: g, workspace: workspace}
	r, err := openWorkspace(workspace)
	if err != nil {
		v.problem("", err)
		return v
	}
	place, err := r.Resolve(".")
	if err == nil {
		v.top, _, err = r.OpenTop(place)
	}
	if err != nil {
		r.Close()
		v.problem("", err)
		return v
	}
	v.r = r
	v.trusted = v.trusts()
	return v
}

// openWorkspace opens the folder, which a relative name would make depend on where the process was started.
func openWorkspace(workspace string) (*roots.Roots, error) {
	if !filepath.IsAbs(workspace) {
		return nil, fmt.Errorf("the workspace %q is no absolute path", workspace)
	}
	return roots.Open(workspace)
}

// trusts asks anew whether the workspace is trusted, by the name a person trusts it under: links resolved.
func (v *visit) trusts() bool { return v.g.cfg.Trusted(v.r.Base()) }

func (v *visit) close() {
	if v.shelf != nil {
		v.shelf.Close()
	}
	if v.r != nil {
		v.top.Close()
		v.r.Close()
	}
}

// problem notes why a file is left out.
func (v *visit) problem(path string, err error) {
	line := oneLine(err.Error())
	if path != "" {
		line = shownPath(v.g.cfg.Home, path) + " is left out: " + line
	}
	v.problems = append(v.problems, line)
}

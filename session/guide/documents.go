package guide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

// The notes that are read: our own, and beside them the first of others' that is there.
const ownDoc = "RIND.md"

var otherDocs = []string{"AGENTS.md", "CLAUDE.md"}

var labels = map[string]string{keyUser: "User notes", keyProject: "Project notes"}

const (
	maxDocBytes = 32 << 10
	maxDepth    = 64 // folders between the working folder and the workspace root

	cutMark = "\n[… left out from here: this file is longer than 32 KiB …]"
)

// dotRind is the folder by which a workspace configures us, which needs trust.
const dotRind = ".rind"

var (
	errLinkedElsewhere = errors.New("it is a link to what is no .md file")
	errInDotRind       = errors.New("it is a link into .rind")
)

// document is what was made of one file.
type document struct {
	text string // framed; "" when the file is blank
	more bool
	err  error // why it is no text
}

// documents are the notes of the user and of the project, each file once, however many names it has.
func (v *visit) documents(folder string) []session.GuidePart {
	var parts []session.GuidePart
	var told []fs.FileInfo
	// take adds the first of candidates that says anything.
	take := func(key, scope string, candidates ...func() (file, error)) {
		for _, find := range candidates {
			f, err := find()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var d document
			if err == nil {
				if contains(told, f.info) {
					return
				}
				d, _, err = remembered(&v.g.seen, key+" "+v.workspace, f, func(open *os.File) (document, int) { return v.document(scope, f.path, open) })
			}
			if err == nil {
				err = d.err
			}
			if err != nil {
				v.problem(f.path, err)
				continue
			}
			if d.text == "" {
				continue
			}
			told = append(told, f.info)
			parts = append(parts, session.GuidePart{Key: key, Label: labels[key], Scope: scope, Path: f.path, Text: d.text, Truncated: d.more})
			return
		}
	}
	if root := v.g.cfg.DataRoot; root != "" {
		user := func(name string) func() (file, error) {
			return func() (file, error) {
				at := filepath.Join(root, name)
				f, err := userFile(at)
				f.path = at
				return f, err
			}
		}
		take(keyUser, scopeUser, user(ownDoc))
		take(keyUser, scopeUser, user(otherDocs[0]), user(otherDocs[1]))
	}
	if v.r == nil {
		return parts
	}
	project := func(name string) func() (file, error) { return func() (file, error) { return v.projectFile(name) } }
	take(keyProject, scopeProject, project(ownDoc))
	var others []func() (file, error)
	for _, name := range otherDocs {
		for _, dir := range upwards(folder) {
			others = append(others, project(path.Join(dir, name)))
		}
	}
	take(keyProject, scopeProject, others...)
	return parts
}

// projectFile finds a file of the workspace, given relative to it. A link is followed while it stays inside and leads to another .md file:
// one that a project names AGENTS.md and points at the user's .env is not for a model, and what lies in .rind needs trust.
func (v *visit) projectFile(name string) (file, error) {
	f := file{path: filepath.Join(v.r.Base(), filepath.FromSlash(name))}
	if !strings.Contains(name, "/") { // mostly there is no link on the way, and one look is enough
		info, err := v.top.Lstat(name)
		if err != nil || info.Mode().IsRegular() {
			f.info, f.open = info, func() (*os.File, fs.FileInfo, error) { return v.top.File(name) }
			return f, err
		}
	}
	place, err := v.r.Resolve(name)
	if err != nil {
		return f, err
	}
	if dir, _, _ := strings.Cut(place.Rel, "/"); strings.EqualFold(dir, dotRind) {
		return f, errInDotRind
	}
	f.info, err = v.r.Stat(place.Abs)
	if e, ok := errors.AsType[*roots.PathError](err); ok && e.Reason == roots.Missing {
		return f, fs.ErrNotExist
	}
	switch {
	case err != nil:
		return f, err
	case !f.info.Mode().IsRegular():
		return f, errNoFile
	case !strings.EqualFold(filepath.Ext(place.Abs), ".md"):
		return f, errLinkedElsewhere
	}
	f.open = func() (*os.File, fs.FileInfo, error) { return v.r.OpenFile(place.Abs) }
	return f, nil
}

// upwards lists folder and those above it, slash separated and relative to the workspace root, up to the root itself, without
// those in .rind. A folder that does not lie below the root is the root.
func upwards(folder string) []string {
	folder = path.Clean(filepath.ToSlash(folder))
	if !filepath.IsLocal(filepath.FromSlash(folder)) {
		folder = "."
	}
	dirs := []string{}
	for ; folder != "." && len(dirs) < maxDepth; folder = path.Dir(folder) {
		if top, _, _ := strings.Cut(folder, "/"); !strings.EqualFold(top, dotRind) {
			dirs = append(dirs, folder)
		}
	}
	return append(dirs, ".")
}

func contains(list []fs.FileInfo, info fs.FileInfo) bool {
	for _, x := range list {
		if os.SameFile(x, info) {
			return true
		}
	}
	return false
}

// frames begin and end notes. What a file holds may look like one, but does not count.
var frames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)<(/?(?:user|project)_notes)`) })

// document reads and frames notes, so that the model knows whose words these are and where they end.
func (v *visit) document(scope, at string, f *os.File) (document, int) {
	text, more, err := readText(f, maxDocBytes)
	if errors.Is(err, errUnread) {
		return document{err: err}, -1
	}
	text = strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n")
	if err != nil || strings.TrimSpace(text) == "" {
		return document{err: err}, 0
	}
	name := shownPath(v.g.cfg.Home, at)
	if scope == scopeProject {
		if rel, err := filepath.Rel(v.r.Base(), at); err == nil {
			name = oneLine(filepath.ToSlash(rel))
		}
	}
	text = frames().ReplaceAllString(text, `<\$1`)
	if more {
		text += cutMark
	}
	text = fmt.Sprintf("<%[1]s_notes file=%[2]q>\n%[3]s\n</%[1]s_notes>", scope, name, text)
	return document{text: text, more: more}, len(text)
}

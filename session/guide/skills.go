package guide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
)

const (
	skillFile  = "SKILL.md"
	maxEntries = 1024 // that are looked at in a folder of skills
)

// found is a skill and its file.
type found struct {
	session.Skill
	file file
}

// Skills implements session.Guide.
func (g *Guide) Skills(workspace string) []session.Skill {
	v := g.visit(workspace)
	defer v.close()
	list := []session.Skill{}
	for _, f := range v.skills() {
		list = append(list, f.Skill)
	}
	return list
}

// Skill implements session.Guide. A name is as Skills tells it: lower case.
func (g *Guide) Skill(workspace, name string) (session.Skill, bool) {
	v := g.visit(workspace)
	defer v.close()
	for _, f := range v.skills() {
		if f.Name != name {
			continue
		}
		s := f.Skill
		open, _, err := f.file.open()
		if err != nil {
			return session.Skill{}, false
		}
		defer open.Close()
		h, body, err := readSkill(open)
		if err != nil || h.name != "" && h.name != name || s.Scope == scopeProject && !v.trusts() {
			return session.Skill{}, false // it changed under our hands
		}
		s.Text = body
		return s, true
	}
	return session.Skill{}, false
}

// skills are those of the user and, where the workspace is trusted, of the project, which hide a user's of the same name. Sorted by name.
func (v *visit) skills() []found {
	list := map[string]found{}
	var own fs.FileInfo
	if root := v.g.cfg.DataRoot; root != "" {
		at := filepath.Join(root, "skills")
		own, _ = os.Stat(at)
		v.collect(list, userShelf(at), at, scopeUser)
	}
	if project, fresh := v.projectSkills(own); !fresh || v.trusts() { // what was just read is still what is trusted
		for name, f := range project {
			list[name] = f
		}
	}
	all := make([]found, 0, len(list))
	for _, f := range list {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// projectSkills are those of a trusted workspace; of another one nothing is looked at. own is the user's folder: in a workspace that holds
// the data root its skills are the user's and no project's.
func (v *visit) projectSkills(own fs.FileInfo) (list map[string]found, fresh bool) {
	if v.r == nil || !v.trusted {
		return nil, false
	}
	at := filepath.Join(v.r.Base(), dotRind, "skills")
	d, err := openShelf(v.top)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			v.problem(at, cause(err))
		}
		return nil, false
	}
	v.shelf = d
	if here, err := d.Lstat("."); err == nil && own != nil && os.SameFile(own, here) {
		return nil, false
	}
	list = map[string]found{}
	fresh = v.collect(list, projectShelf{d, at}, at, scopeProject)
	return list, fresh
}

// untrusted notes that there are skills which are not used.
func (v *visit) untrusted() {
	if v.r == nil || v.trusted {
		return
	}
	d, err := openShelf(v.top)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		here, err := d.Lstat(".")
		d.Close()
		if own, e := os.Stat(filepath.Join(v.g.cfg.DataRoot, "skills")); err == nil && e == nil && os.SameFile(own, here) {
			return
		}
	}
	v.problem(filepath.Join(v.r.Base(), dotRind, "skills"), errors.New("the workspace is not trusted; look at it, then run /trust"))
}

// shelf is a folder of skills.
type shelf interface {
	// list lists what is in it, sorted by name; what is more than maxEntries may be missing.
	list() ([]fs.DirEntry, error)
	// linked describes what the link name leads to.
	linked(name string) (fs.FileInfo, error)
	// find finds the regular file name: one of the shelf, or of a folder in it, slash separated.
	find(name string) (file, error)
}

// collect puts the skills of a shelf into list. fresh tells that a file was read and not only looked at.
func (v *visit) collect(list map[string]found, s shelf, at, scope string) (fresh bool) {
	entries, err := s.list()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			v.problem(at, cause(err))
		}
		return false
	}
	if len(entries) > maxEntries {
		entries = entries[:maxEntries]
		v.problem(at, fmt.Errorf("what comes after the first %d entries", maxEntries))
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		f, name, err := onShelf(s, entry)
		if f.path == "" && err == nil {
			continue
		}
		path := filepath.Join(at, entry.Name())
		var made skillMade
		if err == nil {
			var read bool
			made, read, err = remembered(&v.g.seen, "skill", f, describeSkill)
			fresh = fresh || read
		}
		if err == nil {
			err = made.err
		}
		if err == nil && made.head.name != "" {
			name = made.head.name
		}
		if err == nil && !skillName().MatchString(name) {
			err = fmt.Errorf("%q is no name of a skill: a-z, 0-9 and -, at most 64", shorten(oneLine(name), 80))
		}
		if other, ok := list[name]; err == nil && ok {
			err = fmt.Errorf("%s is a skill %s already", shownPath(v.g.cfg.Home, other.Path), name)
		}
		if err != nil {
			v.problem(path, cause(err))
			continue
		}
		list[name] = found{
			Skill: session.Skill{Name: name, Scope: scope, Description: made.head.description, Path: f.path}, file: f,
		}
	}
	return fresh
}

// onShelf finds the file of a skill: SKILL.md in a folder, or a file of its own. No path and no error: entry is no skill.
func onShelf(s shelf, entry fs.DirEntry) (f file, name string, err error) {
	name = entry.Name()
	folder := entry.IsDir()
	if entry.Type()&fs.ModeSymlink != 0 {
		info, err := s.linked(name)
		if err != nil {
			return file{}, "", err
		}
		folder = info.IsDir()
	}
	if folder {
		f, err := s.find(name + "/" + skillFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no " + skillFile + " in it")
		}
		return f, strings.ToLower(name), err
	}
	if !strings.EqualFold(filepath.Ext(name), ".md") {
		return file{}, "", nil
	}
	f, err = s.find(name)
	return f, strings.ToLower(name[:len(name)-len(".md")]), err
}

// skillMade is what is remembered of a skill's file: not its text, which is read when it is asked for.
type skillMade struct {
	head head
	err  error
}

func describeSkill(f *os.File) (skillMade, int) {
	h, _, err := readSkill(f)
	if errors.Is(err, errUnread) {
		return skillMade{err: err}, -1
	}
	return skillMade{h, err}, len(h.name) + len(h.description)
}

func readSkill(f *os.File) (head, string, error) {
	text, more, err := readText(f, maxHeadBytes+maxBodyBytes)
	if err != nil {
		return head{}, "", err
	}
	h, body, err := parseSkill(text)
	if err == nil && more {
		err = fmt.Errorf("its text is longer than %d KiB", maxBodyBytes>>10)
	}
	return h, body, err
}

// userShelf is the user's own folder: links may lead anywhere.
type userShelf string

func (s userShelf) list() ([]fs.DirEntry, error) {
	info, err := os.Stat(string(s))
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return nil, err
	}
	d, err := os.Open(string(s))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (s userShelf) linked(name string) (fs.FileInfo, error) {
	return os.Stat(filepath.Join(string(s), name))
}

func (s userShelf) find(name string) (file, error) {
	return userFile(filepath.Join(string(s), filepath.FromSlash(name)))
}

// projectShelf is .rind/skills of a workspace. No link is followed there: what a person trusts is what lies in it.
type projectShelf struct {
	dir *roots.Dir
	at  string
}

func openShelf(top *roots.Dir) (*roots.Dir, error) {
	own, err := top.Dir(dotRind)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	return own.Dir("skills")
}

func (s projectShelf) list() ([]fs.DirEntry, error) { return s.dir.Entries(context.Background()) }

func (projectShelf) linked(string) (fs.FileInfo, error) { return nil, errors.New("it is a link") }

func (s projectShelf) find(name string) (file, error) {
	info, err := s.dir.Lstat(name)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() {
		return file{}, errNoFile
	}
	open := func() (*os.File, fs.FileInfo, error) {
		dir, base, below := strings.Cut(name, "/")
		if !below {
			return s.dir.File(name)
		}
		d, err := s.dir.Dir(dir)
		if err != nil {
			return nil, nil, err
		}
		defer d.Close()
		return d.File(base)
	}
	return file{path: filepath.Join(s.at, filepath.FromSlash(name)), info: info, open: open}, nil
}

package consent

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// search is what a program that goes through folders was told.
type search struct {
	deep      bool     // it goes through folders
	shallow   bool     // but not into those in them
	pair      bool     // only where two of what it is given are folders
	follow    bool     // it follows the links it meets
	names     bool     // it tells names only
	hidden    bool     // also what begins with a dot
	only, but []string // globs of names
	folders   []word
}

// search looks into the folders that a program goes through: a secret file there would be printed with the rest, and a link that is
// followed may lead out. It reads a bounded part of them, the upper levels first.
func (l *look) search(name string, args []word, dirs []string) seen {
	var s search
	switch name {
	case "grep", "egrep", "fgrep":
		s.grep(args)
	case "rg":
		s.rg(args)
	case "diff":
		s.diff(args)
	case "git grep":
		s.gitGrep(args)
	case "git diff":
		s.gitDiff(args)
	case "find", "fd", "tree", "ls", "du":
		s.list(name, args)
	}
	var out seen
	if !s.deep || s.names && !s.follow {
		return out
	}
	if len(s.folders) == 0 {
		s.folders = []word{{text: "."}}
	}
	var level []string
	for _, f := range s.folders {
		if f.glob != "" {
			level = append(level, globbed(f.glob, dirs)...)
		} else {
			level = append(level, absolutes(f.text, dirs)...)
		}
	}
	if s.pair {
		level = slices.DeleteFunc(level, func(name string) bool { info, err := os.Stat(name); return err != nil || !info.IsDir() })
		if len(level) < 2 {
			return out
		}
	}
	read, followed := 0, map[string]bool{}
	for first := true; len(level) > 0; first = false {
		var next []string
		for _, dir := range level {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if read++; read > mostEntries {
					out.lost = out.lost || first // asked, where not even one level could be looked at
					return out
				}
				at := dir + "/" + e.Name()
				switch {
				case !s.hidden && e.Name()[0] == '.':
				case !s.names && l.p.secret(at) && (e.IsDir() || s.prints(e.Name())) && !empty(at, e):
					out.join(seen{secret: e.Name()})
					return out
				case e.IsDir():
					next = append(next, at)
				case s.follow && e.Type()&os.ModeSymlink != 0:
					there := l.resolve(at, e.Name())
					if s.names {
						there.secret = ""
					}
					out.join(there)
					if real, err := filepath.EvalSymlinks(at); err == nil && there.outside == "" && !followed[real] {
						followed[real] = true
						next = append(next, filepath.ToSlash(real))
					}
				}
			}
		}
		if s.shallow {
			break
		}
		level = next
	}
	return out
}

// globbed are the names a wildcard becomes.
func globbed(pattern string, dirs []string) []string {
	var level []string
	if path.IsAbs(pattern) {
		level = []string{""}
	} else {
		for _, d := range dirs {
			if d != elsewhere {
				level = append(level, d)
			}
		}
	}
	read := 0
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range level {
			if !strings.ContainsAny(part, "*?[") {
				next = append(next, dir+"/"+unescape(part))
				continue
			}
			entries, err := os.ReadDir(dir + "/")
			if err != nil {
				continue
			}
			for _, e := range entries {
				if read++; read > mostEntries {
					return next
				}
				if ok, err := path.Match(part, e.Name()); (ok || err != nil) && (e.Name()[0] != '.' || part[0] == '.') {
					next = append(next, dir+"/"+e.Name())
				}
			}
		}
		level = next
	}
	return level
}

// empty tells whether an entry is a folder with nothing in it.
func empty(path string, e os.DirEntry) bool {
	if !e.IsDir() {
		return false
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

func (s *search) prints(name string) bool {
	fits := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { ok, err := path.Match(g, name); return ok || err != nil })
	}
	return (len(s.only) == 0 || fits(s.only)) && !fits(s.but)
}

// operands are the words that are neither flags nor the pattern.
func (s *search) operands(args []word, flag func(i int, text, value string)) {
	text, over := 1, false
	for i, w := range args {
		name, value, _ := strings.Cut(w.text, "=")
		switch {
		case !over && w.text == "--":
			over = true
		case !over && strings.HasPrefix(w.text, "-") && w.text != "-":
			flag(i, name, value)
			if !strings.HasPrefix(w.text, "--") && (strings.HasSuffix(w.text, "e") || strings.HasSuffix(w.text, "f")) || name == "--regexp" || name == "--file" || name == "--files" {
				text = 0
			}
		case !over && i > 0 && takesText(args[i-1].text):
			text = 0
		case text > 0:
			text = 0
		default:
			s.folders = append(s.folders, w)
		}
	}
}

// takesText tells whether the word behind a flag is a pattern, or a glob.
func takesText(flag string) bool {
	return strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && len(flag) > 1 && strings.HasSuffix(flag, "e") || flag == "--regexp"
}

func (s *search) grep(args []word) {
	s.hidden = true
	s.operands(args, func(_ int, flag, value string) {
		switch {
		case flag == "--include":
			s.only = append(s.only, value)
		case flag == "--exclude":
			s.but = append(s.but, value)
		case long(flag, "--recursive"):
			s.deep = true
		case long(flag, "--dereference-recursive"):
			s.deep, s.follow = true, true
		case !strings.HasPrefix(flag, "--"):
			s.deep = s.deep || strings.ContainsAny(flag, "rR")
			s.follow = s.follow || strings.Contains(flag, "R")
		}
	})
}

// rg goes through folders always, through hidden files when it is told to. What .gitignore leaves out counts as searched.
func (s *search) rg(args []word) {
	s.deep = true
	unrestricted := 0
	s.operands(args, func(_ int, flag, _ string) {
		switch {
		case flag == "--unrestricted":
			unrestricted++
		case long(flag, "--hidden"):
			s.hidden = true
		case long(flag, "--follow"):
			s.follow = true
		case !strings.HasPrefix(flag, "--"):
			s.follow = s.follow || strings.Contains(flag, "L")
			unrestricted += strings.Count(flag, "u")
			s.hidden = s.hidden || strings.Contains(flag, ".")
		}
	})
	s.hidden = s.hidden || unrestricted > 1
}

// gitGrep reads what the repository holds, unless it is told to take other files as well.
func (s *search) gitGrep(args []word) {
	s.hidden = true
	s.operands(args, func(_ int, flag, _ string) {
		s.deep = s.deep || len(flag) > 5 && long(flag, "--no-index") || long(flag, "--untracked")
	})
}

// diff compares what lies in folders, and follows links.
func (s *search) diff(args []word) {
	s.hidden, s.follow, s.shallow, s.pair = true, true, true, true
	folders := s.plain(args, func(flag string) {
		switch {
		case flag == "--no-dereference":
			s.follow = false
		case long(flag, "--recursive"), !strings.HasPrefix(flag, "--") && strings.Contains(flag, "r"):
			s.shallow = false
		}
	})
	s.deep = len(folders) > 1
}

// gitDiff compares two folders when it is told to, or outside of a repository.
func (s *search) gitDiff(args []word) {
	s.hidden = true
	told := false
	folders := s.plain(args, func(flag string) { told = told || len(flag) > 5 && long(flag, "--no-index") })
	s.deep, s.pair = told || len(folders) == 2, !told
}

// list is what programs that tell names do with links.
func (s *search) list(name string, args []word) {
	s.names, s.hidden = true, true
	deep, follow := true, false
	folders := s.plain(args, func(flag string) {
		short := !strings.HasPrefix(flag, "--")
		switch name {
		case "find":
			follow = follow || flag == "-L" || flag == "-follow"
		case "tree":
			follow = follow || short && strings.Contains(flag, "l")
		case "ls":
			deep = deep && flag != "-d"
			follow = follow || short && strings.Contains(flag, "L") || long(flag, "--dereference")
		default:
			follow = follow || short && strings.Contains(flag, "L") || long(flag, "--dereference") || long(flag, "--follow")
		}
	})
	s.deep, s.follow = deep, follow
	if name == "find" {
		starts, _ := findStarts(append([]word{{}}, args...))
		s.folders = starts
	} else {
		s.folders = folders
	}
}

// plain are all words that are no flags; a value of a flag may be among them.
func (s *search) plain(args []word, flag func(text string)) []word {
	over := false
	for _, w := range args {
		name, _, _ := strings.Cut(w.text, "=")
		switch {
		case !over && w.text == "--":
			over = true
		case !over && strings.HasPrefix(w.text, "-") && w.text != "-":
			flag(name)
		default:
			s.folders = append(s.folders, w)
		}
	}
	return s.folders
}

// long tells whether a flag is a long one, or short for it.
func long(flag, full string) bool { return len(flag) > 3 && strings.HasPrefix(full, flag) }

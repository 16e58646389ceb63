package consent

import (
	"os"
	"path"
	"slices"
	"strings"
)

// search is what a program that searches folders was told.
type search struct {
	deep      bool     // it goes through folders
	hidden    bool     // also through what begins with a dot
	only, but []string // globs of names
	folders   []word
}

// search looks into the folders that a program goes through: a secret file there would be printed with the rest. It reads a bounded part of
// them, the upper levels first.
func (l *look) search(name string, args []word, dirs []string) seen {
	var s search
	switch name {
	case "grep", "egrep", "fgrep":
		s.grep(args)
	case "rg":
		s.rg(args)
	case "git grep":
		s.gitGrep(args)
	}
	if !s.deep {
		return seen{}
	}
	if len(s.folders) == 0 {
		s.folders = []word{{text: "."}}
	}
	var level []string
	for _, f := range s.folders {
		level = append(level, absolutes(f.text, dirs)...)
	}
	read := 0
	for first := true; len(level) > 0; first = false {
		var next []string
		for _, dir := range level {
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				if read++; read > mostEntries {
					return seen{lost: first} // asked, where not even one level could be looked at
				}
				switch {
				case e.IsDir():
					next = append(next, dir+"/"+e.Name())
				case Secret(e.Name()) && s.prints(e.Name()):
					return seen{secret: e.Name()}
				}
			}
		}
		level = next
	}
	return seen{}
}

func (s *search) prints(name string) bool {
	fits := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { ok, err := path.Match(g, name); return ok || err != nil })
	}
	return (s.hidden || name[0] != '.') && (len(s.only) == 0 || fits(s.only)) && !fits(s.but)
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
		case flag == "--recursive" || flag == "--dereference-recursive":
			s.deep = true
		case !strings.HasPrefix(flag, "--"):
			s.deep = s.deep || strings.ContainsAny(flag, "rR")
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
		case len(flag) > 3 && strings.HasPrefix("--hidden", flag):
			s.hidden = true
		case !strings.HasPrefix(flag, "--"):
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
		s.deep = s.deep || len(flag) > 5 && strings.HasPrefix("--no-index", flag) || len(flag) > 3 && strings.HasPrefix("--untracked", flag)
	})
}

package consent

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// search is what a program that goes through folders was told.
type search struct {
	deep    bool // it goes through folders
	shallow bool // but not into those in them
	lost    bool // where it goes is not known
	pair    bool // only where two of what it is given are folders
	follow  bool // it follows the links it meets
	names   bool // it tells names only
	hidden  bool // also what begins with a dot
	folders []word
	fits    func(e fs.DirEntry) bool // of the files, when not all are
	// of rg: globs of what is shown though it is hidden; whether nothing else is; whether files name more
	shown, back     []string
	narrow, ignores bool
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
	out.lost = s.lost
	if s.pair {
		out.join(l.beside(s.folders, dirs))
		level = slices.DeleteFunc(level, func(name string) bool { info, err := os.Stat(name); return err != nil || !info.IsDir() })
		if len(level) < 2 {
			return out
		}
	}
	read, followed := 0, map[string]bool{}
	for first := true; len(level) > 0; first = false {
		var next []string
		for _, dir := range level {
			if s.ignores {
				s.unignored(dir, first)
			}
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
				case !s.hidden && e.Name()[0] == '.' && !shows(s.shown, e.Name()) && !shows(s.back, e.Name()):
				case !s.names && l.p.secret(at) && (e.IsDir() || s.prints(e)) && !empty(at, e):
					out.join(seen{secret: e.Name()})
					return out
				case e.IsDir():
					next = append(next, at)
				case s.follow && e.Type()&os.ModeSymlink != 0 && s.prints(e):
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

// beside looks at the files that are compared with one of the same name in a folder.
func (l *look) beside(words []word, dirs []string) seen {
	var out seen
	for _, folder := range words {
		for _, at := range absolutes(folder.text, dirs) {
			if info, err := os.Stat(at); err != nil || !info.IsDir() {
				continue
			}
			for _, w := range words {
				if base := path.Base(w.text); base != "." && base != ".." && base != "/" {
					if there := at + "/" + base; exists(there) {
						out.join(l.name(there, dirs))
					}
				}
			}
		}
	}
	return out
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
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

// prints tells whether a file is among those that are read.
func (s *search) prints(e fs.DirEntry) bool {
	return (s.fits == nil || s.fits(e)) && (!s.narrow || shows(s.shown, e.Name()))
}

// shows tells whether one of the globs may name a file or folder.
func shows(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		all := alternatives(strings.ToLower(glob), mostBraces)
		return len(all) >= mostBraces || slices.ContainsFunc(all, func(glob string) bool {
			return slices.ContainsFunc(strings.Split(glob, "/"), func(part string) bool { return part != "" && globFits(part, strings.ToLower(name), true) })
		})
	})
}

// unignored reads what the files of rg in a folder, and above the first one, bring back.
func (s *search) unignored(dir string, above bool) {
	for {
		for _, name := range []string{".gitignore", ".ignore", ".rgignore"} {
			info, err := os.Stat(dir + "/" + name)
			if err != nil {
				continue
			}
			if !info.Mode().IsRegular() || info.Size() > mostBytes {
				s.hidden = true
				continue
			}
			text, _ := os.ReadFile(dir + "/" + name)
			for line := range strings.Lines(string(text)) {
				if glob, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
					s.back = append(s.back, glob)
				}
			}
		}
		up := path.Dir(dir)
		if !above || up == dir {
			return
		}
		dir = up
	}
}

// deepGrep tells whether grep goes through folders.
func deepGrep(g *given) bool {
	return slices.ContainsFunc(g.flags, func(o option) bool {
		return slices.Contains([]string{"-r", "-R", "--recursive", "--dereference-recursive"}, o.name) ||
			(o.name == "-d" || o.name == "--directories") && o.value.text != "skip" && o.value.text != "read"
	})
}

func (s *search) grep(args []word) {
	g := grepFlags.read(args)
	s.hidden, s.deep, s.follow = true, deepGrep(&g), g.has("-R", "--dereference-recursive")
	s.folders = g.files(grepFlags)
	var filters []option
	for _, f := range g.flags {
		if f.name == "--include" || f.name == "--exclude" {
			filters = append(filters, f)
		}
	}
	s.fits = func(e fs.DirEntry) bool { // the last that fits is the one
		in := len(filters) == 0 || filters[0].name == "--exclude"
		for _, f := range filters {
			if includes := f.name == "--include"; globFits(f.value.text, e.Name(), includes) {
				in = includes
			}
		}
		return in
	}
}

// globFits compares a name with a pattern; unclear is the answer when the pattern has what programs take differently.
func globFits(pattern, name string, unclear bool) bool {
	if strings.ContainsAny(pattern, `[\{/`+unknownText) {
		return unclear
	}
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// rg goes through folders always, through hidden files when it is told to, or when a glob, the kind of file it looks for, or a file of what is
// left out brings them back. What .gitignore leaves out counts as searched.
func (s *search) rg(args []word) {
	g := rgFlags.read(args)
	s.deep, s.names, s.ignores = true, g.has("--files", "--type-list"), true
	s.follow = g.has("-L", "--follow")
	s.folders = g.files(rgFlags)
	unrestricted, kinds, known := 0, false, true
	for _, f := range g.flags {
		switch f.name {
		case "-u", "--unrestricted":
			unrestricted++
		case "-.", "--hidden", "--ignore-file":
			s.hidden = true
		case "--type-add":
			known = false
		case "-t", "--type":
			kinds, known = true, known && slices.Contains(types, f.value.text)
		case "-g", "--glob", "--iglob":
			if !strings.HasPrefix(f.value.text, "!") {
				s.shown = append(s.shown, f.value.text)
			}
		}
	}
	s.hidden, s.narrow = s.hidden || unrestricted > 1 || !known, len(s.shown) > 0
	if kinds && known && !s.narrow {
		s.fits = func(fs.DirEntry) bool { return false } // a secret file is none of them
	}
}

// types are kinds of files of rg that have no secret ones among them.
var types = strings.Fields("asm c clojure cmake cpp cs csharp css csv cxx dart docker elixir erlang fish go gradle graphql groovy h haskell hpp html java jl js json jsonl julia jsx kotlin less lisp lua make markdown md mdx ml nix objc ocaml org perl php proto protobuf ps py python r rb rst ruby rust sass scala sql svelte svg swift tex tf toml ts tsx txt typescript vue xml yaml zig")

// gitGrep reads what the repository holds, unless it is told to take other files as well.
func (s *search) gitGrep(args []word) {
	s.hidden = true
	all := false
	for _, w := range s.plain(args, func(flag string) {
		s.deep = s.deep || len(flag) > 5 && long(flag, "--no-index") || long(flag, "--untracked")
	}) {
		s.lost = s.lost || s.deep && strings.HasPrefix(w.text, ":") // the top of the repository may lie outside
		all = all || strings.ContainsAny(w.text, `*?[\`)            // it has patterns of its own
	}
	if all || len(s.folders) < 2 {
		s.folders = nil
	}
}

// diff compares what lies in folders, and follows links.
func (s *search) diff(args []word) {
	g := diffFlags.read(args)
	s.hidden, s.pair = true, true
	s.follow, s.shallow = !g.has("--no-dereference"), !g.has("-r", "--recursive")
	s.folders = g.operands
	for _, f := range g.flags {
		if f.name == "--from-file" || f.name == "--to-file" {
			s.folders = append(s.folders[:len(s.folders):len(s.folders)], f.value)
		}
	}
	s.deep = len(s.folders) > 1
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
	if name == "find" {
		f := finds(args)
		s.folders, _ = findStarts(append([]word{{}}, args...))
		s.deep, s.follow = true, f.links || len(f.runs) > 0 // what is run follows what it is given
		s.names = !f.tells()
		if len(f.runs) > 0 && !f.links {
			s.fits = f.runsFor
		}
		return
	}
	deep, follow, valued := true, false, false
	folders := s.plain(args, func(flag string) {
		short := !strings.HasPrefix(flag, "--")
		switch name {
		case "tree":
			follow = follow || short && strings.Contains(flag, "l")
		case "ls":
			deep = deep && flag != "-d"
			valued = valued || strings.HasPrefix(flag, "--") || strings.ContainsAny(flag, "IwT") // which may take the -d for its value
			follow = follow || short && strings.Contains(flag, "L") || long(flag, "--dereference")
		default:
			follow = follow || short && strings.Contains(flag, "L") || long(flag, "--dereference") || long(flag, "--follow")
		}
	})
	s.deep, s.follow, s.folders = deep || valued, follow, folders
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

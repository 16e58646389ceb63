package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// manifests are the files that say what a project is; README stands for whatever ending it has.
var manifests = []string{
	"README", "go.mod", "package.json", "Cargo.toml", "pyproject.toml", "setup.py", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json",
	"Gemfile", "mix.exs", "CMakeLists.txt", "Makefile",
}

// describe says in a sentence what a manifest tells, "" for nothing worth saying.
func describe(p string, page page) string {
	switch strings.ToLower(path.Base(p)) {
	case "go.mod":
		module, version := field(page.lines, "module "), field(page.lines, "go ")
		switch {
		case module == "":
			return ""
		case version == "":
			return fmt.Sprintf("%s: the Go module %s.", p, module)
		}
		return fmt.Sprintf("%s: the Go module %s, for Go %s.", p, module, version)
	case "package.json":
		return describePackage(p, page)
	case "cargo.toml":
		if name := tomlName(page.lines, "[package]"); name != "" {
			return fmt.Sprintf("%s: the Rust package %s.", p, name)
		}
	case "pyproject.toml":
		if name := tomlName(page.lines, "[project]", "[tool.poetry]"); name != "" {
			return fmt.Sprintf("%s: the Python project %s.", p, name)
		}
	}
	if readme(p) {
		return describeReadme(p, page.lines)
	}
	return fmt.Sprintf("%s is there, %s long.", p, count(max(page.total, len(page.lines)), "line"))
}

// field returns what follows the first line that begins with word.
func field(lines []string, word string) string {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, word); ok {
			rest, _, _ = strings.Cut(rest, "//")
			return strings.Trim(strings.TrimSpace(rest), `"`)
		}
	}
	return ""
}

func describePackage(p string, page page) string {
	var j struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Main        string            `json:"main"`
		Scripts     map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(strings.Join(page.lines, "\n")), &j) != nil {
		return fmt.Sprintf("%s is there, but not all of it could be read.", p)
	}
	text := p + ": a JavaScript package"
	if j.Name != "" {
		text += " named " + j.Name
	}
	if j.Description != "" {
		text += fmt.Sprintf(", “%s”", oneLine(j.Description, 160))
	}
	if j.Main != "" {
		text += ", which starts at " + j.Main
	}
	text += "."
	if len(j.Scripts) > 0 {
		names := slices.Sorted(maps.Keys(j.Scripts))
		text += " Its scripts: " + strings.Join(names[:min(len(names), 8)], ", ") + "."
	}
	return oneLine(text, 600)
}

var nameLine = later(`^name\s*=\s*["']([^"']+)["']`)

// tomlName finds the name in one of the tables.
func tomlName(lines []string, tables ...string) string {
	inside := false
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			inside = slices.Contains(tables, l)
		} else if m := nameLine().FindStringSubmatch(l); m != nil && inside {
			return m[1]
		}
	}
	return ""
}

var (
	underline = later(`^\s*(=+|-+)\s*$`)
	link      = later(`!?\[([^\]]*)\]\([^)]*\)`)
	ornament  = later(`^\s*(<|!\[|\[!|\[\]|\|)`)
)

// describeReadme quotes the first heading and the first paragraph.
func describeReadme(p string, lines []string) string {
	title := ""
	var para []string
	for i := 0; i < len(lines); i++ {
		l := strings.TrimSpace(lines[i])
		switch {
		case l == "" || strings.HasPrefix(l, "```"):
			if len(para) > 0 {
				i = len(lines) // the paragraph is over
			}
		case strings.HasPrefix(l, "#"):
			if len(para) > 0 {
				i = len(lines)
			} else if title == "" {
				title = strings.Trim(l, "# ")
			}
		case len(para) == 0 && i+1 < len(lines) && underline().MatchString(lines[i+1]):
			if title == "" {
				title = l
			}
			i++
		case ornament().MatchString(l) || underline().MatchString(l): // badges, markup, rules
		default:
			para = append(para, l)
		}
	}
	text := oneLine(link().ReplaceAllString(strings.Join(para, " "), "$1"), 320)
	title = oneLine(link().ReplaceAllString(title, "$1"), 120)
	switch {
	case title != "" && text != "":
		return fmt.Sprintf("%s is headed “%s” and begins: “%s”", p, title, text)
	case title != "":
		return fmt.Sprintf("%s is headed “%s”.", p, title)
	case text != "":
		return fmt.Sprintf("%s begins: “%s”", p, text)
	}
	return p + " has no text at its beginning."
}

var languages = map[string]string{
	".go": "Go", ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript",
	".rs": "Rust", ".java": "Java", ".kt": "Kotlin", ".kts": "Kotlin", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".hpp": "C++", ".cs": "C#",
	".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".sh": "shell", ".bash": "shell", ".lua": "Lua", ".ex": "Elixir", ".exs": "Elixir", ".erl": "Erlang",
	".scala": "Scala", ".zig": "Zig", ".dart": "Dart", ".hs": "Haskell", ".ml": "OCaml", ".clj": "Clojure", ".jl": "Julia", ".r": "R", ".pl": "Perl", ".vue": "Vue",
	".svelte": "Svelte", ".sql": "SQL", ".ps1": "PowerShell",
}

var kinds = map[string]string{
	".md": "Markdown", ".rst": "reStructuredText", ".txt": "text", ".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML", ".xml": "XML", ".html": "HTML",
	".htm": "HTML", ".css": "CSS", ".scss": "CSS", ".svg": "SVG", ".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".pdf": "PDF",
	".csv": "CSV", ".proto": "protobuf", ".lock": "lock", ".sum": "checksum", ".mod": "module",
}

// language names the programming language a file's ending stands for, "" for none.
func language(p string) string { return languages[strings.ToLower(path.Ext(p))] }

func kind(p string) string { return kinds[strings.ToLower(path.Ext(p))] }

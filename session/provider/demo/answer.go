package demo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// How to get a real model: in full where the overview is, in short later on.
const (
	nextStep = "\nFor an AI, set OPENAI_API_KEY and start again. For a model on this machine, as Ollama serves them:\n" +
		"  rind config set baseUrl http://127.0.0.1:11434/v1\n  rind config set apiKey \"\"\n  rind config set model NAME\n" +
		"Then run rind doctor: it says what is still missing.\n"
	nextShort = "\nFor an AI, set OPENAI_API_KEY, or run rind doctor to see what is missing.\n"
)

// answer is the last message of a turn: only what tools found, then the next step.
func (k *knowledge) answer() string {
	var b strings.Builder
	if !k.spoke {
		b.WriteString("\n\n") // behind the label
	}
	switch {
	case k.greeting():
		b.WriteString("I cannot converse, but I can show how rind works on this folder: ask what is in it, name a file, or put a word to look for in quotes.\n")
		return b.String() + nextStep
	case !k.offered["glob"] && !k.offered["read_file"] && !k.offered["grep"]:
		b.WriteString("I am offered no tool to look at files, so there is nothing I can tell about this folder.\n")
		return b.String() + nextStep
	}
	overview, specific := k.needsOverview(), k.specifics()
	if overview {
		k.overview(&b)
	}
	for _, line := range specific {
		b.WriteString(line)
	}
	switch {
	case overview:
		b.WriteString("\nWhat it all means takes a model; a demo only sees files and lines.\n")
		return b.String() + nextStep
	case len(specific) == 0:
		b.WriteString("That takes a model. I can show a file of this folder if you name it")
		if example := k.example(); example != "" {
			b.WriteString(", as in: show " + example)
		}
		b.WriteString("; or find lines, if you put a word in quotes.\n")
	}
	return b.String() + nextShort
}

func (k *knowledge) example() string {
	for _, p := range k.known() {
		if _, read := k.reads[p]; !read && language(p) != "" {
			return p
		}
	}
	return ""
}

// overview says what the folder holds.
func (k *knowledge) overview(b *strings.Builder) {
	switch {
	case k.empty():
		b.WriteString("The folder holds no files, but for those that .gitignore leaves out.\n")
		return
	case k.files != nil:
		counts(b, k.files)
	case k.listErr != "":
		fmt.Fprintf(b, "- The files could not be listed: %s\n", oneLine(k.listErr, 200))
	default:
		b.WriteString("- I am offered no tool to list files.\n")
	}
	for _, p := range k.telling() {
		page, read := k.reads[p]
		switch {
		case !read, page.err != "" && k.files == nil: // was only a guess
		case page.err != "":
			fmt.Fprintf(b, "- %s could not be read: %s\n", p, oneLine(page.err, 200))
		default:
			if text := describe(p, page); text != "" {
				fmt.Fprintf(b, "- %s\n", text)
			}
		}
	}
	if k.files != nil {
		list(b, "By their names, these start programs", pick(k.files.files, entryPoint))
	}
	if m, ok := k.greps[todo.args.(grepArgs).Pattern]; ok {
		b.WriteString(lines("TODO or FIXME", m))
	}
}

// counts tells number, size and kinds of the files.
func counts(b *strings.Builder, l *listing) {
	kinds, code := map[string]int{}, map[string]int{}
	var size int64
	for _, f := range l.files {
		size += f.Size
		lang := language(f.Path)
		switch {
		case lang != "":
			code[lang]++
			kinds[lang]++
		case kind(f.Path) != "":
			kinds[kind(f.Path)]++
		default:
			kinds["other"]++
		}
	}
	more := ""
	if l.cut {
		more = "at least "
	}
	names := ranked(kinds)
	parts := make([]string, 0, len(names))
	for _, n := range names {
		parts = append(parts, fmt.Sprintf("%d %s", kinds[n], n))
	}
	if len(parts) > 6 {
		parts = append(parts[:6], "and more")
	}
	fmt.Fprintf(b, "- The folder holds %s%s (%s%s): %s.\n", more, count(len(l.files), "file"), more, bytes(size), strings.Join(parts, ", "))
	if order := ranked(code); len(order) > 0 {
		of := "by number of files"
		if l.cut {
			of += " among those listed"
		}
		fmt.Fprintf(b, "- The main language is %s, %s.\n", order[0], of)
	}
	if tests := pick(l.files, testFile); len(tests) > 0 {
		if len(tests) == 1 {
			fmt.Fprintf(b, "- %s looks like a test by its name.\n", tests[0])
		} else {
			fmt.Fprintf(b, "- %s%d files look like tests by their names.\n", more, len(tests))
		}
	}
}

// specifics tells what this turn found of what the prompt names.
func (k *knowledge) specifics() []string {
	var out []string
	for _, p := range k.askedFiles() {
		page, ok := k.reads[p]
		if !ok || k.needsOverview() && slices.Contains(k.telling(), p) {
			continue
		}
		out = append(out, show(p, page))
	}
	for _, c := range k.askedTerms() {
		a := c.args.(grepArgs)
		m, ok := k.greps[a.Pattern]
		if c == todo {
			if ok && !k.needsOverview() {
				out = append(out, lines("TODO or FIXME", m))
			}
		} else if ok {
			out = append(out, lines(fmt.Sprintf("%q", unquoteMeta(a.Pattern)), m))
		}
	}
	return out
}

// show tells how long a file is and how it begins.
func show(p string, page page) string {
	if page.err != "" {
		return fmt.Sprintf("- %s could not be read: %s\n", p, oneLine(page.err, 200))
	}
	if len(page.lines) == 0 {
		return fmt.Sprintf("- %s has no lines to show.\n", p)
	}
	var b strings.Builder
	total := max(page.total, len(page.lines))
	if page.cut && page.total == 0 {
		fmt.Fprintf(&b, "- %s has more than %s and begins:\n", p, count(len(page.lines), "line"))
	} else {
		fmt.Fprintf(&b, "- %s has %s and begins:\n", p, count(total, "line"))
	}
	shown := 0
	for _, l := range page.lines {
		if shown == 8 {
			break
		}
		if shown > 0 || strings.TrimSpace(l) != "" {
			b.WriteString("      " + protocol.Prefix(l, 160) + "\n")
			shown++
		}
	}
	return b.String()
}

// lines tells where a term stands.
func lines(term string, m matches) string {
	switch {
	case m.err != "":
		return fmt.Sprintf("- %s could not be searched for: %s\n", term, oneLine(m.err, 200))
	case len(m.found) == 0:
		return fmt.Sprintf("- %s stands in no line.\n", term)
	}
	more := ""
	if m.cut {
		more = "at least "
	}
	text := fmt.Sprintf("- %s stands in %s%s, the first:\n", term, more, count(len(m.found), "line"))
	for _, f := range m.found[:min(3, len(m.found))] {
		text += fmt.Sprintf("      %s:%d  %s\n", f.Path, f.Line, oneLine(f.Text, 120))
	}
	return text
}

func list(b *strings.Builder, what string, paths []string) {
	if len(paths) == 0 {
		return
	}
	rest := ""
	if n := len(paths) - 6; n > 0 {
		paths, rest = paths[:6], fmt.Sprintf(" and %d more", n)
	}
	fmt.Fprintf(b, "- %s: %s%s.\n", what, strings.Join(paths, ", "), rest)
}

func pick(files []foundFile, keep func(string) bool) []string {
	var out []string
	for _, f := range files {
		if keep(f.Path) {
			out = append(out, f.Path)
		}
	}
	return out
}

// ranked lists names, the most frequent first.
func ranked(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b string) int {
		if m[a] != m[b] {
			return m[b] - m[a]
		}
		return strings.Compare(a, b)
	})
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func bytes(n int64) string {
	switch {
	case n < 1<<10:
		return count(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// oneLine folds white space and cuts s to most characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if cut := protocol.Prefix(s, most); cut != s {
		return cut + "…"
	}
	return s
}

var escaped = later(`\\(.)`)

// unquoteMeta undoes regexp.QuoteMeta.
func unquoteMeta(s string) string { return escaped().ReplaceAllString(s, "$1") }

func entryPoint(p string) bool {
	base, dir := path.Base(p), path.Dir(p)
	switch base {
	case "main.go", "__main__.py", "manage.py", "main.rs", "Main.java", "Main.kt", "Program.cs", "main.c", "main.cc", "main.cpp", "main.swift", "main.zig":
		return true
	case "main.py", "app.py", "index.js", "index.ts", "main.js", "main.ts", "server.js", "server.ts", "main.dart", "main.rb":
		return dir == "." || path.Base(dir) == "src" || path.Base(dir) == "app" || path.Base(dir) == "bin"
	}
	return path.Ext(base) == ".rs" && strings.HasSuffix(dir, "src/bin")
}

func testFile(p string) bool {
	base := path.Base(p)
	stem := strings.TrimSuffix(base, path.Ext(base))
	return language(p) != "" && (strings.HasSuffix(stem, "_test") || strings.HasPrefix(stem, "test_") || strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec"))
}

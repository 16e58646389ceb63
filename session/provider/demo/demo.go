// Package demo is the model that answers when nothing is configured and a person typed the command: no AI, and it says so. It looks at
// the folder with the real tools, says what it found there, and how to get a real model. It owns no goroutine.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
)

// Model is the demo model.
type Model struct{}

var _ session.Model = Model{}

// New makes one.
func New() Model { return Model{} }

const label = "This is rind's built-in demo: no AI is at work, only a few fixed rules and the real tools.\n\n"

// nextStep is how to get a real model.
const nextStep = "\nFor real answers set OPENAI_API_KEY (or ANTHROPIC_API_KEY, OPENROUTER_API_KEY), or point rind at a local server:\n" +
	"  rind config set baseUrl http://127.0.0.1:11434/v1\n  rind config set apiKey \"\"\n  rind config set model NAME\n" +
	"Then 'rind doctor' checks it.\n"

// Generate implements session.Model: first an overview of the files, then what describes the project, then the answer.
func (Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		w := &writer{ctx: ctx, yield: yield, ok: true}
		seen := look(r)
		switch {
		case !seen.listed && offered(r, "glob"):
			w.text(label + "Looking at the folder first.")
			w.call(r, "glob", map[string]any{"pattern": "**/*", "max_results": 2000})
			w.finish(session.FinishCalls)
			return
		case seen.listed && len(seen.read) == 0 && offered(r, "read_file"):
			if files := worthReading(seen.files); len(files) > 0 {
				for _, f := range files {
					w.call(r, "read_file", map[string]any{"path": f, "limit": 40})
				}
				w.finish(session.FinishCalls)
				return
			}
		}
		if !seen.listed {
			w.text(label)
		}
		w.text(seen.answer())
		w.finish(session.FinishStop)
	}
}

// writer sends chunks as a slow but steady typist would.
type writer struct {
	ctx   context.Context
	yield func(session.Chunk, error) bool
	ok    bool
	calls int
}

func (w *writer) send(c session.Chunk) {
	if !w.ok {
		return
	}
	if err := context.Cause(w.ctx); err != nil {
		w.ok = false
		w.yield(session.Chunk{}, err)
		return
	}
	w.ok = w.yield(c, nil)
}

func (w *writer) text(s string) {
	for i, word := range strings.SplitAfter(s, " ") {
		w.send(session.Chunk{Kind: session.ChunkText, Text: word})
		if i%8 == 7 && w.ok { // a pause now and then, so that one sees it stream
			timer := time.NewTimer(4 * time.Millisecond)
			select {
			case <-timer.C:
			case <-w.ctx.Done():
			}
			timer.Stop()
		}
	}
}

func (w *writer) call(r session.ModelRequest, name string, args map[string]any) {
	w.calls++
	id := fmt.Sprintf("demo_%d_%d", len(r.Messages), w.calls)
	raw, _ := json.Marshal(args) // strings and numbers only
	w.send(session.Chunk{Kind: session.ChunkCallStart, CallID: id, Name: name})
	w.send(session.Chunk{Kind: session.ChunkCallDelta, CallID: id, Text: string(raw)})
	w.send(session.Chunk{Kind: session.ChunkCallEnd, CallID: id, Name: name, Text: string(raw)})
}

func (w *writer) finish(f session.Finish) {
	w.send(session.Chunk{Kind: session.ChunkFinish, Finish: f})
}

func offered(r session.ModelRequest, name string) bool {
	for _, t := range r.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// sight is what the newest turn of the conversation has found out.
type sight struct {
	asked     string
	listed    bool
	truncated bool
	files     []string
	sizes     map[string]int64
	read      map[string]string // path -> numbered lines, or why it could not be read
	failed    string
}

// look gathers the results behind the last user message.
func look(r session.ModelRequest) *sight {
	s := &sight{read: map[string]string{}, sizes: map[string]int64{}}
	paths := map[string]string{}
	for _, m := range r.Messages {
		switch m.Role {
		case session.RoleUser:
			s = &sight{read: map[string]string{}, sizes: map[string]int64{}, asked: m.Text}
		case session.RoleAssistant:
			for _, c := range m.Calls {
				var a struct {
					Path string `json:"path"`
				}
				_ = json.Unmarshal(c.Arguments, &a)
				paths[c.ID] = a.Path
			}
		case session.RoleTool:
			s.result(m, paths[m.CallID])
		case session.RoleSystem:
		}
	}
	return s
}

func (s *sight) result(m session.Message, file string) {
	var res struct {
		OK    bool            `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error string          `json:"error"`
		Meta  struct {
			Truncated bool `json:"truncated"`
		} `json:"meta"`
	}
	if err := json.Unmarshal([]byte(m.Text), &res); err != nil {
		res.Error = "its result could not be read"
	}
	switch m.ToolName {
	case "glob":
		s.listed, s.truncated = true, res.Meta.Truncated
		if !res.OK {
			s.failed = res.Error
			return
		}
		var files []struct {
			Path string `json:"path"`
			Size int64  `json:"size"`
		}
		_ = json.Unmarshal(res.Data, &files)
		for _, f := range files {
			s.files = append(s.files, f.Path)
			s.sizes[f.Path] = f.Size
		}
	case "read_file":
		text := ""
		if res.OK {
			_ = json.Unmarshal(res.Data, &text)
		}
		s.read[file] = text
	}
}

// described are the files that say what a project is, most telling first.
var described = []string{
	"README.md", "README.rst", "README.txt", "README", "readme.md", "go.mod", "package.json", "Cargo.toml", "pyproject.toml", "setup.py", "pom.xml", "build.gradle",
	"CMakeLists.txt", "composer.json", "Gemfile", "mix.exs", "Makefile",
}

func worthReading(files []string) []string {
	have := map[string]bool{}
	for _, f := range files {
		have[f] = true
	}
	var out []string
	for _, f := range described {
		if have[f] && len(out) < 3 {
			out = append(out, f)
		}
	}
	return out
}

var languages = map[string]string{
	".go": "Go", ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin",
	".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".cs": "C#", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".sh": "shell", ".lua": "Lua", ".ex": "Elixir",
	".scala": "Scala", ".zig": "Zig", ".html": "HTML", ".css": "CSS", ".sql": "SQL", ".md": "Markdown",
}

// answer says what was found.
func (s *sight) answer() string {
	var b strings.Builder
	switch {
	case s.failed != "":
		fmt.Fprintf(&b, "The folder could not be looked at: %s\n", s.failed)
		return b.String() + nextStep
	case !s.listed:
		return "No tool to look at files is available here.\n" + nextStep
	case len(s.files) == 0:
		return "The folder holds no files (but for ignored ones).\n" + nextStep
	}
	s.overview(&b)
	for _, f := range described {
		if text := s.read[f]; text != "" {
			s.describe(&b, f, text)
		}
	}
	b.WriteString("\nI cannot tell more than that, nor answer the question itself.\n")
	return b.String() + nextStep
}

func (s *sight) overview(b *strings.Builder) {
	kinds, folders := map[string]int{}, map[string]int{}
	var bytes int64
	for _, f := range s.files {
		bytes += s.sizes[f]
		if l := languages[strings.ToLower(path.Ext(f))]; l != "" {
			kinds[l]++
		}
		if top, _, deep := strings.Cut(f, "/"); deep {
			folders[top]++
		}
	}
	atLeast := ""
	if s.truncated {
		atLeast = "at least "
	}
	fmt.Fprintf(b, "The folder holds %s%s, %s in all.\n", atLeast, count(len(s.files), "file"), size(bytes))
	if top := most(kinds, 3); len(top) > 0 {
		fmt.Fprintf(b, "By file names it is mostly %s.\n", strings.Join(top, ", "))
	}
	if top := most(folders, 6); len(top) > 0 {
		fmt.Fprintf(b, "Folders: %s.\n", strings.Join(top, ", "))
	}
}

// describe quotes what a describing file says first.
func (s *sight) describe(b *strings.Builder, name, text string) {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if _, rest, ok := strings.Cut(l, "\t"); ok { // numbered lines
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	switch {
	case strings.HasPrefix(strings.ToLower(name), "readme"):
		title, para := "", ""
		for _, l := range lines {
			switch {
			case l == "" && para != "":
				fmt.Fprintf(b, "%s is titled %q and begins: %s\n", name, title, para)
				return
			case strings.HasPrefix(l, "#") && title == "":
				title = strings.TrimSpace(strings.TrimLeft(l, "#"))
			case l != "" && !strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "[!") && !strings.HasPrefix(l, "<"):
				if para != "" {
					para += " "
				}
				para += l
			}
		}
		if title != "" || para != "" {
			fmt.Fprintf(b, "%s is titled %q and begins: %s\n", name, title, para)
		}
	case name == "go.mod":
		for _, l := range lines {
			if m, ok := strings.CutPrefix(l, "module "); ok {
				fmt.Fprintf(b, "It is the Go module %s.\n", m)
				return
			}
		}
	default:
		fmt.Fprintf(b, "There is a %s (%s), which says how it is built.\n", name, size(s.sizes[name]))
	}
}

func most(m map[string]int, n int) []string {
	names := make([]string, 0, len(m))
	for k := range m {
		names = append(names, k)
	}
	sort.Slice(names, func(i, j int) bool {
		if m[names[i]] != m[names[j]] {
			return m[names[i]] > m[names[j]]
		}
		return names[i] < names[j]
	})
	var out []string
	for _, k := range names[:min(n, len(names))] {
		out = append(out, fmt.Sprintf("%s (%s)", k, count(m[k], "file")))
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func size(n int64) string {
	switch {
	case n < 1<<10:
		return count(int(n), "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

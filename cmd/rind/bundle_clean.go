package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session/record"
	"github.com/rind-dev/rind/session/settings"
)

// cleaner takes out of texts what a bundle never holds: secrets, and the person's own folders.
type cleaner struct {
	record.Redactor
	folders *strings.Replacer
}

// secretName is a variable whose value may be a key.
var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)key|token|secret|passw|credential|auth`) })

// shortSecret is the length below which the value of such a variable is no key but a word (as in AUTH=yes), which would garble texts.
const shortSecret = 8

func newCleaner(e *examined, f *doctorFlags) *cleaner {
	c := &cleaner{}
	for _, pair := range os.Environ() {
		if name, value, ok := strings.Cut(pair, "="); ok && secretName().MatchString(name) && len(value) >= shortSecret && value[0] != '/' {
			c.Add(value)
		}
	}
	set := e.set
	if rt := e.process; rt != nil {
		if in, err := rt.settings(); err == nil {
			set = in
		}
		if entries, _, err := serverEntries(rt.path, rt.workspace); err == nil {
			for _, entry := range entries {
				c.addLeaves(entry)
			}
		}
	}
	for _, name := range set.Names(os.LookupEnv) {
		if p, err := set.Named(name); err == nil {
			c.Add(p.Secrets(os.LookupEnv)...)
		}
	}
	c.Add(set.Web(os.LookupEnv).SearchKey)
	c.addLeaves(set.MCPServers())
	var pairs []string
	if ws, err := workspace(f.cwd, os.LookupEnv); err == nil && len(ws) > 1 {
		pairs = append(pairs, ws, "WORKSPACE")
	}
	if root, err := settings.Root(os.LookupEnv); err == nil && len(root) > 1 {
		pairs = append(pairs, root, "DATA")
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		pairs = append(pairs, home, "~")
	}
	c.folders = strings.NewReplacer(pairs...)
	return c
}

// addLeaves names the texts below env and headers of an entry of mcpServers, whatever else it holds.
func (c *cleaner) addLeaves(entry json.RawMessage) {
	var v any
	if json.Unmarshal(entry, &v) != nil {
		return
	}
	var walk func(v any, secret bool)
	walk = func(v any, secret bool) {
		switch v := v.(type) {
		case string:
			if secret && len(v) >= shortSecret {
				c.Add(v)
			}
		case []any:
			for _, e := range v {
				walk(e, secret)
			}
		case map[string]any:
			for k, e := range v {
				walk(e, secret || k == "env" || k == "headers" || k == "args" || k == "url")
			}
		}
	}
	walk(v, false)
}

// text cleans one text.
func (c *cleaner) text(s string) string { return c.folders.Replace(c.Redact(s)) }

// value cleans all texts of decoded JSON.
func (c *cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.text(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[c.text(k)] = c.value(e)
		}
		return out
	}
	return v
}

// logTail is how much of the log file goes into a bundle, in bytes.
const logTail = 200 << 10

// log is the end of a log file, and of the one before it where that is short.
func (c *cleaner) log(path string) []byte {
	now := lastLines(path, logTail)
	if left := logTail - len(now); left > 0 {
		now = append(lastLines(path+".1", left), now...)
	}
	var out bytes.Buffer
	for line := range bytes.Lines(now) {
		out.Write(c.logLine(bytes.TrimSpace(line)))
	}
	return out.Bytes()
}

// lastLines are the last whole lines of a file, at most limit bytes of them.
func lastLines(path string, limit int) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	from := max(0, info.Size()-int64(limit))
	data, err := io.ReadAll(io.NewSectionReader(f, from, int64(limit)))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	if from > 0 { // the first one may be half a line
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// oneWord is an attribute that tells of a kind, a name or an id, not of somebody's text.
var oneWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.:/$@+-]{1,128}$`) })

// theirWords are the attributes of lines about MCP servers that hold names and no text of the server.
var theirWords = []string{"server", "tool", "level", "method"}

// ourTexts are the attributes whose texts are made by this program and the system.
var ourTexts = []string{"err", "error", "path"}

// logLine cleans one line. The log holds metadata, but a line may carry what an MCP server wrote, and its words may be those of a
// conversation: of such texts only the length is kept. What is no line of ours is left out.
func (c *cleaner) logLine(line []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var attrs map[string]any
	if len(line) == 0 || d.Decode(&attrs) != nil {
		return nil
	}
	what, _ := attrs["msg"].(string)
	ours := !strings.HasPrefix(what, "mcp")
	rest := map[string]any{}
	for k, v := range attrs {
		s, text := v.(string)
		switch {
		case k == "time" || k == "level" || k == "msg":
			continue
		case !text:
			rest[k] = c.value(v)
		case oneWord().MatchString(s) && (ours || slices.Contains(theirWords, k)), ours && slices.Contains(ourTexts, k):
			rest[k] = c.text(s)
		default:
			rest[k] = fmt.Sprintf("(%d bytes)", len(s))
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct {
		Time  any            `json:"time"`
		Level any            `json:"level"`
		Msg   any            `json:"msg"`
		Rest  map[string]any `json:"rest,omitempty"`
	}{attrs["time"], attrs["level"], c.value(attrs["msg"]), rest})
	return b.Bytes()
}

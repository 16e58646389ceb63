package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of a tool's result (docs/protocol/rind-v2.md section 9).
const (
	clientResultBytes = 8 << 10
	modelResultBytes  = 25 << 10
	modelResultLines  = 2000
)

// resultJSON is the JSON text of a tool result.
type resultJSON struct {
	OK        bool           `json:"ok"`
	Tool      string         `json:"tool"`
	Data      any            `json:"data,omitempty"`
	Error     string         `json:"error,omitempty"`
	ErrorType string         `json:"error_type,omitempty"`
	Meta      map[string]any `json:"meta,omitempty"`
	TS        string         `json:"ts"`
}

// encodeResult writes r for clients and for the model. Either is the whole text where that fits, else valid JSON of the same shape,
// shortened, whose meta says so; spill is called with the whole text the model is not given, and names the file it went to.
func encodeResult(tool string, r *ToolResult, at time.Time, spill func(full []byte) (path string, err error)) (client, model string, truncated bool, err error) {
	j := resultJSON{OK: r.ErrorType == "", Tool: tool, Meta: r.Meta, TS: protocol.FormatTime(at)}
	if j.OK {
		j.Data = r.Data
		if j.Data == nil {
			j.Data = map[string]any{}
		}
	} else {
		j.Error, j.ErrorType = r.Error, r.ErrorType
		if r.Data != nil {
			j.Data = r.Data
		}
	}
	forClient, err := protocol.Marshal(j)
	if err != nil {
		return "", "", false, fmt.Errorf("result of %s: %w", tool, err)
	}
	m, forModel := j, forClient
	if r.ModelData != nil && j.OK {
		m.Data = r.ModelData
		if forModel, err = protocol.Marshal(m); err != nil {
			return "", "", false, fmt.Errorf("result of %s: %w", tool, err)
		}
	}
	path := ""
	if len(forModel) > modelResultBytes || textLines(forModel) > modelResultLines {
		truncated = true
		if spill != nil {
			if to, err := spill(forModel); err == nil {
				path = to
			}
		}
		forModel = m.cut(forModel, path, modelResultBytes, modelResultLines)
	}
	if len(forClient) > clientResultBytes {
		truncated = true
		forClient = j.cut(forClient, path, clientResultBytes, 1<<30)
	}
	return string(forClient), string(forModel), truncated, nil
}

// cut shortens j, whose JSON is whole, and says so in its meta, with the file that holds all of it where there is one.
func (j resultJSON) cut(whole []byte, path string, limit, lines int) []byte {
	meta := map[string]any{"truncated": true}
	if path != "" {
		meta["output_path"] = path
	}
	for k, v := range j.Meta {
		if _, ours := meta[k]; !ours {
			meta[k] = v
		}
	}
	j.Meta = meta
	if text, err := protocol.Marshal(j); err == nil {
		whole = text
	}
	return shorten(whole, limit, lines)
}

// textLines counts the line breaks in the strings of a JSON text.
func textLines(j []byte) int { return bytes.Count(j, []byte(`\n`)) }

// shorten makes j, the JSON of a result, at most limit bytes and lines lines long: first its long strings lose their middle, then its long
// lists their end. Keys come out sorted.
func shorten(j []byte, limit, lines int) []byte {
	dec := json.NewDecoder(bytes.NewReader(j))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return j
	}
	if n := textLines(j); n > lines {
		v = cutStrings(v, func(s string) string { return cutLines(s, lines*9/10) })
	}
	fits := func(out []byte) bool { return len(out) <= limit && textLines(out) <= lines }
	for most := limit; ; most = most * 3 / 4 {
		short := cutStrings(v, func(s string) string { return cutMiddle(s, most) })
		if out := protocol.MustMarshal(short); fits(out) {
			return out
		}
		if most < 256 {
			v = short
			break
		}
	}
	for most := 4096; most > 0; most /= 2 {
		if out := protocol.MustMarshal(cutArrays(v, most)); fits(out) {
			return out
		}
	}
	if out := protocol.MustMarshal(cutStrings(cutArrays(v, 1), func(s string) string { return cutMiddle(s, 32) })); fits(out) {
		return out
	}
	top, _ := v.(map[string]any) // thousands of members: keep the head of the result
	meta, _ := top["meta"].(map[string]any)
	head := map[string]any{"ok": top["ok"], "tool": top["tool"], "ts": top["ts"], "meta": map[string]any{"truncated": true}}
	if path, ok := meta["output_path"]; ok {
		head["meta"].(map[string]any)["output_path"] = path
	}
	for _, name := range []string{"error", "error_type"} {
		if text, ok := top[name]; ok {
			head[name] = text
		}
	}
	if top["ok"] == true {
		head["data"] = nil
	}
	return protocol.MustMarshal(head)
}

func cutStrings(v any, cut func(string) string) any {
	switch v := v.(type) {
	case string:
		return cut(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cutStrings(v[i], cut)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			if out[k] = v[k]; k != "output_path" { // which leads nowhere when it is cut
				out[k] = cutStrings(v[k], cut)
			}
		}
		return out
	}
	return v
}

func cutArrays(v any, most int) any {
	switch v := v.(type) {
	case []any:
		if len(v) > most {
			v = v[:most]
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = cutArrays(v[i], most)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = cutArrays(v[k], most)
		}
		return out
	}
	return v
}

// cutMiddle keeps head and tail of a text longer than most bytes around a marker.
func cutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	half := most / 2
	head, tail := s[:half], s[len(s)-half:]
	cut := len(s) - 2*half
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[… %d bytes left out …]\n", cut) + strings.ToValidUTF8(tail, "")
}

// cutLines keeps the first and last lines of a text of more than most lines.
func cutLines(s string, most int) string {
	all := strings.SplitAfter(s, "\n")
	if len(all) <= most {
		return s
	}
	half := most / 2
	return strings.Join(all[:half], "") + fmt.Sprintf("[… %d lines left out …]\n", len(all)-2*half) + strings.Join(all[len(all)-half:], "")
}

// spillFile writes the whole output of a call beside the session (0600, directory 0700).
func spillFile(dir, callID string, full []byte) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "result-*.json")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Write(full); err != nil {
		return "", err
	}
	return filepath.ToSlash(f.Name()), f.Close()
}

// result records how a call ended, with the changes it made, in one transaction.
func (w *work) result(c *CallState, took time.Duration, r *ToolResult) error {
	bodies, err := w.t.resultBodies(c.ID, c.Name, r, took, w.Outputs, w.Now())
	if err != nil {
		return err
	}
	return w.t.Record(bodies...)
}

// resultBodies are the facts that end a call: the changes it made, then its result.
func (t *Turn) resultBodies(callID, name string, r *ToolResult, took time.Duration, outputs func(SessionID) string, now time.Time) ([]protocol.Body, error) {
	status := r.Status
	switch {
	case status != "":
	case r.ErrorType != "":
		status = protocol.ToolFailed
	default:
		status = protocol.ToolCompleted
	}
	spill := func(full []byte) (string, error) {
		if outputs == nil {
			return "", errors.New("no output directory")
		}
		return spillFile(outputs(t.Session()), callID, full)
	}
	client, model, cut, err := encodeResult(name, r, now, spill)
	if err != nil {
		r = &ToolResult{ErrorType: protocol.ErrInternal, Error: t.s.all.internal(err).Message}
		status = protocol.ToolFailed
		client, model, cut, _ = encodeResult(name, r, now, nil)
	}
	var bodies []protocol.Body
	seen := map[string]bool{}
	for i := range r.Changes {
		ch := r.Changes[i]
		ch.ToolCallID = callID
		ch.More.First = !seen[ch.FilePath]
		seen[ch.FilePath] = true
		bodies = append(bodies, &ch)
	}
	if len(bodies) > 0 {
		if err := t.View(func(_ *State, open *OpenTurn, _ *History) {
			for _, b := range bodies {
				ch := b.(*protocol.FileChange)
				ch.More.First = ch.More.First && !slices.Contains(open.Files, ch.FilePath)
			}
		}); err != nil {
			return nil, err
		}
	}
	b := &protocol.ToolResult{
		ToolCallID: callID, ToolName: name, Status: status, Result: client, ErrorType: r.ErrorType, ErrorSource: "tool",
		DurationMS: took.Milliseconds(),
	}
	if model != client {
		b.More.ModelText = model
	}
	b.More.Attachments, b.More.Truncated, b.More.Touched = r.Attachments, cut, r.Touched
	return append(bodies, b), nil
}

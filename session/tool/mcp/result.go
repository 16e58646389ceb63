package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// shownImages are the types of pictures that every provider takes. One it does not take would spoil each later request.
var shownImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// longResource is where the text of a resource goes into the text of the result, which is shortened for the model and kept whole in a file.
const longResource = 8 << 10

// block is one part of a result.
type block struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Data        string `json:"data"`
	MIME        string `json:"mimeType"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Resource    struct {
		URI  string `json:"uri"`
		MIME string `json:"mimeType"`
		Text string `json:"text"`
		Blob string `json:"blob"`
	} `json:"resource"`
}

// result turns a server's result into one of ours. What cannot be read of it is said in its text: the call has run.
func (t *namedTool) result(raw json.RawMessage) session.ToolResult {
	var w struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return session.ToolResult{
			Status: protocol.ToolFailed, ErrorType: protocol.ErrInternal,
			Error: fmt.Sprintf("The MCP server %s has worked on the call, but its result cannot be read.", clean(t.server.name, 64)),
		}
	}
	g := gathered{hide: t.server.entry.hide, left: t.server.cfg.attached}
	for _, one := range w.Content {
		var b block
		if json.Unmarshal(one, &b) != nil {
			g.note("a part of the result that cannot be read was left out")
			continue
		}
		g.take(&b)
	}
	text := strings.Join(g.texts, "\n")
	var structured any
	if len(w.Structured) > 0 && string(w.Structured) != "null" {
		if v, err := decode(w.Structured); err == nil {
			structured = mapped(v, func(s string) string { return printed(g.hide.Replace(s)) })
		}
	}
	r := session.ToolResult{Data: data(text, structured), Attachments: g.parts}
	if w.IsError {
		said := clean(text, 1000)
		if said == "" {
			said = "it gave no reason"
		}
		r.Status, r.ErrorType, r.Error = protocol.ToolFailed, protocol.ErrInternal, fmt.Sprintf("The MCP server %s says the call failed: %s", clean(t.server.name, 64), said)
		if structured == nil && clean(text, 1000) == text { // it is all there
			r.Data = nil
		}
	}
	return r
}

// data is the structured content where there is some, beside the text where that says something else.
func data(text string, structured any) any {
	if structured == nil {
		return text
	}
	if strings.TrimSpace(text) == "" {
		return structured
	}
	if v, err := decode([]byte(text)); err == nil && reflect.DeepEqual(v, structured) {
		return structured
	}
	return map[string]any{"text": text, "structured": structured}
}

// gathered are the parts of a result, as they become ours.
type gathered struct {
	hide  *strings.Replacer
	left  int // bytes of attachments that still fit
	texts []string
	parts []protocol.Part
}

func (g *gathered) note(format string, args ...any) {
	g.texts = append(g.texts, "["+fmt.Sprintf(format, args...)+"]")
}

func (g *gathered) take(b *block) {
	switch b.Type {
	case "text":
		g.texts = append(g.texts, printed(g.hide.Replace(b.Text)))
	case "image", "audio":
		g.bytes(b.Type, b.Data, protocol.Part{Name: b.Type, MIME: clean(b.MIME, 100)})
	case "resource":
		p := protocol.Part{Kind: "resource", Name: base(b.Resource.URI), URI: clean(b.Resource.URI, 2048), MIME: clean(b.Resource.MIME, 100)}
		if b.Resource.Blob != "" {
			g.bytes("resource", b.Resource.Blob, p)
			return
		}
		p.Text = printed(g.hide.Replace(b.Resource.Text))
		if len(p.Text) > longResource {
			g.texts = append(g.texts, "["+p.URI+"]\n"+p.Text)
			return
		}
		g.attach(p, len(p.Text))
	case "resource_link":
		p := protocol.Part{Kind: "resource_link", Name: clean(b.Name, 200), URI: clean(b.URI, 2048), MIME: clean(b.MIME, 100)}
		if p.Name == "" {
			p.Name = base(b.URI)
		}
		g.attach(p, len(p.URI))
	default:
		g.note("a part of type %q was left out", clean(b.Type, 40))
	}
}

// bytes attaches what came in base64.
func (g *gathered) bytes(what, encoded string, p protocol.Part) {
	if base64.StdEncoding.DecodedLen(len(encoded)) > g.left+3 {
		g.note("%s of %d bytes left out: results hold at most %d MiB of attachments", what, base64.StdEncoding.DecodedLen(len(encoded)), maxAttached>>20)
		return
	}
	body, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		if body, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "=")); err != nil {
			g.note("%s left out: it is not valid base64", what)
			return
		}
	}
	p.Kind, p.Data = "resource", body
	kind := http.DetectContentType(body)
	switch {
	case slices.Contains(shownImages, kind):
		p.Kind, p.MIME = "image", kind
	case what == "image" || strings.HasPrefix(p.MIME, "image/"):
		g.note("image of type %s left out: models take PNG, JPEG, GIF and WebP", clean(p.MIME, 60))
		return
	}
	g.attach(p, len(body))
}

func (g *gathered) attach(p protocol.Part, size int) {
	if size > g.left {
		g.note("%s %s of %d bytes left out: results hold at most %d MiB of attachments", p.Kind, p.Name, size, maxAttached>>20)
		return
	}
	g.left -= size
	g.parts = append(g.parts, p)
}

func base(uri string) string { return clean(path.Base(uri), 200) }

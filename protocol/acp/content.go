package acp

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// Block is one content block. What Type does not say is empty; Raw is the block as it was sent.
type Block struct {
	Type     string
	Text     string // of text
	MIME     string
	URI      string
	Name     string // of resource_link
	Size     *int64 // of resource_link
	Data     []byte // of image
	Resource *Resource
	Raw      json.RawMessage
}

// Resource is an embedded resource: text, or bytes.
type Resource struct {
	URI, MIME string
	Text      *string
	Blob      []byte
}

// ReadBlocks reads the prompt of a request. Audio and what is unknown is an error: it would be lost silently.
func ReadBlocks(p Params) ([]Block, error) {
	raw := p["prompt"]
	if raw == nil || raw[0] != '[' {
		return nil, Bad("prompt must be a list of content blocks.")
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, Bad("prompt must be a list of content blocks.")
	}
	out := make([]Block, 0, len(rows))
	for i, row := range rows {
		b, err := readBlock(row)
		if err != nil {
			return nil, Bad("prompt[%d]: %s", i, err.Message)
		}
		out = append(out, b)
	}
	return out, nil
}

func readBlock(row json.RawMessage) (Block, *protocol.Error) {
	p := ReadParams(object(row))
	b := Block{Raw: row}
	b.Type, _ = protocol.Text(p["type"])
	b.MIME, _ = protocol.Text(p["mimeType"])
	b.URI, _ = protocol.Text(p["uri"])
	switch b.Type {
	case "text":
		s, ok := protocol.Text(p["text"])
		if !ok {
			return b, Bad("text must be a string.")
		}
		b.Text = s
	case "resource_link":
		b.Name, _ = protocol.Text(p["name"])
		if b.URI == "" {
			return b, Bad("a resource_link needs a uri.")
		}
		var size int64
		if json.Unmarshal(p["size"], &size) == nil {
			b.Size = &size
		}
	case "image":
		data, ok := decode64(p["data"])
		if !ok || !strings.HasPrefix(b.MIME, "image/") {
			return b, Bad("an image needs base64 data and a mimeType of an image.")
		}
		b.Data = data
	case "resource":
		r := ReadParams(object(p["resource"]))
		b.Resource = &Resource{}
		b.Resource.URI, _ = protocol.Text(r["uri"])
		b.Resource.MIME, _ = protocol.Text(r["mimeType"])
		if s, ok := protocol.Text(r["text"]); ok {
			b.Resource.Text = &s
		} else if data, ok := decode64(r["blob"]); ok {
			b.Resource.Blob = data
		} else {
			return b, Bad("a resource needs text or a blob.")
		}
	default:
		return b, Bad("content of type %q is not taken.", protocol.Prefix(b.Type, 40))
	}
	return b, nil
}

func decode64(v json.RawMessage) ([]byte, bool) {
	s, ok := protocol.Text(v)
	if !ok {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(s)
	return data, err == nil
}

// Input makes of the blocks of a prompt what a session takes: the text, and everything else as parts.
func Input(blocks []Block) (string, []protocol.Part) {
	var texts []string
	var parts []protocol.Part
	for _, b := range blocks {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
		case "resource_link":
			p := protocol.Part{Kind: "resource_link", Name: b.Name, MIME: b.MIME, URI: b.URI}
			if b.Size != nil {
				p.Size = max(0, *b.Size)
			}
			parts = append(parts, p)
		case "image":
			parts = append(parts, protocol.Part{Kind: "image", MIME: b.MIME, URI: b.URI, Data: b.Data})
		case "resource":
			p := protocol.Part{Kind: "resource", MIME: b.Resource.MIME, URI: b.Resource.URI, Data: b.Resource.Blob}
			if b.Resource.Text != nil {
				p.Text = *b.Resource.Text
			}
			parts = append(parts, p)
		}
	}
	return strings.Join(texts, "\n"), parts
}

// Content is a content block that is written.
type Content struct {
	Type     string           `json:"type"`
	Text     *string          `json:"text,omitempty"`
	Data     string           `json:"data,omitempty"`
	MIME     string           `json:"mimeType,omitempty"`
	URI      string           `json:"uri,omitempty"`
	Name     *string          `json:"name,omitempty"`
	Resource *ResourceContent `json:"resource,omitempty"`
}

// ResourceContent is an embedded resource that is written.
type ResourceContent struct {
	URI  string  `json:"uri"`
	MIME string  `json:"mimeType,omitempty"`
	Text *string `json:"text,omitempty"`
	Blob *string `json:"blob,omitempty"`
}

// TextContent is a text block.
func TextContent(s string) Content { return Content{Type: "text", Text: &s} }

// partContent is a part of a stored user message as a block that fits a line.
func partContent(p protocol.Part) Content {
	p.URI, p.Name, p.MIME = cut(p.URI, maxName), cut(p.Name, maxName), cut(p.MIME, maxName)
	if len(p.Text) > maxPiece {
		p.Text = cut(p.Text, maxPiece) + "\n[…]"
	}
	if base64.StdEncoding.EncodedLen(len(p.Data)) > maxImage {
		if p.Kind == "image" {
			return TextContent("[image " + p.URI + "]")
		}
		return TextContent("[attachment " + p.URI + "]")
	}
	return wholePart(p)
}

// wholePart is a part of a user message as a block, however long it is.
func wholePart(p protocol.Part) Content {
	encoded := base64.StdEncoding.EncodeToString(p.Data)
	switch {
	case p.Kind == "image" && len(p.Data) > 0:
		return Content{Type: "image", Data: encoded, MIME: p.MIME, URI: p.URI}
	case p.Kind == "image":
		return TextContent("[image " + p.URI + "]")
	case p.Kind == "resource" && len(p.Data) > 0:
		return Content{Type: "resource", Resource: &ResourceContent{URI: p.URI, MIME: p.MIME, Blob: &encoded}}
	case p.Kind == "resource":
		return Content{Type: "resource", Resource: &ResourceContent{URI: p.URI, MIME: p.MIME, Text: &p.Text}}
	}
	name := p.Name
	return Content{Type: "resource_link", URI: p.URI, MIME: p.MIME, Name: &name}
}

// FilePath is the path of a file: address on this machine, with slashes; false for any other address.
func FilePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") {
		return "", false
	}
	if len(u.Path) > 2 && u.Path[2] == ':' { // /C:/…
		return u.Path[1:], true
	}
	return u.Path, true
}

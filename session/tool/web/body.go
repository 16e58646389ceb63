package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// body is what a response held.
type body struct {
	data     []byte
	kind     string // media type, lower case, without parameters
	charset  string // of the Content-Type header
	cut      bool   // there is more than maxBody
	markedUp bool   // data is HTML
}

// errEncoded is a body in an encoding that was not asked for.
var errEncoded = errors.New("content encoding")

// read takes the body of resp, at most limit bytes of it. What net/http decompressed is counted as it comes out.
func read(resp *http.Response, limit int) (body, error) {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return body{}, errEncoded
	}
	var b body
	media, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		media, params = "", nil
	}
	b.kind, b.charset = media, params["charset"]
	if b.kind != "" && b.kind != "application/octet-stream" && !readable(b.kind) {
		return b, nil // not worth reading
	}
	b.data, err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if len(b.data) > limit { // whatever comes after is nobody's concern
		b.data, b.cut, err = b.data[:limit], true, nil
	}
	if err != nil {
		return b, err
	}
	if b.kind == "" || b.kind == "application/octet-stream" {
		b.kind = sniff(b.data)
	}
	if strings.HasPrefix(b.kind, "text/") && !wide(b) && bytes.IndexByte(b.data[:min(len(b.data), 8000)], 0) >= 0 {
		b.kind = "application/octet-stream"
	}
	b.markedUp = b.kind == "text/html" || b.kind == "application/xhtml+xml"
	return b, nil
}

// sniff tells the type of a body nobody named the type of.
func sniff(data []byte) string {
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return kind
}

// wide tells whether a body is in an encoding whose characters have zero bytes.
func wide(b body) bool {
	return bytes.HasPrefix(b.data, []byte{0xff, 0xfe}) || bytes.HasPrefix(b.data, []byte{0xfe, 0xff}) ||
		strings.HasPrefix(strings.ToLower(b.charset), "utf-16")
}

// readable tells whether a media type is text.
func readable(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return true
	}
	switch strings.TrimPrefix(kind, "application/") {
	case "json", "xml", "xhtml+xml", "javascript", "x-javascript", "ecmascript", "typescript", "x-ndjson", "jsonl", "json5", "yaml", "x-yaml", "toml",
		"sql", "graphql", "x-sh", "x-httpd-php", "x-tex", "x-latex", "xml-dtd", "x-www-form-urlencoded":
		return true
	}
	return false
}

// statusFault is the fault of a status that is no success. The server's own words are quoted as such.
func (c *client) statusFault(resp *http.Response, where string) *fault {
	code := resp.StatusCode
	errorType, advice := protocol.ErrInternal, "check the address, or try another."
	switch {
	case code == http.StatusNotFound || code == http.StatusGone:
		errorType, advice = protocol.ErrNotFound, "check the address, or look for where the page is now."
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired, code == http.StatusUnavailableForLegalReasons:
		errorType, advice = protocol.ErrPermissionDenied, "the page is not for everybody, or not for programs."
	case code == http.StatusRequestTimeout, code == http.StatusGatewayTimeout:
		errorType, advice = protocol.ErrTimedOut, "try again later."
	case code == http.StatusTooManyRequests, code >= 500:
		advice = "try again later."
	}
	text := where + " answered " + statusText(code) + ": " + advice
	if said := c.said(resp); said != "" {
		text += " It says: “" + said + "”"
	}
	return &fault{status: protocol.ToolFailed, errorType: errorType, text: text, meta: map[string]any{"status": code, "url": where}}
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}

// said is the gist of an error page: its title, else its first words.
func (c *client) said(resp *http.Response) string {
	b, err := read(resp, 32<<10)
	if err != nil && len(b.data) == 0 || !readable(b.kind) {
		return ""
	}
	text := decodeText(b)
	if b.markedUp {
		title, content := markdown(text, resp.Request.URL)
		if text = title; title == "" {
			text = content
		}
	}
	return protocol.OneLine(c.hide.Replace(text), maxErrorChars)
}

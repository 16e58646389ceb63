package record

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// shortest is the length in bytes from which a text counts as a secret: replacing shorter ones would garble every text and hide nothing.
const shortest = 4

// Redactor replaces secrets in texts. The zero value knows none. It is safe for concurrent use.
type Redactor struct {
	mu       sync.Mutex // guards forms
	forms    []string
	replacer atomic.Pointer[strings.Replacer]
}

// Add names secrets. Each is found as it is, in JSON, in a URL, and in base64 as the password of basic authentication is sent. Texts
// shorter than 4 bytes are not taken.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		for _, form := range []string{s, inJSON(s, true), inJSON(s, false), url.QueryEscape(s), url.PathEscape(s), base64.StdEncoding.EncodeToString([]byte(s))} {
			if len(s) >= shortest && !slices.Contains(r.forms, form) {
				r.forms = append(r.forms, form)
			}
		}
	}
	// Longest first: of two that begin at one place the first in the list is replaced.
	slices.SortStableFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(r.forms))
	for _, f := range r.forms {
		pairs = append(pairs, f, Redacted)
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// Redact gives text with every secret replaced.
func (r *Redactor) Redact(text string) string {
	if rep := r.replacer.Load(); rep != nil {
		return rep.Replace(text)
	}
	return text
}

// inJSON is how a text stands inside a JSON string.
func inJSON(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(s) // a string always encodes
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rind-dev/rind/protocol"
)

const (
	meterBurst  = 100 // lines within meterWindow
	meterWindow = time.Minute
)

// meter bounds what is logged of a server's words.
type meter struct {
	mu    sync.Mutex
	since time.Time
	count int
}

// take reports whether one more line may be logged, and how many were not within the last window.
func (m *meter) take(now time.Time) (ok bool, left int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.since) > meterWindow {
		left = max(0, m.count-meterBurst)
		m.since, m.count = now, 0
	}
	m.count++
	return m.count <= meterBurst, left
}

// pattern compiles a regular expression when it is first used: most processes have no servers and should not wait for it at their start.
func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

// clean is s on one line of at most n characters, without what cannot be seen.
func clean(s string, n int) string {
	s = protocol.Prefix(strings.ToValidUTF8(s, "\uFFFD"), 4*n)
	return protocol.OneLine(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s), n)
}

// printed is a text of a server with its lines, without control characters.
func printed(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// decode reads a JSON value whose numbers stay as they are written.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// mapped is v with f applied to its strings; keys stay.
func mapped(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = mapped(v[i], f)
		}
	case map[string]any:
		for k := range v {
			v[k] = mapped(v[k], f)
		}
	}
	return v
}

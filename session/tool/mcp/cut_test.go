package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A secret that begins right before the end of what is shown must not leave its beginning there.
func TestWhatIsCutIsHiddenFirst(t *testing.T) {
	const secret = "canary-0123456789-0123456789"
	hide := hiding([]string{secret})
	s := &server{name: "d", entry: entry{hide: hide, quiet: hide}}
	tool := &namedTool{tool: &tool{server: s}}
	l := &remote{entry: &s.entry}
	for before := 150; before < 520; before += 7 {
		said := strings.Repeat("x", before) + " " + secret + " and more"
		for what, err := range map[string]error{
			"an error":  &remoteError{Code: 7, Message: said},
			"a loss":    &lostError{&remoteError{Message: said}},
			"a refusal": l.refused(&http.Response{StatusCode: 500, Request: &http.Request{}, Body: io.NopCloser(strings.NewReader(said))}),
		} {
			r, failed := tool.failed(context.Background(), err, true, time.Now())
			state := s.quiet(err.Error(), 500)
			if failed != nil || strings.Contains(r.Error+state, "canary") {
				t.Errorf("%s behind %d characters: %s %s %v", what, before, r.Error, state, failed)
			}
		}
	}
	if got := (&remoteError{Code: 7, Message: "no\nsuch"}).Error(); got != "no\nsuch (error 7)" || errors.Unwrap(&lostError{io.EOF}) != io.EOF {
		t.Error(got)
	}
}

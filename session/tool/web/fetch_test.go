package web

import (
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
)

func TestAPageComesAsMarkdownWithItsTitleFirst(t *testing.T) {
	at := serve(t, "text/html; charset=utf-8", `<title>The &amp; title</title><body><nav>Menu</nav><p>See <a href="/x?a=1">this</a>.`)
	res := fetch(t, local(), at+"/dir/page#part")
	want := "# The & title\n\nSee [this](" + at + "/x?a=1)."
	if diff := cmp.Diff(want, res.Data); diff != "" {
		t.Error(diff)
	}
	meta := map[string]any{
		"url": at + "/dir/page#part", "status": 200, "content_type": "text/html", "title": "The & title", "truncated": false, "total_chars": len(want),
	}
	if diff := cmp.Diff(meta, res.Meta); diff != "" {
		t.Error(diff)
	}
	model, ok := res.ModelData.(string)
	if !ok || !strings.HasSuffix(model, want) || !strings.HasPrefix(model, "What follows is what the page "+at+"/dir/page#part says") {
		t.Errorf("the model is told %q", model)
	}
}

func TestATitleThatThePageBeginsWithIsSaidOnce(t *testing.T) {
	res := fetch(t, local(), serve(t, "text/html", "<title> Same\n thing </title><h1>Same thing</h1><p>x"))
	if res.Data != "# Same thing\n\nx" {
		t.Errorf("%q", res.Data)
	}
}

func TestAPageThatScriptsDrawSaysSo(t *testing.T) {
	res := fetch(t, local(), serve(t, "text/html", `<title>App</title><div id=root></div><script>draw()</script>`))
	if s, _ := res.Data.(string); !strings.HasPrefix(s, "# App\n\n(") || !strings.Contains(s, "scripts") {
		t.Errorf("%q", res.Data)
	}
	if res := fetch(t, local(), serve(t, "text/html", "")); res.Data != "" || res.ErrorType != "" {
		t.Errorf("an empty page: %q %s", res.Data, res.Error)
	}
}

func TestALongPageIsCutAtItsLimitWithAMark(t *testing.T) {
	for _, char := range []string{"x", "é", "語", "😀"} {
		total := 100_000
		at := serve(t, "text/plain; charset=utf-8", strings.Repeat(char, total))
		res := fetch(t, local(), at)
		s, _ := res.Data.(string)
		model, _ := res.ModelData.(string)
		if n := utf8.RuneCountInString(model); n != maxPageChars {
			t.Errorf("%s: the model gets %d characters, want %d", char, n, maxPageChars)
		}
		if !utf8.ValidString(s) || !strings.HasSuffix(s, "100000 characters in all …]") || utf8.RuneCountInString(s) > maxPageChars {
			t.Errorf("%s: ends in %q", char, s[len(s)-100:])
		}
		if res.Meta["truncated"] != true || res.Meta["total_chars"] != total {
			t.Errorf("%s: meta %v", char, res.Meta)
		}
	}
}

func TestABodyWithoutEndIsReadToItsLimitOnly(t *testing.T) {
	var sent atomic.Int64
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for chunk := bytes.Repeat([]byte("y"), 64<<10); ; sent.Add(int64(len(chunk))) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	res := fetch(t, local(), at)
	if res.Meta["truncated"] != true || res.Meta["total_chars"] != maxBody {
		t.Errorf("meta %v %s", res.Meta, res.Error)
	}
	if n := sent.Load(); n > maxBody+32<<20 { // what the buffers of two sockets may hold, and much more
		t.Errorf("the server got rid of %d bytes", n)
	}
}

// drawn counts what is read of it.
type drawn struct {
	io.Reader
	n int
}

func (d *drawn) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	d.n += n
	return n, err
}

func TestNoMoreOfABodyIsDrawnThanItsLimit(t *testing.T) {
	d := &drawn{Reader: strings.NewReader(strings.Repeat("x", 1<<20))}
	b, err := read(&http.Response{Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(d)}, 1000)
	if err != nil || !b.cut || len(b.data) != 1000 || d.n != 1001 {
		t.Errorf("%d bytes drawn for %d, cut %v: %v", d.n, len(b.data), b.cut, err)
	}
	d = &drawn{Reader: strings.NewReader("x")}
	b, err = read(&http.Response{Header: http.Header{"Content-Type": {"image/png"}}, Body: io.NopCloser(d)}, 1000)
	if err != nil || d.n != 0 || b.kind != "image/png" {
		t.Errorf("%d bytes of an image drawn, %q: %v", d.n, b.kind, err)
	}
}

func TestWhatIsCompressedIsBoundedByWhatComesOut(t *testing.T) {
	var bomb bytes.Buffer
	z, _ := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	for range 64 { // 64 MiB, in less than one
		_, _ = z.Write(bytes.Repeat([]byte("a"), 1<<20))
	}
	_ = z.Close()
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	res := fetch(t, local(), at)
	if n, _ := res.Meta["total_chars"].(int); res.ErrorType != "" || n > maxBody {
		t.Errorf("meta %v %s", res.Meta, res.Error)
	}
}

func TestAnEncodingNobodyAskedForIsNamed(t *testing.T) {
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		fmt.Fprint(w, "x")
	})
	res := fetch(t, local(), at)
	refusedAs(t, res, protocol.ErrInvalidArguments)
	if !strings.Contains(res.Error, `"br"`) {
		t.Error(res.Error)
	}
}

func TestAServerThatDripsIsTimedOut(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"no headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a drop at a time": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				fmt.Fprint(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(80 * time.Millisecond):
			case <-r.Context().Done():
			}
			http.Redirect(w, r, "/again", http.StatusFound)
		},
	} {
		c := local()
		c.Timeout = 300 * time.Millisecond
		res := fetch(t, c, handle(t, handler))
		refusedAs(t, res, protocol.ErrTimedOut)
		if res.Status != protocol.ToolTimedOut || !strings.Contains(res.Error, "300ms") {
			t.Errorf("%s: %s %s", name, res.Status, res.Error)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("h", 4096))
		}
	})
	refusedAs(t, fetch(t, local(), at), protocol.ErrTooLarge)
}

func TestHeadersAreBoundedOverHTTP2Too(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", r.ProtoMajor)
		}
		if r.URL.Path == "/large" {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("h", 4096))
			}
		}
		fmt.Fprint(w, "ok")
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c := local()
	c.RootCAs = x509.NewCertPool()
	c.RootCAs.AddCert(srv.Certificate())
	if res := fetch(t, c, srv.URL); res.Data != "ok" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
	if res := fetch(t, c, srv.URL+"/large"); res.ErrorType == "" || res.Data != nil { // HTTP/2 ends the connection, and does not say why
		t.Errorf("%v", res.Data)
	}
}

func TestRedirectsAreFollowedFiveTimesAndNothingGoesAlong(t *testing.T) {
	var seen []http.Header
	at := handle(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		var left int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &left); err != nil || left == 0 {
			fmt.Fprint(w, "arrived")
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		w.Header().Set("Location", fmt.Sprintf("%d?secret=%d", left-1, left))
		w.WriteHeader([]int{301, 302, 303, 307, 308}[left%5])
	})
	res := fetch(t, local(), at+"/5#there")
	if res.Data != "arrived" || res.Meta["url"] != at+"/0?secret=1#there" {
		t.Errorf("%v at %v: %s", res.Data, res.Meta["url"], res.Error)
	}
	for _, h := range seen {
		if h.Get("Cookie") != "" || h.Get("Referer") != "" || h.Get("User-Agent") != defaultAgent {
			t.Errorf("headers %v", h)
		}
	}
	seen = nil
	refusedAs(t, fetch(t, local(), at+"/6"), protocol.ErrNotFound)
	if len(seen) != 6 {
		t.Errorf("%d requests, want 6", len(seen))
	}
}

func TestARedirectFromHTTPSToHTTPIsRefused(t *testing.T) {
	plain := serve(t, "text/plain", "plain")
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain, http.StatusFound)
	}))
	defer srv.Close()
	c := local()
	c.RootCAs = x509.NewCertPool()
	c.RootCAs.AddCert(srv.Certificate())
	res := fetch(t, c, srv.URL)
	refusedAs(t, res, protocol.ErrPermissionDenied)
	if !strings.Contains(res.Error, plain) {
		t.Errorf("%q does not say where to", res.Error)
	}
}

func TestACertificateNobodyVouchesForIsRefused(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	res := fetch(t, local(), srv.URL)
	if res.ErrorType != protocol.ErrInternal || !strings.Contains(res.Error, "certificate") {
		t.Errorf("%s %s", res.ErrorType, res.Error)
	}
}

func TestAServerThatIsNotThereIsSaid(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	res := fetch(t, local(), srv.URL)
	if res.Status != protocol.ToolFailed || !strings.Contains(res.Error, "could not be reached") || !strings.Contains(res.Error, "later") {
		t.Errorf("%s %s", res.Status, res.Error)
	}
}

func TestStatusesThatAreNoSuccess(t *testing.T) {
	for status, want := range map[int]string{
		404: protocol.ErrNotFound, 410: protocol.ErrNotFound, 401: protocol.ErrPermissionDenied, 403: protocol.ErrPermissionDenied, 451: protocol.ErrPermissionDenied,
		408: protocol.ErrTimedOut, 504: protocol.ErrTimedOut, 429: protocol.ErrInternal, 500: protocol.ErrInternal, 503: protocol.ErrInternal, 418: protocol.ErrInternal,
		304: protocol.ErrInternal, 302: protocol.ErrInternal, 599: protocol.ErrInternal,
	} {
		at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			if status != 304 {
				fmt.Fprint(w, "<title>Gone\nfishing</title><p>"+strings.Repeat("long text ", 1000))
			}
		})
		res := fetch(t, local(), at+"/p?token=canary")
		refusedAs(t, res, want)
		if !strings.Contains(res.Error, fmt.Sprint(status)) || res.Status != protocol.ToolFailed || len(res.Error) > 600 || strings.Contains(res.Error, "canary") {
			t.Errorf("%d: %s %q", status, res.Status, res.Error)
		}
		if status != 304 && !strings.Contains(res.Error, "“Gone fishing”") {
			t.Errorf("%d: %q does not say what the page does", status, res.Error)
		}
		if res.Meta["status"] != status {
			t.Errorf("%d: meta %v", status, res.Meta)
		}
	}
}

func TestTextIsGivenAsItIsAndOtherTypesAreNamed(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	for _, c := range []struct{ kind, body, want, errorType string }{
		{"text/plain", "a <b>\n c", "a <b>\n c", ""},
		{"text/markdown; charset=utf-8", "# a", "# a", ""},
		{"application/json", `{"a": "<p>"}`, `{"a": "<p>"}`, ""},
		{"application/ld+json", `{}`, `{}`, ""},
		{"application/atom+xml", `<feed/>`, `<feed/>`, ""},
		{"text/xml", `<a>b</a>`, `<a>b</a>`, ""},
		{"image/svg+xml", `<svg/>`, `<svg/>`, ""},
		{"application/javascript", `x`, `x`, ""},
		{"TEXT/HTML", `<p>x`, `x`, ""},
		{"application/xhtml+xml", `<?xml version="1.0"?><html><body><p>x</p></body></html>`, `x`, ""},
		{"", "<!doctype html><p>x", "x", ""},
		{"", "plain", "plain", ""},
		{"application/octet-stream", "plain\n", "plain\n", ""},
		{"not a type", "plain", "plain", ""},
		{"text/plain; charset", "plain", "plain", ""},
		{"application/octet-stream", png, "", "image/png"},
		{"", png, "", "image/png"},
		{"image/png", png, "", "image/png"},
		{"application/pdf", "%PDF-1.4", "", "application/pdf"},
		{"application/zip", "PK", "", "application/zip"},
		{"video/mp4", "", "", "video/mp4"},
		{"text/plain", "a\x00\x01\x02", "", "application/octet-stream"},
		{"multipart/x-mixed-replace; boundary=x", "", "", "multipart/x-mixed-replace"},
	} {
		at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{c.kind}
			_, _ = io.WriteString(w, c.body)
		})
		res := fetch(t, local(), at)
		switch {
		case c.errorType == "" && res.Data != c.want:
			t.Errorf("%s %q: %q (%s), want %q", c.kind, c.body, res.Data, res.Error, c.want)
		case c.errorType != "":
			refusedAs(t, res, protocol.ErrInvalidArguments)
			if !strings.Contains(res.Error, c.errorType) || res.Status != protocol.ToolFailed {
				t.Errorf("%s: %s %q", c.kind, res.Status, res.Error)
			}
		}
	}
}

func TestAnAnswerThatBreaksOffIsNoPage(t *testing.T) {
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	res := fetch(t, local(), at)
	refusedAs(t, res, protocol.ErrInternal)
	if !strings.Contains(res.Error, "broke off") {
		t.Error(res.Error)
	}
}

package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// wire writes bytes to the server as they are, on a connection of their own, and returns its answers, one for each of n requests.
func (p *place) wire(text string, n int) (all []*answered) {
	p.t.Helper()
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	written := make(chan struct{})
	go func() { // a refusal comes before all was written
		defer close(written)
		_, _ = io.WriteString(c, text)
	}()
	defer func() {
		_ = c.Close()
		<-written
	}()
	in := bufio.NewReader(c)
	for range n {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			p.t.Fatalf("%.100q: %v", text, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			p.t.Fatalf("%.100q: %v", text, err)
		}
		all = append(all, &answered{resp.StatusCode, resp.Header, body, resp.Close})
	}
	return all
}

// Section 3: what is no request of HTTP/1 is refused as plain text, and what expects something else than to be told to go on without a word; both
// before any check, and the connection ends.
func TestWhatIsNoRequestIsRefusedInPlainText(t *testing.T) {
	p := mocking(t)
	const line, here = "POST /v1/conversations HTTP/1.1\r\n", "Host: localhost\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, send string
		status     int
		plain      bool
	}{
		{"a version to come", "POST /v1/conversations HTTP/3.0\r\n" + here + "\r\n", 505, true},
		{"a version that is none", "POST /v1/conversations HTTP/1.x\r\n" + here + "\r\n", 400, true},
		{"no version", "POST /v1/conversations\r\n" + here + "\r\n", 400, true},
		{"a method that is no token", "PO(ST /v1/conversations HTTP/1.1\r\n" + here + "\r\n", 400, true},
		{"a target without a slash", "GET healthz HTTP/1.1\r\n" + here + "\r\n", 400, true},
		{"a target with an escape that is none", "GET /v1/%zz HTTP/1.1\r\n" + here + "\r\n", 400, true},
		{"a target with a space", "GET /v1/a b HTTP/1.1\r\n" + here + "\r\n", 400, true},
		{"a header name that is none", line + here + "A(B: c\r\n\r\n", 400, true},
		{"a header name with a space behind it", line + here + "X : c\r\n\r\n", 400, true},
		{"a header line without a colon", line + here + "nothing\r\n\r\n", 400, true},
		{"a header value that is none", line + here + "X: a\x01b\r\n\r\n", 400, true},
		{"no Host", line + strings.Replace(here, "Host", "X-Host", 1) + "\r\n", 400, true},
		{"two of them", line + here + "Host: localhost\r\n\r\n", 400, true},
		{"one that is none", line + strings.Replace(here, "localhost", "a b", 1) + "\r\n", 400, true},
		{"a length that is none", line + here + "Content-Length: 1x\r\n\r\nx", 400, true},
		{"a transfer coding that is not known", line + here + "Transfer-Encoding: br\r\n\r\n", 501, true},
		{"an expectation", line + here + "Expect: foo\r\nContent-Length: 2\r\n\r\n{}", 417, false},
		{"an expectation of a stranger", "GET /nope HTTP/1.1\r\nHost: evil.example\r\nExpect: foo\r\n\r\n", 417, false},
	} {
		a := p.wire(c.send, 1)[0]
		if a.status != c.status || !a.closes || (a.header.Get("Content-Type") == "text/plain; charset=utf-8") != c.plain || (len(a.body) > 0) != c.plain {
			t.Errorf("%s: %d %v %q, the connection ends: %v", c.name, a.status, a.header, a.body, a.closes)
		}
	}
	if n := count(t, p); n != 0 {
		t.Errorf("%d conversations were made", n)
	}
	if a := p.wire(line+here+"Expect: 100-CONTINUE\r\nContent-Length: 2\r\n\r\n{}", 2); a[0].status != 100 || a[1].status != 201 {
		t.Errorf("told to go on it is answered %d %s", a[1].status, a[1].body)
	}
}

// Section 1: the head of a request may have 64 KiB. On a connection that is used again what net/http read in advance comes on top, 4 KiB at most.
func TestTheHeadOfARequestMayHaveSixtyFourKibibytes(t *testing.T) {
	p := mocking(t)
	head := func(size int) string {
		const begin, end = "GET /v1/runtime HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\nX: ", "\r\n\r\n"
		return begin + strings.Repeat("x", size-len(begin)-len(end)) + end
	}
	for _, c := range []struct{ size, first, next int }{
		{64 << 10, 200, 200},
		{64<<10 + 1, 431, 0},
		{68 << 10, 431, 0},
		{68<<10 + 1, 431, 431},
	} {
		if a := p.wire(head(c.size), 1)[0]; a.status != c.first {
			t.Errorf("%d bytes: %d", c.size, a.status)
		}
		if c.next == 0 { // as it happens
			continue
		}
		if a := p.wire(head(200)+head(c.size), 2); a[0].status != 200 || a[1].status != c.next {
			t.Errorf("%d bytes on a connection that was used: %d", c.size, a[1].status)
		}
	}
}

// Section 1: a path is split where it was sent with a slash, whatever else stands in it, and whichever form the target has.
func TestASlashThatWasEscapedStaysInItsSegment(t *testing.T) {
	p := mocking(t)
	for target, text := range map[string]string{
		`/v1/executions/a"b`:                                 `Execution not found: a"b`,
		`/v1/executions%2Fa"b`:                               "Route not found",
		`/v1/executions%2Fa`:                                 "Route not found",
		`/v1/executions/a%2Fb"c`:                             `Execution not found: a/b"c`,
		`/v1/executions/a%2fb|?x=/events`:                    `Execution not found: a/b|`,
		`/v1/executions/a#b%2Fc`:                             `Execution not found: a#b/c`,
		"/v1/executions/é%2F":                                "Execution not found: é/",
		`http://localhost/v1/executions/a%2Fb"`:              `Execution not found: a/b"`,
		`HTTP://localhost/v1%2Fexecutions/a"`:                "Route not found",
		`http://localhost`:                                   "Route not found",
		`http://localhost?/v1/runtime`:                       "Route not found",
		`//localhost/v1/runtime`:                             "Route not found",
		`/x://localhost/v1/runtime`:                          "Route not found",
		`/v1/executions/http:%2F%2Flocalhost%2Fv1%2Fruntime`: "Execution not found: http://localhost/v1/runtime",
	} {
		a := p.wire("GET "+target+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+secret+"\r\n\r\n", 1)[0]
		if a.status != 404 || a.member("message") != text {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
}

// Section 1.1, steps 7 to 9: the type comes before the size and the size before the text, and how a body is framed changes none of it.
func TestABodyIsJudgedAlikeHoweverItIsFramed(t *testing.T) {
	p := mocking(t)
	const typed, none, empty = "Content-Type: application/json\r\n", "", "Content-Type:\r\nContent-Encoding: \r\n"
	const media, large, invalid = "UNSUPPORTED_MEDIA_TYPE", "PAYLOAD_TOO_LARGE", "VALIDATION_ERROR"
	huge, most := strings.Repeat("[", 5<<20), strings.Repeat(" ", maxBody)
	for _, c := range []struct {
		headers, body string
		status        int
		code          string
	}{
		{none, "", 201, ""},
		{none, " ", 415, media},
		{none, " \t\r\n", 415, media},
		{none, "\v\f", 415, media},
		{none, "{}", 415, media},
		{none, huge, 415, media},
		{empty, "", 201, ""},
		{empty, " ", 415, media},
		{empty, "{}", 415, media},
		{empty + typed, "{}", 201, ""},
		{typed + typed, "{}", 415, media},
		{"Content-Type: text/plain\r\n", "", 415, media},
		{"Content-Type: text/plain\r\n", huge, 415, media},
		{typed + "Content-Encoding: gzip\r\n", "", 415, media},
		{typed + "Content-Encoding: gzip\r\n", huge, 415, media},
		{typed + "Content-Encoding: identity\r\n", "{}", 201, ""},
		{typed, "", 201, ""},
		{typed, " \t\r\n", 201, ""},
		{typed, "\v\f", 400, invalid},
		{typed, "{", 400, invalid},
		{typed, most, 201, ""},
		{typed, most + "{", 413, large},
		{typed, huge, 413, large},
		{typed, huge[:maxBody], 400, invalid},
	} {
		for framing, framed := range map[string]string{
			"length":  fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(c.body), c.body),
			"chunked": "Transfer-Encoding: chunked\r\n\r\n" + chunks(c.body) + "0\r\n\r\n",
		} {
			a := p.wire("POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+secret+"\r\n"+c.headers+framed, 1)[0]
			var e struct{ Code string }
			if json.Unmarshal(a.body, &e) != nil || a.status != c.status || e.Code != c.code || c.status == 413 && !a.closes {
				t.Errorf("%q, %.20q (%d), %s: %d %.200s, the connection ends: %v", c.headers, c.body, len(c.body), framing, a.status, a.body, a.closes)
			}
		}
	}
}

// chunks frames a body in pieces.
func chunks(body string) string {
	var out strings.Builder
	for len(body) > 0 {
		n := min(len(body), 100_000)
		fmt.Fprintf(&out, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return out.String()
}

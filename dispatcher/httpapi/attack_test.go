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

	"github.com/rind-dev/rind/protocol/portable"
)

// raw writes bytes to the server as they are and returns the status of its answer; 0 when it closed without one. An answer is a success, an error
// object, or the plain text of what was no request, which ends the connection.
func (p *place) raw(text string) int {
	p.t.Helper()
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, text)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	var e struct{ Code, Message string }
	switch plain := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain"); {
	case plain && !resp.Close, !plain && (json.Unmarshal(body, &e) != nil || resp.StatusCode > 299 && (e.Code == "" || e.Message == "")):
		p.t.Errorf("%.100q is answered with %v %s", text, resp.Header, body)
	}
	return resp.StatusCode
}

// What somebody who means harm sends is refused, costs little, and leaves the server as it was.
func TestWhatAnAttackerSendsIsRefusedAndLeavesNothing(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	p.follow(id, nil, nil)
	before := count(t, p)
	auth := "Authorization: Bearer " + secret + "\r\n"
	post := func(path, headers, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s", path, headers, len(body), body)
	}
	get := func(path, headers string) string {
		return "GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + headers + "\r\n"
	}
	const here, json = "Host: localhost\r\n", "Content-Type: application/json\r\n"
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, c := range []struct {
		name, send string
		status     int
	}{
		{"rebound name", post("/v1/conversations", "Host: attacker.example\r\n"+auth+json, "{}"), 403},
		{"rebound name with our port in it", post("/v1/conversations", "Host: 127.0.0.1.attacker.example\r\n"+auth+json, "{}"), 403},
		{"another address of this machine", post("/v1/conversations", "Host: 127.0.0.2\r\n"+auth+json, "{}"), 403},
		{"absolute target of a foreign host", post("http://attacker.example/v1/conversations", here+auth+json, "{}"), 403},
		{"userinfo before our name", post("/v1/conversations", "Host: attacker@localhost\r\n"+auth+json, "{}"), 400},
		{"no host", post("/v1/conversations", auth+json, "{}"), 400},
		{"two hosts", post("/v1/conversations", here+"Host: attacker.example\r\n"+auth+json, "{}"), 400},
		{"form of another site", post("/v1/conversations", here+auth+"Origin: https://attacker.example\r\nContent-Type: application/x-www-form-urlencoded\r\n", "a=b"), 403},
		{"form without an origin", post("/v1/conversations", here+auth+"Content-Type: application/x-www-form-urlencoded\r\n", "a=b"), 415},
		{"form of parts", post("/v1/conversations", here+auth+"Content-Type: multipart/form-data; boundary=x\r\n", "--x--"), 415},
		{"plain text with JSON in it", post("/v1/conversations", here+auth+"Content-Type: text/plain\r\n", "{}"), 415},
		{"JSON in another charset", post("/v1/conversations", here+auth+"Content-Type: application/json; charset=utf-16\r\n", "{}"), 415},
		{"cross-site fetch without an origin", get("/v1/runtime", here+auth+"Sec-Fetch-Site: cross-site\r\n"), 403},
		{"token in the query", get("/v1/runtime?token="+secret+"&access_token="+secret, here), 401},
		{"token in a cookie", get("/v1/runtime", here+"Cookie: token="+secret+"\r\n"), 401},
		{"token with a tail", get("/v1/runtime", here+"Authorization: Bearer "+secret+"\x00\r\n"), 400},
		{"token in other headers", get("/v1/runtime", here+"X-Authorization: Bearer "+secret+"\r\nProxy-Authorization: Bearer "+secret+"\r\n"), 401},
		{"basic", get("/v1/runtime", here+"Authorization: Basic "+secret+"\r\n"), 401},
		{"an escape that is none", get("/v1/executions/%", here+auth), 400},
		{"an escape that is none, in the middle", get("/v1/executions/a%zzb/events", here+auth), 400},
		{"a path that was escaped twice", get("/v1/executions/"+id+"%253Acancel", here+auth), 404},
		{"dots in a path", get("/v1/executions/../runtime", here+auth), 404},
		{"escaped dots", get("/v1/executions/%2e%2e/events", here+auth), 404},
		{"escaped slash in an id", get("/v1/executions/..%2f..%2fetc%2fpasswd", here+auth), 404},
		{"NUL in an id", get("/v1/executions/a%00b", here+auth), 404},
		{"line ends in an id", get("/v1/executions/a%0d%0aSet-Cookie:x", here+auth), 404},
		{"path as artifact", get("/rind/v1/executions/"+id+"/artifacts/..%2f..%2fetc%2fpasswd/content", here+auth), 404},
		{"id in capitals", get("/v1/executions/"+strings.ToUpper(id), here+auth), 404},
		{"id with a verb in the middle", get("/v1/executions/"+id+":cancel/events", here+auth), 404},
		{"workspace as path", post("/v1/conversations", here+auth+json+"Rind-Workspace: ../..\r\n", "{}"), 400},
		{"workspace of another machine", post("/v1/conversations", here+auth+json+"Rind-Workspace: //x/y\r\n", "{}"), 400},
		{"headers without end", get("/v1/runtime", here+auth+"X: "+strings.Repeat("x", 128<<10)+"\r\n"), 431},
		{"many headers", get("/v1/runtime", here+auth+strings.Repeat("X: y\r\n", 20_000)), 431},
		{"length that lies", fmt.Sprintf("POST /v1/conversations HTTP/1.1\r\n%s%s%sContent-Length: -1\r\n\r\n{}", here, auth, json), 400},
		{"two lengths", fmt.Sprintf("POST /v1/conversations HTTP/1.1\r\n%s%s%sContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}", here, auth, json), 400},
		{"length beyond the bound", fmt.Sprintf("POST /v1/conversations HTTP/1.1\r\n%s%s%sContent-Length: 99999999999\r\n\r\n", here, auth, json), 413},
		{"unknown transfer coding", fmt.Sprintf("POST /v1/conversations HTTP/1.1\r\n%s%s%sTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", here, auth, json), 501},
		{"compressed bomb", post("/v1/conversations", here+auth+json+"Content-Encoding: gzip\r\n", "\x1f\x8b"), 415},
		{"arrays a million deep", post("/v1/conversations", here+auth+json, deep("[", "]", 1_000_000)), 400},
		{"objects deep within", post("/v1/conversations", here+auth+json, `{"metadata":{"a":`+deep(`{"a":`, "}", 300)+`}}`), 400},
		{"arrays without end", post("/v1/conversations", here+auth+json, strings.Repeat("[", 3_000_000)), 400},
		{"number of a million digits in a key's place", post("/v1/executions", here+auth+json, `{"conversationId":`+strings.Repeat("9", 1_000_000)+`}`), 400},
		{"exponent bomb", post("/v1/executions", here+auth+json, `{"conversationId":"x","providerId":"mock","input":"x","config":{"a":1e999999999}}`), 400},
		{"a string half a character long", post("/v1/conversations", here+auth+json, `{"metadata":{"a":"\ud800"}}`), 400},
		{"another protocol", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		{"other verbs", "TRACE /v1/runtime HTTP/1.1\r\nConnection: close\r\n" + here + auth + "\r\n", 405},
		{"a tunnel", "CONNECT attacker.example:443 HTTP/1.1\r\nHost: attacker.example:443\r\n\r\n", 403},
	} {
		got := p.raw(c.send)
		if got != c.status && !(c.status == 431 && got == 400) && !(c.status == 0 && got >= 400) {
			t.Errorf("%s: %d, want %d", c.name, got, c.status)
		}
	}
	if n := count(t, p); n != before {
		t.Errorf("%d conversations were made", n-before)
	}
	if a := p.do("GET", "/healthz", "", "Authorization", ""); a.status != 200 {
		t.Errorf("healthz is %d after all this", a.status)
	}
}

// Connections that send slowly, or nothing, are closed by the bounds of a connection and hold nobody up meanwhile.
func TestConnectionsThatSendSlowlyAreClosedAndHoldNobodyUp(t *testing.T) {
	p := mocking(t, func(c *Config) { c.Headers = 2 * time.Second })
	var slow []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", p.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /v1/runtime HTTP/1.1\r\nHost: loc")
		slow = append(slow, c)
	}
	p.must(200, "GET", "/v1/runtime", "")
	for _, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatalf("a connection whose headers do not end stays open: %v", err)
		}
	}
	s := New(Config{})
	if c := s.cfg; c.Headers != 10*time.Second || c.Body != 30*time.Second || c.Stall != 30*time.Second || c.Ping != 15*time.Second ||
		s.srv.ReadHeaderTimeout != c.Headers || s.srv.IdleTimeout != 120*time.Second || s.srv.WriteTimeout != 0 {
		t.Errorf("the bounds that hold are not those of the contract: %+v, %+v", c, s.srv)
	}
}

// A body that was announced and does not come holds a connection for the time a body has, whatever it was sent to: what is refused anyway, also for
// want of a token, and what takes none. The answer comes then, and the connection ends.
func TestABodyThatDoesNotComeIsWaitedForOnlyAsLongAsABodyMayTake(t *testing.T) {
	p := mocking(t, func(c *Config) { c.Body = 300 * time.Millisecond })
	const token = "Authorization: Bearer " + secret + "\r\n"
	e := p.start(p.conversation(), "mock", "x", "")
	p.follow(e, nil, nil)
	for _, c := range []struct{ head, status string }{
		{"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n", "401"},
		{"POST /v1/conversations HTTP/1.1\r\nHost: evil\r\nContent-Length: 9\r\n", "403"},
		{"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\n" + token + "Transfer-Encoding: chunked\r\n", "404"},
		{"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Type: text/plain\r\nContent-Length: 9\r\n", "415"},
		{"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Type: application/json\r\nContent-Length: 9\r\n", "400"},
		{"GET /v1/runtime HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Length: 9\r\n", "400"},
		{"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n", "400"},
		{"GET /v1/executions/" + e + "/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n" + token + "Content-Length: 9\r\n", "400"},
	} {
		conn, err := net.Dial("tcp", p.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, c.head+"\r\n")
		answer, err := io.ReadAll(conn)
		conn.Close()
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status+" ") {
			t.Errorf("%q: %v, %.200q", c.head, err, answer)
		}
	}
}

// A body that nobody asked for and that is there ends nothing: neither the stream that is answered with, nor the connection.
func TestABodyThatIsNotNeededIsTakenAndEndsNoStream(t *testing.T) {
	p := mocking(t, func(c *Config) { c.Body = 100 * time.Millisecond })
	e := p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)
	conn, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "GET /v1/executions/"+e+"/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+secret+"\r\nContent-Length: 2\r\n\r\n{}")
	var all strings.Builder
	read := func(until string) {
		t.Helper()
		for b := make([]byte, 1<<10); !strings.Contains(all.String(), until); {
			n, err := conn.Read(b)
			if all.Write(b[:n]); err != nil {
				t.Fatalf("%v before %q: %s", err, until, all.String())
			}
		}
	}
	read("action.required")
	var action portable.Action
	if err := json.Unmarshal(p.until(e, "action.required").Data, &action); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // longer than a body may take
	p.must(200, "POST", "/v1/executions/"+e+"/actions/"+action.ID+":respond", `{"approved":true}`)
	read("run.completed")
}

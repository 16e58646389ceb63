package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
)

func count(t *testing.T, p *place) int {
	t.Helper()
	page, _, err := p.store.Sessions(t.Context(), session.Query{All: true, Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	return len(page)
}

// H110, H111, H113, N01, N03: what a web page or a stranger can send is refused before anything happens.
func TestForeignHostsOriginsAndTokensAreRefusedAndDoNothing(t *testing.T) {
	p := mocking(t)
	port := strconv.Itoa(p.api.cfg.Port)
	for _, c := range []struct {
		name    string
		status  int
		headers []string
	}{
		{"foreign host", 403, []string{"Host", "evil.example"}},
		{"foreign host with our port", 403, []string{"Host", "evil.example:" + port}},
		{"name that begins like ours", 403, []string{"Host", "localhost.evil.example"}},
		{"our name, other port", 403, []string{"Host", "127.0.0.1:1"}},
		{"foreign origin", 403, []string{"Origin", "https://evil.example"}},
		{"null origin", 403, []string{"Origin", "null"}},
		{"origin on another port of this host", 403, []string{"Origin", "http://127.0.0.1:1"}},
		{"https origin of ours", 403, []string{"Origin", "https://127.0.0.1:" + port}},
		{"two origins", 403, []string{"Origin", "http://127.0.0.1:" + port, "Origin", "http://127.0.0.1:" + port}},
		{"cross-site fetch", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"no token", 401, []string{"Authorization", ""}},
		{"wrong token", 401, []string{"Authorization", "", "Authorization", "Bearer wrong-wrong-wrong-wrong"}},
		{"doubled token", 401, []string{"Authorization", "Bearer " + secret}},
		{"other scheme", 401, []string{"Authorization", "", "Authorization", "Basic " + secret}},
		{"form", 415, []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}},
		{"text", 415, []string{"Content-Type", "", "Content-Type", "text/plain"}},
		{"no type", 415, []string{"Content-Type", ""}},
		{"compressed", 415, []string{"Content-Encoding", "gzip"}},
	} {
		a := p.do("POST", "/v1/conversations", "{}", c.headers...)
		var e struct{ Code, Message string }
		if json.Unmarshal(a.body, &e) != nil || a.status != c.status || e.Code == "" || e.Message == "" {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: any origin is let in", c.name)
		}
	}
	for _, path := range []string{"/v1/runtime?token=" + secret, "/v1/executions/x/events?xtoken=" + secret, "/token=" + secret + "/events", "/readyz"} {
		if a := p.do("GET", path, "", "Authorization", ""); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without header: %d", path, a.status)
		}
	}
	if a := p.do("GET", "/healthz", "", "Host", "evil.example"); a.status != 403 {
		t.Errorf("healthz for a foreign host: %d", a.status)
	}
	if n := count(t, p); n != 0 {
		t.Errorf("%d conversations were made", n)
	}
	for _, good := range [][]string{
		{"Host", "localhost:" + port},
		{"Host", "[::1]:" + port},
		{"Host", "127.0.0.1"},
		{"Host", "rind.test"},
		{"Origin", "http://localhost:" + port},
		{"Origin", "https://app.test"},
		{"Authorization", "", "Authorization", "bearer " + secret},
		{"Content-Type", "", "Content-Type", "Application/JSON; charset=UTF-8"},
		{"Sec-Fetch-Site", "same-origin"},
	} {
		if a := p.do("POST", "/v1/conversations", "{}", good...); a.status != 201 {
			t.Errorf("%v: %d %s", good, a.status, a.body)
		}
	}
	a := p.do("OPTIONS", "/v1/conversations", "", "Origin", "https://app.test", "Access-Control-Request-Method", "POST", "Authorization", "")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "https://app.test" || a.header.Get("Vary") != "Origin" {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	if a := p.do("GET", "/healthz", "", "Authorization", ""); a.status != 200 || string(a.body) != `{"status":"ok"}` {
		t.Errorf("healthz: %d %s", a.status, a.body)
	}
}

// H01-H03: routes are what they are; nothing is cleaned or redirected.
func TestUnknownRoutesAndMethodsAnswerTypedErrors(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nope", 404, ""},
		{"GET", "/v1/conversations/", 404, ""},
		{"GET", "//v1/runtime", 404, ""},
		{"GET", "/v1/../v1/runtime", 404, ""},
		{"GET", "/v1/executions/x/y/z", 404, ""},
		{"GET", "/openapi.json/", 404, ""},
		{"GET", "/rind/v1/executions/", 404, ""},
		{"POST", "/rind/v1/executions", 405, "GET, HEAD"},
		{"DELETE", "/v1/runtime", 405, "GET, HEAD"},
		{"GET", "/v1/executions/" + id + ":cancel", 405, "POST"},
		{"POST", "/v1/executions/" + id, 405, "GET, HEAD"},
		{"POST", "/v1/executions/" + id + ":explode", 404, ""},
		{"GET", "/v1/executions/a%2Fb", 404, ""},
		{"POST", "/v1/executions/:cancel", 400, ""},
	} {
		r, _ := http.NewRequest(c.method, p.base, nil)
		r.URL.Opaque = "//" + r.URL.Host + c.path
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := p.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		var e struct{ Code string }
		if resp.StatusCode != c.status || json.Unmarshal(body, &e) != nil || e.Code == "" || resp.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, resp.StatusCode, resp.Header.Get("Allow"), body)
		}
	}
	if a := p.do("HEAD", "/v1/executions/"+id, ""); a.status != 200 || len(a.body) != 0 {
		t.Errorf("HEAD: %d with %d bytes", a.status, len(a.body))
	}
}

// N04: exactly 4 MiB are taken.
func TestABodyMayHaveFourMebibytesAndNoByteMore(t *testing.T) {
	p := mocking(t)
	body := func(size int) string {
		const head, tail = `{"metadata":{"a":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	p.must(201, "POST", "/v1/conversations", body(maxBody))
	a := p.must(413, "POST", "/v1/conversations", body(maxBody+1))
	if a.member("code") != "PAYLOAD_TOO_LARGE" {
		t.Errorf("told %s", a.body)
	}
	r, _ := http.NewRequest("POST", p.base+"/v1/conversations", io.MultiReader(strings.NewReader(body(maxBody+1)))) // without Content-Length
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("unannounced: %d", resp.StatusCode)
	}
}

func TestAcceptDecidesBetweenPageAndStream(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/*": false, "text/event-stream": true, "TEXT/Event-Stream": true, "text/event-stream;q=0": false,
		"application/json, text/event-stream;q=0.5": false, "application/json;q=0.5, text/event-stream": true, "text/event-stream, */*": true,
		"application/json, text/event-stream": true, "text/event-stream;q=x": false, "text/event-stream;q=0.5, application/*": false,
		"application/json;q=NaN, text/event-stream": true, "text/event-stream;q=NaN": false, "text/event-stream;q=0.5, application/json;q=1e9": true,
	} {
		if got := wantsStream([]string{accept}); got != want {
			t.Errorf("Accept %q streams: %v", accept, got)
		}
	}
	for text, want := range map[string]bool{"0": true, "9007199254740991": true, "9007199254740992": false, "": false, "-1": false, "+1": false, "1.5": false, "0x10": false, " 3": false, "00000000000000001": false, "٣": false} {
		if _, ok := cursor(text); ok != want {
			t.Errorf("cursor %q: %v", text, ok)
		}
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
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
		{"POST", "/v1/executions/%3Acancel", 400, ""},
		{"GET", "/v1/executions/" + id + "%3Acancel", 405, "POST"},
		{"GET", "/v1/executions", 405, "POST"},
		{"GET", "/v1/conversations", 405, "POST"},
		{"GET", "/v1%2Fruntime", 404, ""},
		{"GET", "/v1/executions/" + id + "/artifacts/x", 404, ""},
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
}

// Section 2: a colon begins a verb at the end of the path of an execution to which something is posted, and nowhere else.
func TestAColonIsPartOfAnIdWhereNoVerbCanStand(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	p.follow(id, nil, nil)
	for _, c := range []struct {
		method, path string
		status       int
		text, allow  string
	}{
		{"GET", "/v1/conversations/a:b", 404, "Conversation not found: a:b", ""},
		{"GET", "/v1/conversations/a%3Acancel", 404, "Conversation not found: a:cancel", ""},
		{"POST", "/v1/conversations/a:b", 405, "Method not allowed", "GET, HEAD"},
		{"GET", "/v1/executions/a:b", 404, "Execution not found: a:b", ""},
		{"DELETE", "/v1/executions/a:b", 405, "Method not allowed", "GET, HEAD"},
		{"POST", "/v1/executions/a:b", 404, "Route not found", ""},
		{"POST", "/v1/executions/a%3Ab", 404, "Route not found", ""},
		{"GET", "/v1/executions/a:b:cancel", 405, "Method not allowed", "POST"},
		{"POST", "/v1/executions/a:b:cancel", 404, "Execution not found: a:b", ""},
		{"GET", "/v1/executions/a:b/events", 404, "Execution not found: a:b", ""},
		{"POST", "/v1/executions/a:b/events", 405, "Method not allowed", "GET, HEAD"},
		{"GET", "/v1/executions/a:b/artifacts", 404, "Execution not found: a:b", ""},
		{"POST", "/v1/executions/" + id + "/actions/a:b:respond", 404, "Action not found: a:b", ""},
		{"POST", "/v1/executions/" + id + "/actions/a:b", 404, "Route not found", ""},
		{"GET", "/rind/v1/executions/a:b/artifacts/x/content", 404, "Execution not found: a:b", ""},
		{"GET", "/rind/v1/executions/" + id + "/artifacts/a:b/content", 404, "Artifact content not found: a:b", ""},
	} {
		body := ""
		if strings.HasSuffix(c.path, ":respond") {
			body = "{}"
		}
		if a := p.do(c.method, c.path, body); a.status != c.status || a.member("message") != c.text || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, a.status, a.header.Get("Allow"), a.body)
		}
	}
}

// Section 2: HEAD is answered on every GET route as GET is, without the body; a stream ends behind its headers.
func TestHeadIsAnsweredAsGetOnEveryRoute(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	id := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	p.until(id, "action.required") // it has no end
	p.http.Timeout = 10 * time.Second
	heads := func(path string, headers ...string) {
		t.Helper()
		head := p.do("HEAD", path, "", headers...)
		get := &answered{200, http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache"}, "X-Accel-Buffering": {"no"}, "X-Content-Type-Options": {"nosniff"}}, nil, false}
		if len(headers) == 0 { // a stream would not end
			get = p.do("GET", path, "")
		}
		for _, a := range []*answered{get, head} {
			a.header.Del("Date")
			if strings.HasSuffix(path, "/metrics") { // they count their own reading
				a.header.Del("Content-Length")
			}
		}
		if head.status != get.status || len(head.body) > 0 || !reflect.DeepEqual(head.header, get.header) {
			t.Errorf("HEAD %s: %d %v with %d bytes, GET: %d %v", path, head.status, head.header, len(head.body), get.status, get.header)
		}
	}
	for _, r := range routes {
		method, path, _ := strings.Cut(r.name, " ")
		if of := map[bool]string{true: c, false: id}[strings.Contains(path, "conversations/")]; method == "GET" {
			heads(strings.ReplaceAll(path, "{id}", of))
			heads(strings.ReplaceAll(path, "{id}", "none"))
		}
	}
	heads("/v1/executions/"+id+"/events", "Accept", "text/event-stream")
	p.must(200, "POST", "/v1/executions/"+id+":cancel", "")
}

// Section 3: an id that is told back is cut at 200 characters, and whatever it was, what is told is sound JSON.
func TestAnIdThatIsToldBackIsCut(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	start := func(conversation, provider string) string {
		return string(protocol.MustMarshal(map[string]any{"conversationId": conversation, "providerId": provider, "input": ""}))
	}
	id := p.start(c, "mock", "x", "")
	p.follow(id, nil, nil)
	for given, told := range map[string]string{
		strings.Repeat("😀", 300): strings.Repeat("😀", 200), strings.Repeat("x", 200): strings.Repeat("x", 200), "<a>\r\n\x00": "<a>\r\n\x00",
	} {
		escaped := url.PathEscape(given)
		for _, r := range []struct{ text, method, path, body string }{
			{"Conversation not found: ", "GET", "/v1/conversations/" + escaped, ""},
			{"Conversation not found: ", "POST", "/v1/executions", start(given, "mock")},
			{"Provider not found: ", "POST", "/v1/executions", start(c, given)},
			{"Execution not found: ", "GET", "/v1/executions/" + escaped, ""},
			{"Execution not found: ", "POST", "/v1/executions/" + escaped + ":cancel", ""},
			{"Execution not found: ", "GET", "/v1/executions/" + escaped + "/events", ""},
			{"Action not found: ", "POST", "/v1/executions/" + id + "/actions/" + escaped + ":respond", "{}"},
			{"Artifact content not found: ", "GET", "/rind/v1/executions/" + id + "/artifacts/" + escaped + "/content", ""},
		} {
			a := p.must(404, r.method, r.path, r.body)
			if got := a.member("message"); got != r.text+told || strings.Contains(string(a.body), "\\u003c") {
				t.Errorf("%s %s: %s", r.method, r.path, a.body)
			}
		}
	}
	if a := p.must(404, "GET", "/v1/executions/%ff", ""); !utf8.Valid(a.body) || a.member("message") == "" {
		t.Errorf("%q", a.body)
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
	if a.member("code") != "PAYLOAD_TOO_LARGE" || !a.closes {
		t.Errorf("told %s; the connection ends: %v", a.body, a.closes)
	}
	if a := p.do("POST", "/v1/conversations", body(maxBody+1), "Content-Type", "", "Content-Type", "text/plain"); a.status != 415 {
		t.Errorf("of another type: %d", a.status)
	}
	r, _ := http.NewRequest("POST", p.base+"/v1/conversations", io.MultiReader(strings.NewReader(body(maxBody+1)))) // without Content-Length
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 || !resp.Close {
		t.Errorf("unannounced: %d; the connection ends: %v", resp.StatusCode, resp.Close)
	}
}

func TestAcceptDecidesBetweenPageAndStream(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/*": false, "text/event-stream": true, "TEXT/Event-Stream": true, "text/event-stream;q=0": false,
		"application/json, text/event-stream;q=0.5": false, "application/json;q=0.5, text/event-stream": true, "text/event-stream, */*": true,
		"application/json, text/event-stream": true, "text/event-stream;q=x": false, "text/event-stream;q=0.5, application/*": false,
		"application/json;q=NaN, text/event-stream": true, "text/event-stream;q=NaN": false, "text/event-stream;q=0.5, application/json;q=1e9": true,
		"text/event-stream;q=5e-1": false, "text/event-stream;q=0x1p-1": false, "text/event-stream;q=+1": false, "text/event-stream;q=0.1234": false,
		"text/event-stream;q=1.001": false, "text/event-stream;q=.5": false, "text/event-stream;q=": false, "text/event-stream;q": false,
		`text/event-stream;q="0.5"`: false, "text/event-stream;q=0.5;q=0.5": false, "text/event-stream;q =1": false, "text/event-stream;q*=utf-8''1": true,
		"text/event-stream;Q=0.": false, "text/event-stream ; Q=0.001": true, "text/event-stream;q=1.000;x": true, "text/event-stream;": true,
		"application/json;q=0.1, application/json;q=0.9, text/event-stream;q=0.5": false, "application/json;q=0.9, application/json;q=0.1, text/event-stream;q=0.5": false,
		"text/event-stream;q=0.9, text/event-stream;q=0.1, application/json;q=0.5": true, "text/event-stream;q=0.5, text/html;q=0.9": true,
		"text/event-stream;q=0.5, application/json;q=0.12345": true, "text/event-stream;q=0.5, application/json;q=0.5": true,
		`text/event-stream;x="a,b"`: true, `text/event-stream;x="a\",text/html;q=0,";q=0`: false, `text/html;x="text/event-stream,text/event-stream"`: false,
		`text/html;x=",text/event-stream`: false, `text/html;x="a;q=0", text/event-stream;x=";q=0"`: true,
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

// Section 1.1, step 1: whoever serves an address is reached by the name of that address, and by no other address that it has.
func TestTheAddressThatAConnectionArrivedAtIsAHostOfOurs(t *testing.T) {
	p := mocking(t)
	port := strconv.Itoa(p.api.cfg.Port)
	for _, c := range []struct {
		at, host, origin string
		status           int
	}{
		{"192.0.2.7", "192.0.2.7:" + port, "", 200},
		{"192.0.2.7", "192.0.2.7", "http://192.0.2.7:" + port, 200},
		{"192.0.2.7", "192.0.2.8:" + port, "", 403},
		{"192.0.2.7", "192.0.2.7:1", "", 403},
		{"192.0.2.7", "192.0.2.7:" + port, "http://192.0.2.8:" + port, 403},
		{"192.0.2.7", "0.0.0.0:" + port, "", 403},
		{"2001:db8::7", "[2001:db8::7]:" + port, "", 200},
		{"2001:db8::7", "[2001:db8:0::7]", "", 200},
		{"2001:db8::7", "[2001:db8::8]:" + port, "", 403},
		{"127.0.0.1", "3232235527", "", 403},
		{"127.0.0.1", "127.1", "", 403},
		{"127.0.0.1", ":" + port, "", 403},
		{"127.0.0.1", "", "", 403},
	} {
		r := httptest.NewRequest("GET", "/v1/runtime", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.ParseIP(c.at), Port: p.api.cfg.Port})))
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer "+secret)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		p.api.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("at %s for %q from %q: %d %s", c.at, c.host, c.origin, w.Code, w.Body)
		}
	}
}

// Section 1.1, step 2: pages of an allowed origin may read what is answered, refusals too, and send what the contract names; no other page is told anything.
func TestOnlyPagesOfAnAllowedOriginMayReadAnswers(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	p.follow(id, nil, nil)
	own := "http://127.0.0.1:" + strconv.Itoa(p.api.cfg.Port)
	const app = "https://app.test"
	for _, c := range []struct {
		method, path string
		status       int
		headers      []string
		reads        bool
	}{
		{"GET", "/v1/runtime", 200, []string{"Origin", app, "Sec-Fetch-Site", "cross-site"}, true},
		{"GET", "/v1/executions/" + id + "/events", 200, []string{"Origin", app, "Accept", "text/event-stream"}, true},
		{"GET", "/v1/runtime", 401, []string{"Origin", app, "Authorization", ""}, true},
		{"GET", "/nope", 404, []string{"Origin", app}, true},
		{"POST", "/v1/executions", 400, []string{"Origin", app}, true},
		{"OPTIONS", "/v1/executions/" + id + ":cancel", 204, []string{"Origin", app, "Access-Control-Request-Method", "POST", "Authorization", ""}, true},
		{"GET", "/v1/runtime", 200, []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", own, "Sec-Fetch-Site", "cross-site"}, false},
		{"GET", "/v1/runtime", 403, []string{"Sec-Fetch-Site", "same-site"}, false},
		{"GET", "/v1/runtime", 200, []string{"Sec-Fetch-Site", "none"}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", app, "Host", "evil.example"}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", app, "Origin", app}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", app + "/"}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", app + ".evil.example"}, false},
		{"GET", "/v1/runtime", 403, []string{"Origin", own + "/"}, false},
		{"OPTIONS", "/v1/executions", 403, []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, false},
		{"OPTIONS", "/v1/executions", 405, []string{"Origin", own, "Access-Control-Request-Method", "POST"}, false},
	} {
		a := p.do(c.method, c.path, "", c.headers...)
		if a.status != c.status {
			t.Errorf("%s %s %v: %d %s", c.method, c.path, c.headers, a.status, a.body)
		}
		var told []string
		for name, values := range a.header {
			if strings.HasPrefix(name, "Access-Control-") {
				told = append(told, name)
			}
			if strings.Join(values, "") == "*" {
				t.Errorf("%s %s %v: %s is *", c.method, c.path, c.headers, name)
			}
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); c.reads != (got == app) || c.reads != (a.header.Get("Vary") == "Origin") || !c.reads && len(told) > 0 {
			t.Errorf("%s %s %v: let in is %q, told %v", c.method, c.path, c.headers, got, told)
		}
		if c.status == 204 && (a.header.Get("Access-Control-Allow-Methods") != "GET, POST" ||
			a.header.Get("Access-Control-Allow-Headers") != "authorization, content-type, last-event-id, range, rind-workspace") {
			t.Errorf("preflight: %v", a.header)
		}
	}
}

// Sections 1.1 (steps 7 to 9) and 2.1: what a new conversation is refused with, by the first rule that its request breaks; and what is taken.
func TestAConversationIsMadeOfWhatTheContractTakesAndOfNothingElse(t *testing.T) {
	p := mocking(t)
	const media, invalid, badJSON = "Content-Type must be application/json", "Invalid conversation request", "Request body is not valid JSON"
	typed := func(t string) []string { return []string{"Content-Type", "", "Content-Type", t} }
	for _, c := range []struct {
		body    string
		headers []string
		status  int
		text    string // message, or what the conversation has
	}{
		{"", nil, 201, `"metadata":{}`},
		{" \t\r\n", nil, 201, `"metadata":{}`},
		{"\ufeff", nil, 201, `"metadata":{}`},
		{"\ufeff{}", nil, 201, `"metadata":{}`},
		{"{}", []string{"Content-Encoding", "identity"}, 201, `"metadata":{}`},
		{"", []string{"Content-Type", "application/json"}, 201, `"metadata":{}`},
		{`{"metadata":1,"metadata":{"a":1},"metadata2":null}`, typed(`APPLICATION/json; charset="UTF-8"; x=y`), 201, `"metadata":{"a":1}}`},
		{`{"Metadata":{"a":1}}`, nil, 201, `"metadata":{}`},
		{"", typed("text/plain"), 415, media},
		{"", typed("application/x-www-form-urlencoded"), 415, media},
		{"{}", typed("application/json, text/plain"), 415, media},
		{"{}", typed("application/jsonx"), 415, media},
		{"{", []string{"Content-Encoding", "br"}, 415, media},
		{"{", []string{"Rind-Workspace", "NO"}, 400, badJSON},
		{"\ufeff\ufeff{}", nil, 400, badJSON},
		{"{} {}", nil, 400, badJSON},
		{"{'a':1}", nil, 400, badJSON},
		{`{"a":"\ud800"}`, nil, 400, badJSON},
		{strings.Repeat("[", 300), nil, 400, "Request body is nested too deeply"},
		{"null", nil, 400, invalid},
		{"[]", nil, 400, invalid},
		{"42", nil, 400, invalid},
		{`"x"`, nil, 400, invalid},
		{"true", nil, 400, invalid},
		{`{"metadata":null}`, nil, 400, invalid},
		{`{"metadata":[]}`, nil, 400, invalid},
		{`{"metadata":"x"}`, nil, 400, invalid},
		{`{"metadata":{},"metadata":1}`, []string{"Rind-Workspace", "NO"}, 400, invalid},
		{"{}", []string{"Rind-Workspace", "Other"}, 400, "Invalid Rind-Workspace header"},
		{"{}", []string{"Rind-Workspace", strings.Repeat("a", 65)}, 400, "Invalid Rind-Workspace header"},
		{"{}", []string{"Rind-Workspace", "other", "Rind-Workspace", "other"}, 400, "Invalid Rind-Workspace header"},
		{"{}", []string{"Rind-Workspace", strings.Repeat("a", 64)}, 404, "Workspace not found: " + strings.Repeat("a", 64)},
		{"{}", []string{"Rind-Workspace", "other"}, 201, `"metadata":{}`},
	} {
		before := count(t, p)
		a := p.do("POST", "/v1/conversations", c.body, c.headers...)
		if a.status != c.status || c.status == 201 && !strings.Contains(string(a.body), c.text) || c.status != 201 && a.member("message") != c.text {
			t.Errorf("%.40q with %v: %d %s", c.body, c.headers, a.status, a.body)
		}
		if made := count(t, p) - before; made != 0 && made != 1 || (made == 1) != (a.status == 201) {
			t.Errorf("%.40q with %v: %d conversations were made", c.body, c.headers, made)
		}
	}
}

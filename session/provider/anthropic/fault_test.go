package anthropic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func TestTheProviderNamesItsFaultsInItsOwnWords(t *testing.T) {
	api := func(kind, message string) string {
		return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, message)
	}
	for name, test := range map[string]struct {
		status int
		body   string
		fault  session.Fault
		says   string
	}{
		"key":                       {401, api("authentication_error", "invalid x-api-key"), session.FaultAuth, "invalid x-api-key"},
		"permission":                {403, api("permission_error", "Your API key does not have permission to use the specified resource."), session.FaultAuth, "permission"},
		"model":                     {404, api("not_found_error", "model: claude-zero"), session.FaultModel, "claude-zero"},
		"rate":                      {429, api("rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute."), session.FaultRate, "40,000"},
		"overloaded":                {529, api("overloaded_error", "Overloaded"), session.FaultServer, "Overloaded"},
		"api":                       {500, api("api_error", "Internal server error"), session.FaultServer, "Internal"},
		"timeout":                   {504, api("timeout_error", "Request timed out"), session.FaultTimeout, "timed out"},
		"timeout without a body":    {504, "", session.FaultTimeout, "504"},
		"bad request":               {400, api("invalid_request_error", "messages: roles must alternate"), session.FaultRejected, "alternate"},
		"too long":                  {400, api("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), session.FaultContext, "208310"},
		"too long with the answer":  {400, api("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again"), session.FaultContext, "190000"},
		"too large for HTTP":        {413, api("request_too_large", "Request exceeds the maximum size"), session.FaultContext, "maximum size"},
		"too large, by a proxy":     {413, "<html>413</html>", session.FaultContext, "413"},
		"too large, another status": {400, api("request_too_large", "Request exceeds the maximum size"), session.FaultContext, ""},
		"credit":                    {400, api("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), session.FaultQuota, "credit balance"},
		"usage limit":               {400, api("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."), session.FaultQuota, "2027-01-01"},
		"billing":                   {402, api("billing_error", "There's an issue with your billing."), session.FaultQuota, "billing"},
		"billing, another status":   {403, api("billing_error", "There's an issue with your billing."), session.FaultQuota, ""},
		"spend limit, by its code":  {400, `{"type":"error","error":{"type":"invalid_request_error","message":"No.","details":{"error_code":"contract_spend_limit_reached"}}}`, session.FaultQuota, "No."},
		"a plan that has no more":   {429, api("rate_limit_error", "Extra usage is required for long context requests."), session.FaultQuota, "Extra usage"},
		"a minute's tokens":         {429, api("rate_limit_error", "Too many tokens: input length of all requests of this minute"), session.FaultRate, ""},
		"a proxy's words":           {500, `{"error":"upstream is down"}`, session.FaultServer, "upstream is down"},
		"a proxy's message":         {502, `{"message":"no upstream"}`, session.FaultServer, "no upstream"},
		"FastAPI":                   {422, `{"detail":[{"loc":["body"],"msg":"Field required","type":"missing"}]}`, session.FaultRejected, "Field required"},
		"a page":                    {502, "<html><h1>Bad Gateway</h1></html>", session.FaultServer, "502 Bad Gateway"},
		"plain text":                {500, "upstream connect error", session.FaultServer, "500 Internal Server Error: upstream connect error"},
		"a message of no words":     {400, `{"error":{"type":"invalid_request_error","message":""}}`, session.FaultRejected, "400 Bad Request"},
	} {
		e := providertest.ErrorOf(t, reply(t, providertest.JSON(test.status, test.body)))
		if e.Fault != test.fault || e.Status != test.status || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %s, status %d, %q, want %s with %q", name, e.Fault, e.Status, e.Message, test.fault, test.says)
		}
	}
}

func TestALimitThatComesBackByItselfIsARate(t *testing.T) {
	e := providertest.ErrorOf(t, reply(t, providertest.JSON(429, `{"error":{"type":"rate_limit_error","message":"You have reached the usage limit of this minute."}}`).With("Retry-After-Ms", "1500")))
	if e.Fault != session.FaultRate || e.RetryAfter != 1500*time.Millisecond {
		t.Errorf("%s after %v", e.Fault, e.RetryAfter)
	}
}

func TestTheKeyIsSentToItsHostAndToldToNobody(t *testing.T) {
	const key = "CANARY-7f3a" // no shape gives it away
	other := providertest.NewServer(t)
	other.Always(good("from the other host"))
	say := func(status int, text string) providertest.Reply {
		return providertest.JSON(status, `{"type":"error","error":{"type":"authentication_error","message":"`+text+`"}}`).With("Request-Id", key)
	}
	server := providertest.NewServer(t,
		say(401, "invalid x-api-key: "+key), say(500, "C\\u0041NARY-7f3a"), providertest.Body(400, "text/plain", key+key), providertest.Body(200, key, key),
		providertest.SSE(`{"type":"error","error":{"type":"api_error","message":"`+key+`"}}`), providertest.SSE(begin, key),
		providertest.Redirect(307, other.URL()+"/v1/messages"), providertest.Redirect(308, other.URL()+"/v1/messages?"+key), providertest.Redirect(302, other.URL()),
		providertest.Redirect(307, "https://"+strings.TrimPrefix(other.URL(), "http://")), providertest.Redirect(307, "/again"), good("x"),
		providertest.JSON(401, `{"error":{"message":"`+key+`"}}`), providertest.Redirect(307, other.URL()+"/v1/models"))
	m := model(t, providertest.Endpoint{URL: server.URL(), Key: key})
	check := func(what string, err error) {
		t.Helper()
		e, ok := err.(*session.ModelError)
		if !ok {
			t.Fatalf("%s: %v", what, err)
		}
		if told := fmt.Sprintf("%v %+v %v", e, *e, e.Cause); strings.Contains(told, "CANARY") {
			t.Errorf("%s: the key is told: %s", what, told)
		}
	}
	for _, what := range []string{"401", "500 in other letters", "400", "200 of an odd type", "in the stream", "no JSON", "307", "308", "302", "307 to https"} {
		check(what, providertest.Collect(t.Context(), t, m, providertest.Hello()).Err)
	}
	if a := providertest.Collect(t.Context(), t, m, providertest.Hello()); a.Text != "x" || a.Err != nil {
		t.Errorf("a redirect on the same host: %q, %v", a.Text, a.Err)
	}
	for _, what := range []string{"list", "list redirected"} {
		_, err := m.List(t.Context())
		check(what, err)
	}
	for _, r := range server.Requests() {
		if !cmp.Equal(r.Header.Values("X-Api-Key"), []string{key}) {
			t.Errorf("%s went with the keys %q", r.Path, r.Header.Values("X-Api-Key"))
		}
	}
	if n := len(other.Requests()); n > 0 {
		t.Errorf("the other host got %+v", other.Requests())
	}
	server.Close()
	check("nobody there", providertest.Collect(t.Context(), t, m, providertest.Hello()).Err)
}

func TestHeadersOfTheSettingsWinOverOurs(t *testing.T) {
	server := providertest.NewServer(t, good("x"), good("x"))
	for _, headers := range []map[string]string{nil, {"authorization": "Bearer tok-1234", "anthropic-version": "2099-01-01", "anthropic-beta": "a,b", "host": "example.test"}} {
		if a := providertest.Collect(t.Context(), t, model(t, providertest.Endpoint{URL: server.URL(), Headers: headers}), providertest.Hello()); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	plain, own := server.Requests()[0], server.Requests()[1]
	if plain.Header.Values("X-Api-Key") != nil || plain.Header.Values("Anthropic-Beta") != nil {
		t.Errorf("without a key: %v", plain.Header)
	}
	if own.Host != "example.test" || own.Header.Get("Authorization") != "Bearer tok-1234" || !cmp.Equal(own.Header.Values("Anthropic-Version"), []string{"2099-01-01"}) || own.Header.Get("Anthropic-Beta") != "a,b" {
		t.Errorf("%s %v", own.Host, own.Header)
	}
}

func TestTheAddressMayEndAsOtherClientsWriteIt(t *testing.T) {
	for base, want := range map[string]string{"": "https://api.anthropic.com/v1/messages", "https://host/v1/": "https://host/v1/messages", " https://host/sub ": "https://host/sub/v1/messages"} {
		asked := ""
		m, err := anthropic.New(anthropic.Config{BaseURL: base, Transport: providertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.String()
			return providertest.Canned(500, "")(r)
		})})
		if err != nil {
			t.Fatal(err)
		}
		providertest.Collect(t.Context(), t, m, providertest.Hello())
		if asked != want {
			t.Errorf("%q asks %s, want %s", base, asked, want)
		}
	}
}

package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rind-dev/rind/protocol/portable"
)

// C05, C06, E04, E05, E07, E08, A09, A11, R04, X06, X09, H05, H08: a body that is none, or not the one of its route, and ids of nothing are refused
// over the socket, with their code, and nothing comes of it.
func TestBodiesAndIdsThatAreNoneAreRefusedOnEachRoute(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	open := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	var a portable.Action
	if err := json.Unmarshal(p.until(open, "action.required").Data, &a); err != nil {
		t.Fatal(err)
	}
	before, made := lines(p.events(open)), count(t, p)
	const none = "exec_00000000000000000000000000000000"
	refused := func(status int, code, text, method, path, body string) {
		t.Helper()
		x := p.do(method, path, body)
		if x.status != status || x.member("code") != code || x.member("message") != text || x.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %.60q: %d %s", method, path, body, x.status, x.body)
		}
	}
	const validation, unsound, noStart = "VALIDATION_ERROR", "Request body is not valid JSON", "Invalid execution request"
	cancel, respond := "/v1/executions/"+open+":cancel", "/v1/executions/"+open+"/actions/"+a.ID+":respond"
	posts := []string{"/v1/conversations", "/v1/executions", cancel, respond}
	for _, path := range posts {
		for _, body := range []string{`{`, `{}x`, `{'a':1}`, "{\"a\":\"\xff\"}", "\xc0\x80", `{"a":"\udfff"}`} {
			refused(400, validation, unsound, "POST", path, body)
		}
		for _, n := range []int{3_000, 20_000} {
			refused(400, validation, "Request body is nested too deeply", "POST", path, `{"a":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`)
		}
	}
	for _, path := range []string{"/v1/executions", respond} {
		refused(400, validation, "Request body is required", "POST", path, "")
		refused(400, validation, "Request body is required", "POST", path, " \n")
	}

	members := map[string]string{"conversationId": fmt.Sprintf("%q", c), "providerId": `"mock"`, "input": `"x"`}
	start := func(change map[string]string) string { // "" leaves a member out
		var out []string
		for _, m := range []map[string]string{members, change} {
			for name, value := range m {
				if over, there := change[name]; value != "" && (!there || over == value) {
					out = append(out, fmt.Sprintf("%q:%s", name, value))
				}
			}
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	for name := range members {
		refused(400, validation, noStart, "POST", "/v1/executions", start(map[string]string{name: ""}))
	}
	for name, wrong := range map[string][]string{
		"conversationId": {`null`, `1`, `""`, `[]`}, "providerId": {`null`, `{}`, `""`}, "input": {`null`, `7`, `["x"]`},
		"requiredCapabilities": {`null`, `"a"`, `{}`, `[1]`, `[""]`, `[null]`}, "config": {`null`, `[]`, `"x"`},
		"idempotencyKey": {`null`, `1`, `""`, `"` + strings.Repeat("k", 201) + `"`},
	} {
		for _, value := range wrong {
			refused(400, validation, noStart, "POST", "/v1/executions", start(map[string]string{name: value}))
		}
	}
	for _, body := range []string{`null`, `[]`, `{"reason":""}`, `{"reason":4}`, `{"reason":null}`, `{"reason":"` + strings.Repeat("x", 501) + `"}`} {
		refused(400, validation, "Invalid cancellation request", "POST", cancel, body)
	}
	refused(404, "NOT_FOUND", "Conversation not found: conv_none", "GET", "/v1/conversations/conv_none", "")
	for _, path := range []string{"", "/artifacts", "/events"} {
		refused(404, "NOT_FOUND", "Execution not found: "+none, "GET", "/v1/executions/"+none+path, "")
	}
	refused(404, "NOT_FOUND", "Execution not found: "+none, "POST", "/v1/executions/"+none+":cancel", "")
	refused(404, "NOT_FOUND", "Execution not found: "+none, "POST", "/v1/executions/"+none+"/actions/"+a.ID+":respond", `{"approved":true}`)

	if n := count(t, p); n != made || lines(p.events(open)) != before || p.state(open) != "awaiting_approval" {
		t.Errorf("%d conversations were made, and it is %s", n-made, p.state(open))
	}
	p.must(200, "POST", cancel, "")
}

// E09, P03, P04, P06, I05: what a start may ask for.
func TestAStartAsksForWhatThereIs(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	start := func(provider, input, more string) *answered {
		return p.do("POST", "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":%q,"input":%q%s}`, c, provider, input, more))
	}
	for _, r := range []struct {
		provider, names string
		missing         string // of them; "" for none
	}{
		{"mock", `"action.approval","artifact.list","event.streaming"`, ""}, // native and emulated
		{"fixture", `"x.degraded","artifact.list"`, ""},
		{"fixture", `"x.degraded","x.off"`, `["x.off"]`},
		{"mock", `"toString","__proto__","constructor","hasOwnProperty"`, `["__proto__","constructor","hasOwnProperty","toString"]`},
		{"mock", `"Artifact.list"`, `["Artifact.list"]`},
	} {
		a := start(r.provider, "x", `,"requiredCapabilities":[`+r.names+`]`)
		want := fmt.Sprintf(`"details":{"capabilities":%s,"providerId":%q}`, r.missing, r.provider)
		switch {
		case r.missing == "" && a.status != 202, r.missing != "" && (a.status != 422 || !strings.Contains(string(a.body), want)):
			t.Errorf("%s with %s: %d %s", r.provider, r.names, a.status, a.body)
		}
	}
	key := fmt.Sprintf(`,"idempotencyKey":%q`, strings.Repeat("😀", 200))
	first := start("mock", "x", key+`,"config":{"l":[1,2]}`)
	if again := start("mock", "x", key+`,"config":{"l":[1,2]}`); first.status != 202 || again.member("id") != first.member("id") {
		t.Errorf("a key of 200 characters: %s, then %s", first.body, again.body)
	}
	for name, other := range map[string]*answered{
		"provider": start("script", "x", key+`,"config":{"l":[1,2]}`), "input": start("mock", "y", key+`,"config":{"l":[1,2]}`),
		"order of an array": start("mock", "x", key+`,"config":{"l":[2,1]}`), "a null more": start("mock", "x", key+`,"config":{"l":[1,2],"n":null}`),
		"capabilities": start("mock", "x", key+`,"config":{"l":[1,2]},"requiredCapabilities":["event.replay"]`),
	} {
		if other.status != 409 || other.member("code") != "IDEMPOTENCY_CONFLICT" {
			t.Errorf("another %s: %d %s", name, other.status, other.body)
		}
	}
}

// X03, X07, X08, X10: 32 cancels at once of one that waits for an answer leave one end, with a reason of 500 characters whole; its action is dead.
func TestManyCancelsOfOneThatAwaitsLeaveOneEnd(t *testing.T) {
	p := mocking(t)
	for _, reason := range []string{strings.Repeat("r", 500), strings.Repeat("😀", 500)} {
		id := p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)
		var a portable.Action
		if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
			t.Fatal(err)
		}
		records := make(chan string, 32)
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				x := p.do("POST", "/v1/executions/"+id+":cancel", fmt.Sprintf(`{"reason":%q}`, reason))
				records <- fmt.Sprint(x.status, string(x.body))
			})
		}
		wg.Wait()
		want := "200" + string(p.must(200, "GET", "/v1/executions/"+id, "").body)
		for range 32 {
			if got := <-records; got != want {
				t.Errorf("answered %s, and it is %s", got, want)
			}
		}
		events := p.events(id)
		sound(t, events)
		if end := events[len(events)-1]; end.Type != "run.cancelled" || string(end.Data) != fmt.Sprintf(`{"reason":"%s"}`, reason) {
			t.Errorf("it ends with %s %.80s", end.Type, end.Data)
		}
		if x := p.must(404, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`); x.member("code") != "ACTION_NOT_FOUND" {
			t.Errorf("its action: %s", x.body)
		}
	}
}

package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol/portable"
)

// Section 1.2 a: while it drains, a server begins nothing and says so, behind the checks that come first; everything else goes on.
func TestAServerThatDrainsBeginsNothingAndGoesOnWithEverythingElse(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	id := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	other := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	var a portable.Action
	if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
		t.Fatal(err)
	}
	told, begun := make(chan []portable.Event, 1), make(chan struct{}, 100)
	go func() { told <- p.follow(id, nil, func(portable.Event) { begun <- struct{}{} }) }()
	<-begun
	p.api.Drain()
	for _, r := range []struct {
		method, path, body string
		headers            []string
		status             int
	}{
		{"GET", "/readyz", "", nil, 503},
		{"HEAD", "/readyz", "", nil, 503},
		{"POST", "/v1/conversations", "", nil, 503},
		{"POST", "/v1/conversations", "{", []string{"Content-Type", "text/plain"}, 503},
		{"POST", "/v1/executions", "{", nil, 503},
		{"POST", "/v1/executions", "", nil, 503},
		{"POST", "/v1/executions", "", []string{"Authorization", ""}, 401},
		{"GET", "/readyz", "", []string{"Host", "evil.example"}, 403},
		{"GET", "/v1/executions", "", nil, 405},
		{"DELETE", "/readyz", "", nil, 405},
		{"GET", "/healthz", "", nil, 200},
		{"GET", "/v1/runtime", "", nil, 200},
		{"GET", "/v1/conversations/" + c, "", nil, 200},
		{"GET", "/rind/v1/conversations", "", nil, 200},
		{"GET", "/v1/executions/" + id, "", nil, 200},
		{"GET", "/v1/executions/" + id + "/events", "", nil, 200},
		{"POST", "/v1/executions/" + other + ":cancel", "", nil, 200},
		{"GET", "/v1/executions/" + other + "/events", "", []string{"Accept", "text/event-stream"}, 200},
		{"POST", "/v1/executions/" + id + "/actions/" + a.ID + ":respond", `{"approved":true}`, nil, 200},
	} {
		x := p.do(r.method, r.path, r.body, r.headers...)
		refused := r.status == 503
		if x.status != r.status || refused != (x.header.Get("Retry-After") == "1") ||
			refused && r.method != "HEAD" && (x.member("code") != "UNAVAILABLE" || x.member("message") != "Runtime is stopping") {
			t.Errorf("%s %s %q %v: %d %v %s", r.method, r.path, r.body, r.headers, x.status, x.header, x.body)
		}
	}
	sound(t, <-told)
	if n := count(t, p); n != 1 {
		t.Errorf("there are %d conversations", n)
	}
}

// Section 1.2 d: at the end a stream delivers what the log has, however far it is behind, and its end is a good one; one whose reader has stopped is
// not waited for.
func TestAtTheEndAStreamTellsWhatTheLogHasAndOneThatNobodyReadsIsCut(t *testing.T) {
	long := `,"config":{"steps":[` + strings.Repeat(`{"delta":"`+strings.Repeat("y", 8<<10)+`"},`, 200) + `{"input":{"title":"t"}}]}`
	for _, reads := range []bool{true, false} {
		p := mocking(t)
		id := p.start(p.conversation(), "script", "x", long)
		p.until(id, "action.required") // it has no end
		want := p.events(id)
		var resp *http.Response
		var err error
		if reads {
			r := p.request(t.Context(), "GET", "/v1/executions/"+id+"/events", "")
			r.Header.Set("Accept", "text/event-stream")
			resp, err = p.http.Do(r)
		} else {
			conn := p.stall(id)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() // from here on the server writes, and waits for its reader
		wait := 20 * time.Second
		if !reads {
			wait = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		ended := make(chan bool, 1)
		go func() {
			p.api.End(ctx)
			ended <- ctx.Err() == nil
		}()
		if reads {
			<-p.api.end
		} else if <-ended {
			t.Error("a stream that nobody reads has come to its end")
		}
		body, err := io.ReadAll(resp.Body)
		if reads && (err != nil || !<-ended) || !reads && err == nil {
			t.Errorf("read: %v, it ends with %v behind %d bytes", reads, err, len(body))
		}
		if told := strings.Count(string(body), "\nid: "); reads != (told == len(want)) {
			t.Errorf("read: %v, told %d of %d events", reads, told, len(want))
		}
		p.api.End(context.Background()) // and once more, which changes nothing
		p.streamless()
		if _, err := p.http.Get(p.base + "/healthz"); err == nil {
			t.Error("it still answers")
		}
	}
}

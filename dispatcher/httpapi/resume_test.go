package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session/store/memory"
)

// H067, V06, V07, N08, S05: a place that is none is refused, whichever way it is given, and before it is asked whose events they are; one behind the end has
// nothing.
func TestAPlaceThatIsNoneIsRefusedByPagesAndStreams(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	whole := p.follow(id, nil, nil)
	const after, last = "after must be a non-negative integer", "Last-Event-ID must be a non-negative integer"
	for _, run := range []string{id, "exec_none"} {
		path := "/v1/executions/" + run + "/events"
		for _, place := range []string{"abc", "-5", "1.5", "1e3", "0x1", "1_0", "NaN", "99999999999999999999", "9007199254740992", "00000000000000001", "%203", "3%20", "+1", "%2B1", "%D9%A3", "", "1&after=1", "1&%61fter=1", "1;x=2", "%zz", "1&after=%zz"} {
			for _, accept := range []string{"application/json", "text/event-stream"} {
				if a := p.do("GET", path+"?after="+place, "", "Accept", accept, "Last-Event-ID", "1"); a.status != 400 || a.member("message") != after || a.member("code") != "VALIDATION_ERROR" {
					t.Errorf("after %q as %s: %d %s", place, accept, a.status, a.body)
				}
			}
		}
		for _, place := range []string{"abc", "-5", "1.5", "1e3", "0x1", "+1", "99999999999999999999"} {
			if a := p.do("GET", path, "", "Accept", "text/event-stream", "Last-Event-ID", place); a.status != 400 || a.member("message") != last {
				t.Errorf("Last-Event-ID %q: %d %s", place, a.status, a.body)
			}
		}
	}
	if a := p.do("GET", "/v1/executions/exec_none/events", "", "Accept", "text/event-stream"); a.status != 404 || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("a stream of nothing: %d %v %s", a.status, a.header, a.body)
	}
	if rest := p.follow(id, []string{"Last-Event-ID", strconv.Itoa(len(whole) + 999_999)}, nil); len(rest) != 0 {
		t.Errorf("behind the end: %d events", len(rest))
	}
}

// Section 5.1: what a reader says of the place it begins at: after goes first, Last-Event-ID counts for streams alone, an empty one is none, and other parameters
// are ignored.
func TestAReaderBeginsWhereItSays(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	whole := p.follow(id, nil, nil)
	for _, c := range []struct {
		query, last string
		page        int // event that a page begins behind
		stream      int
	}{
		{"", "", 0, 0},
		{"", "2", 0, 2},
		{"?after=1", "3", 1, 1},
		{"?after=0", "3", 0, 0},
		{"?after=1", "nonsense", 1, 1},
		{"?after=0000000000000003", "", 3, 3},
		{"?AFTER=3&x=%zz&cursor=2", "", 0, 0},
		{"?x=%zz&after=2", "", 2, 2},
		{"?note=%zzafter", "", 0, 0},
		{"?note=after&%zzafter=3&after;=3", "", 0, 0},
		{"?x=1;after=3&%61fter=2", "", 2, 2},
	} {
		var headers []string
		if c.last != "" {
			headers = []string{"Last-Event-ID", c.last}
		}
		path := "/v1/executions/" + id + "/events" + c.query
		page := `{"events":[` + strings.ReplaceAll(strings.TrimSuffix(lines(whole[c.page:]), "\n"), "\n", ",") + `],"nextCursor":` + strconv.Itoa(len(whole)) + "}"
		if a := p.must(200, "GET", path, "", headers...); string(a.body) != page {
			t.Errorf("%s with %q: a page of %.200s", c.query, c.last, a.body)
		}
		want := ""
		for _, e := range whole[c.stream:] {
			want += "event: " + e.Type + "\ndata: " + string(protocol.MustMarshal(e)) + "\nid: " + strconv.FormatInt(e.Sequence, 10) + "\n\n"
		}
		a := p.must(200, "GET", path, "", append([]string{"Accept", "application/json;q=0.9", "Accept", "text/event-stream"}, headers...)...)
		if string(a.body) != want {
			t.Errorf("%s with %q: a stream of %.200s", c.query, c.last, a.body)
		}
	}
	twice := p.must(200, "GET", "/v1/executions/"+id+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", "2", "Last-Event-ID", "nonsense")
	if n := strings.Count(string(twice.body), "\nid: "); n != len(whole)-2 { // the first counts
		t.Errorf("with two Last-Event-IDs: %d events", n)
	}
	r, _ := http.NewRequest("GET", p.base+"/v1/executions/"+id+"/events", nil)
	r.Header = http.Header{"Authorization": {"Bearer " + secret}, "Accept": {"text/event-stream"}, "Last-Event-Id": {""}}
	resp, err := p.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); strings.Count(string(body), "\nid: ") != len(whole) {
		t.Errorf("with an empty Last-Event-ID: %s", body)
	}
}

// Section 5.1: a stream says what it is at once, also where there is nothing to tell yet; its frames are one line of data each, whatever a provider tells.
func TestAStreamBeginsAtOnceAndEachOfItsFramesHasOneLineOfData(t *testing.T) {
	p := mocking(t)
	hostile := "{\"steps\":[{\"event\":{\"method\":\"m\\r\\n\\nid: 99\",\"params\":{\r\n \"a\" :\t[ 1.0,\n\n 2 ],\"b\":\"\u2028\u2029\u0085\\u0000\\n\"}}},{\"delta\":\"a\\r\\n\\nevent: run.completed\"},{\"input\":{\"title\":\"more\\n\\n\"}}]}"
	id := p.start(p.conversation(), "script", "x", `,"config":`+hostile)
	var a portable.Action
	asked := p.until(id, "action.required")
	if err := json.Unmarshal(asked.Data, &a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // less than a ping
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", p.base+"/v1/executions/"+id+"/events?after="+strconv.FormatInt(asked.Sequence, 10), nil)
	r.Header = http.Header{"Authorization": {"Bearer " + secret}, "Accept": {"text/event-stream"}}
	resp, err := p.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"value":"v\r\n\nid: 1"}`)
	live, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	whole := p.must(200, "GET", "/v1/executions/"+id+"/events", "", "Accept", "text/event-stream").body
	if !strings.HasSuffix(string(whole), string(live)) || len(live) == 0 {
		t.Errorf("live it was told\n%s\nand afterwards\n%s", live, whole)
	}
	events := p.events(id)
	frames := strings.Split(strings.TrimSuffix(string(whole), "\n\n"), "\n\n")
	if len(frames) != len(events) || strings.Contains(string(whole), "\r") {
		t.Fatalf("%d frames of %d events: %q", len(frames), len(events), whole)
	}
	for i, e := range events {
		if want := "event: " + e.Type + "\ndata: " + string(protocol.MustMarshal(e)) + "\nid: " + strconv.Itoa(i+1); frames[i] != want {
			t.Errorf("frame %d is %q, want %q", i+1, frames[i], want)
		}
	}
}

// Section 5.1: a stream ends with its execution, also one that begins at or behind the end that is not there yet, in whichever process it is read.
func TestAStreamThatBeginsBehindAnEndThatIsYetToComeEndsWithIt(t *testing.T) {
	backing := memory.NewBacking()
	silent := func(c *Config) { c.Ping = time.Hour }
	p := serve(t, backing.Open("a"), &model{}, silent)
	q := serve(t, backing.Open("b"), &model{}, silent)
	r := serve(t, late{backing.Open("c")}, &model{}, silent)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, end := range []struct {
		path, body string
		last       string // number of the terminal event
	}{
		{":cancel", "", "4"},
		{"/actions/ID:respond", `{"approved":true}`, "8"}, // a bell for each event before it
	} {
		id := p.start(p.conversation(), "mock", "a b", `,"config":{"requireApproval":true,"prefix":"","delayMs":20}`)
		var a portable.Action
		if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
			t.Fatal(err)
		}
		streams := map[string]io.Reader{}
		for name, at := range map[string]*place{"its process": p, "another": q, "one that hears late": r} {
			for _, place := range []string{end.last, "1000000"} {
				for _, header := range []bool{true, false} {
					req := at.request(ctx, "GET", "/v1/executions/"+id+"/events", "")
					req.Header.Set("Accept", "text/event-stream")
					if header {
						req.Header.Set("Last-Event-ID", place)
					} else {
						req.URL.RawQuery = "after=" + place
					}
					resp, err := at.http.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					streams[fmt.Sprintf("%s, behind %s, as a header: %v", name, place, header)] = resp.Body
				}
			}
		}
		p.must(200, "POST", "/v1/executions/"+id+strings.Replace(end.path, "ID", a.ID, 1), end.body)
		for name, body := range streams {
			if told, err := io.ReadAll(body); err != nil || len(told) > 0 {
				t.Errorf("%s, %s: %v, told %q", end.path, name, err, told)
			}
		}
		if events := p.events(id); strconv.Itoa(len(events)) != end.last {
			t.Errorf("%s: %s", end.path, types(events))
		}
	}
}

// H118: bodies that break off in the middle leave no conversation, and nothing that is open.
func TestBodiesThatBreakOffLeaveNothingBehind(t *testing.T) {
	p := mocking(t)
	p.conversation()
	before := count(t, p)
	for i := range 200 {
		c, err := net.Dial("tcp", p.ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		path := []string{"/v1/conversations", "/v1/executions"}[i%2]
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"metadata\":{", path, p.token)
		_ = c.(*net.TCPConn).SetLinger(0) // a reset, as of a process that was killed
		_ = c.Close()
	}
	p.must(200, "GET", "/readyz", "")
	if n := count(t, p); n != before {
		t.Errorf("%d conversations were made", n-before)
	}
	p.streamless()
}

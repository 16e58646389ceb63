package httpapi

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"
)

// H067: a place that is none is refused, whichever way it is given; one behind the end waits for what comes, and an ended one has nothing.
func TestAPlaceThatIsNoneIsRefusedByPagesAndStreams(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", "")
	whole := p.follow(id, nil, nil)
	for _, place := range []string{"abc", "-5", "1.5", "1e3", "0x1", "99999999999999999999"} {
		a := p.do("GET", "/v1/executions/"+id+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", place)
		if a.status != 400 {
			t.Errorf("Last-Event-ID %q: %d %s", place, a.status, a.body)
		}
		if a := p.do("GET", "/v1/executions/"+id+"/events?after="+place, ""); a.status != 400 {
			t.Errorf("after %q: %d %s", place, a.status, a.body)
		}
	}
	if rest := p.follow(id, []string{"Last-Event-ID", strconv.Itoa(len(whole) + 999_999)}, nil); len(rest) != 0 {
		t.Errorf("behind the end: %d events", len(rest))
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
	deadline := time.Now().Add(5 * time.Second)
	for p.api.traffic.open() > 0 && time.Now().Before(deadline) {
		time.Sleep(2 * time.Millisecond)
	}
	if n := p.api.traffic.open(); n > 0 {
		t.Errorf("%d streams are open", n)
	}
}

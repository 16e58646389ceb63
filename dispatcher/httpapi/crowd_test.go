package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

// stall opens a stream and reads nothing of it.
func (p *place) stall(id string) net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.ln.Addr().String())
	if err != nil {
		p.t.Fatal(err)
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(c, "GET /v1/executions/%s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", id, p.token)
	return c
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// N10: three of twenty readers stop. The others get every event; the stalled ones are cut, and go on where they were.
func TestReadersThatStopAreCutAndHoldNobodyUp(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	p := mocking(t, func(c *Config) {
		c.Stall = 4 * time.Second
		c.Log = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
	})
	p.http.Transport.(*http.Transport).MaxIdleConnsPerHost = 32
	long := p.start(p.conversation(), "mock", strings.Repeat(strings.Repeat("y", 4<<10)+" ", 40), `,"config":{"delayMs":1,"prefix":""}`)
	var stalled []net.Conn
	for range 3 {
		stalled = append(stalled, p.stall(long))
	}
	var wg sync.WaitGroup
	for range 17 {
		wg.Go(func() {
			events := p.follow(long, nil, nil)
			sound(t, events)
			if len(events) != 44 {
				t.Errorf("a reader got %d events", len(events))
			}
		})
	}
	wg.Wait()
	p.streamless() // they are cut while nobody reads
	mu.Lock()
	if n := strings.Count(log.String(), "stream cut"); n != len(stalled) {
		t.Errorf("%d streams were cut", n)
	}
	mu.Unlock()
	for _, c := range stalled {
		last := int64(0)
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // its small window makes it slow
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				break
			}
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "id: "); ok {
				_, _ = fmt.Sscan(n, &last)
			}
		}
		_ = c.Close()
		rest := p.follow(long, []string{"Last-Event-ID", fmt.Sprint(last)}, nil)
		if len(rest) != int(44-last) || rest[0].Sequence != last+1 {
			t.Errorf("cut at %d, it goes on with %d events", last, len(rest))
		}
	}
}

// Section 7: an answer may come later than a write may take; the time of a write begins with the write.
func TestAnAnswerThatComesLateIsAnsweredAllTheSame(t *testing.T) {
	p := mocking(t, func(c *Config) {
		c.Stall = 50 * time.Millisecond
		c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: 400 * time.Millisecond})
	})
	id := p.start(p.conversation(), "fixture", "x", `,"config":{"mode":"slow-cleanup"}`)
	p.until(id, "run.started")
	if x := p.must(200, "POST", "/v1/executions/"+id+":cancel", ""); x.member("state") != "cancelled" {
		t.Errorf("%s", x.body)
	}
}

// N25: a thousand stand in line, the next one is refused and its key stays free.
func TestAThousandStandInLineAndTheNextIsRefused(t *testing.T) {
	h := newHeld()
	p := mocking(t, h.with(1))
	c := p.conversation()
	first := p.start(c, "held", "first", "")
	<-h.begun
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 125 {
				if a := p.do("POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"held","input":"x"}`); a.status != 202 {
					t.Errorf("refused before the bound: %d %s", a.status, a.body)
					return
				}
			}
		})
	}
	wg.Wait()
	body := `{"conversationId":"` + c + `","providerId":"held","input":"over","idempotencyKey":"over"}`
	a := p.must(503, "POST", "/v1/executions", body)
	if a.member("message") != "Too many executions are queued" || a.header.Get("Retry-After") != "1" {
		t.Errorf("refused with %s", a.body)
	}
	for range 1002 {
		h.let <- struct{}{}
	}
	sound(t, p.follow(first, nil, nil))
	var over *answered
	for range 1000 { // one has left the line
		if over = p.do("POST", "/v1/executions", body); over.status == 202 {
			break
		}
	}
	sound(t, p.follow(over.member("id"), nil, nil))
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.order) != 1002 || h.order[0] != "first" || h.order[1001] != "over" {
		t.Errorf("%d ran, the last one was %s", len(h.order), h.order[len(h.order)-1])
	}
}

// Section 12: executions that run side by side join the history at their end, in one piece each.
func TestExecutionsSideBySideJoinTheHistoryInOnePieceEach(t *testing.T) {
	m := &model{replies: replies{saying("ok")}}
	p := serve(t, store(), m)
	c := p.conversation()
	ids := make([]string, 8)
	for i := range ids {
		ids[i] = p.start(c, "mock", fmt.Sprintf("in%d a b c d", i), `,"config":{"delayMs":1,"prefix":"out "}`)
	}
	for _, id := range ids {
		sound(t, p.follow(id, nil, nil))
	}
	sound(t, p.follow(p.start(c, "agent", "last", ""), nil, nil))
	m.mu.Lock()
	defer m.mu.Unlock()
	var told []string
	for _, msg := range m.asked[0].Messages {
		if s := msg.Text; strings.HasPrefix(s, "in") || strings.HasPrefix(s, "out ") || s == "last" {
			told = append(told, s)
		}
	}
	if len(told) != 17 || told[16] != "last" {
		t.Fatalf("the model was told %q", told)
	}
	for i := 0; i < 16; i += 2 {
		if told[i+1] != "out "+told[i] {
			t.Errorf("%q is followed by %q", told[i], told[i+1])
		}
	}
}

// N10: streams that are dropped leave nothing behind.
func TestDroppedStreamsLeaveNothingBehind(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)
	p.until(id, "action.required")
	for range 20 {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				ctx, drop := context.WithCancel(t.Context())
				r, _ := http.NewRequestWithContext(ctx, "GET", p.base+"/v1/executions/"+id+"/events", nil)
				r.Header.Set("Authorization", "Bearer "+p.token)
				r.Header.Set("Accept", "text/event-stream")
				if resp, err := p.http.Do(r); err == nil {
					drop()
					_ = resp.Body.Close()
				}
				drop()
			})
		}
		wg.Wait()
	}
	p.streamless()
	if s := p.state(id); s != "awaiting_approval" {
		t.Errorf("the execution is %s", s)
	}
	p.must(200, "POST", "/v1/executions/"+id+":cancel", "")
}

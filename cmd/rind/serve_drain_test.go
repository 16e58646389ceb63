//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// line is one connection to a server, which is not opened anew.
type line struct {
	t    *testing.T
	conn *net.TCPConn
	read *bufio.Reader
}

func (s *serving) connect() *line {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	return &line{s.t, conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// send sends a request and reads the headers of its answer.
func (l *line) send(method, path, body string, headers ...string) *http.Response {
	l.t.Helper()
	r, err := http.NewRequestWithContext(l.t.Context(), method, "http://"+l.conn.RemoteAddr().String()+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	if err := r.Write(l.conn); err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.ReadResponse(l.read, r)
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

// must sends a request and returns the whole answer; a status other than the wanted one ends the test.
func (l *line) must(status int, method, path, body string, headers ...string) (string, http.Header) {
	l.t.Helper()
	resp := l.send(method, path, body, headers...)
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		l.t.Fatalf("%s %s: %d, want %d: %s, %v", method, path, resp.StatusCode, status, text, err)
	}
	return string(text), resp.Header
}

// signal sends a signal and waits until the server listens no more.
func (s *serving) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	at, began := strings.TrimPrefix(s.base, "http://"), time.Now()
	for conn, err := net.Dial("tcp", at); err == nil; conn, err = net.Dial("tcp", at) {
		_ = conn.Close()
		if time.Since(began) > 20*time.Second {
			s.t.Fatal("it goes on listening")
		}
	}
}

// ended waits for the end of the server, which has to be a good one and come within a time.
func (s *serving) ended(within time.Duration) {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }() // ends with the server
	select {
	case err := <-done:
		if err != nil {
			s.t.Errorf("it ended with %v", err)
		}
	case <-time.After(within):
		s.t.Errorf("it did not end in %v", within)
		_ = s.cmd.Process.Kill()
		<-done
	}
}

// Section 1.2 a: while a server drains, connections that are open are served but for what would be new, and the end comes as soon as nothing runs any more.
func TestWhatIsAskedWhileTheServerDrains(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT) // a shell that started this in the background has it ignored, here and in the child
	defer signal.Stop(heard)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := serveHTTP(t, t.TempDir(), "--drain", "5m")
			defer func() { s.kill() }()
			conv := s.id(201, "POST", "/v1/conversations", "")
			waits := s.start(conv, "mock", `,"config":{"requireApproval":true}`)
			s.until(waits, "awaiting_approval")
			runs := s.start(conv, "mock", `,"config":{"delayMs":600000}`)
			s.until(runs, "running")
			l, follows := s.connect(), s.connect()
			l.must(200, "GET", "/readyz", "")
			follows.must(200, "GET", "/readyz", "")
			page, _ := l.must(200, "GET", "/v1/executions/"+waits+"/events", "")
			_, action, _ := strings.Cut(page, `"id":"action_`)
			action = "action_" + action[:32]

			s.signal(sig)
			const stopping = `{"code":"UNAVAILABLE","message":"Runtime is stopping"}`
			for _, c := range []struct{ method, path, body, kind string }{
				{"GET", "/readyz", "", ""},
				{"HEAD", "/readyz", "", ""},
				{"POST", "/v1/conversations", "", ""},
				{"POST", "/v1/conversations", "hello", "text/plain"},
				{"POST", "/v1/executions", "{", "application/json"},
				{"POST", "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":"mock","input":""}`, conv), "application/json"},
			} {
				text, header := l.must(503, c.method, c.path, c.body, "Content-Type", c.kind)
				if c.method != "HEAD" && text != stopping || header.Get("Retry-After") != "1" {
					t.Errorf("%v: %s, %v", c, text, header)
				}
			}
			if _, header := l.must(405, "DELETE", "/readyz", ""); header.Get("Allow") != "GET, HEAD" || header.Get("Retry-After") != "" {
				t.Errorf("DELETE /readyz: %v", header)
			}
			l.must(200, "GET", "/healthz", "")
			l.must(200, "GET", "/v1/executions/"+waits, "")
			if now, _ := l.must(200, "GET", "/v1/executions/"+waits+"/events", ""); now != page {
				t.Errorf("the page was\n%s\nand is\n%s", page, now)
			}
			stream := follows.send("GET", "/v1/executions/"+waits+"/events", "", "Accept", "text/event-stream")
			if kind := stream.Header.Get("Content-Type"); stream.StatusCode != 200 || kind != "text/event-stream" {
				t.Fatalf("a stream while it drains: %d, %s", stream.StatusCode, kind)
			}
			l.must(200, "POST", "/v1/executions/"+waits+"/actions/"+action+":respond", `{"approved":true}`)
			if told, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(told), "event: action.required") || !strings.Contains(string(told), "event: run.completed") {
				t.Errorf("the stream: %v: %s", err, told)
			}
			if text, _ := l.must(200, "POST", "/v1/executions/"+runs+":cancel", `{"reason":"enough"}`); !strings.Contains(text, `"state":"cancelled"`) {
				t.Errorf("cancelled: %s", text)
			}
			s.ended(time.Minute)
		})
	}
}

// N10, N11, section 1.2 d: who has open more than the kernel holds for it and reads nothing keeps nobody from a good end, and the end not from coming.
func TestAReaderThatStandsStillDoesNotHoldUpTheEnd(t *testing.T) {
	s := serveHTTP(t, t.TempDir(), "--drain", "100ms", "--cleanup-timeout", "1s")
	defer func() { s.kill() }()
	conv := s.id(201, "POST", "/v1/conversations", "")
	large := s.start(conv, "mock", fmt.Sprintf(`,"config":{"prefix":%q}`, strings.Repeat("x", 3<<20))) // its text is told three times
	s.until(large, "succeeded")
	runs := s.start(conv, "mock", `,"config":{"delayMs":600000}`)
	s.until(runs, "running")

	stalled := s.connect()
	if err := stalled.conn.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if resp := stalled.send("GET", "/v1/executions/"+large+"/events", "", "Accept", "text/event-stream"); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	reads := s.connect()
	stream := reads.send("GET", "/v1/executions/"+runs+"/events", "", "Accept", "text/event-stream")
	told := make(chan string, 1)
	go func() { // ends with the stream
		text, err := io.ReadAll(stream.Body)
		told <- fmt.Sprintf("%s%v", text, err)
	}()
	s.signal(syscall.SIGTERM)
	s.ended(20 * time.Second) // a stalled write alone is given 30
	if text := <-told; !strings.HasSuffix(text, "\n\n<nil>") || !strings.Contains(text, `{"reason":"runtime shutting down"}`) {
		t.Errorf("who reads was told %s", text)
	}
}

package providertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Request is one request as it came in.
type Request struct {
	Method string
	Path   string // with the query
	Host   string
	Header http.Header
	Body   []byte
}

// Server answers requests on loopback, each with the next Reply of its script, in the order in which their bodies are complete.
// Safe for concurrent use.
type Server struct {
	listener net.Listener
	closing  chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex // guards what is below
	script   []Reply
	fallback *Reply
	strict   bool
	requests []Request
	conns    map[net.Conn]bool
	accepted int
	changed  chan struct{} // closed, and made anew, when requests or conns change
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB, script ...Reply) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen on loopback: %v", err)
	}
	s := &Server{listener: l, closing: make(chan struct{}), script: script, conns: map[net.Conn]bool{}, changed: make(chan struct{})}
	s.wg.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// URL is the address of the server, without a path: http://127.0.0.1:PORT.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Always is the reply of requests beyond the end of the script; without it they get status 500.
func (s *Server) Always(r Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fallback = &r
}

// BeStrict makes the server answer 400 to a POST whose body Strict refuses, leaving the script where it is.
func (s *Server) BeStrict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = true
}

// Requests returns the requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Open counts the connections that are open; Accepted all there ever were.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Accepted counts all connections there ever were.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// AwaitRequests returns once n requests have come; false if they have not within d.
func (s *Server) AwaitRequests(n int, d time.Duration) bool {
	return s.await(d, func() bool { return len(s.requests) >= n })
}

// AwaitClosed returns once no connection is open; false if one still is after d.
func (s *Server) AwaitClosed(d time.Duration) bool {
	return s.await(d, func() bool { return len(s.conns) == 0 })
}

// await waits until ok, which is called with mu held, says so.
func (s *Server) await(d time.Duration, ok func() bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		s.mu.Lock()
		good, changed := ok(), s.changed
		s.mu.Unlock()
		if good {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

// signal tells await to look again; mu is held.
func (s *Server) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close ends all connections and waits for the server's goroutines. Closing twice is no error.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	_ = s.listener.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		select {
		case <-s.closing:
			_ = c.Close()
			s.mu.Unlock()
			return
		default:
		}
		s.conns[c] = true
		s.accepted++
		s.signal()
		s.wg.Go(func() { s.serve(c) })
		s.mu.Unlock()
	}
}

// errGone: the peer, or the script, ended the connection.
var errGone = errors.New("connection is gone")

func (s *Server) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, c)
		s.signal()
	}()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		reply := s.next(Request{Method: req.Method, Path: req.URL.RequestURI(), Host: req.Host, Header: req.Header, Body: body})
		if err := s.answer(c, reply); err != nil {
			return
		}
	}
}

func (s *Server) next(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.signal()
	if s.strict && r.Method == http.MethodPost {
		if err := Strict(r.Body); err != nil {
			return JSON(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, "strict: "+err.Error()))
		}
	}
	if len(s.script) > 0 {
		reply := s.script[0]
		s.script = s.script[1:]
		return reply
	}
	if s.fallback != nil {
		return *s.fallback
	}
	return JSON(http.StatusInternalServerError, `{"error":{"message":"the script of this server has no further reply"}}`)
}

// answer plays a reply. An error ends the connection.
func (s *Server) answer(c net.Conn, r Reply) error {
	w := &writer{server: s, conn: c, chunked: !r.Plain}
	if !r.Silent {
		var head strings.Builder
		status := r.Status
		if status == 0 {
			status = http.StatusOK
		}
		fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
		if w.chunked {
			head.WriteString("Transfer-Encoding: chunked\r\n")
		} else {
			head.WriteString("Connection: close\r\n")
		}
		_ = r.Header.Write(&head) // a strings.Builder takes all
		head.WriteString("\r\n")
		if _, err := io.WriteString(c, head.String()); err != nil {
			return err
		}
	}
	for _, step := range r.Steps {
		if err := step(w); err != nil {
			return err
		}
	}
	if r.Silent || r.Plain {
		return errGone
	}
	_, err := io.WriteString(c, "0\r\n\r\n")
	return err
}

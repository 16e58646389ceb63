// Package httpapi serves the portable execution protocol over HTTP and SSE (docs/protocol/portable-2026-09-02.md) on the same sessions as
// every other surface: a conversation is a session, an execution is a turn, and a stream of events is a cursor over the log. It keeps no
// event and no queue; a slow reader costs nothing, and one that takes nothing for 30 s is cut.
//
// Goroutines are those of net/http, one per connection; End ends them.
package httpapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Bounds of a request (docs/protocol/portable-2026-09-02.md sections 1 and 1.1).
const (
	maxBody       = 4 << 20
	unasked       = 64 << 10 // of a body that is not needed: a longer one ends its connection
	bodyTime      = 30 * time.Second
	writeTime     = 30 * time.Second
	writeBuffer   = 128 << 10
	pingEvery     = 15 * time.Second
	headerBytes   = 64 << 10
	headerTimeout = 10 * time.Second
	idleTimeout   = 120 * time.Second
)

// Config is what a Server is made of. Sessions, Commands and Workspace are required.
type Config struct {
	Sessions   *session.Sessions
	Commands   *executions.Commands // what is answered with; End closes them
	Workspace  string               // absolute: of conversations that name none
	Workspaces map[string]string    // further ones, by name
	Token      string               // "" asks for none
	Port       int                  // this server's
	Hosts      []string
	Origins    []string
	Log        *slog.Logger
	ErrorID    func(err error) string
	Ping       time.Duration // between comments on a stream without events; 0 is 15 s
	Stall      time.Duration // how long a write may make no progress; 0 is 30 s
	Buffer     int           // bytes of an answer that the system may hold for its reader; 0 is 128 KiB
	Headers    time.Duration // how long headers may take; 0 is 10 s
	Body       time.Duration // how long a body may take; 0 is 30 s
	// OpenFile opens a regular file of a workspace, by an absolute path, within the workspace only. nil: no contents are served.
	OpenFile   func(workspace, path string) (File, error)
	StoreBytes func() int64 // size of the store's files; nil tells none
}

// Server is a http.Handler. Safe for concurrent use.
type Server struct {
	cfg Config

	mu       sync.Mutex // guards draining and closed
	draining bool
	closed   bool
	end      chan struct{} // closed when streams are to end
	srv      *http.Server
	traffic  traffic
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ErrorID == nil {
		cfg.ErrorID = func(error) string { return "" }
	}
	if cfg.Ping == 0 {
		cfg.Ping = pingEvery
	}
	if cfg.Headers == 0 {
		cfg.Headers = headerTimeout
	}
	if cfg.Body == 0 {
		cfg.Body = bodyTime
	}
	if cfg.Stall == 0 {
		cfg.Stall = writeTime
	}
	if cfg.Buffer == 0 {
		cfg.Buffer = writeBuffer
	}
	s := &Server{cfg: cfg, end: make(chan struct{})}
	s.srv = s.http()
	return s
}

// Drain refuses new conversations and executions from now on (section 1.2 a).
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// exchange is one request being answered.
type exchange struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	args []string // the ids of the path
	text json.RawMessage
	name string // of the route
	done bool   // the status was written
}

// ServeHTTP implements http.Handler: the pipeline of section 1.1, the first failure answers.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{s: s, w: w, r: r, name: "other"}
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			x.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 { // also where it is refused: an answer goes out behind the body, or when that does not come in time
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.Body))
	}
	if err := x.serve(); err != nil {
		x.fail(err)
	}
}

func (x *exchange) serve() error {
	if err := x.guard(); err != nil {
		return err
	}
	if x.preflight() {
		return nil
	}
	rt, args := find(x.r.Method, pathOf(x.r))
	if rt != nil {
		x.name = rt.name
	}
	if rt == nil || !rt.open {
		if err := x.authenticate(); err != nil {
			return err
		}
	}
	if rt == nil {
		return &portable.Error{Code: portable.NotFound, Message: "Route not found"}
	}
	if !rt.serves(x.r.Method) {
		x.w.Header().Set("Allow", rt.allow())
		return &portable.Error{Code: portable.BadMethod, Message: "Method not allowed"}
	}
	if rt.stops && x.s.isDraining() {
		return &portable.Error{Code: portable.Unavailable, Message: "Runtime is stopping"}
	}
	var err error
	switch {
	case rt.method == http.MethodPost:
		x.text, err = x.body()
	case x.r.ContentLength != 0:
		_, err = x.take(unasked)
	}
	if err != nil {
		return err
	}
	x.args = args
	return rt.run(x)
}

// answer writes an object.
func (x *exchange) answer(status int, v any) error {
	body, err := protocol.Marshal(v)
	if err != nil {
		return err
	}
	return x.write(status, "application/json", body)
}

// write answers with a body that is whole.
func (x *exchange) write(status int, contentType string, body []byte) error {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.status(status)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // who left is told nothing
	}
	return nil
}

// status writes the headers.
func (x *exchange) status(status int) {
	x.done = true
	x.s.traffic.count(x.name, status)
	x.w.WriteHeader(status)
}

// fail answers with an error.
func (x *exchange) fail(err error) {
	e := portable.FromError(err)
	switch e.Code {
	case portable.Internal:
		id := x.s.cfg.ErrorID(err)
		x.s.cfg.Log.Error("request", "method", x.r.Method, "error_id", id)
	case portable.Unavailable:
		x.s.cfg.Log.Info("request refused", "method", x.r.Method, "err", err)
		x.w.Header().Set("Retry-After", "1")
	case portable.Unauthorized:
		x.w.Header().Set("WWW-Authenticate", `Bearer realm="rind"`)
	case portable.TooLarge:
		x.w.Header().Set("Connection", "close")
	}
	if x.done { // too late for an answer
		panic(http.ErrAbortHandler)
	}
	_ = x.answer(e.HTTPStatus(), e)
}

func (s *Server) allowedOrigin(origin string) bool { return slices.Contains(s.cfg.Origins, origin) }

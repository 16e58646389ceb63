package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// site is an HTTP server of the protocol with one tool per way of answering.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	seen     []string // method and headers of each request, as far as they are of interest
	sessions int
	forgot   bool
	notes    chan string   // what the listening stream says
	hangs    chan struct{} // a request that hangs has begun
	gone     chan struct{} // and was given up by the client
}

func newSite(t *testing.T) *site {
	s := &site{notes: make(chan string, 4), hangs: make(chan struct{}, 4), gone: make(chan struct{}, 4)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) log(f string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(f, args...))
}

func (s *site) has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.seen, "\n"), part)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var session string
	if r.Header.Get("Authorization") != "Bearer sk-canary-77777" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodDelete:
		s.log("DELETE %s", r.Header.Get("Mcp-Session-Id"))
		return
	case http.MethodGet:
		s.log("GET last=%s", r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		if last := r.Header.Get("Last-Event-ID"); last != "" {
			fmt.Fprintf(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"resumed\"}]}}\n\n", strings.TrimPrefix(last, "e"))
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case n := <-s.notes:
				fmt.Fprintf(w, ": hello\r\nevent: message\r\ndata: %s\r\n\r\n", n)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	var m struct {
		message
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Meta      struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(body, &m)
	s.log("%s session=%s version=%s accept=%s", m.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("Accept"))
	s.mu.Lock()
	forgot := s.forgot
	status := http.StatusNotFound
	if s.sessions > 1 {
		status = http.StatusBadRequest
	}
	if m.Method == "initialize" {
		s.forgot, forgot = false, false
		s.sessions++
		session = fmt.Sprint("s", s.sessions)
	}
	s.mu.Unlock()
	if forgot {
		http.Error(w, "no such session", status)
		return
	}
	answer := func(result any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(protocol.MustMarshal(object{"jsonrpc": "2.0", "id": m.ID, "result": result}))
	}
	stream := func() {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
	}
	event := func(v object) {
		v["jsonrpc"] = "2.0"
		fmt.Fprintf(w, "data: %s\n\n", protocol.MustMarshal(v))
		w.(http.Flusher).Flush()
	}
	said := func(text string) object {
		return object{"content": []any{object{"type": "text", "text": text}}}
	}
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", session)
		answer(object{"protocolVersion": "2025-06-18", "serverInfo": object{"name": "site"}})
	case "tools/list":
		s.mu.Lock()
		n := s.sessions
		s.mu.Unlock()
		var all []any
		for _, name := range []string{"json", "stream", "hang", "cut", "resume", "huge", "hugeline", "status", "page", "none", "forget", "ask"} {
			all = append(all, item(name, fmt.Sprint("of session ", n)))
		}
		stream()
		event(object{"id": m.ID, "result": object{"tools": all}})
	case "tools/call":
		switch m.Params.Name {
		case "json":
			answer(said(string(m.Params.Arguments)))
		case "stream":
			stream()
			event(object{"method": "notifications/progress", "params": object{"progressToken": m.Params.Meta.Token, "progress": 1, "total": 2}})
			event(object{"id": m.ID, "result": said("streamed")})
		case "hang":
			stream()
			s.hangs <- struct{}{}
			<-r.Context().Done()
			s.gone <- struct{}{}
		case "cut":
			stream()
			fmt.Fprint(w, "data: {\"half\"")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "resume":
			stream()
			fmt.Fprintf(w, "id: e%s\nretry: 1\ndata:\n\n", m.ID)
		case "huge":
			answer(said(strings.Repeat("h", testMessage)))
		case "hugeline":
			stream()
			event(object{"id": m.ID, "result": said(strings.Repeat("h", testMessage))})
		case "status":
			http.Error(w, "the database\nis down sk-canary-77777", http.StatusInternalServerError)
		case "page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		case "none":
			w.WriteHeader(http.StatusAccepted)
		case "forget":
			s.mu.Lock()
			s.forgot = true
			s.mu.Unlock()
			answer(said("forgotten"))
		case "ask":
			stream()
			event(object{"id": "q1", "method": "ping"})
			for range 1000 {
				if s.has("REPLY") {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			event(object{"id": m.ID, "result": said("asked")})
		}
	case "":
		s.log("REPLY %s", body)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func web(s *site, more object) object {
	e := object{"type": "http", "url": s.URL + "/mcp?key=q", "headers": object{"Authorization": "Bearer ${SITE_KEY}"}}
	for k, v := range more {
		e[k] = v
	}
	return e
}

func withKey(c *Config) { c.Env = []string{"SITE_KEY=sk-canary-77777"} }

func TestToolsOverHTTPAreListedAndCalled(t *testing.T) {
	s := newSite(t)
	h := open(t, object{"w": web(s, nil)}, withKey)
	if n := len(h.Tools(t.Context())); n != 12 {
		t.Fatalf("%d tools: %+v", n, h.List())
	}
	if !s.has("tools/list session=s1 version=2025-06-18 accept=application/json, text/event-stream") || !s.has("notifications/initialized session=s1") {
		t.Errorf("%q", s.seen)
	}
	if got := text(run(t.Context(), t, h.find(t, "mcp__w__json"), `{"n":9007199254740993}`)); got != `{"n":9007199254740993}` {
		t.Error(got)
	}
	out := &said{}
	r, err := h.find(t, "mcp__w__stream").Run(t.Context(), session.ToolCall{Arguments: json.RawMessage(`{}`)}, out)
	if err != nil || text(r) != "streamed" || len(out.lines) != 1 || out.lines[0] != "1 of 2" {
		t.Errorf("%v %+v %q", err, r, out.lines)
	}
	if r := run(t.Context(), t, h.find(t, "mcp__w__ask"), `{}`); text(r) != "asked" || !s.has(`REPLY {"id":"q1","jsonrpc":"2.0","result":{}}`) {
		t.Errorf("%+v %q", r, s.seen)
	}
	if got := h.List()[0]; got.Where != s.URL+"/mcp" || got.Transport != "http" {
		t.Errorf("%+v", got)
	}
	h.Close()
	if !s.has("DELETE s1") {
		t.Error("the session was not ended")
	}
	if strings.Contains(h.log.String(), "canary") {
		t.Error("the log holds the key")
	}
}

func TestWhatGoesWrongOverHTTPFailsTheCallOnly(t *testing.T) {
	s := newSite(t)
	h := open(t, object{"w": web(s, nil)}, withKey)
	for name, want := range map[string]string{
		"cut": "broke off", "huge": "16 MiB", "hugeline": "16 MiB", "status": "status 500: the database is down [hidden]", "page": "text/html", "none": "without an answer",
	} {
		r := run(t.Context(), t, h.find(t, "mcp__w__"+name), `{}`)
		if r.Status != protocol.ToolFailed || !strings.Contains(r.Error, want) || !strings.Contains(r.Error, "may or may not have run") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := run(t.Context(), t, h.find(t, "mcp__w__resume"), `{}`); text(r) != "resumed" {
		t.Errorf("%+v", r)
	}
	if r := run(t.Context(), t, h.find(t, "mcp__w__json"), `{}`); text(r) != "{}" {
		t.Errorf("%+v", r)
	}
}

func TestAServerThatForgetsTheSessionIsConnectedToAgain(t *testing.T) {
	s := newSite(t)
	h := open(t, object{"w": web(s, nil)}, withKey)
	for _, next := range []string{"s2", "s3"} { // told by 404, then by 400
		run(t.Context(), t, h.find(t, "mcp__w__forget"), `{}`)
		call := h.find(t, "mcp__w__json")
		if r := run(t.Context(), t, call, `{}`); r.ErrorType == "" || !strings.Contains(r.Error, "forgotten the session") {
			t.Errorf("%+v", r)
		}
		if r := run(t.Context(), t, call, `{}`); text(r) != "{}" || !s.has("tools/call session="+next) {
			t.Errorf("%+v", r)
		}
	}
}

func TestCancelOverHTTPEndsTheRequest(t *testing.T) {
	s := newSite(t)
	h := open(t, object{"w": web(s, nil)}, withKey)
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("cancelled by the test")
	go func() { <-s.hangs; cancel(mine) }()
	if _, err := h.find(t, "mcp__w__hang").Run(ctx, session.ToolCall{Arguments: json.RawMessage(`{}`)}, &said{}); !errors.Is(err, mine) {
		t.Error(err)
	}
	select {
	case <-s.gone:
	case <-time.After(soon):
		t.Error("the request goes on")
	}
	testkit.Eventually(t, "the server is told", func() bool { return s.has("notifications/cancelled session=s1") })
}

func TestAListChangedOverHTTPIsHeard(t *testing.T) {
	s := newSite(t)
	h := open(t, object{"w": web(s, nil)}, withKey)
	h.Tools(t.Context())
	s.mu.Lock()
	s.sessions = 5
	s.mu.Unlock()
	s.notes <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	testkit.Eventually(t, "the new list is there", func() bool {
		return strings.HasSuffix(h.Tools(t.Context())[0].Spec().Description, "of session 5")
	})
}

func TestAServerThatRefusesIsNotAskedAgain(t *testing.T) {
	s := newSite(t)
	named := open(t, object{"w": web(s, object{"headers": object{}})}, func(c *Config) { c.Literal = true })
	named.Start()
	named.Wait(t.Context())
	if got := named.List()[0].Error; !strings.HasSuffix(got, "give it a token in headers, as Authorization, where the editor names the server") {
		t.Error(got)
	}
	h := open(t, object{"w": web(s, object{"headers": object{}}), "elsewhere": object{"url": s.URL + "/"}}, withKey)
	h.Start()
	h.Wait(t.Context())
	for _, got := range h.List() {
		if got.State != StateFailed || !strings.Contains(got.Error, "(401): it wants a login; give it a token in headers") {
			t.Errorf("%+v", got)
		}
	}
}

func TestHeadersFollowNoRedirectToAnotherHost(t *testing.T) {
	var leaked sync.Map
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked.Store(r.Header.Get("Authorization"), r.Method) }))
	defer evil.Close()
	moved := httptest.NewServer(http.RedirectHandler(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect))
	defer moved.Close()
	h := open(t, object{"m": object{"url": moved.URL, "headers": object{"Authorization": "Bearer k"}}})
	h.Start()
	h.Wait(t.Context())
	if got := h.List()[0]; !strings.Contains(got.Error, "sends elsewhere (307)") {
		t.Errorf("%+v", got)
	}
	leaked.Range(func(k, _ any) bool { t.Errorf("the other host got %q", k); return true })
}

func TestEventsComeInAnyPieces(t *testing.T) {
	in := ": c\n\nid: 1\ndata: a\ndata:b\n\nretry: 5\r\nevent: x\r\ndata: c\r\n\r\ndata\n\nid: 2\n\ndata: cut"
	for size := 1; size < 9; size++ {
		es := newEvents(&pieces{[]byte(in), size}, maxMessage)
		var got []string
		for {
			ev, err := es.next()
			if err != nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				break
			}
			got = append(got, ev.id+"="+string(ev.data))
		}
		if s := strings.Join(got, "|"); s != "1=a\nb|1=c|1=" || es.last != "2" || es.retry != 5*time.Millisecond {
			t.Errorf("%d: %q %q", size, s, es.last)
		}
	}
}

type pieces struct {
	b    []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(p.size, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: x\n\n"), 3)
	f.Add([]byte("id: \x00\nretry: 99999999999999\ndata\r\n\r\n:"), 1)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		es := newEvents(&pieces{in, max(1, size%64)}, maxMessage)
		for n := 0; ; n++ {
			ev, err := es.next()
			if err != nil {
				return
			}
			if n > len(in) || len(ev.data) > len(in) {
				t.Fatal("more comes out than went in")
			}
		}
	})
}

package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Endpoint is what a model is made for.
type Endpoint struct {
	URL     string // http://[user:password@]host:port, without a path
	Key     string
	Headers map[string]string
	Idle    time.Duration // longest silence; 0 for the adapter's own
	// Transport is used in place of the adapter's own where it is not nil.
	Transport http.RoundTripper
}

// Suite describes a model to Run. The model's goroutines and connections end with the cleanups of the test it was made for.
type Suite struct {
	Wire Wire
	New  func(t testing.TB, e Endpoint) session.Model
	// NoReasoningTokens: the wire does not count them.
	NoReasoningTokens bool
	// ParsedArguments: the wire's own events cannot carry arguments that are no JSON, or the adapter never sees them raw.
	ParsedArguments bool
}

// Run holds a model against the contract of session.Model (session/ports_model.go): what arrives, how it ends, what is asked for, and
// what must never be seen.
func Run(t *testing.T, s Suite) {
	for name, test := range map[string]func(*testing.T, Suite){
		"text arrives in pieces and usage is counted once":           textArrives,
		"text and arguments survive one byte per segment":            dripped,
		"calls keep their raw arguments, ids and order":              callsArrive,
		"raw arguments are handed through unchanged":                 rawArguments,
		"each finish has its own word":                               finishes,
		"a stream that ends without its end mark is cut":             cuts,
		"a stream of comments alone is a fault to be retried":        commentsOnly,
		"keep-alives count as life":                                  keepAlives,
		"silence is a timeout":                                       silence,
		"an error inside a 200 is a fault with the provider's words": errorsInside,
		"statuses become faults":                                     statuses,
		"Retry-After is read with care":                              retryAfter,
		"messages are one short line":                                messages,
		"secrets are in no error and go to no other host":            secrets,
		"nothing listening is a network fault":                       refusedConnection,
		"cancel closes the connection and yields its cause":          cancels,
		"a consumer that stops closes the connection":                stops,
		"requests pass the strictest reader":                         strictRequests,
		"calls of what is no tool do not end a session":              strictOddCalls,
		"many completions run at once":                               concurrent,
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { test(t, s) })
	}
}

// closes is longer than what a connection is waited for takes, on a busy machine.
const closes = 20 * time.Second

// Hello is the smallest request.
func Hello() session.ModelRequest {
	return session.ModelRequest{Model: "model-1", Messages: []session.Message{{Role: session.RoleUser, Text: "hi"}}}
}

// serve starts a server with a script and a model for it.
func (s Suite) serve(t testing.TB, script ...Reply) (*Server, session.Model) {
	t.Helper()
	server := NewServer(t, script...)
	return server, s.New(t, Endpoint{URL: server.URL(), Key: "key-of-the-suite"})
}

func (s Suite) good(text string) string {
	return s.Wire.Begin() + s.Wire.Text(text) + s.Wire.End(session.FinishStop, session.Usage{Input: 3, Output: 1})
}

func ask(t testing.TB, m session.Model, r session.ModelRequest) Answer {
	t.Helper()
	return Collect(t.Context(), t, m, r)
}

// fault asks for an error and returns it.
func (a Answer) fault(t testing.TB) *session.ModelError {
	t.Helper()
	e, ok := errors.AsType[*session.ModelError](a.Err)
	if !ok {
		t.Fatalf("got text %q, finish %q, error %v (%T), want a *session.ModelError", a.Text, a.Finish, a.Err, a.Err)
	}
	if a.Finish != "" {
		t.Errorf("a failed completion has the finish %q", a.Finish)
	}
	checkMessage(t, e.Message)
	return e
}

func checkMessage(t testing.TB, text string) {
	t.Helper()
	if text == "" || protocol.CharLen(text) > 500 || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("message %q is empty, longer than 500 characters, or holds control characters", text)
	}
}

func (a Answer) good(t testing.TB) Answer {
	t.Helper()
	if a.Err != nil {
		t.Fatalf("the completion failed: %v", a.Err)
	}
	return a
}

func textArrives(t *testing.T, s Suite) {
	usage := session.Usage{Input: 30, Cached: 20, Output: 12, Reasoning: 5}
	if s.NoReasoningTokens {
		usage.Reasoning = 0
	}
	_, m := s.serve(t, Stream(Send(s.Wire.Begin()+s.Wire.Text("Hel")+s.Wire.Text("lo 🌍")), Send(s.Wire.End(session.FinishStop, usage))))
	a := ask(t, m, Hello()).good(t)
	if a.Text != "Hello 🌍" || a.Finish != session.FinishStop {
		t.Errorf("got %q, %q", a.Text, a.Finish)
	}
	if len(a.Usage) != 1 || a.Usage[0] != usage {
		t.Errorf("usage %+v, want once %+v", a.Usage, usage)
	}
}

func dripped(t *testing.T, s Suite) {
	const text, arguments = "你好 🌍 “q”", `{"q":"那 “x” 🌍"}`
	body := s.Wire.Begin() + s.Wire.Text(text) + s.Wire.Calls(WireCall{"c1", "ask", []string{arguments}}) + s.Wire.End(session.FinishCalls, session.Usage{Input: 1, Output: 1})
	_, m := s.serve(t, Stream(Drip(body)), Stream(Drip(strings.ReplaceAll(body, "\n", "\r\n"))))
	for range 2 {
		a := ask(t, m, Hello()).good(t)
		if a.Text != text || len(a.Calls) != 1 || a.Calls[0].Arguments != arguments {
			t.Errorf("got %q and %+v", a.Text, a.Calls)
		}
	}
}

func callsArrive(t *testing.T, s Suite) {
	_, m := s.serve(t, Stream(Send(s.Wire.Begin()+s.Wire.Calls(
		WireCall{"call_b", "read_file", []string{`{"pa`, `th":`, ` "a"}`}},
		WireCall{"call_a", "list_dir", []string{`{}`}},
	)+s.Wire.End(session.FinishCalls, session.Usage{Input: 1, Output: 1}))))
	a := ask(t, m, Hello()).good(t)
	want := []AnswerCall{{"call_b", "read_file", `{"path": "a"}`}, {"call_a", "list_dir", `{}`}}
	if fmt.Sprint(a.Calls) != fmt.Sprint(want) || a.Finish != session.FinishCalls {
		t.Errorf("got %+v, %q", a.Calls, a.Finish)
	}
}

func rawArguments(t *testing.T, s Suite) {
	if s.ParsedArguments {
		t.Skip("this wire cannot carry them")
	}
	for _, raw := range []string{
		`{"path":"a`, ``, `[]`, `"x"`, `null`, `{"path":"a"}}`, `{"path":1}`, `{"path":"a\u0000b"}`, `{"q":"x\ud99cy"}`, " { \"a\" : 1.0 } ", `{"a":1e400,"a":2}`,
	} {
		_, m := s.serve(t, Stream(Send(s.Wire.Begin()+s.Wire.Calls(WireCall{"c1", "read_file", []string{raw}})+s.Wire.End(session.FinishCalls, session.Usage{Input: 1, Output: 1}))))
		a := ask(t, m, Hello()).good(t)
		if len(a.Calls) != 1 || a.Calls[0].Arguments != raw {
			t.Errorf("raw arguments %q arrived as %+v", raw, a.Calls)
		}
	}
}

func finishes(t *testing.T, s Suite) {
	for _, f := range []session.Finish{session.FinishStop, session.FinishLength, session.FinishFilter} {
		_, m := s.serve(t, Stream(Send(s.Wire.Begin()+s.Wire.Text("x")+s.Wire.End(f, session.Usage{Input: 1, Output: 1}))))
		if a := ask(t, m, Hello()).good(t); a.Finish != f {
			t.Errorf("%s arrived as %s", f, a.Finish)
		}
	}
}

func cuts(t *testing.T, s Suite) {
	text := s.Wire.Begin() + s.Wire.Text("par")
	call := s.Wire.Begin() + s.Wire.Calls(WireCall{"c1", "shell", []string{`{"command":"touch x"}`}})
	seen := make(chan struct{})
	for name, r := range map[string]Reply{
		"text, then a clean end":         Stream(Send(text)),
		"text, then the end of the pipe": {Header: http.Header{"Content-Type": {"text/event-stream"}}, Steps: []Step{Send(text)}, Plain: true},
		"text, then an open chunk":       Stream(Send(text), Cut()),
		"text, then a reset":             Stream(Send(text), Gate(seen), Reset()),
		"a whole call, then a clean end": Stream(Send(call)),
		"half an event":                  Stream(Send(text + s.Wire.Text("tial")[:20])),
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			_, m := s.serve(t, r)
			var a Answer
			if name == "text, then a reset" {
				for c, err := range m.Generate(t.Context(), Hello()) {
					if err != nil {
						a.Err = err
						break
					}
					if c.Kind == session.ChunkText {
						a.Text += c.Text
						close(seen)
					}
				}
			} else {
				a = ask(t, m, Hello())
			}
			if f := a.fault(t).Fault; f != session.FaultCut {
				t.Errorf("fault %s, want %s", f, session.FaultCut)
			}
			if strings.HasPrefix(name, "text") && a.Text != "par" {
				t.Errorf("the text that came is %q", a.Text)
			}
			if len(a.Calls) > 0 && a.Finish != "" {
				t.Error("the call counts as complete")
			}
		})
	}
}

// repeatable tells whether the loop tries again after a fault.
func repeatable(f session.Fault) bool {
	switch f {
	case session.FaultCut, session.FaultBadReply, session.FaultRate, session.FaultServer, session.FaultNetwork, session.FaultTimeout:
		return true
	}
	return false
}

func commentsOnly(t *testing.T, s Suite) {
	for _, body := range []string{": OPENROUTER PROCESSING\n\n: x\r\n\r\n", ""} {
		_, m := s.serve(t, Stream(Send(body)))
		if f := ask(t, m, Hello()).fault(t).Fault; !repeatable(f) {
			t.Errorf("%q gives the fault %s, which is not retried", body, f)
		}
	}
}

func keepAlives(t *testing.T, s Suite) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan struct{})
		m := s.New(t, Endpoint{URL: "http://model.invalid", Idle: time.Second, Transport: Spoken(func(say func(string)) {
			defer close(said)
			for range 12 {
				say(": still here\n\n")
				time.Sleep(time.Second - time.Millisecond)
			}
			say("retry: 10\n\n" + s.good("ok"))
		})})
		a := ask(t, m, Hello())
		<-said
		if a.good(t).Text != "ok" {
			t.Errorf("got %q", a.Text)
		}
	})
}

func silence(t *testing.T, s Suite) {
	for name, r := range map[string]Reply{
		"headers only": HeadersOnly(), "no answer": Silence(), "after text": Stream(Send(s.Wire.Begin()+s.Wire.Text("par")), Hang()),
	} {
		server := NewServer(t, r)
		m := s.New(t, Endpoint{URL: server.URL(), Idle: 80 * time.Millisecond})
		if f := ask(t, m, Hello()).fault(t).Fault; f != session.FaultTimeout {
			t.Errorf("%s: fault %s, want %s", name, f, session.FaultTimeout)
		}
		if !server.AwaitClosed(closes) {
			t.Errorf("%s: the connection is open %v later", name, closes)
		}
	}
}

func errorsInside(t *testing.T, s Suite) {
	for name, test := range map[string]struct {
		reply Reply
		fault session.Fault
		says  string
	}{
		"at once":     {Stream(Send(s.Wire.Error("Overloaded, come back later"))), session.FaultServer, "Overloaded, come back later"},
		"after text":  {Stream(Send(s.Wire.Begin() + s.Wire.Text("Part") + s.Wire.Error("Overloaded, come back later"))), session.FaultServer, "Overloaded, come back later"},
		"json in 200": {JSON(200, `{"type":"error","error":{"type":"overloaded_error","message":"too busy"}}`), session.FaultServer, "too busy"},
		"login page":  {Body(200, "text/html; charset=utf-8", "<!doctype html><title>Log in</title>"), session.FaultBadReply, ""},
		"login page under a false name": {
			Body(200, "text/event-stream", "<!doctype html><title>Log in</title>"), session.FaultBadReply, "",
		},
	} {
		_, m := s.serve(t, test.reply)
		e := ask(t, m, Hello()).fault(t)
		if e.Fault != test.fault || !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %s %q, want %s with %q", name, e.Fault, e.Message, test.fault, test.says)
		}
	}
}

func statuses(t *testing.T, s Suite) {
	for status, fault := range map[int]session.Fault{
		400: session.FaultRejected, 401: session.FaultAuth, 402: session.FaultQuota, 403: session.FaultAuth, 404: session.FaultModel,
		413: session.FaultContext, 422: session.FaultRejected, 429: session.FaultRate, 500: session.FaultServer, 502: session.FaultServer,
		503: session.FaultServer, 529: session.FaultServer,
	} {
		for _, body := range []string{`{"error":{"type":"some_error","message":"words of the provider"}}`, "", "<html>no</html>"} {
			server, m := s.serve(t, JSON(status, body))
			e := ask(t, m, Hello()).fault(t)
			if e.Fault != fault || e.Status != status {
				t.Errorf("%d %q: %s, status %d, want %s", status, body, e.Fault, e.Status, fault)
			}
			if strings.Contains(body, "words") && !strings.Contains(e.Message, "words of the provider") {
				t.Errorf("%d: message %q lost the provider's words", status, e.Message)
			}
			if n := len(server.Requests()); n != 1 {
				t.Errorf("%d: %d requests for one attempt", status, n)
			}
		}
	}
}

func retryAfter(t *testing.T, s Suite) {
	synctest.Test(t, func(t *testing.T) { retryDelays(t, s) }) // where time stands still, a date is as far away as it was
}

func retryDelays(t *testing.T, s Suite) {
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		value    string
		from, to time.Duration
	}{
		"seconds":        {"1", time.Second, time.Second},
		"half a second":  {"1.5", 1500 * time.Millisecond, 1500 * time.Millisecond},
		"date":           {date(20 * time.Second), 20 * time.Second, 20 * time.Second},
		"date in 2099":   {"Thu, 01 Jan 2099 00:00:00 GMT", time.Minute, time.Minute},
		"date long past": {"Thu, 01 Jan 1998 00:00:00 GMT", 0, 0},
		"far too long":   {"86400", time.Minute, time.Minute},
		"negative":       {"-5", 0, 0},
		"zero":           {"0", 0, 0},
		"garbage":        {"abc", 0, 0},
		"empty":          {"", 0, 0},
		"not a number":   {"NaN", 0, 0},
		"infinite":       {"1e999", 0, time.Minute},
	} {
		m := s.New(t, Endpoint{URL: "http://model.invalid", Transport: RoundTrip(func(r *http.Request) (*http.Response, error) {
			header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {test.value}}
			body := strings.NewReader(`{"error":{"type":"rate_limit_error","message":"slow down"}}`)
			return &http.Response{StatusCode: http.StatusTooManyRequests, Request: r, Header: header, Body: io.NopCloser(body)}, nil
		})})
		e := ask(t, m, Hello()).fault(t)
		if e.Fault != session.FaultRate || e.RetryAfter < test.from || e.RetryAfter > test.to {
			t.Errorf("%s (%q): %s after %v, want %v to %v", name, test.value, e.Fault, e.RetryAfter, test.from, test.to)
		}
	}
}

func messages(t *testing.T, s Suite) {
	long := strings.Repeat("long words of many lines \n\t\x1b[31m ", 200)
	_, m := s.serve(t, JSON(400, `{"error":{"type":"invalid_request_error","message":`+quote(long)+`}}`), Body(500, "text/plain", long+"\xff\xfe"))
	for range 2 {
		if e := ask(t, m, Hello()).fault(t); e.Cause != nil {
			checkMessage(t, protocol.Prefix(e.Cause.Error(), 500))
		}
	}
}

func secrets(t *testing.T, s Suite) {
	const key, password, header = "sk-CANARY-7f3a", "CANARY-pass", "CANARY-header"
	other := NewServer(t)
	other.Always(Stream(Send(s.good("from the other host"))))
	body := `{"error":{"type":"authentication_error","message":"no: Authorization: Bearer ` + key + ` X-Api-Key: ` + header + ` http://me:` + password + `@host/"}}`
	server := NewServer(t, JSON(401, body),
		Redirect(307, other.URL()+"/elsewhere?k="+key), Redirect(302, other.URL()+"/elsewhere"), Body(500, "text/plain", "dump: "+key+" "+password+" "+header))
	address := strings.Replace(server.URL(), "://", "://me:"+password+"@", 1)
	m := s.New(t, Endpoint{URL: address, Key: key, Headers: map[string]string{"X-Api-Key": header}})
	check := func(what string, a Answer) {
		t.Helper()
		e := a.fault(t)
		for _, text := range []string{e.Message, e.Error(), fmt.Sprintf("%v %+v", e.Cause, e.Cause), fmt.Sprintf("%+v", *e)} {
			if strings.Contains(text, "CANARY") {
				t.Errorf("%s: a secret is told: %s", what, text)
			}
		}
	}
	for _, what := range []string{"401", "redirect 307", "redirect 302", "500"} {
		check(what, ask(t, m, Hello()))
	}
	if n := len(other.Requests()); n > 0 {
		t.Errorf("a redirect to another host was followed, with %+v", other.Requests())
	}
	server.Close()
	check("refused connection", ask(t, m, Hello()))
}

func refusedConnection(t *testing.T, s Suite) {
	server, m := s.serve(t)
	server.Close()
	if f := ask(t, m, Hello()).fault(t).Fault; f != session.FaultNetwork {
		t.Errorf("fault %s", f)
	}
	_, m = s.serve(t, Reply{Silent: true, Steps: []Step{Reset()}})
	if f := ask(t, m, Hello()).fault(t).Fault; f != session.FaultNetwork {
		t.Errorf("reset before the answer: fault %s", f)
	}
}

func cancels(t *testing.T, s Suite) {
	cause := errors.New("the user has cancelled")
	for name, r := range map[string]Reply{
		"headers only": HeadersOnly(), "no answer": Silence(), "after text": Stream(Send(s.Wire.Begin()+s.Wire.Text("par")), Hang()),
		"amid a flood":       Stream(Send(s.Wire.Begin()), Repeat(s.Wire.Text("more "), 0)),
		"amid an error body": {Status: 500, Steps: []Step{Send("{"), Hang()}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			server, m := s.serve(t)
			server.Always(r)
			for i := range 20 {
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() {
					server.AwaitRequests(i+1, closes)
					cancel(cause)
				}()
				var last error
				for c, err := range m.Generate(ctx, Hello()) {
					if last = err; c.Kind == session.ChunkFinish && err == nil {
						t.Error("a cancelled completion finished")
					}
				}
				cancel(nil)
				if !errors.Is(last, cause) {
					t.Fatalf("got %v, want the cause", last)
				}
			}
			if !server.AwaitClosed(closes) {
				t.Errorf("%d connections are open %v after cancel", server.Open(), closes)
			}
		})
	}
	_, m := s.serve(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if a := Collect(ctx, t, m, Hello()); !errors.Is(a.Err, cause) {
		t.Errorf("cancelled before the request: %v", a.Err)
	}
}

func stops(t *testing.T, s Suite) {
	server, m := s.serve(t)
	server.Always(Stream(Send(s.Wire.Begin()+s.Wire.Text("par")), Hang()))
	for range 10 {
		for c, err := range m.Generate(t.Context(), Hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == session.ChunkText {
				break
			}
		}
	}
	if !server.AwaitClosed(closes) {
		t.Errorf("%d connections are open %v later", server.Open(), closes)
	}
}

func concurrent(t *testing.T, s Suite) {
	server, m := s.serve(t)
	server.Always(Stream(Send(s.good("ok"))))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if a := ask(t, m, Hello()); a.Text != "ok" || a.Err != nil {
				t.Errorf("got %q, %v", a.Text, a.Err)
			}
		})
	}
	wg.Wait()
}

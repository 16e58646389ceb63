package modelhttp_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
	"github.com/rind-dev/rind/session/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// speaker is the smallest adapter: each event is text, [DONE] the end, and an error is a text.
type speaker struct{ *modelhttp.Endpoint }

func (s speaker) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return s.Endpoint.Generate(ctx, func(a *modelhttp.Answer) error {
		if err := a.Post("/talk", r.Messages[0].Text); err != nil {
			return err
		}
		for {
			e, err := a.Next()
			switch {
			case err != nil:
				return a.Broken(err)
			case e.Comment:
				err = a.Emit(session.Chunk{Kind: session.ChunkAlive})
			case string(e.Data) == "[DONE]":
				a.Finish()
				return a.Emit(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop})
			default:
				err = a.Say(session.Chunk{Kind: session.ChunkText, Text: string(e.Data)})
			}
			if err != nil {
				return err
			}
		}
	})
}

func speak(t testing.TB, cfg modelhttp.Config) speaker {
	t.Helper()
	cfg.Name = "mine"
	at, err := modelhttp.New(cfg, modelhttp.API{
		Sign:  func(h http.Header, key string) { h.Set("X-Key", key) },
		Parse: func(body []byte) (modelhttp.Told, bool) { return modelhttp.Told{Message: string(body)}, len(body) > 0 },
		Sort:  func(t modelhttp.Told, _ time.Duration) session.Fault { return modelhttp.ByStatus(t.Status) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Close() })
	return speaker{at}
}

// good is a whole answer.
var good = providertest.SSE("x", "[DONE]")

func ask(t testing.TB, s speaker) providertest.Answer {
	t.Helper()
	return providertest.Collect(t.Context(), t, s, providertest.Hello())
}

func fault(t testing.TB, err error) *session.ModelError {
	t.Helper()
	e, ok := errors.AsType[*session.ModelError](err)
	if !ok {
		t.Fatalf("got %v, want a fault", err)
	}
	return e
}

func TestARetryDateIsReadByTheServersClock(t *testing.T) {
	year := time.Now().AddDate(1, 0, 0).UTC() // the server's clock is a year ahead
	server := providertest.NewServer(t, providertest.JSON(429, `{}`).With("Date", year.Format(http.TimeFormat)).With("Retry-After", year.Add(7*time.Second).Format(http.TimeFormat)))
	if e := fault(t, ask(t, speak(t, modelhttp.Config{BaseURL: server.URL()})).Err); e.RetryAfter != 7*time.Second {
		t.Errorf("after %v, want 7s", e.RetryAfter)
	}
}

func TestOnlyTheSameRequestToTheSameHostFollowsARedirect(t *testing.T) {
	server := providertest.NewServer(t, providertest.Redirect(308, "/v2/talk"), good, providertest.Redirect(302, "/v2/talk").With("Content-Length", "0"))
	s := speak(t, modelhttp.Config{BaseURL: server.URL(), Key: "sk-1234"})
	if a := ask(t, s); a.Err != nil || a.Text != "x" {
		t.Errorf("got %q, %v", a.Text, a.Err)
	}
	if e := fault(t, ask(t, s).Err); e.Fault != session.FaultRejected || e.Status != 302 || !strings.Contains(e.Message, "baseUrl") {
		t.Errorf("got %+v", e)
	}
	reqs := server.Requests()
	if len(reqs) != 3 || reqs[1].Path != "/v2/talk" || reqs[1].Header.Get("X-Key") != "sk-1234" || !cmp.Equal(reqs[0].Body, reqs[1].Body) {
		t.Errorf("requests %+v", reqs)
	}
}

func TestAPasswordOfTheAddressIsSentAndNotTold(t *testing.T) {
	server := providertest.NewServer(t, providertest.Body(400, "text/plain", "you sent Basic bWU6Q0FOQVJZLTE= or bWU6Q0FOQVJZLTE= from http://other:thing@host/"))
	e := fault(t, ask(t, speak(t, modelhttp.Config{BaseURL: strings.Replace(server.URL(), "://", "://me:CANARY-1@", 1)})).Err)
	if strings.Contains(e.Message, "bWU6") || strings.Contains(e.Message, "thing") {
		t.Errorf("message %q", e.Message)
	}
	if user, password, _ := (&http.Request{Header: server.Requests()[0].Header}).BasicAuth(); user != "me" || password != "CANARY-1" {
		t.Errorf("sent %q, %q", user, password)
	}
}

func TestTheProvidersNumberOfARequestIsKeptForItsSupport(t *testing.T) {
	for _, name := range []string{"Request-Id", "X-Request-Id"} {
		server := providertest.NewServer(t, providertest.JSON(500, `{}`).With(name, "req_011CSHoEeqs5C35K2UUqR7Fy"))
		e := fault(t, ask(t, speak(t, modelhttp.Config{BaseURL: server.URL()})).Err)
		if e.Cause == nil || !strings.Contains(e.Cause.Error(), "req_011CSHoEeqs5C35K2UUqR7Fy") {
			t.Errorf("%s: cause %v", name, e.Cause)
		}
	}
}

func TestSettingsThatCannotWorkAreRefusedWithoutTheirSecrets(t *testing.T) {
	for name, cfg := range map[string]modelhttp.Config{
		"no address":       {},
		"no scheme":        {BaseURL: "localhost:1234/CANARY"},
		"another scheme":   {BaseURL: "ftp://me:CANARY@host"},
		"a broken address": {BaseURL: "http://me:CANARY@ho st\x7f"},
		"a key of lines":   {BaseURL: "http://host", Key: "CANARY\nCANARY"},
		"a header's name":  {BaseURL: "http://host", Headers: map[string]string{"X Y": "CANARY"}},
		"a header's value": {BaseURL: "http://host", Headers: map[string]string{"X": "CANARY\r\nY: z"}},
		"a folder":         {BaseURL: "http://host", CAFile: t.TempDir()},
		"no such file":     {BaseURL: "http://host", CAFile: filepath.Join(t.TempDir(), "none.pem")},
	} {
		cfg.Name = "mine"
		if _, err := modelhttp.New(cfg, modelhttp.API{}); err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "mine") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnOwnAuthorityIsTrustedOnlyWhenNamed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(providertest.Events("x", "[DONE]")))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // that we hang up is what is tested
	server.StartTLS()
	defer server.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]session.Fault{"": session.FaultConfig, authority: ""} {
		a := ask(t, speak(t, modelhttp.Config{BaseURL: server.URL, CAFile: file}))
		if a.Fault() != want || want == session.FaultConfig && !strings.Contains(a.Err.Error(), "caFile") {
			t.Errorf("with the file %q: %v", file, a.Err)
		}
	}
}

func TestATransportOfTheCallersIsUsed(t *testing.T) {
	server := providertest.NewServer(t, good)
	used := 0
	inner := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	defer inner.CloseIdleConnections()
	a := ask(t, speak(t, modelhttp.Config{BaseURL: server.URL(), Transport: providertest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		used++
		return inner.RoundTrip(r)
	})}))
	if a.Err != nil || used != 1 {
		t.Errorf("used %d times, %v", used, a.Err)
	}
}

func TestAConnectionServesOneCompletionAfterTheOther(t *testing.T) {
	server := providertest.NewServer(t)
	server.Always(good)
	s := speak(t, modelhttp.Config{BaseURL: server.URL()})
	for range 5 {
		if a := ask(t, s); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if n := server.Accepted(); n != 1 {
		t.Errorf("5 completions took %d connections", n)
	}
}

func TestCancelPassesByWhatHasArrivedAlready(t *testing.T) {
	cause := errors.New("the user has cancelled")
	s := speak(t, modelhttp.Config{BaseURL: providertest.NewServer(t, providertest.Stream(providertest.Send(strings.Repeat("data: x\n\n", 20)+"data: [DONE]\n\n"))).URL()})
	ctx, cancel := context.WithCancelCause(t.Context())
	pieces := 0
	var last error
	for c, err := range s.Generate(ctx, providertest.Hello()) {
		if last = err; c.Kind == session.ChunkText && err == nil {
			pieces++
			cancel(cause)
		}
	}
	cancel(nil)
	if pieces != 1 || !errors.Is(last, cause) {
		t.Errorf("%d pieces, then %v", pieces, last)
	}
}

func TestKeepAlivesAloneKeepAStreamForALimitedTime(t *testing.T) {
	server := providertest.NewServer(t, providertest.Stream(providertest.Repeat(": still here\n\n", 10*time.Millisecond)))
	s := speak(t, modelhttp.Config{BaseURL: server.URL(), Idle: 10 * time.Second, Total: 150 * time.Millisecond})
	if e := fault(t, ask(t, s).Err); e.Fault != session.FaultTimeout {
		t.Errorf("fault %s", e.Fault)
	}
}

func TestASlowConsumerIsNotTakenForASilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := providertest.Canned(http.StatusOK, providertest.Events("Hi", "there", "[DONE]"))
		s := speak(t, modelhttp.Config{BaseURL: "http://model.invalid", Idle: time.Minute, Transport: answer})
		said := ""
		for c, err := range s.Generate(t.Context(), providertest.Hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if said += c.Text; c.Kind == session.ChunkText {
				time.Sleep(time.Hour) // the consumer's own business, longer than Idle and Total
			}
		}
		if said != "Hithere" {
			t.Errorf("%q", said)
		}
	})
}

func TestAListThatCannotBeHadIsAFault(t *testing.T) {
	for name, test := range map[string]struct {
		reply providertest.Reply
		fault session.Fault
	}{
		"key":      {providertest.JSON(401, `{"error":{"message":"no"}}`), session.FaultAuth},
		"no JSON":  {providertest.Body(200, "text/html", "<html>"), session.FaultBadReply},
		"endless":  {providertest.Reply{Steps: []providertest.Step{providertest.Send("["), providertest.Repeat(strings.Repeat(" ", 1<<20), 0)}}, session.FaultBadReply},
		"cut":      {providertest.Reply{Steps: []providertest.Step{providertest.Send(`{"data":[`), providertest.Cut()}}, session.FaultNetwork},
		"too much": {providertest.JSON(200, `{"data":[{"id":"a"}]}`+strings.Repeat(" ", 9<<20)), session.FaultBadReply},
	} {
		_, err := speak(t, modelhttp.Config{BaseURL: providertest.NewServer(t, test.reply).URL()}).Page(t.Context(), "/models")
		if e := fault(t, err); e.Fault != test.fault {
			t.Errorf("%s: %v, want %s", name, err, test.fault)
		}
	}
	cause := errors.New("gone")
	server := providertest.NewServer(t, providertest.Silence())
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		server.AwaitRequests(1, 5*time.Second)
		cancel(cause)
	}()
	if _, err := speak(t, modelhttp.Config{BaseURL: server.URL()}).Page(ctx, "/models"); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWhatAModelGaveIsTakenBackInEveryShape(t *testing.T) {
	for in, want := range map[string]string{
		` {"a":1} `:                  `{"a":1}`,
		`[{"a":1},2,{"b":"\ud800"}]`: `{"a":1} {"b":"\ud800"}`,
		`{"a":`:                      ``,
		`7`:                          ``,
		`[]`:                         ``,
	} {
		var got []string
		for _, it := range modelhttp.Items([]byte(in)) {
			got = append(got, string(it))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", in, s, want)
		}
	}
	if got := string(modelhttp.WellFormed([]byte(`{"n":12345678901234567890,"s":"\ud800<"}`))); got != `{"n":12345678901234567890,"s":"�<"}` {
		t.Errorf("well-formed: %s", got)
	}
}

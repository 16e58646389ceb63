package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noProxy is the environment of a machine without a proxy.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// local may reach the servers of a test.
func local() Config { return Config{AllowPrivate: true, Proxy: noProxy} }

// quiet is a Progress nobody listens to.
type quiet struct{ session.Progress }

// run calls a tool that must not be at fault.
func run(t testing.TB, tool session.Tool, args map[string]any) session.ToolResult {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), session.ToolCall{ID: "call_1", Name: tool.Spec().Name, Arguments: raw}, quiet{})
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if strings.ContainsAny(res.Error, "\n\r") {
		t.Errorf("%s: the error is more than one line: %q", raw, res.Error)
	}
	return res
}

// fetch fetches a page with a tool made of c.
func fetch(t testing.TB, c Config, address string) session.ToolResult {
	t.Helper()
	return run(t, FetchPage(c), map[string]any{"url": address})
}

// serve answers every request with a body.
func serve(t testing.TB, contentType, body string) string {
	t.Helper()
	return handle(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, body)
	})
}

// handle serves h on loopback until the test ends.
func handle(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// only judges the addresses of a test's servers, which are all on loopback.
func only(public ...string) func(netip.Addr) bool {
	return func(a netip.Addr) bool {
		for _, p := range public {
			if a.Unmap().String() == p {
				return true
			}
		}
		return false
	}
}

func TestFetchKeepsThePromisesOfTools(t *testing.T) {
	page := serve(t, "text/html", "<title>T</title><p>Hello")
	stuck := handle(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	w := tooltest.NewWorkspace(t)
	w.Args = map[string]any{"url": stuck}
	w.Only = map[string][]any{"url": {page, "x", "", "file:///etc/passwd", "http://", "\x00", "http://[::1", "https://user:pw@h/"}}
	tooltest.Run(t, FetchPage(local()), w)
}

func TestSearchKeepsThePromisesOfTools(t *testing.T) {
	endpoint := serve(t, "application/json", `{"results":[{"title":"T","url":"https://e.example/","content":"c"}]}`)
	c := local()
	c.SearchURL = endpoint + "/search"
	tool, ok := Search(c)
	if !ok {
		t.Fatal("not offered")
	}
	tooltest.Run(t, tool, tooltest.NewWorkspace(t))
}

func TestACancelledCallComesBackAtOnceWithItsCause(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"before the headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"within the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "begun")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{}, 1)
			address := handle(t, func(w http.ResponseWriter, r *http.Request) {
				reached <- struct{}{}
				handler(w, r)
			})
			reason := fmt.Errorf("the turn was cancelled")
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-reached
				cancel(reason)
			}()
			raw, _ := json.Marshal(map[string]any{"url": address})
			began := time.Now()
			_, err := FetchPage(local()).Run(ctx, session.ToolCall{Name: "fetch_web_page", Arguments: raw}, quiet{})
			if err != reason {
				t.Errorf("error %v, want the cause", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("came back after %v", took)
			}
		})
	}
}

// refusedAs checks that a call gave an error of this type.
func refusedAs(t testing.TB, res session.ToolResult, errorType string) {
	t.Helper()
	if res.ErrorType != errorType {
		t.Errorf("error_type %q (%s), want %s", res.ErrorType, res.Error, errorType)
	}
	if res.Data != nil || res.ModelData != nil {
		t.Errorf("data with an error: %v", res.Data)
	}
}

var _ = protocol.ErrNotFound

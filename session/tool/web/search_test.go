package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

const canary = "sk-CANARY-7f3a/+x"

// engine is search_web on an endpoint.
func engine(t testing.TB, c Config) session.Tool {
	t.Helper()
	tool, ok := Search(c)
	if !ok {
		t.Fatalf("%s is not offered: %v", c.SearchURL, c.CheckSearch())
	}
	return tool
}

func TestSearchIsOfferedOnlyWithAUsableEndpoint(t *testing.T) {
	if tool, ok := Search(Config{}); ok || tool != nil {
		t.Error("offered without an endpoint")
	}
	if err := (Config{}).CheckSearch(); err != nil {
		t.Error(err)
	}
	for _, c := range []Config{
		{SearchURL: "search.example"},
		{SearchURL: "ftp://search.example/{query}"},
		{SearchURL: "https://me:canary@search.example/"},
		{SearchURL: "https://se arch.example/?key=canary"},
		{SearchURL: "https://search.example/", SearchKey: "can\nary"},
		{SearchURL: "https://search.example/", SearchKey: "canary", SearchHeader: "X Key"},
	} {
		if tool, ok := Search(c); ok || tool != nil {
			t.Errorf("%+v is offered", c)
		}
		if err := c.CheckSearch(); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAQueryIsPutWhereTheSettingsSay(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"/search", "/search?q=a+b%26c%3D%2F%C3%A9%3F"},
		{"/search?format=json", "/search?format=json&q=a+b%26c%3D%2F%C3%A9%3F"},
		{"/search?format=json&", "/search?format=json&q=a+b%26c%3D%2F%C3%A9%3F"},
		{"/s?query={query}&n={max_results}", "/s?query=a+b%26c%3D%2F%C3%A9%3F&n=7"},
		{"/s/{query}/x?y={query}", "/s/a%20b&c=%2F%C3%A9%3F/x?y=a+b%26c%3D%2F%C3%A9%3F"},
	} {
		got := ""
		at := handle(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.RequestURI
			fmt.Fprint(w, "[]")
		})
		cfg := Config{SearchURL: at + c.path, Proxy: noProxy}
		res := run(t, engine(t, cfg), map[string]any{"query": " a b&c=/é? ", "max_results": 7})
		if diff := cmp.Diff(c.want, got); diff != "" || res.ErrorType != "" {
			t.Errorf("%s: %s %s", c.path, diff, res.Error)
		}
		if diff := cmp.Diff([]found{}, res.Data); diff != "" {
			t.Error(diff)
		}
	}
}

func TestTheKeyGoesInTheHeaderTheSettingsName(t *testing.T) {
	var got http.Header
	at := handle(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		fmt.Fprint(w, "[]")
	})
	run(t, engine(t, Config{SearchURL: at, Proxy: noProxy, SearchKey: "k1"}), map[string]any{"query": "x"})
	if got.Get("Authorization") != "Bearer k1" {
		t.Errorf("%v", got)
	}
	run(t, engine(t, Config{SearchURL: at, Proxy: noProxy, SearchKey: "k1", SearchHeader: "X-Subscription-Token"}), map[string]any{"query": "x"})
	if got.Get("X-Subscription-Token") != "k1" || got.Get("Authorization") != "" {
		t.Errorf("%v", got)
	}
	run(t, engine(t, Config{SearchURL: at, Proxy: noProxy}), map[string]any{"query": "x"})
	if got.Get("Authorization") != "" {
		t.Errorf("%v", got)
	}
}

func TestAnswersOfTheUsualEnginesAreRead(t *testing.T) {
	want := []found{{"One & two", "https://one.example/a?b=c", "First words"}, {"two.example", "http://two.example/", ""}}
	one := func(title, link, words string) string {
		return fmt.Sprintf(`{%q:"<b>One</b> &amp; two",%q:"https://one.example/a?b=c",%q:" First\n<strong>words</strong> ","more":{"a":[1]}}`, title, link, words)
	}
	for name, answer := range map[string]string{
		"list":           `[` + one("title", "url", "snippet") + `,{"url":"http://two.example/"}]`,
		"SearXNG":        `{"query":"x","results":[` + one("title", "url", "content") + `,{"url":"http://two.example/","content":null}],"answers":[]}`,
		"Brave":          `{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[` + one("title", "url", "description") + `,{"url":"http://two.example/"}]}}`,
		"items":          `{"items":[` + one("title", "link", "snippet") + `,{"link":"http://two.example/"}]}`,
		"organic":        `{"organic":[` + one("title", "link", "snippet") + `,{"link":"http://two.example/"}]}`,
		"webPages":       `{"webPages":{"value":[` + one("name", "url", "snippet") + `,{"url":"http://two.example/"}]}}`,
		"odd items":      `{"results":[null,1,"x",{},{"url":7},{"url":"javascript:x"},{"url":"https://u:p@h/"},` + one("title", "url", "body") + `,` + one("title", "url", "body") + `,{"title":[],"url":"http://two.example/"}]}`,
		"null then list": `{"results":null,"data":[` + one("title", "href", "text") + `,{"url":"http://two.example/"}]}`,
	} {
		res := run(t, engine(t, Config{SearchURL: serve(t, "application/json", answer), Proxy: noProxy}), map[string]any{"query": "x"})
		if diff := cmp.Diff(any(want), res.Data); diff != "" || res.ErrorType != "" {
			t.Errorf("%s: %s %s", name, diff, res.Error)
		}
	}
}

func TestNoMoreResultsThanAskedFor(t *testing.T) {
	var list []found
	for i := range 50 {
		list = append(list, found{Title: strings.Repeat("t", 1000), URL: fmt.Sprintf("https://e.example/%d", i), Snippet: strings.Repeat("s", 5000)})
	}
	data, _ := json.Marshal(map[string]any{"results": list})
	tool := engine(t, Config{SearchURL: serve(t, "application/json", string(data)), Proxy: noProxy})
	for asked, want := range map[any]int{nil: 5, 1: 1, 20: 20, 3.0: 3, 100: 20} {
		res := run(t, tool, map[string]any{"query": "x", "max_results": asked})
		got, _ := res.Data.([]found)
		if len(got) != want {
			t.Errorf("%v: %d results, want %d", asked, len(got), want)
		}
		for _, r := range got {
			if protocol.CharLen(r.Title) > maxTitleChars || protocol.CharLen(r.Snippet) > maxSnippetChars {
				t.Errorf("%d, %d characters", len(r.Title), len(r.Snippet))
			}
		}
	}
}

func TestWhatAnEndpointGetsWrongIsSaidInOneLineWithoutTheKey(t *testing.T) {
	quoted, _ := json.Marshal(canary)
	for _, c := range []struct {
		name      string
		handler   http.HandlerFunc
		errorType string
		says      string
	}{
		{"401 that repeats the key", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(401)
			fmt.Fprintf(w, "bad key %s in %s", canary, r.Header.Get("Authorization"))
		}, protocol.ErrPermissionDenied, "settings"},
		{"401 that cuts it", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			fmt.Fprint(w, strings.Repeat("x", maxErrorChars-8)+canary)
		}, protocol.ErrPermissionDenied, "settings"},
		{"429 in JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(429)
			fmt.Fprintf(w, `{"error":%s}`, quoted)
		}, protocol.ErrInternal, "later"},
		{"404", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, protocol.ErrNotFound, "settings"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>"+canary) }, protocol.ErrInternal, "text/html"},
		{"no list", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"x"}`) }, protocol.ErrInternal, "no list"},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, protocol.ErrInternal, "no list"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/?k="+canary, http.StatusFound)
		}, protocol.ErrInternal, "redirects"},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "["+strings.Repeat(" ", maxBody)+"]")
		}, protocol.ErrTooLarge, "fewer"},
		{"it breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			fmt.Fprint(w, "[")
			panic(http.ErrAbortHandler)
		}, protocol.ErrInternal, "could not be reached"},
	} {
		cfg := Config{SearchURL: handle(t, c.handler) + "/canary?x=canary", Proxy: noProxy, SearchKey: canary}
		res := run(t, engine(t, cfg), map[string]any{"query": "secret-query"})
		if res.ErrorType != c.errorType || !strings.Contains(res.Error, c.says) {
			t.Errorf("%s: %s %q", c.name, res.ErrorType, res.Error)
		}
		shown, _ := json.Marshal(res)
		for _, secret := range []string{"CANARY", "canary", "sk-", "secret-query"} {
			if strings.Contains(string(shown), secret) {
				t.Errorf("%s: %s shows %s", c.name, shown, secret)
			}
		}
	}
}

func TestResultsNeverHoldTheKey(t *testing.T) {
	at := handle(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]found{{Title: canary, URL: "https://e.example/?k=" + canary, Snippet: "k " + canary}})
	})
	res := run(t, engine(t, Config{SearchURL: at, Proxy: noProxy, SearchKey: canary}), map[string]any{"query": "x"})
	if shown, _ := json.Marshal(res); strings.Contains(string(shown), "CANARY") {
		t.Errorf("%s", shown)
	}
}

func TestQueriesThatAskNothingAreInvalid(t *testing.T) {
	tool := engine(t, Config{SearchURL: "http://search.example/", Proxy: noProxy, Resolver: nowhere(t).Resolver})
	for _, q := range []string{"", " \n", strings.Repeat("x", maxQuery+1)} {
		refusedAs(t, run(t, tool, map[string]any{"query": q}), protocol.ErrInvalidArguments)
	}
}

func TestACancelledSearchComesBackWithItsCause(t *testing.T) {
	reached := make(chan struct{}, 1)
	at := handle(t, func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := fmt.Errorf("the turn was cancelled")
	go func() {
		<-reached
		cancel(reason)
	}()
	_, err := engine(t, Config{SearchURL: at, Proxy: noProxy}).Run(ctx, session.ToolCall{Arguments: []byte(`{"query":"x"}`)}, quiet{})
	if err != reason {
		t.Errorf("error %v", err)
	}
}

func FuzzResults(f *testing.F) {
	for _, s := range []string{`[]`, `{"results":[{"url":"https://e.example","title":"<b"}]}`, `{"web":{"web":{"web":{"web":[]}}}}`, `{`, `"x"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		results, ok := parseResults(data, 3, strings.NewReplacer())
		if len(results) > 3 || !ok && results != nil {
			t.Errorf("%v %v", results, ok)
		}
		for _, r := range results {
			if strings.ContainsAny(r.Title+r.Snippet+r.URL, "\n\x00") || r.Title == "" || !strings.HasPrefix(r.URL, "http") {
				t.Errorf("%q", r)
			}
		}
	})
}

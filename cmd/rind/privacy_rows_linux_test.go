package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// asked is a request that a double got.
type asked struct {
	to     string // name of the double
	path   string
	header http.Header
	body   string
}

// doubles are the endpoints of docs/privacy.md, each on a loopback port of its own.
type doubles struct {
	mu   sync.Mutex // guards got
	got  []asked
	urls map[string]string
}

// newDoubles starts them. call is the call of a tool that the model makes in its first answer, as {"name":…,"arguments":"…"}; "" for none.
func newDoubles(t *testing.T, call func(d *doubles) string) *doubles {
	t.Helper()
	d := &doubles{urls: map[string]string{}}
	serve := func(name string, answer func(w http.ResponseWriter, r *http.Request, body string)) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			d.mu.Lock()
			d.got = append(d.got, asked{name, r.URL.RequestURI(), r.Header.Clone(), string(body)})
			d.mu.Unlock()
			answer(w, r, string(body))
		}))
		t.Cleanup(s.Close)
		d.urls[name] = s.URL
	}
	serve("model", func(w http.ResponseWriter, r *http.Request, body string) {
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		first := call(d)
		if first != "" && !strings.Contains(body, `"role":"tool"`) {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":%s}]}}]}\n\n", first)
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n")
		} else {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"done\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	serve("page", func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Set-Cookie", "a=b")
		fmt.Fprint(w, "a page")
	})
	serve("search", func(w http.ResponseWriter, _ *http.Request, _ string) {
		fmt.Fprint(w, `{"results":[{"title":"t","url":"http://x.example/","snippet":"s"}]}`)
	})
	serve("mcp", func(w http.ResponseWriter, r *http.Request, body string) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.Unmarshal([]byte(body), &m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"far","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"look","inputSchema":{"type":"object"}}]}`,
		}[m.Method]
		if result == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	})
	return d
}

// of gives the requests that one double got.
func (d *doubles) of(name string) []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.got), func(a asked) bool { return a.to != name })
}

// calling is the call of a tool as a model writes it.
func calling(name string, arguments map[string]string) string {
	args, _ := json.Marshal(arguments)
	call, _ := json.Marshal(map[string]string{"name": name, "arguments": string(args)})
	return string(call)
}

// TestEachRowOfThePrivacyPageIsAllThatIsConnectedTo runs what a row tells of, with everything else set too, and has the kernel tell of every
// connection the program makes: they go to the row's double, and carry what the row says. What goes to a page, a search endpoint or a
// server holds neither the conversation nor the key of another.
func TestEachRowOfThePrivacyPageIsAllThatIsConnectedTo(t *testing.T) {
	const prompt, note = "please see to PROMPT-WORDS", "NOTE-WORDS"
	keys := []string{"MODEL-KEY", "SEARCH-KEY", "SERVER-KEY"}
	for _, c := range []struct {
		row   string
		args  []string
		in    string // then the input stays open for a second
		call  func(d *doubles) string
		mcp   bool
		to    []string // the doubles that are connected to
		sends []string // to the row's double, somewhere
	}{
		{row: "models", args: []string{"doctor", "--online"}, to: []string{"model"}, sends: []string{"/v1/models", "Bearer MODEL-KEY"}},
		{
			row: "models", args: []string{"acp"}, in: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n",
			to: []string{"model"}, sends: []string{"/v1/models", "Bearer MODEL-KEY"},
		},
		{row: "model", args: []string{"prompt", prompt}, to: []string{"model"}, sends: []string{"PROMPT-WORDS", note, "read_file", "Bearer MODEL-KEY"}},
		{
			row: "page", args: []string{"prompt", "--mode", "full", prompt}, to: []string{"model", "page"}, sends: []string{"/p?x=1", "rind/"},
			call: func(d *doubles) string {
				return calling("fetch_web_page", map[string]string{"url": d.urls["page"] + "/p?x=1"})
			},
		},
		{
			row: "search", args: []string{"prompt", "--mode", "full", prompt}, to: []string{"model", "search"}, sends: []string{"q=find", "Bearer SEARCH-KEY"},
			call: func(*doubles) string { return calling("search_web", map[string]string{"query": "find"}) },
		},
		{row: "mcp", args: []string{"mcp", "list"}, mcp: true, to: []string{"mcp"}, sends: []string{"initialize", "tools/list", "SERVER-KEY"}},
	} {
		t.Run(c.row, func(t *testing.T) {
			if c.call == nil {
				c.call = func(*doubles) string { return "" }
			}
			d := newDoubles(t, c.call)
			set := `{"provider":"p","providers":{"p":{"baseUrl":"` + d.urls["model"] + `/v1","apiKey":"MODEL-KEY","model":"m"}},
				"searchUrl":"` + d.urls["search"] + `/?q={query}","searchKey":"SEARCH-KEY","fetchPrivate":true`
			if c.mcp {
				set += `,"mcpServers":{"far":{"url":"` + d.urls["mcp"] + `/mcp","headers":{"X-Key":"SERVER-KEY"}}}`
			}
			root, ws := dataAndWorkspace(t, set+"}")
			write(t, filepath.Join(ws, "RIND.md"), note)
			var in io.Reader
			if c.in != "" {
				in = io.MultiReader(strings.NewReader(c.in), idleFor(time.Second))
			}
			r, seen := connections(t, in, root, ws, nil, c.args...)
			if r.code != exitOK {
				t.Fatalf("%+v", r)
			}
			var want []string
			for _, name := range c.to {
				want = append(want, "connect "+strings.TrimPrefix(d.urls[name], "http://"))
			}
			slices.Sort(want)
			if !slices.Equal(seen, want) {
				t.Errorf("connected to %q, not to %q alone", seen, want)
			}
			name := c.row
			if name == "models" {
				name = "model"
			}
			got := fmt.Sprint(d.of(name))
			for _, s := range c.sends {
				if !strings.Contains(got, s) {
					t.Errorf("the %s endpoint did not get %q: %s", name, s, got)
				}
			}
			others := keys
			if c.row != "model" {
				others = append(slices.Clone(keys), "PROMPT-WORDS", note, "Cookie")
			}
			for _, s := range others {
				if strings.Contains(got, s) && !slices.ContainsFunc(c.sends, func(own string) bool { return strings.Contains(own, s) }) {
					t.Errorf("the %s endpoint got %q: %s", name, s, got)
				}
			}
		})
	}
}

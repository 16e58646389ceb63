//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// troubled stands between a client and a server, and plays each trouble once: the answer to a start is lost, a stream is cut, the server is
// killed when an answer is on its way to it, and the reply to that answer is lost.
type troubled struct {
	t     *testing.T
	start func() *serving

	mu      sync.Mutex
	s       *serving
	starts  int
	streams []string // their cursors
	answers int
}

func (p *troubled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s := p.s
	to, _ := url.Parse(s.base)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Header.Del("X-Forwarded-For") }}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	then := http.Handler(proxy)
	lost := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	switch {
	case r.URL.Path == "/v1/executions":
		if p.starts++; p.starts == 1 {
			then = lost
		}
	case strings.HasSuffix(r.URL.Path, "/events"):
		if p.streams = append(p.streams, r.Header.Get("Last-Event-ID")); len(p.streams) == 1 {
			proxy.ModifyResponse = func(r *http.Response) error {
				r.Body = &cut{r.Body, 700}
				return nil
			}
		}
	case strings.HasSuffix(r.URL.Path, ":respond"):
		switch p.answers++; p.answers {
		case 1: // kill -9 before it has the answer
			s.kill()
			p.s = p.start()
			p.mu.Unlock()
			panic(http.ErrAbortHandler)
		case 2:
			then = lost
		}
	}
	p.mu.Unlock()
	then.ServeHTTP(w, r)
}

// cut is a body that breaks off in the middle of a line.
type cut struct {
	body io.ReadCloser
	left int
}

func (c *cut) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("cut")
	}
	n, err := c.body.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

func (c *cut) Close() error { return c.body.Close() }

// The clients of docs/clients start once, see each event once and answer once, whatever breaks under them.
func TestClientsOfThePagesGetOverCutsAndKills(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "client")
	if out, err := exec.Command("go", "build", "-o", gone, "../../docs/clients/go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	clients := map[string][]string{"go": {gone}, "node": nil}
	if node, err := exec.LookPath("node"); err == nil {
		clients["node"] = []string{node, "../../docs/clients/ts/client.mjs"}
	}
	for name, command := range clients {
		t.Run(name, func(t *testing.T) {
			if command == nil {
				t.Skip("needs " + name)
			}
			root := chaosRoot(t, `{"turns":[{"steps":[{"text":"I will write it down. ","chunk":4,"delayMs":2},{"call":{"name":"bash","arguments":{"command":"echo ran >> ran.txt"}}}]},{"steps":[{"text":"Written."}]}]}`)
			if err := os.WriteFile(filepath.Join(root, "settings.json"), fmt.Appendf(nil, `{"provider":"s","providers":{"s":{"type":"script","model":"script","script":%q}}}`, filepath.Join(root, "script.json")), 0o600); err != nil {
				t.Fatal(err) // as chaosRoot's, but that it asks
			}
			token := filepath.Join(root, "token")
			p := &troubled{t: t, start: func() *serving {
				return serveWith(t, []string{"RIND_HOME=" + root}, "--port", "0", "--cwd", filepath.Join(root, "ws"), "--token-file", token)
			}}
			p.s = p.start()
			front := httptest.NewServer(p)
			defer func() {
				front.CloseClientConnections()
				front.Close()
				p.s.kill()
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], append(command[1:], front.URL, token, "agent", "job-1", "Write it down")...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
			}
			var kinds []string
			for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
				var e toldEvent
				if err := json.Unmarshal([]byte(line), &e); err != nil || e.Sequence != int64(i+1) {
					t.Errorf("line %d is %s, %v", i+1, line, err)
				}
				kinds = append(kinds, e.Type)
			}
			told := strings.Join(kinds, " ")
			for what, n := range map[string]int{"run.queued": 1, "run.started": 1, "action.required": 1, "action.responded": 1, "run.completed": 1} {
				if strings.Count(told, what) != n {
					t.Errorf("%s is not told %d times: %s", what, n, told)
				}
			}
			if p.starts != 2 || p.answers != 3 || len(p.streams) < 3 || p.streams[0] != "0" || p.streams[len(p.streams)-1] == "0" {
				t.Errorf("%d starts, %d answers, streams from %v: a trouble was not played\n%s", p.starts, p.answers, p.streams, errs.String())
			}
			if text, err := os.ReadFile(filepath.Join(root, "ws", "ran.txt")); err != nil || string(text) != "ran\n" {
				t.Errorf("the command left %q, %v", text, err)
			}
			var l struct{ Executions []json.RawMessage }
			secret, _ := os.ReadFile(token)
			req, _ := http.NewRequest("GET", p.s.base+"/rind/v1/executions", nil)
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if err := json.NewDecoder(resp.Body).Decode(&l); err != nil || len(l.Executions) != 1 {
				t.Errorf("%d executions, %v", len(l.Executions), err)
			}
		})
	}
}

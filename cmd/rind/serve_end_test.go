//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// text asks and returns the whole answer; a status other than the wanted one ends the test.
func (s *serving) text(status int, method, path, body string, headers ...string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		s.t.Fatalf("%s %s: %d, want %d: %s, %v", method, path, resp.StatusCode, status, text, err)
	}
	return string(text)
}

// id is that of the object an answer is.
func (s *serving) id(status int, method, path, body string, headers ...string) string {
	s.t.Helper()
	var x struct{ ID string }
	if err := json.Unmarshal([]byte(s.text(status, method, path, body, headers...)), &x); err != nil {
		s.t.Fatal(err)
	}
	return x.ID
}

// start starts an execution.
func (s *serving) start(conversation, provider, more string) string {
	s.t.Helper()
	return s.id(202, "POST", "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":%q,"input":"a b c"%s}`, conversation, provider, more))
}

// until waits until an execution is in a state.
func (s *serving) until(id, state string) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		text := s.text(200, "GET", "/v1/executions/"+id, "")
		if strings.Contains(text, `"state":"`+state+`"`) {
			return
		}
		if time.Now().After(deadline) || strings.Contains(text, `"endedAt"`) {
			s.t.Fatalf("it is not %s: %s", state, text)
		}
	}
}

// N12, C03, C11, N07: what was answered before the process was killed is answered word for word by the next one, wherever that one works: conversations with
// whatever their metadata has, executions of every end, their events as page and as stream, their artifacts, and what a key stands for. The files
// are those of their owner alone.
func TestWhatWasAnsweredIsWordForWordTheSameAfterAKill(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	data := filepath.Join(root, "data")
	serve := func(cwd string) *serving {
		return serveWith(t, nil, "--data", data, "--port", "0", "--auth", "none", "--cwd", cwd, "--workspace", "second="+other)
	}
	s := serve(root)
	defer func() { s.kill() }()
	const metadata = `{"":1,"__proto__":{"x":null},"nul":"a\u0000b","emoji":"😀","n":1e21,"big":9007199254740993,"one":1.0,"-0":-0,"html":"<&>","deep":[[{"a":[]}]],"Metadata":2}`
	c := s.id(201, "POST", "/v1/conversations", `{"metadata": `+metadata+` }`)
	second := s.id(201, "POST", "/v1/conversations", "", "Rind-Workspace", "second")
	ended := map[string]string{
		"succeeded": `,"requiredCapabilities":["artifact.list","action.input","artifact.list"],"idempotencyKey":"kept","config":{"big":9007199254740993,"one":1.0,"__proto__":null,"steps":[` +
			`{"artifact":{"id":"b","name":"B","mediaType":"text/plain"}},{"artifact":{"id":"a","name":"A","mediaType":"text/html","uri":"x:y","metadata":{"n":1.0}}},` +
			`{"event":{"method":"m","params":{"text":"line\nend \u0000 <&>","n":[1e-9,{"k":null}]}}},{"delta":""},{"delta":"a\u2028b"},{"final":"not the deltas"}]}`,
		"failed": `,"config":{"steps":[{"delta":"half"},{"fail":"no \"luck\"\nat all"}]}`,
	}
	paths := []string{"/v1/conversations/" + c, "/v1/conversations/" + second, "/rind/v1/conversations", "/rind/v1/executions"}
	ids := map[string]string{}
	for state, more := range ended {
		ids[state] = s.start(c, "script", more)
		s.until(ids[state], state)
	}
	ids["cancelled"] = s.start(second, "mock", `,"config":{"requireApproval":true}`)
	s.until(ids["cancelled"], "awaiting_approval")
	s.text(200, "POST", "/v1/executions/"+ids["cancelled"]+":cancel", `{"reason":"why\u0000"}`)
	for _, id := range ids {
		paths = append(paths, "/v1/executions/"+id, "/v1/executions/"+id+"/events", "/v1/executions/"+id+"/artifacts")
	}
	look := func() map[string]string {
		told := map[string]string{}
		for _, path := range paths {
			told[path] = s.text(200, "GET", path, "")
			if strings.HasSuffix(path, "/events") {
				told["stream of "+path] = s.text(200, "GET", path, "", "Accept", "text/event-stream")
			}
		}
		return told
	}
	before := look()
	if got := before["/v1/conversations/"+c]; !strings.HasSuffix(got, `"metadata":`+metadata+"}") {
		t.Errorf("the metadata came back as %s", got)
	}
	for path, part := range map[string]string{
		"/v1/executions/" + ids["succeeded"]:                `"requiredCapabilities":["action.input","artifact.list"],"effectiveConfig":{"big":9007199254740993,"one":1.0,"__proto__":null,`,
		"/v1/executions/" + ids["failed"]:                   `"error":{"code":"PROVIDER_ERROR","message":"no \"luck\"\nat all"}`,
		"/v1/executions/" + ids["succeeded"] + "/artifacts": `{"artifacts":[{"id":"b",`,
		"/rind/v1/conversations":                            `"workspaceRoot":"` + other + `"`,
	} {
		if !strings.Contains(before[path], part) {
			t.Errorf("%s lacks %s: %s", path, part, before[path])
		}
	}
	if err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, "sessions", "rind.db")); err != nil {
		t.Error(err)
	}

	s.kill()
	s = serve(t.TempDir())
	after := look()
	for path, want := range before {
		if after[path] != want {
			t.Errorf("%s was\n%s\nand is\n%s", path, want, after[path])
		}
	}
	again := fmt.Sprintf(`{"conversationId":%q,"providerId":"script","input":"a b c"%s}`, c, ended["succeeded"])
	if got := s.text(202, "POST", "/v1/executions", again); got != before["/v1/executions/"+ids["succeeded"]] {
		t.Errorf("the key is answered with %s", got)
	}
	s.text(409, "POST", "/v1/executions", strings.Replace(again, "9007199254740993", "9007199254740992", 1))
}

// N11, N23, section 1.2: SIGTERM lets what runs go on for as long as --drain says and refuses what is new; then it is cancelled. Whoever follows is told all of it
// and a good end. What waits for a person, or for its lane, is left as it is for the next process. A second signal waits for nothing.
func TestServeEndsInTheStepsOfTheContract(t *testing.T) {
	for _, c := range []struct {
		name, drain string
		hurried     bool   // a second signal comes
		runs        string // what does
		state, end  string // of it
	}{
		{"time enough", "60s", false, `"agent","input":"hold","config":{"approvals":"auto"}`, "succeeded", `"finalOutput":"Held."`}, // until the test lets it go
		{"too little time", "100ms", false, `"mock","input":"a b c","config":{"delayMs":60000}`, "cancelled", `{"reason":"runtime shutting down"}`},
		{"a second signal", "60s", true, `"mock","input":"a b c","config":{"delayMs":60000}`, "cancelled", `{"reason":"runtime shutting down"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := chaosRoot(t, `{"turns":[{"steps":[{"call":{"id":"w1","name":"write_file","arguments":{"path":"new.txt","content":"one\n"}}},{"finish":"tool_calls"},{"text":"Done."}]},{"steps":[{"text":"Later."}]},
				{"match":"hold","steps":[{"call":{"id":"h1","name":"bash","arguments":{"command":"until [ -e go ]; do sleep 0.05; done","yield_time_ms":60000}}},{"finish":"tool_calls"},{"text":"Held."}]}]}`)
			const within = 20 * time.Second
			s := serveHTTP(t, root, "--drain", c.drain)
			defer func() { s.kill() }()
			conv := s.id(201, "POST", "/v1/conversations", "")
			waits := s.start(conv, "agent", `,"config":{"approvals":"ask"}`)
			s.until(waits, "awaiting_approval")
			queued := s.start(conv, "agent", "")
			left := s.text(200, "GET", "/v1/executions/"+waits+"/events", "")
			runs := s.id(202, "POST", "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":%s}`, s.id(201, "POST", "/v1/conversations", ""), c.runs))
			s.until(runs, "running")
			streams := map[string]chan string{}
			for _, id := range []string{runs, waits, queued} {
				told := make(chan string, 1)
				streams[id] = told
				r, _ := http.NewRequestWithContext(t.Context(), "GET", s.base+"/v1/executions/"+id+"/events", nil)
				r.Header.Set("Accept", "text/event-stream")
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				go func() { // ends with the stream
					defer resp.Body.Close()
					text, err := io.ReadAll(resp.Body)
					told <- fmt.Sprintf("%s%v", text, err)
				}()
			}
			s.text(200, "GET", "/readyz", "") // a connection that is open from here on
			began := time.Now()
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			at := strings.TrimPrefix(s.base, "http://")
			for conn, err := net.Dial("tcp", at); err == nil; conn, err = net.Dial("tcp", at) { // until it listens no more
				conn.Close()
				if time.Since(began) > within {
					t.Fatal("it goes on listening")
				}
			}
			if c.drain != "100ms" {
				for _, refused := range []struct{ method, path, body string }{{"GET", "/readyz", ""}, {"POST", "/v1/conversations", ""}, {"POST", "/v1/executions", "{"}} {
					if text := s.text(503, refused.method, refused.path, refused.body); text != `{"code":"UNAVAILABLE","message":"Runtime is stopping"}` {
						t.Errorf("%s %s: %s", refused.method, refused.path, text)
					}
				}
				s.text(200, "GET", "/v1/executions/"+runs, "") // the rest works on
			}
			write(t, filepath.Join(root, "go"), "")
			if c.hurried {
				if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.cmd.Wait(); err != nil || time.Since(began) > within {
				t.Errorf("after %v it ended with %v", time.Since(began), err)
			}
			if told := <-streams[runs]; !strings.HasSuffix(told, "\n\n<nil>") || !strings.Contains(told, c.end) {
				t.Errorf("who followed what ran was told %s", told)
			}
			for _, id := range []string{waits, queued} {
				if told := <-streams[id]; !strings.HasSuffix(told, "\n\n<nil>") || strings.Contains(told, "run.c") || strings.Contains(told, "run.f") {
					t.Errorf("who followed what waits was told %s", told)
				}
			}
			http.DefaultClient.CloseIdleConnections()

			s = serveHTTP(t, root)
			s.until(runs, c.state)
			if now := s.text(200, "GET", "/v1/executions/"+waits+"/events", ""); now != left {
				t.Errorf("what waited was\n%s\nand is\n%s", left, now)
			}
			_, action, _ := strings.Cut(left, `"id":"action_`)
			s.text(200, "POST", "/v1/executions/"+waits+"/actions/action_"+action[:32]+":respond", `{"approved":true}`)
			s.until(waits, "succeeded")
			s.until(queued, "succeeded")
			if text, err := os.ReadFile(filepath.Join(root, "new.txt")); string(text) != "one\n" {
				t.Errorf("the file has %q, %v", text, err)
			}
		})
	}
}

// Section 1: no more than --max-running run, and the line behind them goes over to the next process for as long as --requeue-within says of that one.
func TestServeKeepsToTheBoundsOfItsFlags(t *testing.T) {
	root := t.TempDir()
	s := serveHTTP(t, root, "--max-running", "1", "--drain", "0s")
	defer func() { s.kill() }()
	c := s.id(201, "POST", "/v1/conversations", "")
	runs := s.start(c, "mock", `,"config":{"delayMs":60000}`)
	s.until(runs, "running")
	first, second := s.start(c, "mock", ""), s.start(s.id(201, "POST", "/v1/conversations", ""), "mock", "")
	for _, id := range []string{first, second} {
		s.until(id, "queued")
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	s = serveHTTP(t, root, "--requeue-within", "0s")
	s.until(runs, "cancelled")
	for _, id := range []string{first, second} {
		s.until(id, "failed")
		if text := s.text(200, "GET", "/v1/executions/"+id+"/events", ""); !strings.Contains(text, `"message":"runtime stopped before the execution started"`) || strings.Contains(text, "run.started") {
			t.Errorf("what stood in line for too long: %s", text)
		}
	}
}

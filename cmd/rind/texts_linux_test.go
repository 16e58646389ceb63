package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var updateTexts = flag.Bool("update-texts", false, "rewrite testdata/texts.golden with what a person is told now")

// trouble is something that goes wrong, as it is told at every place a person may look.
type trouble struct {
	name     string
	script   string                            // of the model, "" for a plain answer
	provider func(t *testing.T) map[string]any // in place of the scripted one
	settings map[string]any                    // beside the provider
	env      []string
	before   func(t *testing.T, root string) // when a session was had already
	limit    string                          // what a shell does before the program
	args     []string                        // of prompt; "SESSION" is the session that was had
	only     string                          // a command that is shown beside, as mcp list
}

const plainAnswer = `{"turns":[{"steps":[{"text":"Hello."}]},{"steps":[{"text":"Hello."}]},{"steps":[{"text":"Hello."}]}]}`

func answering(status int, body string) func(*testing.T) map[string]any {
	return func(t *testing.T) map[string]any {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return map[string]any{"type": "openai-chat", "model": "gpt-5", "baseUrl": s.URL + "/v1", "apiKey": "sk-wrong-1234567890"}
	}
}

var troubles = []trouble{
	{name: "no key", provider: func(*testing.T) map[string]any {
		return map[string]any{"type": "openai-chat", "model": "gpt-5", "apiKey": "$MY_KEY", "baseUrl": "https://host.invalid/v1"}
	}},
	{name: "wrong key", provider: answering(401, `{"error":{"message":"Incorrect API key provided: sk-wrong-1234567890. You can find your API key at https://platform.example.com.","type":"invalid_request_error","code":"invalid_api_key"}}`)},
	{name: "quota used up", provider: answering(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`)},
	{name: "unknown model", provider: answering(404, `{"error":{"message":"The model gpt-5 does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`)},
	{name: "window exceeded", provider: answering(400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`)},
	{name: "server overloaded", provider: answering(503, `{"error":{"message":"The server is overloaded.","type":"server_error"}}`)},
	{name: "a page instead of a model", provider: func(t *testing.T) map[string]any {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Welcome</html>") }))
		t.Cleanup(s.Close)
		return map[string]any{"type": "openai-chat", "model": "m", "baseUrl": s.URL, "apiKey": ""}
	}},
	{name: "server not running", provider: func(t *testing.T) map[string]any {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return map[string]any{"type": "openai-chat", "model": "m", "baseUrl": "http://" + l.Addr().String() + "/v1", "apiKey": ""}
	}},
	{name: "host not found", provider: func(*testing.T) map[string]any {
		return map[string]any{"type": "openai-chat", "model": "m", "baseUrl": "http://host.invalid/v1", "apiKey": ""}
	}},
	{name: "certificate not trusted", provider: func(t *testing.T) map[string]any {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		return map[string]any{"type": "openai-chat", "model": "m", "baseUrl": s.URL + "/v1", "apiKey": ""}
	}},
	{name: "settings that are no JSON", before: func(t *testing.T, root string) {
		put(t, filepath.Join(root, "settings.json"), []byte("{\n  \"provider\": \"s\"\n  \"model\": \"m\"\n}\n"))
	}},
	{name: "disk full", limit: "ulimit -f 8; ", before: func(*testing.T, string) {}},
	{name: "newer store", before: func(t *testing.T, root string) {
		path := filepath.Join(root, "sessions", "rind.db")
		b := get(t, path)
		copy(b[60:64], []byte{0, 0, 0, 99})                                                 // PRAGMA user_version
		put(t, path, bytes.ReplaceAll(b, []byte("readable_from"), []byte("readable_fron"))) // what the numbers mean is not for us to know
	}},
	{name: "damaged store", before: func(t *testing.T, root string) {
		put(t, filepath.Join(root, "sessions", "rind.db"), bytes.Repeat([]byte("no database "), 1000))
	}},
	{name: "a folder in place of the store", before: func(t *testing.T, root string) {
		path := filepath.Join(root, "sessions", "rind.db")
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
	}},
	{name: "session in use by another process", script: `{"turns":[{"match":"stay","steps":[{"text":"I stay."},{"hang":true}]},{"steps":[{"text":"Hello."}]}]}`, args: []string{"--session", "SESSION"}, before: occupy},
	{name: "unknown session", args: []string{"--session", "20200101_000000_00000000"}},
	{name: "tool server down", settings: map[string]any{"mcpServers": map[string]any{"docs": map[string]any{"command": "/nowhere/docs-server"}}}, only: "mcp list"},
	{name: "path outside the workspace", script: `{"turns":[{"steps":[{"call":{"name":"read_file","arguments":{"path":"/etc/hostname"}}}]},{"steps":[{"text":"It could not be read."}]}]}`},
	{name: "consent needed", script: `{"turns":[{"steps":[{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}}]},{"steps":[{"text":"Nothing was made."}]}]}`},
}

// TestEveryTroubleSaysWhatHappenedAndWhatToDo makes each trouble happen to the real program and holds what the terminal, rind v2 and the
// log file say of it, with the exit code, against testdata/texts.golden, which is read as a person would.
func TestEveryTroubleSaysWhatHappenedAndWhatToDo(t *testing.T) {
	if *builtProgram {
		t.Skip("the program waits between its tries; the test binary need not")
	}
	got := make([]string, len(troubles))
	t.Run("troubles", func(t *testing.T) {
		for i, tr := range troubles {
			t.Run(strings.ReplaceAll(tr.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				got[i] = tr.happen(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	all := strings.Join(got, "\n")
	const golden = "testdata/texts.golden"
	if *updateTexts {
		put(t, golden, []byte(all))
	}
	want := strings.ReplaceAll(string(get(t, golden)), "\r\n", "\n")
	for i, part := range strings.SplitAfter(want, "\n\n") {
		if i >= len(got) || strings.TrimRight(part, "\n") != strings.TrimRight(got[i], "\n") {
			t.Errorf("testdata/texts.golden has\n%s\nbut this was told (-update-texts rewrites the file, to be read like code):\n%s", part, at(got, i))
		}
	}
}

func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "(nothing)"
}

// happen makes the trouble happen in the terminal and to an editor, each with a data folder of its own.
func (tr *trouble) happen(t *testing.T) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", tr.name)
	root := tr.root(t)
	had := tr.had(t, root)
	args := append([]string{"prompt", "hi"}, tr.args...)
	for i, a := range args {
		if a == "SESSION" {
			args[i] = had
		}
	}
	hide := strings.NewReplacer(root, "ROOT", had, "SESSION")
	if had == "" {
		hide = strings.NewReplacer(root, "ROOT")
	}
	for _, args := range [][]string{args, strings.Fields(tr.only)} {
		if len(args) == 0 {
			continue
		}
		stdout, stderr, code := tr.run(t, root, args)
		fmt.Fprintf(&out, "rind %s: exit %d\n", args[0], code)
		for _, text := range []string{stdout, stderr} {
			for line := range strings.Lines(text) {
				if line = strings.TrimRight(line, "\n"); line != "" {
					fmt.Fprintf(&out, "  %s\n", same(hide.Replace(line)))
				}
			}
		}
	}
	said := logged(t, root, hide)

	editor := tr.root(t)
	had = tr.had(t, editor)
	fmt.Fprintf(&out, "rind v2:\n")
	for _, line := range tr.wire(t, editor, had) {
		line = strings.ReplaceAll(line, editor, "ROOT")
		if had != "" {
			line = strings.ReplaceAll(line, had, "SESSION")
		}
		fmt.Fprintf(&out, "  %s\n", same(line))
	}
	fmt.Fprintf(&out, "log:\n%s", said)
	return out.String()
}

func (tr *trouble) root(t *testing.T) string {
	root := t.TempDir()
	provider := map[string]any{"type": "script", "model": "script", "script": filepath.Join(root, "script.json")}
	if tr.provider != nil {
		provider = tr.provider(t)
	}
	all := map[string]any{"provider": "s", "providers": map[string]any{"s": provider}}
	for k, v := range tr.settings {
		all[k] = v
	}
	j, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(root, "settings.json"), j)
	put(t, filepath.Join(root, "script.json"), []byte(cmp.Or(tr.script, plainAnswer)))
	if err := os.Mkdir(filepath.Join(root, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

// had has a session, where the trouble comes to one, and lets the trouble begin.
func (tr *trouble) had(t *testing.T, root string) string {
	if tr.before == nil {
		return ""
	}
	plain := trouble{}
	stdout, stderr, code := plain.run(t, root, []string{"prompt", "--json", "hi"})
	if code != exitOK {
		t.Fatalf("the first session: exit %d %s", code, stderr)
	}
	id := regexp.MustCompile(`"session_id":"([^"]+)"`).FindStringSubmatch(stdout)
	if id == nil {
		t.Fatalf("no session in %s", stdout)
	}
	if err := os.RemoveAll(filepath.Join(root, "logs")); err != nil {
		t.Fatal(err)
	}
	tr.before(t, root)
	return id[1]
}

func (tr *trouble) environment(root string) []string {
	return append([]string{"RIND_TEST_CHILD=1", "RIND_TEST_PAUSES=0", "RIND_HOME=" + root, "HOME=" + root, "PATH=" + os.Getenv("PATH")}, tr.env...)
}

func (tr *trouble) run(t *testing.T, root string, args []string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", tr.limit + `exec "$0" "$@"`, os.Args[0]}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join(root, "ws"), tr.environment(root)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), exitOK
}

// wire prompts as an editor does and returns what it is told that is not as usual.
func (tr *trouble) wire(t *testing.T, root, had string) (told []string) {
	args := []string{"-c", tr.limit + `exec "$0" "$@" 2>&1`, os.Args[0], "app-server", "--stdio"}
	if slices.Contains(tr.args, "SESSION") {
		args = append(args, "--session", had)
	} else {
		args = append(args, tr.args...)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Env = filepath.Join(root, "ws"), tr.environment(root)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	_, _ = io.WriteString(in, `{"kind":"request","request_id":1,"method":"initialize","params":{"client_capabilities":["rind/notices"]}}`+"\n"+`{"kind":"request","request_id":2,"method":"session/prompt","params":{"input":"hi"}}`+"\n")
	dec := json.NewDecoder(out)
	for {
		var l struct {
			Kind    string `json:"kind"`
			Request int    `json:"request_id"`
			Error   json.RawMessage
			Event   struct {
				Type string `json:"type"`
			} `json:"event"`
			Result struct {
				Outcome string `json:"outcome"`
			} `json:"result"`
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			rest, _ := io.ReadAll(io.MultiReader(dec.Buffered(), out))
			for line := range strings.Lines(string(rest)) {
				if line = strings.TrimSpace(line); line != "" {
					told = append(told, line)
				}
			}
			break
		}
		_ = json.Unmarshal(raw, &l)
		switch {
		case l.Error != nil:
			told = append(told, "error "+string(l.Error))
		case l.Event.Type == "turn_failed", l.Event.Type == "notice", l.Event.Type == "approval_resolved":
			var e struct {
				Event map[string]any `json:"event"`
			}
			_ = json.Unmarshal(raw, &e)
			for _, usual := range []string{"type", "ts", "event_id", "session_id", "turn_id"} {
				delete(e.Event, usual)
			}
			var j bytes.Buffer
			enc := json.NewEncoder(&j)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(e.Event)
			told = append(told, l.Event.Type+" "+strings.TrimSpace(j.String()))
		case l.Event.Type == "approval_requested":
			told = append(told, "approval_requested")
			_, _ = io.WriteString(in, `{"kind":"request","request_id":9,"method":"shutdown","params":{}}`+"\n")
		}
		if l.Kind == "response" && l.Request == 2 {
			if l.Result.Outcome != "" {
				told = append(told, "outcome "+l.Result.Outcome)
			}
			_ = in.Close()
		}
	}
	_ = cmd.Wait()
	return told
}

// logged is what the log file says, but for what it says of every run.
func logged(t *testing.T, root string, hide *strings.Replacer) string {
	b, err := os.ReadFile(filepath.Join(root, "logs", "rind.log"))
	if errors.Is(err, os.ErrNotExist) {
		return "  (nothing)\n"
	} else if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Errorf("log line %q: %v", line, err)
			continue
		}
		if l["msg"] == "sweep of children" { // of a process before this one, whenever it was found: no trouble of a person's
			continue
		}
		if l["msg"] == "watch store" { // a store that cannot be used fails the turn too; whether it is noticed here before the end is a matter of time
			continue
		}
		head := fmt.Sprintf("  %v %v", l["level"], l["msg"])
		if l["behind"] == nil {
			delete(l, "behind")
		}
		for _, known := range []string{"level", "msg", "time", "pid", "instance", "session", "turn"} {
			delete(l, known)
		}
		rest, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s\n", head, same(hide.Replace(string(rest))))
	}
	if out.Len() == 0 {
		return "  (nothing)\n"
	}
	return out.String()
}

// occupy goes on with the newest session in another process, until the test ends.
func occupy(t *testing.T, root string) {
	tr := trouble{}
	cmd := exec.Command(os.Args[0], "prompt", "-c", "stay")
	cmd.Dir, cmd.Env = filepath.Join(root, "ws"), tr.environment(root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, len("I stay."))); err != nil {
		t.Fatal(err)
	}
}

// same takes out what differs from run to run.
func same(s string) string {
	for _, r := range []struct{ find, with string }{
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`\b[0-9a-f]{32}\b`, "ID"},
		{`\b\d{8}_\d{6}_[0-9a-f]{8}\b`, "SESSION"},
		{` \d+(\.\d+)?s;`, ""},
		{`about \d+ tokens in, \d+ out; \d+ %`, "about N tokens in, N out; N %"},
		{`dial tcp 127\.0\.0\.1:PORT: .*connection refused`, "dial tcp 127.0.0.1:PORT: connection refused"},
		{`dial tcp: lookup host\.invalid.*?"`, `dial tcp: lookup host.invalid: no such host"`},
	} {
		s = regexp.MustCompile(r.find).ReplaceAllString(s, r.with)
	}
	return s
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Canaries are secrets of a kind each, so that one that is found says where it got out.
const (
	canaryKey     = "sk-CANARY-settings-5b1c7e"    // apiKey in settings.json
	canaryHeader  = "CANARY header+value/9f3a"     // of a provider
	canaryEnv     = "sk-CANARY-environment-77d0"   // a variable that settings.json names
	canaryOther   = "CANARYother41c2d8"            // a variable named by a provider that is not in use
	canaryUsual   = "sk-CANARY-usual-name-0a9b8c"  // OPENAI_API_KEY
	canaryDotEnv  = "sk-CANARY-dotenv-c0ffee"      // .env of the workspace
	canarySSH     = "CANARY-ssh-private-key-66aa1" // ~/.ssh/id_rsa
	canaryRoot    = "CANARY-data-root-2e2e2e"      // a file of the data folder
	visibleMarker = "visible-in-the-environment"   // and no secret
)

var canaries = []string{canaryKey, canaryHeader, canaryEnv, canaryOther, canaryUsual, canaryDotEnv, canarySSH, canaryRoot}

// canaryIn names a canary that text holds, in any of the forms it may travel in; "" for none.
func canaryIn(text []byte) string {
	for _, c := range canaries {
		quoted, _ := json.Marshal(c)
		for _, form := range []string{c, strings.Trim(string(quoted), `"`), url.QueryEscape(c), url.PathEscape(c), base64.StdEncoding.EncodeToString([]byte(c))} {
			if bytes.Contains(text, []byte(form)) {
				return c
			}
		}
	}
	return ""
}

// around is what stands near a canary.
func around(text []byte, canary string) []byte {
	at := max(0, bytes.Index(text, []byte(canary)))
	return text[max(0, at-300):min(len(text), at+100)]
}

// echoing is a provider on loopback that plays what the test says: calls, or refusals that repeat all they were sent.
type echoing struct {
	*httptest.Server
	mu       sync.Mutex // guards what follows
	calls    []string   // to be made, one a request: name and arguments
	made     int
	refuse   string   // how the next requests are refused; "" answers
	bodies   [][]byte // of requests
	keysSeen map[string]bool
}

func newEchoing(t *testing.T) *echoing {
	e := &echoing{keysSeen: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *echoing) play(refuse string, calls ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refuse, e.calls = refuse, calls
}

func (e *echoing) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bodies = append(e.bodies, body)
	for _, c := range canaries {
		if strings.Contains(fmt.Sprint(r.Header), c) {
			e.keysSeen[c] = true
		}
	}
	key, extra := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.Header.Get("X-Team")
	said := fmt.Sprintf("Incorrect API key provided: %s (%s; %s; %s)", key, extra, url.QueryEscape(extra), r.Header)
	switch refuse := e.refuse; {
	case refuse == "redirect":
		http.Redirect(w, r, "http://127.0.0.1:9/v1?key="+url.QueryEscape(key)+"&team="+url.QueryEscape(extra), http.StatusTemporaryRedirect)
	case refuse == "html":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<html><title>%s</title><p>%s", key, said)
	case refuse == "stream":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", protocol.MustMarshal(map[string]any{"error": map[string]any{"message": said, "code": key, "type": extra}}))
	case refuse != "", strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("WWW-Authenticate", "Bearer realm="+key)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(protocol.MustMarshal(map[string]any{"error": map[string]any{"message": said, "code": key, "type": extra, "param": said}}))
	case len(e.calls) > 0:
		name, arguments, _ := strings.Cut(e.calls[0], " ")
		e.calls = e.calls[1:]
		e.made++
		w.Header().Set("Content-Type", "text/event-stream")
		call := map[string]any{"index": 0, "id": fmt.Sprintf("call%d", e.made), "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", protocol.MustMarshal(map[string]any{"choices": []any{
			map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{call}}, "finish_reason": "tool_calls"},
		}}))
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Done."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}
}

// prying are calls that would meet a canary if nothing held them back.
func prying(home, ws string) []string {
	bash := func(command string) string {
		return "bash " + string(protocol.MustMarshal(map[string]any{"command": command}))
	}
	calls := []string{
		`write_file {"path":"made.txt","content":"made by a tool\n"}`,
		`edit_file {"path":"code.go","old_str":"package a","new_str":"package b"}`,
		`read_file {"path":".env"}`, `read_file {"path":"` + home + `/.ssh/id_rsa"}`, `read_file {"path":"` + home + `/.rind/settings.json"}`, `read_file {"path":"link"}`,
		`grep {"pattern":"CANARY"}`, `grep {"pattern":"CANARY","glob":"**/.e*"}`, `grep {"pattern":"CANARY","path":"` + home + `"}`, `grep {"pattern":"CANARY","path":"/proc/self/environ"}`,
		`glob {"pattern":"**/*"}`, `glob {"pattern":"**/.*"}`, `update_plan {"plan":[{"step":"look","status":"completed"}]}`, `skill {"name":"none"}`,
		`ask_user_question {"question":"May I?"}`, `fetch_web_page {"url":"http://127.0.0.1:9/"}`,
		`bash {"command":"cat .env","yield_time_ms":0}`, `task_control {"action":"list"}`,
	}
	for _, c := range []string{
		"env", "printenv", "export -p", "set", "declare -p", "cat .env", "cat .e*", "cat .??*", "head -c 200 ./.env", "cat *", "cat ./*/../.env", "sort .env", "diff .env code.go",
		"wc -l .env; nl .env", "grep -r CANARY .", "grep -rn CANARY", "grep CANARY .e?v", "rg -uu CANARY", "git grep --no-index CANARY", "find . -type f", "find . -name '.e*' -exec cat {} +",
		"ls -la", "cat ~/.ssh/id_rsa", "cat " + home + "/.ssh/id_rsa", "cat $HOME/.ssh/*", "cat " + home + "/.rind/settings.json", "cat ~/.rind/private.txt",
		"cat /proc/self/environ", "cat /proc/$PPID/environ", "tail -c +1 /proc/*/environ", "strings " + ws + "/.env", "cat < .env", "echo $(cat .env)", "cat link", "cat folder/id_rsa", "cd ~/.ssh && cat id_rsa",
	} {
		calls = append(calls, bash(c))
	}
	return calls
}

// TestNoSecretGetsOutOfItsPlace plants secrets where people keep them, lets a model pry for them with every tool, in the modes edit and full (with -built in all) and
// with a person who rejects what is asked, lets a provider repeat the keys in its errors, and lets a person look at everything afterwards. The
// secrets are in no output, no log, no store file, no kept output or before-image, no request's body and no command's environment. They are
// where they were put: settings.json, .env, private.txt and .ssh/id_rsa are not looked at.
func TestNoSecretGetsOutOfItsPlace(t *testing.T) {
	t.Parallel()
	path, childEnv := program(t)
	modes := []string{"edit", "full"}
	if *builtProgram { // there is time
		modes = append(modes, "ask", "read")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := plant(t, mode, path, childEnv)
			calls := prying(p.home, p.ws)
			if mode == "full" { // nothing is asked: reading secret files is what this mode allows, a command's environment is ours
				calls = []string{
					`bash {"command":"env"}`, `bash {"command":"export -p; set"}`, `bash {"command":"cat /proc/self/environ"}`, `bash {"command":"env; sleep 0.1; env","yield_time_ms":0}`,
					`bash {"command":"cat ` + p.home + `/.rind/*"}`, `grep {"pattern":"CANARY"}`, `write_file {"path":"made.txt","content":"made by a tool\n"}`,
				}
			}
			p.talk(calls)
			p.look()
			if mode == "full" && !bytes.Contains(p.all(), []byte(visibleMarker)) {
				t.Error("the commands did not print their environment")
			}
			for _, c := range []string{canaryKey, canaryHeader} {
				if !p.endpoint.keysSeen[c] {
					t.Errorf("%q was never sent: the test tries nothing", c)
				}
			}
		})
	}
}

// planted is a home full of secrets and all that came out of the program in it.
type planted struct {
	t        *testing.T
	endpoint *echoing
	program  string
	home, ws string
	env      []string
	out      bytes.Buffer // everything that was written to us, by command
	asked    int
}

func plant(t *testing.T, mode, program string, childEnv []string) *planted {
	base := t.TempDir()
	p := &planted{t: t, endpoint: newEchoing(t), program: program, home: filepath.Join(base, "home"), ws: filepath.Join(base, "home", "work")}
	for _, dir := range []string{p.ws, p.ws + "/folder", p.home + "/.ssh", p.home + "/.rind", base + "/temp"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	settings := protocol.MustMarshal(map[string]any{
		"provider": "a", "approvalMode": mode, "providers": map[string]any{
			"a": map[string]any{"type": "openai-chat", "baseUrl": p.endpoint.URL + "/v1", "apiKey": canaryKey, "model": "m", "headers": map[string]any{"X-Team": canaryHeader}},
			"b": map[string]any{"type": "openai-chat", "baseUrl": p.endpoint.URL + "/v1", "apiKey": "$ODD_NAME", "model": "m"},
			"c": map[string]any{"type": "openai-chat", "baseUrl": p.endpoint.URL + "/v1", "apiKey": "$OTHER_NAME", "model": "m"},
		},
	})
	for name, text := range map[string]string{
		p.home + "/.rind/settings.json": string(settings), p.home + "/.rind/private.txt": canaryRoot + "\n", p.home + "/.ssh/id_rsa": canarySSH + "\n",
		p.ws + "/.env": "KEY=" + canaryDotEnv + "\n", p.ws + "/code.go": "package a\n", p.ws + "/folder/id_rsa": canarySSH + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../.ssh/id_rsa", p.ws+"/link"); err != nil {
		t.Fatal(err)
	}
	p.env = append([]string{
		"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + base + "/temp", "HARMLESS=" + visibleMarker,
		"ODD_NAME=" + canaryEnv, "OTHER_NAME=" + canaryOther, "OPENAI_API_KEY=" + canaryUsual,
	}, childEnv...)
	return p
}

// talk lets the model make its calls, over app-server, and then refuses it in every way.
func (p *planted) talk(calls []string) {
	p.t.Helper()
	p.endpoint.play("", calls...)
	cmd := exec.CommandContext(p.t.Context(), p.program, "app-server", "--debug", "--trace-llm", "--cwd", p.ws)
	cmd.Env = p.env
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines := json.NewDecoder(io.TeeReader(out, &p.out))
	id := 0
	send := func(method string, params any) {
		id++
		_, _ = in.Write(append(protocol.MustMarshal(map[string]any{"kind": "request", "request_id": id, "method": method, "params": params}), '\n'))
	}
	answered := func() {
		for want := id; ; {
			var l wireLine
			if err := lines.Decode(&l); err != nil {
				p.t.Fatalf("app-server: %v\n%s", err, stderr.String())
			}
			var e struct {
				Type   string `json:"type"`
				Action string `json:"action_id"`
				Call   string `json:"tool_call_id"`
			}
			if l.Kind == "event" && json.Unmarshal(l.Event, &e) == nil {
				switch e.Type {
				case "approval_requested":
					p.asked++
					send("rind/approval/respond", map[string]any{"action_id": e.Action, "option_id": "reject_once"})
				case "user_question_requested":
					send("rind/user-question/respond", map[string]any{"tool_call_id": e.Call, "answer": "No"})
				}
			}
			if l.Kind == "response" && l.RequestID == want {
				return
			}
		}
	}
	send("initialize", map[string]any{"client_capabilities": []string{"rind/approvals"}})
	answered()
	send("session/prompt", map[string]any{"input": "pry"})
	answered()
	for _, how := range []string{"401", "html", "redirect", "stream"} {
		p.endpoint.play(how)
		send("session/prompt", map[string]any{"input": "be refused: " + how})
		answered()
	}
	for method, params := range map[string]any{
		"model/list": map[string]any{"refresh": true}, "rind/auth/list": nil, "rind/context/inspect": nil, "session/replay": map[string]any{"after_cursor": 0},
		"rind/command/execute": map[string]any{"input": "/status"},
	} {
		send(method, params)
		answered()
	}
	p.files("while it runs") // the write-ahead log is there now
	_ = in.Close()
	_, _ = io.Copy(io.Discard, io.TeeReader(io.MultiReader(lines.Buffered(), out), &p.out))
	if err := cmd.Wait(); err != nil {
		p.t.Errorf("app-server: %v", err)
	}
	p.out.Write(stderr.Bytes())
	if !strings.Contains(stderr.String(), "model") {
		p.t.Errorf("--debug --trace-llm said nothing: %s", stderr.String())
	}
}

// run runs a command of the program, and keeps what it says.
func (p *planted) run(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.program, args...)
	cmd.Env, cmd.Dir = p.env, p.ws
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput() // many of them fail, as they should
	if c := canaryIn(out); c != "" {
		p.t.Errorf("rind %s (%v) shows %q: %s", strings.Join(args, " "), err, c, around(out, c))
	}
	p.out.Write(out)
	return string(out)
}

// look lets a person look at everything, then looks for the canaries.
func (p *planted) look() {
	p.t.Helper()
	id := regexp.MustCompile(`\d{8}_\d{6}_[0-9a-f]{8}`).FindString(p.run("sessions", "list", "--json"))
	if id == "" {
		p.t.Fatal("there is no session")
	}
	bundle := filepath.Join(p.home, "bundle.tar.gz")
	for _, args := range [][]string{
		{"sessions", "show", id},
		{"sessions", "export", id},
		{"replay", id},
		{"diff"},
		{"undo", "--dry-run"},
		{"config", "check"},
		{"config", "get", "providers"},
		{"config", "get", "providers.a.apiKey"},
		{"config", "get", "providers.a.headers"},
		{"doctor", "--online"},
		{"doctor", "--json", "--online"},
		{"doctor", "--bundle", bundle, "--yes"},
		{"models"},
		{"prompt", "--debug", "ask b", "--provider", "b"},
		{"prompt", "--debug", "ask a"},
		{"mcp"},
		{"trust", "--show"},
	} {
		p.run(args...)
	}
	p.endpoint.play("", `bash {"command":"env"}`, `bash {"command":"cat .env"}`)
	p.run("prompt", "--debug", "with b", "--provider", "b", "--mode", "ask") // nobody is there to be asked
	p.endpoint.play("", `bash {"command":"env"}`)                            // in a process that has asked nobody for a list of providers
	p.run("prompt", "what is in the environment?")
	p.run("sessions", "export", regexp.MustCompile(`\d{8}_\d{6}_[0-9a-f]{8}`).FindString(p.run("sessions", "list", "--json")))
	p.files("afterwards")
	if c := canaryIn(p.out.Bytes()); c != "" {
		p.t.Errorf("%q is in what was written: %s", c, around(p.out.Bytes(), c))
	}
	for _, b := range p.endpoint.bodies {
		if c := canaryIn(b); c != "" {
			p.t.Errorf("%q was sent to the model: %s", c, around(b, c))
			break
		}
	}
	if len(p.endpoint.bodies) < 8 {
		p.t.Errorf("only %d requests were made", len(p.endpoint.bodies))
	}
}

// all is everything that came out.
func (p *planted) all() []byte { return p.out.Bytes() }

// files looks into every file below the home but those the secrets are kept in.
func (p *planted) files(when string) {
	p.t.Helper()
	kept := []string{".rind/settings.json", ".rind/private.txt", ".ssh/id_rsa", "work/.env", "work/folder/id_rsa"}
	looked := map[string]bool{}
	err := filepath.WalkDir(filepath.Dir(p.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(p.home, path)
		if !d.Type().IsRegular() || slices.Contains(kept, rel) {
			return nil
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		looked[filepath.Base(rel)] = true
		if c := canaryIn(data); c != "" {
			p.t.Errorf("%s: %q is in %s: %q", when, c, rel, around(data, c))
		}
		return err
	})
	if err != nil {
		p.t.Error(err)
	}
	for _, name := range []string{"rind.db", "rind.log"} {
		if !looked[name] {
			p.t.Errorf("%s: there is no %s to look into", when, name)
		}
	}
}

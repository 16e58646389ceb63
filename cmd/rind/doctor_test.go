package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/record"
)

// ran is what a command of the program did.
type ran struct {
	out, err string
	code     int
}

// rind runs the program in a data folder and workspace, with more variables than it needs of itself.
func rind(t *testing.T, root, ws string, env []string, args ...string) ran {
	t.Helper()
	return rindWith(t, nil, root, ws, env, args...)
}

// rindWith is rind with an input.
func rindWith(t *testing.T, in io.Reader, root, ws string, env []string, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Stdin = in
	cmd.WaitDelay = 5 * time.Second // a child of its own may hold the output
	cmd.Dir = ws
	cmd.Env = append([]string{"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "HOME=" + filepath.Dir(root), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return ran{out.String(), said.String(), cmd.ProcessState.ExitCode()}
}

// dataAndWorkspace are a data folder with settings in it, and a workspace beside it.
func dataAndWorkspace(t *testing.T, settings string) (root, ws string) {
	t.Helper()
	dir := t.TempDir()
	root, ws = filepath.Join(dir, "data"), filepath.Join(dir, "ws")
	for _, d := range []string{root, ws} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if settings != "" {
		write(t, filepath.Join(root, "settings.json"), settings)
	}
	return root, ws
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpack gives the files of a bundle by name.
func unpack(t *testing.T, data []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	r := tar.NewReader(zip)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o600 {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, "rind-report/")] = string(text)
	}
}

// TestABundleHoldsNoSecretAndNothingOfAConversation plants a canary wherever a person's own words and keys are, and looks for them in
// every byte of the bundle.
func TestABundleHoldsNoSecretAndNothingOfAConversation(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("CANARY-REFUSED")) { // a provider that repeats what it was sent, in its refusal
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "not this: " + string(body[:min(len(body), 4000)])}})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []string{
			`{"delta":{"role":"assistant","content":"CANARY-ANSWER is what I say"}}`,
			`{"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"CANARY-COMMAND\"}"}}]}}`,
			`{"delta":{},"finish_reason":"stop"}`,
		} {
			fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", choice)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer provider.Close()
	host := strings.TrimPrefix(provider.URL, "http://")
	root, ws := dataAndWorkspace(t, `{
		"provider": "mine", "apiKey": "CANARY-KEY-OF-THE-TOP-LEVEL", "modell": "CANARY-UNKNOWN-SETTING", "headers": {"X-Top": "CANARY-HEADER"},
		"providers": {
			"mine": {"baseUrl": "http://CANARY-USER:CANARY-PASSWORD@`+host+`/v1?key=CANARY-QUERY", "apiKey": "CANARY-PROVIDER-KEY", "model": "m", "headers": {"X-K": "CANARY-HEADER-TWO"}},
			"agent": {"type": "acp", "command": "agent", "args": ["--token=CANARY-ARGUMENT"], "env": {"T": "CANARY-AGENT-ENV"}}
		},
		"searchUrl": "https://search.example/q?key=CANARY-SEARCH-QUERY", "searchKey": "CANARY-SEARCH-KEY",
		"mcpServers": {"docs": {"command": "CANARY-SERVER-COMMAND", "args": ["CANARY-SERVER-ARGUMENT"], "env": {"K": "CANARY-SERVER-ENV"}}, "far": {"url": "https://far.example/CANARY-SERVER-URL", "headers": {"A": "CANARY-SERVER-HEADER"}}},
		"trustedWorkspaces": {"/home/CANARY-OTHER-WORKSPACE": "`+strings.Repeat("a", 64)+`"},
		"folderDefaults": {"/home/CANARY-FOLDER": {"provider": "mine", "model": "m"}}
	}`)
	write(t, filepath.Join(ws, "a.txt"), "CANARY-FILE")
	write(t, filepath.Join(ws, "RIND.md"), "CANARY-NOTE")
	write(t, filepath.Join(root, "RIND.md"), "CANARY-OWN-NOTE")
	write(t, filepath.Join(ws, ".mcp.json"), `{"mcpServers":{"local":{"command":"CANARY-LOCAL"}}}`)
	env := []string{"SOME_API_KEY=CANARY-ENV-KEY", "PLAIN=CANARY-ENV-PLAIN", "OPENAI_API_KEY=CANARY-OPENAI-KEY"}
	// What happened before, in the log too: lines of an MCP server, an error that holds a key, a panic's text.
	log := record.New(record.Options{Path: filepath.Join(root, "logs", "rind.log")})
	l := log.Logger()
	l.Info("mcp server wrote", "server", "docs", "text", "searching for CANARY-MCP-LINE now")
	l.Warn("mcp server is not connected", "err", "it said: CANARY-MCP-ERROR oh no")
	l.Info("mcp server wrote", "server", "docs", "text", "CANARY-ONE-WORD")
	l.Info("something new", "words", "a text of CANARY-NEW-ATTRIBUTE nobody thought of", "count", 3)
	log.ErrorID(errors.New("open /x: the key CANARY-ENV-KEY was refused"))
	log.Close()
	f, err := os.OpenFile(filepath.Join(root, "logs", "rind.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "CANARY-NO-LINE-OF-OURS")
	f.Close()
	if r := rind(t, root, ws, env, "prompt", "--mode", "full", "CANARY-PROMPT please"); !strings.Contains(r.out, "CANARY-ANSWER") {
		t.Fatalf("no turn to be kept secret: %+v", r)
	}
	if r := rind(t, root, ws, env, "prompt", "CANARY-REFUSED please"); r.code != exitFailed {
		t.Fatalf("no refusal to be kept secret: %+v", r)
	}
	path := filepath.Join(t.TempDir(), "report.tar.gz")
	r := rind(t, root, ws, env, "doctor", "--bundle", path, "--yes", "--online")
	if r.code != exitOK || r.out != "" {
		t.Fatalf("%+v", r)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := unpack(t, data)
	names := []string{}
	for name, text := range files {
		names = append(names, name)
		for at := strings.Index(text, "CANARY"); at >= 0; at = -1 {
			t.Errorf("%s holds …%s…", name, text[max(0, at-60):min(len(text), at+60)])
		}
		for _, folder := range []string{ws, root, filepath.Dir(root)} {
			if strings.Contains(text, folder) {
				t.Errorf("%s names the folder %s", name, folder)
			}
		}
		if !strings.Contains(r.err, fmt.Sprintf("%d bytes  %s", len(text), name)) {
			t.Errorf("%s with %d bytes was not listed:\n%s", name, len(text), r.err)
		}
	}
	slices.Sort(names)
	if want := []string{"about.json", "findings.json", "log.jsonl", "names.json", "settings.json", "store.json"}; !slices.Equal(names, want) {
		t.Errorf("it holds %q", names)
	}
	if strings.Contains(r.err, "CANARY") {
		t.Errorf("what is shown: %s", r.err)
	}
	// What a report is for is there.
	for name, wants := range map[string][]string{
		"about.json":    {`"go": "go1.`, `"os": "` + runtime.GOOS + `"`, `"kernel"`, `"sandbox"`},
		"findings.json": {`"check": "sandbox"`, "DATA/sessions/rind.db", "2 sessions"},
		"names.json":    {`"bash"`, `"read_file"`, `"docs"`, `"far"`, `"mine"`, `"acp"`},
		"settings.json": {`"apiKey": "(set)"`, `"providers.mine.apiKey": "(set)"`, `"providers.mine.baseUrl": "http://` + host + `/v1"`, `"searchUrl": "https://search.example/q"`, `"trustedWorkspaces": "(1 entries)"`, `"providers.agent.args": "(1 entries)"`},
		"store.json":    {`"integrity": "ok"`, `"sessions": 2`},
		"log.jsonl":     {`"count":3`, `"text":"(33 bytes)"`, `"server":"docs"`, `"error_id"`, `the key [redacted] was refused`},
	} {
		for _, want := range wants {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %s:\n%s", name, want, files[name])
			}
		}
	}
}

// TestABundleTakesTheEndOfALongLog: whole lines, the newest, at most 200 KiB of them, from the file before where the newest is short.
func TestABundleTakesTheEndOfALongLog(t *testing.T) {
	dir := t.TempDir()
	line := func(n int) string {
		return fmt.Sprintf(`{"time":"2026-01-02T03:04:05Z","level":"INFO","msg":"m","n":%d,"pad":"%s"}`+"\n", n, strings.Repeat("x", 100))
	}
	var older, newer strings.Builder
	for n := range 3000 {
		older.WriteString(line(n))
	}
	for n := range 100 {
		newer.WriteString(line(3000 + n))
	}
	path := filepath.Join(dir, "rind.log")
	write(t, path, newer.String())
	write(t, path+".1", older.String())
	got := string((&cleaner{folders: strings.NewReplacer()}).log(path))
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(got) > 2*logTail || len(lines) < 1000 || len(lines) > 2000 {
		t.Fatalf("%d bytes, %d lines", len(got), len(lines))
	}
	for i, text := range lines {
		var l struct{ Rest struct{ N int } }
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.Rest.N != 3100-len(lines)+i {
			t.Fatalf("line %d of %d is %s", i, len(lines), text)
		}
	}
}

// TestDoctorLooksAtTheStoreTheFlagsName: a store of its own, by --session-dir, is the one that is looked at.
func TestDoctorLooksAtTheStoreTheFlagsName(t *testing.T) {
	root, ws := playing(t, `{"turns":[{"steps":[{"text":"Hello."}]}]}`)
	dir := filepath.Join(t.TempDir(), "own")
	if r := rind(t, root, ws, nil, "prompt", "--session-dir", dir, "hello"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	r := rind(t, root, ws, nil, "doctor", "--session-dir", dir)
	if !strings.Contains(r.out, filepath.Join(dir, "rind.db")+": 1 session,") {
		t.Errorf("%+v", r)
	}
}

// TestASessionWithADamagedEntryIsNamedByDoctorAndCanBeDeleted: also where its snapshot lies behind the damage, so that it still opens.
func TestASessionWithADamagedEntryIsNamedByDoctorAndCanBeDeleted(t *testing.T) {
	root, ws := playing(t, `{"turns":[{"match":"one","steps":[{"text":"A spoiled word."}]},{"match":"two","steps":[{"text":"Sound."}]}]}`)
	for _, input := range []string{"one", "two"} {
		if r := rind(t, root, ws, nil, "prompt", input); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
	}
	if r := rind(t, root, ws, nil, "doctor"); !strings.Contains(r.out, "the newest 2 can be read") {
		t.Errorf("before: %+v", r)
	}
	path := filepath.Join(root, "sessions", "rind.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoiled := bytes.ReplaceAll(whole, []byte(`"content":"A spoiled word."`), []byte(`"content":["A spoiled word"`))
	if bytes.Equal(spoiled, whole) {
		t.Fatal("the store holds no such entry")
	}
	if err := os.WriteFile(path, spoiled, 0o600); err != nil {
		t.Fatal(err)
	}
	r := rind(t, root, ws, nil, "doctor")
	_, after, found := strings.Cut(r.out, "writes the rest of it, 'rind sessions delete ")
	id, _, _ := strings.Cut(after, "'")
	if !found || strings.Contains(r.out, "run 'rind doctor'") || strings.Count(r.out, "cannot be read") != 1 {
		t.Fatalf("doctor says %+v", r)
	}
	if r := rind(t, root, ws, nil, "sessions", "delete", id); r.code != exitOK {
		t.Errorf("delete: %+v", r)
	}
	if r := rind(t, root, ws, nil, "doctor"); !strings.Contains(r.out, "the newest 1 can be read") {
		t.Errorf("afterwards: %+v", r)
	}
}

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// H112, N02: what would be open to others is refused before anything is bound or written.
func TestServeRefusesToBeOpenToOthers(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte(strings.Repeat("x", 32)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused := [][]string{
		{"--auth", "none", "--host", "0.0.0.0"},
		{"--auth", "none", "--host", "::"},
		{"--host", ""},
		{"--auth", "maybe"},
		{"--port", "70000"},
		{"--cleanup-timeout", "99ms"},
		{"--cleanup-timeout", "10m1s"},
		{"--drain", "-1s"},
		{"--requeue-within", "-1s"},
		{"--max-running", "0"},
		{"--workspace", "UPPER=/"},
		{"--workspace", "gone=" + filepath.Join(data, "no", "such")},
		{"--token-file", short, "--port", "0"},
		{"--token-file", open, "--port", "0"},
		{"--token-file", "", "--port", "0"},
		{"--token-file", filepath.Join(data, "no", "such", "token"), "--port", "0"},
		{"--token-file", filepath.Dir(short), "--port", "0"},
		{"--workspace", "a=" + filepath.Dir(short), "--workspace", "a=" + filepath.Dir(short), "--port", "0"},
		{"--allow-origin", "null", "--port", "0"},
		{"--allow-origin", "*", "--port", "0"},
		{"--allow-origin", "https://*", "--port", "0"},
		{"--allow-origin", "", "--port", "0"},
		{"--allow-origin", "https://app.test/", "--port", "0"},
		{"--allow-origin", "app.test", "--port", "0"},
		{"--allow-host", "", "--port", "0"},
		{"--allow-host", ":80", "--port", "0"},
		{"--allow-host", "http://app.test", "--port", "0"},
		{"--allow-host", "app.test/", "--port", "0"},
		{"--allow-host", "*", "--port", "0"},
		{"--allow-host", "*.app.test", "--port", "0"},
		{"--allow-host", "null", "--port", "0"},
		{"--allow-host", "app.test:", "--port", "0"},
		{"--allow-host", "app.test:0", "--port", "0"},
		{"--allow-host", "app.test:080", "--port", "0"},
		{"--allow-host", "app.test:99999", "--port", "0"},
		{"--allow-host", "user@app.test", "--port", "0"},
		{"--allow-host", "app test", "--port", "0"},
		{"--allow-host", "app.test,other.test", "--port", "0"},
		{"--allow-host", "::1", "--port", "0"},
		{"--allow-host", "[app.test]", "--port", "0"},
		{"--allow-host", "[fe80::1%25eth0]", "--port", "0"},
		{"--allow-origin", "https://app.test:", "--port", "0"},
		{"--allow-origin", "https://app.test:99999", "--port", "0"},
		{"--allow-origin", "https://App.test", "--port", "0"},
		{"--allow-origin", "HTTPS://app.test", "--port", "0"},
		{"--allow-origin", "https://*.app.test", "--port", "0"},
		{"--allow-origin", "https://null", "--port", "0"},
		{"--allow-origin", "https://user@app.test", "--port", "0"},
		{"--allow-origin", "https://bücher.test", "--port", "0"},
		{"--allow-origin", "https://app.test?", "--port", "0"},
		{"--allow-origin", "https://app.test#", "--port", "0"},
		{"--cwd", filepath.Join(data, "no", "such"), "--port", "0"},
		{"--cwd", short, "--port", "0"},
		{"--data", short, "--port", "0"},
		{"--data", filepath.Join(short, "below"), "--port", "0"},
		{"--nonsense"},
		{"--port", "many"},
		{"--drain"},
		{"more"},
	}
	for name, text := range map[string]string{
		"of 15":           strings.Repeat("x", 15),
		"of 513":          strings.Repeat("x", 513),
		"with a space":    "0123456789 abcdef",
		"with a TAB":      "0123456789\tabcdef",
		"with a DEL":      "0123456789\x7fabcdef",
		"not ASCII":       "0123456789é0123456789",
		"with two LFs":    "0123456789abcdef\n\n",
		"with a CRLF":     "0123456789abcdef\r\n",
		"of two lines":    "0123456789abcdef\n0123456789abcdef",
		"with a LF ahead": "\n0123456789abcdef",
		"of 15 and a LF":  strings.Repeat("x", 15) + "\n",
	} {
		path := filepath.Join(filepath.Dir(short), "token "+name)
		write(t, path, text)
		refused = append(refused, []string{"--token-file", path, "--port", "0"})
	}
	for _, args := range refused {
		t.Setenv("RIND_HOME", data) // --data sets it
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		code := run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), &out, &errs)
		cancel()
		if said := errs.String(); code != exitUsage || out.Len() != 0 || !strings.HasPrefix(said, "rind: ") || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), said)
		}
	}
}

// D01, N01, N02, N11: a token of its own in a file of its own, named but never printed; a good end.
func TestServeMakesAFreshTokenThatOnlyItsFileTells(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("RIND_HOME", data)
	tokens := map[string]bool{}
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var errs bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"serve", "--port", "0", "--cwd", t.TempDir(), "--drain", "100ms", "--debug"}, strings.NewReader(""), w, &errs)
			w.Close()
		}()
		line := make([]byte, 200)
		n, err := r.Read(line)
		if err != nil {
			t.Fatalf("no line: %v, %s", err, errs.String())
		}
		base, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "rind HTTP listening on ")
		if !ok {
			t.Fatalf("ready line %q", line[:n])
		}
		path := filepath.Join(data, "http-token")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !private(info) {
			t.Errorf("mode %v", info.Mode())
		}
		text, _ := os.ReadFile(path)
		token := strings.TrimSpace(string(text))
		if len(token) != 43 || tokens[token] {
			t.Errorf("token of %d characters, seen before: %v", len(token), tokens[token])
		}
		tokens[token] = true
		for header, want := range map[string]int{"": 401, "Bearer " + token: 200, "Bearer " + token + "x": 401} {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/runtime", nil)
			req.Header.Set("Authorization", header)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("with %q: %d", header, resp.StatusCode)
			}
		}
		ask := func(method, path, body string) string { // an answer, with what somebody tells of the token in it
			req, _ := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
			req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return string(text)
		}
		id := func(text string) string {
			_, text, _ = strings.Cut(text, `{"id":"`)
			text, _, _ = strings.Cut(text, `"`)
			return text
		}
		failed := id(ask("POST", "/v1/executions", `{"conversationId":"`+id(ask("POST", "/v1/conversations", "{}"))+`","providerId":"script","input":"","config":{"steps":[{"fail":"it got `+token+`"}]}}`))
		ask("GET", "/v1/executions/"+token, "")
		end := ""
		testkit.Eventually(t, "the execution ends", func() bool {
			end = ask("GET", "/v1/executions/"+failed+"/events", "")
			return strings.Contains(end, "run.failed")
		})
		if !strings.Contains(end, `"message":"it got `) || strings.Contains(end, token) {
			t.Errorf("an error that repeats the token is told as %s", end)
		}
		http.DefaultClient.CloseIdleConnections()
		stop()
		if c := <-code; c != exitOK {
			t.Errorf("exit %d: %s", c, errs.String())
		}
		if log, _ := os.ReadFile(filepath.Join(data, "logs", "rind.log")); bytes.Contains(log, []byte(token)) {
			t.Errorf("the log has %s", log)
		}
		if strings.Contains(errs.String(), token) || !strings.Contains(errs.String(), "rind: bearer token in "+path) {
			t.Errorf("stderr %q", errs.String())
		}
		r.Close()
	}
}

// Section 1: flags go before the environment, what --allow-host and --allow-origin name is let in, and an explicit token file is read, but for its line end, and left as
// it is; one that is missing is made, for its owner alone, and is the one of the next start.
func TestServeTakesWhatItsFlagsItsTokenFileAndTheEnvironmentSay(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RIND_HOME", filepath.Join(dir, "home"))
	serve := func(args ...string) (base string, stop func()) {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		r, w := io.Pipe()
		var errs bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, append([]string{"serve", "--cwd", dir, "--drain", "100ms"}, args...), strings.NewReader(""), w, &errs)
			w.Close()
		}()
		line := make([]byte, 200)
		n, err := r.Read(line)
		base, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "rind HTTP listening on ")
		if err != nil || !ok {
			t.Fatalf("%v: %q, %v, %s", args, line[:n], err, errs.String())
		}
		return base, func() {
			http.DefaultClient.CloseIdleConnections()
			end()
			if c := <-code; c != exitOK {
				t.Errorf("%v: exit %d: %s", args, c, errs.String())
			}
			r.Close()
		}
	}
	ask := func(base, token string, headers ...string) int {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/runtime", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i < len(headers); i += 2 {
			if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
				req.Host = headers[i+1]
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}

	for name, text := range map[string]string{"short": "0123456789abcdef", "with a line end": "!~" + strings.Repeat("x", 30) + "\n", "long": strings.Repeat("y", 512) + "\n"} {
		path := filepath.Join(dir, "token "+name)
		write(t, path, text)
		base, stop := serve("--port", "0", "--token-file", path)
		if status := ask(base, strings.TrimSuffix(text, "\n")); status != 200 {
			t.Errorf("a %s token: %d", name, status)
		}
		stop()
		if left, _ := os.ReadFile(path); string(left) != text {
			t.Errorf("the file of a %s token has %q", name, left)
		}
	}
	made, last := filepath.Join(dir, "made"), ""
	for range 2 {
		_, stop := serve("--port", "0", "--token-file", made)
		text, _ := os.ReadFile(made)
		if !private(mustStat(t, made)) || len(text) != 44 || last != "" && string(text) != last {
			t.Errorf("the token file that was made has %d bytes, mode %v; it is the one of before: %v", len(text), mustStat(t, made).Mode(), string(text) == last)
		}
		last = string(text)
		stop()
	}

	for _, args := range [][]string{
		{"--cleanup-timeout", "100ms"},
		{"--cleanup-timeout", "10m"},
		{"--host", "127.9.9.9"},
		{"--host", "::1"},
		{"--host", "[::1]"},
		{"--allow-host", "rind.test:1", "--allow-host", "rind.test:65535", "--allow-host", "Rind_1-a.test.", "--allow-host", "[2001:db8::1]:81", "--allow-host", "192.0.2.1"},
		{"--allow-origin", "tauri://localhost", "--allow-origin", "https://app.test:65535", "--allow-origin", "http://192.0.2.1:81"},
	} {
		if args[0] == "--host" { // not every system has it
			ln, err := net.Listen("tcp", net.JoinHostPort(strings.Trim(args[1], "[]"), "0"))
			if err != nil {
				t.Logf("%s: %v", args[1], err)
				continue
			}
			_ = ln.Close()
		}
		base, stop := serve(append([]string{"--port", "0", "--auth", "none"}, args...)...)
		if status := ask(base, ""); status != 200 {
			t.Errorf("%v: %d", args, status)
		}
		stop()
	}

	t.Setenv("RIND_HTTP_HOST", "localhost")
	t.Setenv("RIND_HTTP_PORT", "0")
	base, stop := serve("--auth", "none", "--allow-host", "rind.test", "--allow-host", "proxy.test:8443", "--allow-origin", "https://app.test", "--allow-origin", "http://[2001:db8::1]:81")
	if !strings.HasPrefix(base, "http://localhost:") || strings.HasSuffix(base, ":4310") {
		t.Errorf("by the environment it listens on %s", base)
	}
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Host", "rind.test", 200},
		{"Host", "proxy.test:8443", 200},
		{"Host", "proxy.test", 403},
		{"Host", "other.test", 403},
		{"Origin", "https://app.test", 200},
		{"Origin", "http://[2001:db8::1]:81", 200},
		{"Origin", "http://app.test", 403},
		{"Origin", "null", 403},
	} {
		if status := ask(base, "", c.name, c.value); status != c.status {
			t.Errorf("%s %s: %d", c.name, c.value, status)
		}
	}
	stop()
	t.Setenv("RIND_HTTP_HOST", "0.0.0.0") // open to others
	t.Setenv("RIND_HTTP_PORT", "none")
	base, stop = serve("--auth", "none", "--host", "127.0.0.1", "--port", "0")
	if !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Errorf("by its flags it listens on %s", base)
	}
	stop()
	for _, args := range [][]string{{"--port", "0", "--auth", "none"}, {"--host", "127.0.0.1"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"serve", "--cwd", dir}, args...), strings.NewReader(""), &out, &errs); code != exitUsage || out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

// A link in the place of the token file is replaced; what it leads to is neither read nor written. An explicit file has to be private itself.
func TestALinkInThePlaceOfTheTokenFileIsReplaced(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "http-token")
	if err := os.WriteFile(victim, []byte(strings.Repeat("v", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Skipf("no links here: %v", err)
	}
	made, err := bearerOf("", path)
	if err == nil {
		err = made.publish()
	}
	if err != nil || made.token == strings.Repeat("v", 32) {
		t.Fatalf("token %q, %v", made.token, err)
	}
	if text, _ := os.ReadFile(victim); string(text) != strings.Repeat("v", 32) {
		t.Errorf("the file behind the link is %q", text)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("in its place is %v, %v", info, err)
	}
	if err := os.Chmod(victim, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if _, err := bearerOf(link, ""); private(mustStat(t, victim)) != (err == nil) {
		t.Errorf("a link to a file that others can read is taken: %v", err)
	}
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Of two servers on one data folder and port the second says what to do, and the first one's token stays.
func TestAServerThatCannotListenLeavesTheTokenOfTheOneThatDoes(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	t.Setenv("RIND_HOME", data)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(data, "http-token")
	write(t, path, "the token of the first one\n")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"serve", "--port", strconv.Itoa(ln.Addr().(*net.TCPAddr).Port), "--cwd", t.TempDir()}, strings.NewReader(""), &out, &errs)
	if code != exitFailed || out.Len() > 0 || !strings.Contains(errs.String(), "choose another port with --port") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "the token of the first one\n" {
		t.Errorf("the token file holds %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(data, ".http-token-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

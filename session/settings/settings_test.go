package settings

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
)

// canary stands where a key could stand; no text of the package may repeat it.
const canary = "sk-CANARY-7f3a-0123456789"

func write(t *testing.T, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), FileName)
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, src string) Settings {
	t.Helper()
	s, err := Load(write(t, src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAMissingFileIsFineAndIsNotCreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", FileName)
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Configured() || s.ApprovalMode() != "ask" {
		t.Errorf("settings of a missing file: configured %v, mode %q", s.Configured(), s.ApprovalMode())
	}
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("loading created the folder")
	}
}

func TestByteOrderMarkAndCarriageReturnsAreAccepted(t *testing.T) {
	s := load(t, "\ufeff{\r\n  \"model\": \"m-1\"\r\n}\r\n")
	if p, _, _ := s.Selected(nil); p.Model != "m-1" {
		t.Errorf("model = %q, want m-1", p.Model)
	}
}

func TestAnUnusableFileIsRefusedWithPlaceAndReasonAndWithoutItsValues(t *testing.T) {
	utf16 := "\xff\xfe"
	for _, c := range `{"apiKey":"` + canary + `"}` {
		utf16 += string([]byte{byte(c), 0})
	}
	key := `"apiKey":"` + canary + `"`
	for _, c := range []struct {
		name, src, reason string
		line, col         int
	}{
		{"no bytes", "", "the file is empty", 1, 1},
		{"blanks only", " \n\n", "the file is empty", 3, 1},
		{"UTF-16", utf16, "not UTF-8", 0, 0},
		{"Latin-1", "{\n" + key + ",\"model\":\"\xe9\"}", "not UTF-8", 2, 47},
		{"a comma too many", "{" + key + ",\n \"model\":\"m\",\n}", "a comma must not stand before }", 2, 13},
		{"a comma too many in a list", `{"providers":{"a":{"args":["x",]}}}`, "a comma must not stand before ]", 1, 31},
		{"a comma too few", "{" + key + "\n\"model\":\"m\"}", "a comma or } is missing", 2, 1},
		{"a comment", "{\n  // my key\n  " + key + "}", "comments are not allowed", 2, 3},
		{"a block comment", "{" + key + "} /* x */", "comments are not allowed", 1, 40},
		{"a member twice", "{" + key + ",\n" + key + "}", `the member "apiKey" stands here twice`, 2, 1},
		{"a member twice within", `{"headers":{"A":"1","A":"2"}}`, `the member "A" stands here twice`, 1, 21},
		{"a list", "[" + `"` + canary + `"]`, "it must be an object", 1, 1},
		{"a bare key", canary, "a value is missing or not JSON", 1, 1},
		{"an open string", `{"apiKey":"` + canary, "this string is not closed", 1, 11},
		{"a string over two lines", "{\"apiKey\":\"" + canary + "\n\"}", "not closed on its line", 1, 37},
		{"single quotes", `{'apiKey':'` + canary + `'}`, "double quotes", 1, 2},
		{"an open object", "{" + key, "the file ends too early", 1, 38},
		{"two objects", "{" + key + "}{}", "something follows the end", 1, 39},
		{"a bad escape", `{"apiKey":"` + canary + `\q"}`, "an escape", 1, 11},
		{"depth", strings.Repeat(`{"a":`, 100), "nested too deeply", 1, 326},
		{"a number for a text", `{"apiKey":12345678}`, "apiKey must be a string", 1, 11},
		{"a text for an object", `{"providers":"` + canary + `"}`, "providers must be an object", 1, 14},
		{"an unknown mode", `{"approvalMode":"` + canary + `"}`, "approvalMode must be one of ask, edit, read, full", 1, 17},
		{"an unknown type", `{"providers":{"a":{"type":"` + canary + `"}}}`, "providers.a.type must be one of", 1, 27},
		{"an address without a scheme", `{"baseUrl":"user:` + canary + `@host/v1"}`, "baseUrl must be an address", 1, 12},
		{"no variable after the dollar", `{"apiKey":"$` + canary + `"}`, "does not name an environment variable", 1, 11},
		{"a bad provider name", `{"providers":{"a.b":{}}}`, "must be 1 to 64 letters", 1, 15},
		{"a list of numbers", `{"providers":{"a":{"args":[1]}}}`, "providers.a.args must be a list of strings", 1, 27},
		{"a fraction", `{"contextWindow":0.5}`, "contextWindow must be a whole number", 1, 18},
		{"nothing of a window", `{"contextWindow":0}`, "must be a whole number above 0", 1, 18},
		{"trust by hand", `{"trustedWorkspaces":{"/w":"yes"}}`, "leave it to rind trust", 1, 22},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.src)
			s, err := Load(path)
			bad, ok := err.(*Error)
			if !ok {
				t.Fatalf("error = %v (%T), want *Error", err, err)
			}
			if !strings.Contains(bad.Reason, c.reason) || bad.Line != c.line || bad.Col != c.col {
				t.Errorf("reason = %q at %d:%d, want %q at %d:%d", bad.Reason, bad.Line, bad.Col, c.reason, c.line, c.col)
			}
			if text := err.Error(); !strings.HasPrefix(text, "Invalid settings.json: ") || !strings.Contains(text, path) ||
				strings.Contains(text, "\n") || strings.Contains(text, canary) {
				t.Errorf("text = %q: want one line that names the file and no value of it", text)
			}
			if protocol.KindOf(err) != protocol.ConfigurationError {
				t.Errorf("kind = %s, want ConfigurationError", protocol.KindOf(err))
			}
			if s.Configured() || s.ApprovalMode() != "ask" {
				t.Error("a part of a refused file took effect")
			}
		})
	}
}

func TestWhatIsNoReadableFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	closed := write(t, "{}")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"a folder", dir, "it is a folder"},
		{"10 MiB", big, "larger than 1 MiB"},
		{"mode 000", closed, "it cannot be read"},
		{"below a file", filepath.Join(big, FileName), "it cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.path == closed && (os.Geteuid() == 0 || runtime.GOOS == "windows") {
				t.Skip("this user may read a file of mode 000")
			}
			if _, err := Load(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

func TestUnknownMembersAreIgnoredAndListed(t *testing.T) {
	s := load(t, "{\"modell\":\"x\",\n\"providers\":{\"a\":{\"URL\":1}},\n\"Model\":\"wrong case\"}")
	want := []Unknown{{"modell", 1, 2}, {"providers.a.URL", 2, 19}, {"Model", 3, 1}}
	if d := cmp.Diff(want, s.Unknown()); d != "" {
		t.Error(d)
	}
	if p, _, _ := s.Selected(nil); p.Model != DefaultModel {
		t.Errorf("model = %q: a member of another case was taken", p.Model)
	}
}

func TestNullCountsAsAbsent(t *testing.T) {
	s := load(t, `{"provider":null,"baseUrl":null,"apiKey":null,"providers":null,"headers":null}`)
	if s.Configured() {
		t.Error("null members count as set")
	}
}

func TestTheErrorNamesAMissingKeyNeverAnotherOne(t *testing.T) {
	for _, c := range []struct {
		name, src string
		env       map[string]string
		want      Key
		lacks     string
	}{
		{"literal", `{"apiKey":"` + canary + `"}`, nil, Key{canary, FromSettings}, ""},
		{"variable", `{"apiKey":"$MINE"}`, map[string]string{"MINE": canary}, Key{canary, "$MINE"}, ""},
		{"unset variable", `{"apiKey":"$MINE"}`, map[string]string{"OPENAI_API_KEY": canary}, Key{}, "MINE"},
		{"empty variable", `{"apiKey":"$MINE"}`, map[string]string{"MINE": ""}, Key{}, "MINE"},
		{"none needed", `{"apiKey":"","baseUrl":"http://localhost:1/v1"}`, nil, Key{"", FromNowhere}, ""},
		{"nothing set", `{}`, nil, Key{}, "OPENAI_API_KEY"},
		{"from the environment", `{}`, map[string]string{"OPENAI_API_KEY": canary}, Key{canary, "$OPENAI_API_KEY"}, ""},
		{"own address, no key", `{"baseUrl":"http://evil.test/v1"}`, map[string]string{"OPENAI_API_KEY": canary}, Key{}, "OPENAI_API_KEY"},
		{"built in by name", `{"provider":"anthropic"}`, map[string]string{"ANTHROPIC_API_KEY": canary}, Key{canary, "$ANTHROPIC_API_KEY"}, ""},
		{"built in, moved", `{"provider":"p","providers":{"p":{"type":"anthropic","baseUrl":"http://evil.test"}}}`, map[string]string{"ANTHROPIC_API_KEY": canary}, Key{}, "rind login"},
		{"demo", `{"provider":"demo"}`, nil, Key{"", FromNowhere}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _, err := load(t, c.src).Selected(env(c.env))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Key(env(c.env))
			if got != c.want {
				t.Errorf("key = %+v, want %+v", got, c.want)
			}
			if (err != nil) != (c.lacks != "") {
				t.Fatalf("error = %v", err)
			}
			if err == nil {
				return
			}
			if text := err.Error(); !strings.Contains(text, c.lacks) || !strings.Contains(text, "rind login") || strings.Contains(text, canary) {
				t.Errorf("text = %q: want %s, rind login and no key", text, c.lacks)
			}
			if protocol.KindOf(err) != protocol.ConfigurationError {
				t.Errorf("kind = %s", protocol.KindOf(err))
			}
		})
	}
}

func env(vars map[string]string) Env {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestTheFirstKeyInTheEnvironmentSelectsAProviderOnlyWhenTheFileNamesNone(t *testing.T) {
	all := map[string]string{"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "OPENROUTER_API_KEY": "c"}
	without := func(names ...string) map[string]string {
		m := map[string]string{}
		for k, v := range all {
			m[k] = v
		}
		for _, n := range names {
			delete(m, n)
		}
		return m
	}
	for _, c := range []struct {
		name, src          string
		env                map[string]string
		provider, variable string
	}{
		{"all set", `{}`, all, "openai", "OPENAI_API_KEY"},
		{"a model alone names no provider", `{"model":"m"}`, all, "openai", "OPENAI_API_KEY"},
		{"no OpenAI", `{}`, without("OPENAI_API_KEY"), "anthropic", "ANTHROPIC_API_KEY"},
		{"OpenRouter only", `{}`, without("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), "openrouter", "OPENROUTER_API_KEY"},
		{"none", `{}`, nil, DefaultProvider, ""},
		{"provider", `{"provider":"openrouter"}`, all, "openrouter", ""},
		{"address", `{"baseUrl":"http://localhost:1/v1"}`, all, DefaultProvider, ""},
		{"key", `{"apiKey":""}`, all, DefaultProvider, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, variable, err := load(t, c.src).Selected(env(c.env))
			if err != nil || p.Name != c.provider || variable != c.variable {
				t.Errorf("provider %q by %q, %v; want %q by %q", p.Name, variable, err, c.provider, c.variable)
			}
		})
	}
}

func TestTheDemoAnswersOnlyWhereNothingIsConfigured(t *testing.T) {
	for _, c := range []struct {
		name, src, model string
		env              map[string]string
		want             bool
	}{
		{"nothing", `{}`, "", nil, true},
		{"a model in the file", `{"model":"m"}`, "", nil, true},
		{"an empty variable", `{}`, "", map[string]string{"OPENAI_API_KEY": ""}, true},
		{"a provider", `{"provider":"openai"}`, "", nil, false},
		{"an address", `{"baseUrl":"http://localhost:1/v1"}`, "", nil, false},
		{"no key needed", `{"apiKey":""}`, "", nil, false},
		{"a variable", `{}`, "", map[string]string{"OPENROUTER_API_KEY": "x"}, false},
		{"a model asked for", `{}`, "m", nil, false},
	} {
		if got := DemoAllowed(load(t, c.src), env(c.env), c.model); got != c.want {
			t.Errorf("%s: allowed = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestProvidersByName(t *testing.T) {
	s := load(t, `{
		"provider": "local", "model": "picked", "reasoningEffort": "low",
		"providers": {
			"local": {"baseUrl": "http://localhost:11434/v1", "apiKey": "", "model": "own", "contextWindow": 8192, "images": false,
				"headers": {"X-Team": "a"}, "caFile": "ca.pem"},
			"other": {"type": "openai-responses", "model": "own-2"},
			"agent": {"type": "acp", "command": "agent", "args": ["--acp"], "env": {"A": "b"}, "passEnv": ["TOKEN"], "clientFs": false},
			"play": {"type": "script", "script": "answers.json"},
			"half": {"type": "acp"}
		}}`)
	images := false
	empty := ""
	dir := filepath.Dir(s.Path)
	local := Provider{
		Name: "local", Type: OpenAIChat, BaseURL: "http://localhost:11434/v1", APIKey: &empty, Model: "picked", ReasoningEffort: "low",
		Headers: map[string]string{"X-Team": "a"}, CAFile: filepath.Join(dir, "ca.pem"), ContextWindow: 8192, Images: &images,
		ClientFS: true, ClientTerminal: true,
	}
	got, _, err := s.Selected(nil)
	if err != nil {
		t.Fatal(err)
	}
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".settings" || p.Last().String() == ".stored" }, cmp.Ignore())
	if d := cmp.Diff(local, got, ignore); d != "" {
		t.Error(d)
	}
	if p, err := s.Named("other"); err != nil || p.Model != "own-2" || p.ReasoningEffort != "" || p.Variable != "OPENAI_API_KEY" {
		t.Errorf("other = %+v, %v: the selection's model and effort belong to the selected provider only", p, err)
	}
	if p, err := s.Named("agent"); err != nil || p.Command != "agent" || p.ClientFS || !p.ClientTerminal || p.Model != "" {
		t.Errorf("agent = %+v, %v", p, err)
	}
	if p, err := s.Named("play"); err != nil || p.Script != filepath.Join(dir, "answers.json") {
		t.Errorf("play = %+v, %v", p, err)
	}
	for _, name := range []string{"half", "nobody"} {
		if _, err := s.Named(name); protocol.KindOf(err) != protocol.ConfigurationError {
			t.Errorf("%s: error = %v, want a ConfigurationError", name, err)
		}
	}
	if d := cmp.Diff([]string{"agent", "half", "local", "openai", "other", "play"}, s.Names(env(map[string]string{"OPENAI_API_KEY": "k"}))); d != "" {
		t.Error(d)
	}
}

func TestSecretsOfAProviderAreAllListed(t *testing.T) {
	p, _, err := load(t, `{"baseUrl":"https://u:pw-1234@host/v1","apiKey":"key-1234","headers":{"X":"header-1234"}}`).Selected(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"key-1234", "header-1234", "pw-1234"}, p.Secrets(nil)); d != "" {
		t.Error(d)
	}
}

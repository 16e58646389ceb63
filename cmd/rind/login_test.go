package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/providertest"
	"github.com/rind-dev/rind/session/settings"
)

// desk is a person's data folder, with no key in the environment and no keyring but a double.
type desk struct {
	t    *testing.T
	root string
	path string // of the settings
	said strings.Builder
}

func newDesk(t *testing.T, text string) *desk {
	t.Helper()
	d := &desk{t: t, root: t.TempDir()}
	d.path = filepath.Join(d.root, settings.FileName)
	for _, name := range append(settings.KeyVariables(), "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR") {
		t.Setenv(name, "")
	}
	t.Setenv("RIND_HOME", d.root)
	if runtime.GOOS == "darwin" {
		t.Skip("the keychain of whoever runs this would be asked")
	}
	if text != "" {
		if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// ring puts a double of secret-tool on PATH, and returns the folder that holds its secrets.
func (d *desk) ring(text string) string {
	d.t.Helper()
	if runtime.GOOS != "linux" {
		d.t.Skip("no Secret Service here")
	}
	dir := d.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret-tool"), []byte(text), 0o700); err != nil {
		d.t.Fatal(err)
	}
	d.t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	d.t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	return dir
}

const goodRing = `#!/bin/sh
dir=$(dirname "$0"); echo "$@" >> "$dir/calls"; file="$dir/secret"
case $1 in
store) cat > "$file" ;;
lookup) [ -f "$file" ] || exit 1; cat "$file" ;;
clear) rm -f "$file" ;;
esac
`

// run runs a command and returns its exit code and what it wrote.
func (d *desk) run(stdin string, args ...string) (code int, out, err string) {
	d.t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &o, &e)
	d.said.WriteString(o.String() + e.String())
	return code, o.String(), e.String()
}

func (d *desk) file() string {
	b, _ := os.ReadFile(d.path)
	return string(b)
}

// without checks that a secret is nowhere: in nothing that was said, and in no file of the data folder but the settings.
func (d *desk) without(secret string) {
	d.t.Helper()
	if strings.Contains(d.said.String(), secret) {
		d.t.Errorf("%s was shown:\n%s", secret, d.said.String())
	}
	_ = filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == d.path {
			return err
		}
		if b, _ := os.ReadFile(path); bytes.Contains(b, []byte(secret)) {
			d.t.Errorf("%s is in %s", secret, path)
		}
		return nil
	})
}

// local describes a provider at a server.
func local(server *providertest.Server) string {
	return `{"provider":"mine","providers":{"mine":{"baseUrl":"` + server.URL() + `/v1","model":"m-1"}}}`
}

var twoModels = providertest.JSON(200, `{"data":[{"id":"m-1","max_model_len":4096},{"id":"m-2"}]}`)

func TestALoginTriesTheKeyAndKeepsItWhereOnlyItsOwnerReadsIt(t *testing.T) {
	server := providertest.NewServer(t, twoModels)
	d := newDesk(t, local(server))
	code, out, said := d.run("  sk-CANARY-11111\n", "login", "--key-stdin")
	if code != 0 || !strings.Contains(out, "mine: it lists 2 models; kept in "+d.path) {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	if got := server.Requests(); len(got) != 1 || got[0].Header.Get("Authorization") != "Bearer sk-CANARY-11111" || got[0].Path != "/v1/models" {
		t.Errorf("requests: %+v", got)
	}
	if !strings.Contains(d.file(), `"apiKey": "sk-CANARY-11111"`) {
		t.Errorf("settings: %s", d.file())
	}
	if info, err := os.Stat(d.path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	d.without("CANARY")
	if code, out, _ := d.run("", "logout"); code != 0 || !strings.Contains(out, "forgotten") || strings.Contains(d.file(), "apiKey") {
		t.Errorf("logout: %d %s%s", code, out, d.file())
	}
	if code, out, _ := d.run("", "logout", "mine"); code != 0 || !strings.Contains(out, "there was no key") {
		t.Errorf("logout again: %d %s", code, out)
	}
}

func TestAKeyThatIsRefusedIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		replies []providertest.Reply
		code    int
		want    string
	}{
		"refused":                {[]providertest.Reply{providertest.JSON(401, `{"error":{"message":"Incorrect API key provided: sk-CANARY-22222"}}`)}, 1, "does not take this key"},
		"broken":                 {[]providertest.Reply{providertest.JSON(500, `{}`)}, 1, "could not be tried"},
		"no list, no answer":     {[]providertest.Reply{providertest.JSON(404, `{}`), providertest.JSON(401, `{"error":{"message":"no"}}`)}, 1, "does not take this key"},
		"no list, but an answer": {[]providertest.Reply{providertest.JSON(404, `{}`), providertest.SSE(`{"choices":[{"delta":{"content":"ok"}}]}`, `[DONE]`)}, 0, "the key is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			server := providertest.NewServer(t, c.replies...)
			d := newDesk(t, local(server))
			code, out, said := d.run("sk-CANARY-22222", "login", "mine", "--key-stdin")
			if code != c.code || !strings.Contains(out+said, c.want) {
				t.Errorf("exit code %d: %s%s", code, out, said)
			}
			if strings.Contains(d.file(), "CANARY") != (c.code == 0) {
				t.Errorf("settings: %s", d.file())
			}
			d.without("CANARY")
			if c.code == 0 {
				return
			}
			if code, _, _ := d.run("sk-CANARY-22222", "login", "mine", "--key-stdin", "--no-test"); code != 0 || !strings.Contains(d.file(), "CANARY") {
				t.Errorf("untried: %d, %s", code, d.file())
			}
		})
	}
}

func TestAKeyGoesToTheKeyringAndIsReadFromThereOnlyWhenItIsNeeded(t *testing.T) {
	server := providertest.NewServer(t)
	server.Always(twoModels)
	d := newDesk(t, local(server))
	dir := d.ring(goodRing)
	code, out, said := d.run("sk-CANARY-33333", "login", "mine", "--key-stdin")
	if code != 0 || !strings.Contains(out, "kept in the system's keyring") || strings.Contains(d.file(), "CANARY") || !strings.Contains(d.file(), `"keyring": true`) {
		t.Fatalf("exit code %d: %s%s%s", code, out, said, d.file())
	}
	calls := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "calls"))
		if bytes.Contains(b, []byte("CANARY")) {
			t.Errorf("the key is an argument: %s", b)
		}
		return bytes.Count(b, []byte("lookup"))
	}
	before := calls()
	for _, args := range [][]string{{"config", "check"}, {"doctor", "--help"}, {"sessions", "list"}} {
		if code, _, said := d.run("", args...); code != 0 {
			t.Errorf("%v: %d %s", args, code, said)
		}
	}
	if calls() != before {
		t.Error("the keyring was read although no key was needed")
	}
	if code, out, said := d.run("", "models", "--json"); code != 0 || !strings.Contains(out, `"id":"m-2"`) {
		t.Errorf("models: %d %s%s", code, out, said)
	}
	if calls() != before+1 {
		t.Errorf("the keyring was read %d times", calls()-before)
	}
	if got := server.Requests(); got[len(got)-1].Header.Get("Authorization") != "Bearer sk-CANARY-33333" {
		t.Errorf("asked with %q", got[len(got)-1].Header.Get("Authorization"))
	}
	if code, out, _ := d.run("", "logout", "mine"); code != 0 || !strings.Contains(out, "forgotten") || strings.Contains(d.file(), "keyring") {
		t.Errorf("logout: %d %s%s", code, out, d.file())
	}
	if _, err := os.Stat(filepath.Join(dir, "secret")); err == nil {
		t.Error("the key is still in the keyring")
	}
	if code, _, said := d.run("", "models"); code != 0 || !strings.Contains(said, "rind login") {
		t.Errorf("without a key: %d %s", code, said)
	}
	d.without("CANARY")
}

func TestAKeyringThatFailsLeavesTheKeyInTheFileUnlessItWasAskedFor(t *testing.T) {
	server := providertest.NewServer(t)
	server.Always(twoModels)
	d := newDesk(t, local(server))
	d.ring("#!/bin/sh\n[ $1 = lookup ] && exit 1\necho 'no collection is there' >&2\nexit 1\n")
	if code, _, said := d.run("sk-CANARY-44444", "login", "mine", "--key-stdin", "--store", "keyring"); code != exitConfig || !strings.Contains(said, "no collection is there") || strings.Contains(d.file(), "CANARY") {
		t.Errorf("%d %s%s", code, said, d.file())
	}
	if code, out, said := d.run("sk-CANARY-44444", "login", "mine", "--key-stdin"); code != 0 || !strings.Contains(said, "no collection is there") || !strings.Contains(out, d.path) || !strings.Contains(d.file(), "CANARY") {
		t.Errorf("%d %s%s%s", code, out, said, d.file())
	}
	d.without("CANARY")
}

func TestAVariableWinsAndALoginSaysSo(t *testing.T) {
	d := newDesk(t, "")
	t.Setenv("ANTHROPIC_API_KEY", "sk-other")
	code, out, said := d.run("sk-CANARY-55555", "login", "anthropic", "--key-stdin", "--no-test")
	if code != 0 || !strings.Contains(out, "not tried") || !strings.Contains(said, "$ANTHROPIC_API_KEY is set in this environment and wins") {
		t.Errorf("%d %s%s", code, out, said)
	}
	if code, _, said := d.run("", "logout", "anthropic"); code != 0 || !strings.Contains(said, "a key still comes from the environment ($ANTHROPIC_API_KEY)") {
		t.Errorf("%d %s", code, said)
	}
}

func TestModelsAreShownWithWhatIsKnownOfThem(t *testing.T) {
	server := providertest.NewServer(t, twoModels, providertest.JSON(500, `{}`), twoModels)
	d := newDesk(t, local(server))
	if err := settings.SetKey(d.path, "mine", "sk-CANARY-66666"); err != nil {
		t.Fatal(err)
	}
	code, out, said := d.run("", "models", "--json", "--provider", "mine")
	var lines []map[string]any
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatalf("%v in %q", err, l)
		}
		lines = append(lines, m)
	}
	if code != 0 || len(lines) != 2 || lines[0]["context_window"] != 4096.0 || lines[0]["selected"] != true || lines[1]["context_window"] != 8192.0 ||
		!strings.Contains(lines[1]["note"].(string), "taken for 8192") || lines[1]["input_price"] != nil {
		t.Errorf("%d %s%s", code, out, said)
	}
	code, out, said = d.run("", "models") // what it said last is known
	if code != 0 || !strings.Contains(said, "could not be asked for its models, this is its list of 2") || !strings.Contains(out, "m-2") {
		t.Errorf("a provider that fails: %d %s%s", code, out, said)
	}
	if code, out, _ := d.run("", "models"); code != 0 || !strings.Contains(out, "*  mine") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, said := d.run("", "models", "--provider", "nobody"); code != exitConfig || !strings.Contains(said, `"nobody" is not described`) {
		t.Errorf("%d %s", code, said)
	}
	d.without("CANARY")
}

func TestAListIsKeptForADayUnlessOneOfNowIsAskedFor(t *testing.T) {
	d := newDesk(t, `{"provider":"far","providers":{"far":{"baseUrl":"http://far.invalid/v1","apiKey":"sk-CANARY-77777","model":"m-0"}}}`)
	c := newConfiguration(d.path, "", os.LookupEnv, nil)
	p, err := c.settings()
	if err != nil {
		t.Fatal(err)
	}
	far, _, err := p.Selected(nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, said := d.run("", "models"); code != 0 || !strings.Contains(said, "could not be asked") || !strings.Contains(out, "m-0") {
		t.Errorf("never asked: %d %s%s", code, out, said)
	}
	listsOf(d.path).put(far, []session.ModelInfo{{Provider: "far", ID: "m-9", Name: "m-9", Window: 1234, Price: &session.Price{Input: 2.5, Output: 10}}})
	if code, out, said := d.run("", "models"); code != 0 || said != "" || !strings.Contains(out, "1234") || !strings.Contains(out, "2.5 / 10") {
		t.Errorf("asked today: %d %s%s", code, out, said)
	}
	if code, out, said := d.run("", "models", "--refresh"); code != 0 || !strings.Contains(said, "this is its list of") || !strings.Contains(out, "m-9") {
		t.Errorf("to be asked anew: %d %s%s", code, out, said)
	}
	m := &models{configuration: c}
	if info := m.describe(far, "m-9"); info.Window != 1234 {
		t.Errorf("described as %+v", info)
	}
	if info, err := os.Stat(listsOf(d.path).path(far)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, junk := range []string{"", "no JSON", `{"far http://far.invalid/v1":7}`} {
		if err := os.WriteFile(listsOf(d.path).path(far), []byte(junk), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, _ := d.run("", "models"); code != 0 || !strings.Contains(out, "m-0") {
			t.Errorf("%q: %d %s", junk, code, out)
		}
	}
	d.without("CANARY")
}

package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
)

func TestAVariableWinsOverTheKeyringAndThatOverTheFile(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "from-env", "MINE": "mine"}
	ring := func(provider, baseURL string) (string, error) {
		if provider+" "+baseURL == "openai "+DefaultBaseURL {
			return "from-ring", nil
		}
		return "", errors.New("not there")
	}
	for _, c := range []struct {
		name, src string
		env       map[string]string
		want      Key
	}{
		{"all", `{"provider":"openai","keyring":true,"apiKey":"in-file"}`, vars, Key{"from-env", "$OPENAI_API_KEY"}},
		{"no variable", `{"provider":"openai","keyring":true,"apiKey":"in-file"}`, nil, Key{"from-ring", FromKeyring}},
		{"the file alone", `{"provider":"openai","apiKey":"in-file"}`, nil, Key{"in-file", FromSettings}},
		{"the file and a variable", `{"provider":"openai","apiKey":"in-file"}`, vars, Key{"from-env", "$OPENAI_API_KEY"}},
		{"a variable that is named", `{"provider":"openai","keyring":true,"apiKey":"$MINE"}`, vars, Key{"mine", "$MINE"}},
		{"none wanted", `{"provider":"openai","keyring":true,"apiKey":""}`, vars, Key{"", FromNowhere}},
		{"an entry", `{"provider":"openai","providers":{"openai":{"keyring":true}}}`, nil, Key{"from-ring", FromKeyring}},
		{"another address", `{"provider":"openai","keyring":true,"baseUrl":"http://evil.test/v1"}`, vars, Key{}},
		{"another address, with a key", `{"provider":"openai","apiKey":"in-file","baseUrl":"http://mine.test/v1"}`, vars, Key{"in-file", FromSettings}},
	} {
		p, _, err := load(t, c.src).WithKeyring(ring).Selected(env(c.env))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Key(env(c.env))
		if got != c.want || (err != nil) != (c.want == Key{}) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
		if err != nil && (protocol.KindOf(err) != protocol.ConfigurationError || !strings.Contains(err.Error(), "rind login")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheKeyringIsAskedOnlyForAKeyThatIsNeeded(t *testing.T) {
	asked := 0
	s := load(t, `{"provider":"openai","keyring":true,"headers":{"X":"header-1234"}}`).WithKeyring(func(string, string) (string, error) {
		asked++
		return "k", nil
	})
	p, _, err := s.Selected(nil)
	if err != nil {
		t.Fatal(err)
	}
	if source, err := p.Source(nil); source != FromKeyring || err != nil {
		t.Errorf("source = %q, %v", source, err)
	}
	p.Secrets(nil)
	s.Names(nil)
	if _, err := p.Key(env(map[string]string{"OPENAI_API_KEY": "x"})); err != nil || asked != 0 {
		t.Errorf("the keyring was asked %d times, %v", asked, err)
	}
	if _, err := p.Key(nil); err != nil || asked != 1 {
		t.Errorf("the keyring was asked %d times, %v", asked, err)
	}
}

func TestALoginKeepsTheFileAndPutsTheKeyWhereItsProviderIsDescribed(t *testing.T) {
	for _, c := range []struct{ name, src, provider, key, want string }{
		{"a first login selects", "{}\n", "anthropic", "k", "{\n  \"providers\": {\"anthropic\": {\"apiKey\": \"k\"}},\n  \"provider\": \"anthropic\"\n}\n"},
		{"a second does not", `{"provider":"openai","x":[1,  2]}`, "anthropic", "k", `{"provider":"openai","x":[1,  2], "providers": {"anthropic": {"apiKey": "k"}}}`},
		{"a selected one of no entry", `{"provider":"openai"}`, "openai", "", `{"provider":"openai", "providers": {"openai": {"keyring": true}}}`},
		{"described at the top", `{"baseUrl":"http://h/v1","apiKey":"old"}`, DefaultProvider, "new", `{"baseUrl":"http://h/v1","apiKey":"new"}`},
		{"described at the top, to the keyring", `{"baseUrl":"http://h/v1","apiKey":"old"}`, DefaultProvider, "", `{"baseUrl":"http://h/v1", "keyring": true}`},
		{"an entry", `{"provider":"a","providers":{"a":{"baseUrl":"http://h/v1","keyring":true}}}`, "a", "k", `{"provider":"a","providers":{"a":{"baseUrl":"http://h/v1", "apiKey": "k"}}}`},
		{"an own name", `{"provider":"mine","baseUrl":"http://h/v1"}`, "mine", "k", `{"provider":"mine","baseUrl":"http://h/v1", "apiKey": "k"}`},
	} {
		path := write(t, c.src)
		if err := SetKey(path, c.provider, c.key); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		s, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Named(c.provider)
		if source, serr := p.Source(nil); err != nil || serr != nil || source != map[bool]string{true: FromKeyring, false: FromSettings}[c.key == ""] {
			t.Errorf("%s: the key is then read from %q, %v, %v", c.name, source, err, serr)
		}
	}
	for _, bad := range []string{"$NAME", "a\nb"} {
		path := write(t, `{}`)
		if err := SetKey(path, "openai", bad); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := SetKey(write(t, `{}`), "nobody", "k"); protocol.KindOf(err) != protocol.ConfigurationError {
		t.Errorf("an unknown provider: %v", err)
	}
}

func TestALogoutTakesKeysAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		name, src, provider, want string
		key, keyring              bool
	}{
		{"what a login wrote", `{"providers":{"anthropic":{"apiKey":"k"}},"provider":"anthropic"}`, "anthropic", `{"provider":"anthropic"}`, true, false},
		{"the keyring", `{"provider":"openai","providers":{"openai":{"keyring":true,"model":"m"}}}`, "openai", `{"provider":"openai","providers":{"openai":{"model":"m"}}}`, false, true},
		{"the top level", `{"baseUrl":"http://h/v1","apiKey":"k"}`, DefaultProvider, `{"baseUrl":"http://h/v1"}`, true, false},
		{"an entry that says no more", `{"providers":{"mine":{"apiKey":"k"}}}`, "mine", `{"providers":{"mine":{}}}`, true, false},
		{"a variable", `{"apiKey":"$MINE"}`, DefaultProvider, `{"apiKey":"$MINE"}`, false, false},
		{"none needed", `{"apiKey":""}`, DefaultProvider, `{"apiKey":""}`, false, false},
		{"another's", `{"provider":"openai","apiKey":"k"}`, "anthropic", `{"provider":"openai","apiKey":"k"}`, false, false},
	} {
		path := write(t, c.src)
		key, keyring, err := DropKey(path, c.provider)
		if err != nil || key != c.key || keyring != c.keyring {
			t.Errorf("%s: %v, %v, %v", c.name, key, keyring, err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
	if _, _, err := DropKey(filepath.Join(t.TempDir(), "none"), "openai"); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}

func TestAFolderInheritsFromTheNearestAboveIt(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	path := write(t, `{"model": "m-0"}`)
	set := func(folder string, d FolderDefaults) {
		t.Helper()
		if err := SetFolder(path, folder, d); err != nil {
			t.Fatal(err)
		}
	}
	set(root, FolderDefaults{"p", "m-1", "low"})
	set(at("a.b"), FolderDefaults{ReasoningEffort: "high"})
	set(at("a.b/c"), FolderDefaults{"q", "m-2", ""})
	set(at("a.b/c"), FolderDefaults{ReasoningEffort: "max"})
	look := func(folder string, own, inherited FolderDefaults, from string) {
		t.Helper()
		s, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		gotOwn, gotAbove, gotFrom := s.Folder(folder)
		if d := cmp.Diff([]any{own, inherited, from}, []any{gotOwn, gotAbove, gotFrom}); d != "" {
			t.Errorf("%s: %s", folder, d)
		}
	}
	look(root, FolderDefaults{"p", "m-1", "low"}, FolderDefaults{}, "")
	look(at("a.b"), FolderDefaults{ReasoningEffort: "high"}, FolderDefaults{"p", "m-1", "low"}, root)
	look(at("a.b/c/"), FolderDefaults{"q", "m-2", "max"}, FolderDefaults{"p", "m-1", "high"}, at("a.b"))
	look(at("a.b/c/d/e"), FolderDefaults{}, FolderDefaults{"q", "m-2", "max"}, at("a.b/c"))
	look(at("a.bc"), FolderDefaults{}, FolderDefaults{"p", "m-1", "low"}, root)
	for _, f := range []struct{ folder, group string }{{at("a.b"), GroupEffort}, {at("a.b/c"), GroupModel}, {at("a.b/c"), GroupModel}, {at("none"), GroupModel}} {
		if err := UnsetFolder(path, f.folder, f.group); err != nil {
			t.Fatal(err)
		}
	}
	look(at("a.b/c"), FolderDefaults{ReasoningEffort: "max"}, FolderDefaults{"p", "m-1", "low"}, root)
	for _, f := range []string{at("a.b/c"), root} {
		for _, g := range []string{GroupEffort, GroupModel} {
			if err := UnsetFolder(path, f, g); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, _ := os.ReadFile(path); string(got) != `{"model": "m-0"}` {
		t.Errorf("what was set and unset left %s", got)
	}
}

func TestFolderDefaultsThatMeanNothingAreRefused(t *testing.T) {
	for _, src := range []string{
		`{"folderDefaults":{"rel/path":{"provider":"p","model":"m"}}}`, `{"folderDefaults":{"/a":"m"}}`, `{"folderDefaults":{"/a":{"model":"m"}}}`,
		`{"folderDefaults":{"/a":{"provider":"a b","model":"m"}}}`, `{"folderDefaults":{"/a":{"reasoningEffort":1}}}`, `{"folderDefaults":[]}`,
	} {
		if _, err := Parse("x", []byte(src)); err == nil {
			t.Errorf("%s was taken", src)
		}
	}
	path := write(t, `{}`)
	for _, d := range []FolderDefaults{{Model: "m"}, {Provider: "p", Model: "a b"}, {ReasoningEffort: "a b"}} {
		if err := SetFolder(path, t.TempDir(), d); err == nil {
			t.Errorf("%+v was set", d)
		}
	}
	trusted := write(t, `{"folderDefaults":{}}`)
	s, err := Load(trusted)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Parse("x", []byte(`{"folderDefaults":{"/":{"provider":"evil","model":"m"}},"keyring":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, d, _ := s.over(o).Folder(t.TempDir()); d != (FolderDefaults{}) {
		t.Error("a workspace sets defaults of folders")
	}
}

func TestAFolderWrittenWithASlashAtItsEndIsThatFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	slashed := literal(dir + string(filepath.Separator))
	path := write(t, `{"folderDefaults":{`+string(slashed)+`:{"provider":"p","model":"m","reasoningEffort":"low"}}}`)
	has := func(want FolderDefaults) {
		t.Helper()
		s, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if own, _, _ := s.Folder(dir); own != want {
			t.Errorf("%+v, want %+v", own, want)
		}
		if _, inherited, from := s.Folder(filepath.Join(dir, "sub")); inherited != want || want != (FolderDefaults{}) && from != dir {
			t.Errorf("below it %+v from %s", inherited, from)
		}
	}
	has(FolderDefaults{"p", "m", "low"})
	if err := SetFolder(path, dir, FolderDefaults{ReasoningEffort: "high"}); err != nil {
		t.Fatal(err)
	}
	has(FolderDefaults{"p", "m", "high"})
	for _, group := range []string{GroupModel, GroupEffort} {
		if err := UnsetFolder(path, dir, group); err != nil {
			t.Fatal(err)
		}
	}
	has(FolderDefaults{})
	if got, _ := os.ReadFile(path); strings.Contains(string(got), "work") {
		t.Errorf("something is left of it: %s", got)
	}
}

package settings

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSetKeepsWhatItDoesNotTouch(t *testing.T) {
	for _, c := range []struct{ name, src, key, value, want string }{
		{"replaces a value", "{\n  \"zeta\": [1,  2],\n  \"model\": \"a\" ,\n  \"x\": 1\n}\n", "model", "b", "{\n  \"zeta\": [1,  2],\n  \"model\": \"b\" ,\n  \"x\": 1\n}\n"},
		{"adds a member", "{\n\t\"b\": 1\n}", "model", "m", "{\n\t\"b\": 1,\n\t\"model\": \"m\"\n}"},
		{"adds to one line", `{"b":1}`, "model", "m", `{"b":1, "model": "m"}`},
		{"adds to nothing", "{}\n", "model", "m", "{\n  \"model\": \"m\"\n}\n"},
		{"adds within", "{\n  \"providers\": {}\n}", "providers.a.model", "m", "{\n  \"providers\": {\n    \"a\": {\"model\": \"m\"}\n  }\n}"},
		{"makes the way", `{}`, "providers.a.headers.X-A.b", "v", "{\n  \"providers\": {\"a\": {\"headers\": {\"X-A.b\": \"v\"}}}\n}"},
		{"keeps CRLF", "{\r\n  \"b\": 1\r\n}\r\n", "model", "m", "{\r\n  \"b\": 1,\r\n  \"model\": \"m\"\r\n}\r\n"},
		{"writes a number", `{}`, "contextWindow", "8192", "{\n  \"contextWindow\": 8192\n}"},
		{"writes a list", `{"providers":{"a":{"args":["x"]}}}`, "providers.a.args", `["y","z"]`, `{"providers":{"a":{"args":["y","z"]}}}`},
		{"writes a text that looks like JSON", `{}`, "apiKey", "", "{\n  \"apiKey\": \"\"\n}"},
		{"mends a bad value", `{"approvalMode":"sometimes"}`, "approvalMode", "read", `{"approvalMode":"read"}`},
		{"a path with dots in a map", `{}`, "headers.a.b.c", "d", "{\n  \"headers\": {\"a.b.c\": \"d\"}\n}"},
		{"an address", `{}`, "baseUrl", "http://h/v1?a=1&b=<2>", "{\n  \"baseUrl\": \"http://h/v1?a=1&b=<2>\"\n}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.src)
			if err := Set(path, c.key, c.value); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("file = %q\nwant   %q", got, c.want)
			}
		})
	}
}

func TestSetRefusesBeforeItWrites(t *testing.T) {
	for _, c := range []struct{ name, src, key, value, want string }{
		{"no such setting", `{}`, "modell", "m", `There is no setting "modell"`},
		{"no such member", `{}`, "providers.a.modell", "m", "There is no setting"},
		{"a member of a text", `{}`, "model.x", "m", "There is no setting"},
		{"a bad value", `{}`, "approvalMode", canary, "approvalMode must be one of"},
		{"no JSON", `{}`, "providers.x.args", canary, "providers.x.args must be JSON"},
		{"no number", `{}`, "contextWindow", canary, "contextWindow must be a whole number"},
		{"no truth", `{}`, "fetchPrivate", canary, "fetchPrivate must be true or false"},
		{"a bad name", `{}`, "providers.a b.model", "m", "must be 1 to 64 letters"},
		{"a broken file", `{"a":}`, "model", "m", "Invalid settings.json"},
		{"a file that stays broken", `{"images":1}`, "model", "m", "images must be true or false"},
		{"a way through a text", `{"providers":{"a":"` + canary + `"}}`, "model", "m", "providers.a must be an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.src)
			err := Set(path, c.key, c.value)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("error = %v, want %q and no value", err, c.want)
			}
			if got, _ := os.ReadFile(path); string(got) != c.src {
				t.Errorf("file = %q: it was changed", got)
			}
		})
	}
}

func TestSetMakesTheFileForItsOwnerOnlyAndLeavesNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "root", FileName)
	if err := Set(path, "apiKey", canary); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries = %v, %v", entries, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", p, info.Mode().Perm(), err, want)
		}
	}
}

func TestSetWritesThroughALink(t *testing.T) {
	real := write(t, `{"model":"a"}`)
	link := filepath.Join(t.TempDir(), FileName)
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no links here:", err)
	}
	if err := Set(link, "model", "b"); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(real); string(got) != `{"model":"b"}` {
		t.Errorf("the linked file = %q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

func TestSetMakesTheFileThatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"far": filepath.Join(dir, "dots", "a.json"), "near": filepath.Join("dots", "b.json"), "twice": "near2", "near2": filepath.Join("dots", "c.json")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links here:", err)
		}
	}
	for link, name := range map[string]string{"far": "a.json", "near": "b.json", "twice": "c.json"} {
		link := filepath.Join(dir, link)
		if err := Set(link, "model", "b"); err != nil {
			t.Fatal(err)
		}
		if s, err := Load(filepath.Join(dir, "dots", name)); err != nil || or(s.doc.Model, "") != "b" {
			t.Errorf("%s: the file it leads to says %v, %v", link, s.doc.Model, err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link %s was replaced by a file", link)
		}
	}
}

func TestUnsetRemovesOneMember(t *testing.T) {
	for _, c := range []struct{ src, key, want string }{
		{"{\n  \"a\": 1,\n  \"model\": \"m\",\n  \"b\": 2\n}", "model", "{\n  \"a\": 1,\n  \"b\": 2\n}"},
		{"{\n  \"model\": \"m\",\n  \"b\": 2\n}", "model", "{\n  \"b\": 2\n}"},
		{`{"a": 1, "model": "m"}`, "model", `{"a": 1}`},
		{"{ \"model\": \"m\" }", "model", "{}"},
		{`{"providers":{"a":{"model":"m","apiKey":"k"}}}`, "providers.a.apiKey", `{"providers":{"a":{"model":"m"}}}`},
		{`{"a":1}`, "model", `{"a":1}`},
	} {
		path := write(t, c.src)
		if err := Unset(path, c.key); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%q without %s = %q, want %q", c.src, c.key, got, c.want)
		}
	}
	if err := Unset(filepath.Join(t.TempDir(), "none"), "model"); err != nil {
		t.Errorf("a missing file: %v", err)
	}
}

func TestGetShowsWhatIsSetAndMasksSecrets(t *testing.T) {
	path := write(t, `{"apiKey":"`+canary+`","model":"m-1","baseUrl":"https://u:`+canary+`@h/v1","headers":{"X":"`+canary+`"},
		"mcpServers":{"s":{"env":{"T":"`+canary+`"}}},
		"providers":{"a":{"apiKey":"`+canary+`","model":"m-2","unknown":"`+canary+`","env":{"K":"`+canary+`"}},"b":{"apiKey":"$B"}}}`)
	for key, want := range map[string]string{
		"apiKey":              "…6789",
		"model":               "m-1",
		"providers.b.apiKey":  "$B",
		"providers.a.model":   "m-2",
		"headers.X":           "…6789",
		"providers.b":         `{"apiKey":"$B"}`,
		"mcpServers.s":        `{"env":{"T":"…6789"}}`,
		"providers.a.env.K":   "…6789",
		"providers.a":         `{"apiKey":"…6789","env":{"K":"…6789"},"model":"m-2","unknown":"…6789"}`,
		"contextWindow":       "",
		"providers.a.headers": "",
	} {
		got, set, err := Get(path, key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if want != "" && (got != want || !set) || want == "" && set {
			t.Errorf("%s = %q (set %v), want %q", key, got, set, want)
		}
	}
	for _, r := range Rows() {
		if got, _, _ := Get(path, strings.Replace(r.Key, "NAME", "a", 1)); strings.Contains(got, canary) {
			t.Errorf("%s shows a secret: %s", r.Key, got)
		}
	}
	if _, _, err := Get(path, "nope"); err == nil {
		t.Error("an unknown setting has a value")
	}
	var unknown *UnknownKeyError
	if _, _, err := Get(path, "nope"); !errors.As(err, &unknown) {
		t.Errorf("error = %v, want *UnknownKeyError", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"model":"m","providers":{"a":{"type":"acp","args":["x"]}}}`))
	f.Add([]byte("\xef\xbb\xbf{\r\n\"a\":[1,2,{\"b\":null}],}"))
	f.Add([]byte(`{"a":"\ud800","a":1}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("x", src)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("an error of two lines: %q", err)
			}
			return
		}
		bare, _ := decode("x", src)
		var v map[string]any
		if err := json.Unmarshal(bare, &v); err != nil {
			t.Fatalf("we read %q, encoding/json does not: %v", src, err)
		}
		_, _, _ = s.Selected(nil)
		root, _ := scan(bare)
		out := put(bare, root, []string{"model"}, []byte(`"new"`), 0)
		again, err := Parse("x", out)
		if err != nil || *again.doc.Model != "new" {
			t.Fatalf("%q became %q: %v", src, out, err)
		}
		root, _ = scan(out)
		if after, err := Parse("x", drop(out, root, []string{"model"})); err != nil || after.doc.Model != nil {
			t.Fatalf("%q lost more than its model: %v", out, err)
		}
	})
}

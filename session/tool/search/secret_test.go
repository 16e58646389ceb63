package search_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/tool/search"
)

func TestGrepLeavesFilesOutThatHoldCredentialsUnlessOneIsNamed(t *testing.T) {
	root := resolvedTemp(t)
	for _, name := range []string{"a.txt", ".env", "sub/.env", "sub/b.txt", "vault/key.json"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("needle\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(path string) bool {
		if strings.HasSuffix(path, ".txt") && !filepath.IsAbs(path) {
			t.Errorf("asked about %s, which could be anywhere", path)
		}
		return strings.HasSuffix(path, ".env") || strings.Contains(path, filepath.Join(root, "vault"))
	}
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "needle"}, "a.txt sub/b.txt"},
		{args{"pattern": "needle", "path": "sub"}, "sub/b.txt"},
		{args{"pattern": "needle", "path": ".env"}, ".env"},
		{args{"pattern": "needle", "path": "vault"}, "vault/key.json"},
		{args{"pattern": "needle", "path": "./sub/../vault"}, "vault/key.json"},
		{args{"pattern": "needle", "glob": "**/.env"}, ".env sub/.env"},
	} {
		var found []string
		for _, m := range into[hit](t, run(t, search.Grep(secret), root, c.args)) {
			found = append(found, m.Path)
		}
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
}

// resolvedTemp is a folder whose name holds no link.
func resolvedTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

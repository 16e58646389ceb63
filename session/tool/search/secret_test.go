package search_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/tool/search"
)

func TestGrepLeavesFilesOutThatHoldCredentialsUnlessOneIsNamed(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.txt", ".env", "sub/.env", "sub/b.txt"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("needle\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(path string) bool { return strings.HasSuffix(path, ".env") }
	for _, c := range []struct {
		args args
		want string
	}{
		{args{"pattern": "needle"}, "a.txt sub/b.txt"},
		{args{"pattern": "needle", "path": "sub"}, "sub/b.txt"},
		{args{"pattern": "needle", "path": ".env"}, ".env"},
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

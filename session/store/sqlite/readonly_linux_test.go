package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rind-dev/rind/session"
)

// asNobody gives up the rights of root, which nothing is read-only for, until the test ends.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if err := syscall.Setresuid(-1, 65534, -1); err != nil {
		t.Skipf("cannot become another user: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Setresuid(-1, 0, -1); err != nil {
			panic(err) // every test after this one would fail for a strange reason
		}
	})
}

// lent copies a store to a folder that everybody may enter, with these modes.
func lent(t *testing.T, file, dir os.FileMode) string {
	t.Helper()
	from := filled(t)
	root, err := os.MkdirTemp("", "rind-lent-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	path := filepath.Join(root, "sessions", "rind.db")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, read(t, from))
	for name, mode := range map[string]os.FileMode{root: 0o755, path: file, filepath.Dir(path): dir} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestAFileOrFolderThatMayNotBeWrittenIsStillRead(t *testing.T) {
	for _, c := range []struct {
		name      string
		file, dir os.FileMode
	}{
		{"file and folder", 0o444, 0o555},
		{"file", 0o444, 0o777},
		{"folder", 0o666, 0o555},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := lent(t, c.file, c.dir)
			asNobody(t)
			s := open(t, path)
			readsOnly(t, s)
			_ = s.Close()
		})
	}
}

func TestAFolderThatCannotBeMadeIsSaid(t *testing.T) {
	root := filepath.Dir(filepath.Dir(lent(t, 0o600, 0o700)))
	asNobody(t)
	s := open(t, filepath.Join(root, "other", "rind.db"))
	_, err := s.Session(t.Context(), "s")
	if !errors.Is(err, session.ErrReadOnly) || !strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "\n") {
		t.Errorf("session: %v", err)
	}
	if _, err := s.Acquire(t.Context(), "s"); !errors.Is(err, session.ErrReadOnly) {
		t.Errorf("lease: %v", err)
	}
	_ = s.Close()
}

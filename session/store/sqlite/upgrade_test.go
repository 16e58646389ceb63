//go:build unix

package sqlite_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/store/storetest"
)

// schemaOf is every definition in the file.
func schemaOf(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name UNION ALL SELECT name || value FROM meta WHERE name IN ('written_by', 'readable_from')")
	if err != nil {
		rows, err = db.Query("SELECT s FROM (SELECT coalesce(sql, '') AS s FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' UNION ALL SELECT name || value FROM meta WHERE name IN ('written_by', 'readable_from')) ORDER BY s")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// old copies the file of the first release.
func old(t *testing.T) string {
	t.Helper()
	return filledCopy(t, golden(t), nil)
}

func TestAnInterruptedStartLeavesTheOldFileOrTheNewOne(t *testing.T) {
	fresh := filled(t)
	want := schemaOf(t, fresh)
	path := filepath.Join(t.TempDir(), "sessions", "rind.db")
	cmd, _ := start(t, path, "s", 1, "migrating:1")
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child was not killed while it made the file")
	}
	s := open(t, path)
	if h, err := s.Health(t.Context()); err != nil || h.Integrity != "ok" || h.Sessions != 0 {
		t.Errorf("after the kill: %+v, %v", h, err)
	}
	_ = s.Close()
	if got := schemaOf(t, path); got != want {
		t.Errorf("schema after the kill\n%s\nwant\n%s", got, want)
	}
}

func TestAnInterruptedMigrationLeavesTheOldFileOrTheNewOne(t *testing.T) {
	path := old(t)
	before := schemaOf(t, path)
	for range 3 {
		cmd, _ := start(t, path, "s", 1, "migrating:1", "RIND_STORE_NEXT=1")
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed while it migrated")
		}
		if got := schemaOf(t, path); got != before {
			t.Fatalf("schema between old and new:\n%s", got)
		}
	}
	// Several processes of the next version start at the same instant.
	var cmds []*exec.Cmd
	for _, id := range []string{"a", "b", "c"} {
		cmd, _ := start(t, path, id, 0.05, "", "RIND_STORE_NEXT=1")
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process of the next version: %v", err)
		}
	}
	if got := schemaOf(t, path); !strings.Contains(got, "tomorrow") || !strings.Contains(got, "readable_from3") {
		t.Errorf("schema after the migration:\n%s", got)
	}
	backup := path + ".schema1"
	if got := schemaOf(t, backup); got != before {
		t.Errorf("schema of the copy:\n%s", got)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the copy: %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(path + ".schema1.*")
	if err != nil || len(left) > 3 { // of the three that were killed, at most
		t.Errorf("unfinished copies: %v, %v", left, err)
	}
	defer sqlite.NextSchema(true)()
	s := open(t, path)
	if es, err := s.Read(t.Context(), "20260102_101112_0000000a", 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
		t.Errorf("%d entries after the migration, %v", len(es), err)
	}
}

func TestAnAdditiveMigrationCopiesNothingAndOldVersionsGoOn(t *testing.T) {
	path := old(t)
	before := open(t, path) // of our version, before, during and after
	if _, err := before.Session(t.Context(), "20260102_101112_0000000a"); err != nil {
		t.Fatal(err)
	}
	restore := sqlite.NextSchema(false)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := sqlite.Open(path, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if h, err := s.Health(t.Context()); err != nil || h.WrittenBy != 3 || h.ReadableFrom != 1 || h.Entries != 3 {
				t.Errorf("next version: %+v, %v", h, err)
			}
			_ = s.Close()
		})
	}
	wg.Wait()
	restore()
	if _, err := os.Stat(path + ".schema1"); err == nil {
		t.Error("the file was copied")
	}
	for _, s := range []*sqlite.Store{before, open(t, path)} {
		l, err := s.Acquire(t.Context(), "20260102_101112_0000000a")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		s.Append(l, fact(l.Head+1), func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Errorf("append of the old version: %v", err)
		}
		if err := s.Release(t.Context(), l); err != nil {
			t.Error(err)
		}
		var _ session.Store = s
	}
}

func TestTheFirstVersionGoesOnWithAFileThatHoldsRules(t *testing.T) {
	path := old(t)
	ours := open(t, path)
	kept, err := ours.AddRule(t.Context(), session.Rule{Workspace: "/w", Tool: "bash", Pattern: "make *"})
	if err != nil {
		t.Fatal(err)
	}
	restore := sqlite.FirstSchema()
	first := open(t, path)
	l, err := first.Acquire(t.Context(), "20260102_101112_0000000a")
	restore()
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Append(first, l, session.Batch{Entries: []session.Entry{fact(l.Head + 1).Entries[0]}}); err != nil {
		t.Error(err)
	}
	if err := first.Delete(t.Context(), "20260102_101112_0000000a"); err != nil {
		t.Error(err)
	}
	if rules, err := ours.Rules(t.Context(), "/w"); err != nil || len(rules) != 1 || rules[0] != kept {
		t.Errorf("rules %+v, %v", rules, err)
	}
	if h, err := ours.Health(t.Context()); err != nil || h.WrittenBy != 2 || h.ReadableFrom != 1 || h.Integrity != "ok" {
		t.Errorf("health %+v, %v", h, err)
	}
}

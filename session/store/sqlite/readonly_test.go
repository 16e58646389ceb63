package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
)

func contextOf(seconds int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
}

// readsOnly checks that a store shows what it holds and refuses every write in words.
func readsOnly(t *testing.T, s *sqlite.Store) {
	t.Helper()
	id, ctx := session.SessionID("20260102_101112_0000000a"), t.Context()
	if es, err := s.Read(ctx, id, 0, 10, protocol.ViewAll); err != nil || len(es) != 3 {
		t.Errorf("read: %d entries, %v", len(es), err)
	}
	if h, err := s.Health(ctx); err != nil || h.Integrity != "ok" {
		t.Errorf("health: %+v, %v", h, err)
	}
	bells, err := s.Watch(ctx)
	if err != nil || bells == nil {
		t.Errorf("watch: %v", err)
	}
	_, acquired := s.Acquire(ctx, id)
	_, posted := s.Post(ctx, id, []byte(`{}`))
	if rules, err := s.Rules(ctx, "/w"); err != nil || len(rules) != 0 {
		t.Errorf("rules: %v, %v", rules, err)
	}
	_, ruled := s.AddRule(ctx, session.Rule{Workspace: "/w"})
	for what, err := range map[string]error{
		"writable": s.Writable(ctx),
		"create":   s.Create(ctx, session.Meta{ID: "x", ConversationID: "x"}), "delete": s.Delete(ctx, id), "acquire": acquired, "post": posted, "rule": ruled,
	} {
		if !errors.Is(err, session.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAStoreOpenedForReadingChangesNothing(t *testing.T) {
	path := filled(t)
	before := read(t, path)
	s, err := sqlite.Open(path, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	readsOnly(t, s)
	_ = s.Close()
	if !bytes.Equal(before, read(t, path)) {
		t.Error("the file was changed")
	}
	none, err := sqlite.Open(filepath.Join(t.TempDir(), "none", "rind.db"), sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if _, _, err := none.Sessions(t.Context(), session.Query{Limit: 1}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a store that is not there: %v", err)
	}
}

package sqlite

import (
	"context"
	"errors"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/session"
)

// AddRule implements session.Rules. A rule that replaces another is a new one with an id of its own, so that whoever saw the old one
// listed does not revoke the new one by its number.
func (s *Store) AddRule(ctx context.Context, r session.Rule) (session.Rule, error) {
	return runFact(ctx, s, func(w *writer) (session.Rule, error) {
		r := r
		r.Created = s.opt.Now().UTC().Truncate(time.Microsecond)
		if err := w.exec("DELETE FROM rules WHERE workspace = ? AND tool = ? AND pattern = ?", r.Workspace, r.Tool, r.Pattern); err != nil {
			return session.Rule{}, err
		}
		return r, w.row("INSERT INTO rules (workspace, tool, pattern, allow, created) VALUES (?, ?, ?, ?, ?) RETURNING id",
			r.Workspace, r.Tool, r.Pattern, r.Allow, r.Created.UnixMicro()).Scan(&r.ID)
	})
}

// Rules implements session.Rules.
func (s *Store) Rules(ctx context.Context, workspace string) ([]session.Rule, error) {
	out, err := read(ctx, s, func(c *connection) ([]session.Rule, error) {
		return all(c, func(st *sqlite.Stmt) (session.Rule, error) {
			r := session.Rule{Workspace: workspace}
			var created int64
			err := scan(st, &r.ID, &r.Tool, &r.Pattern, &r.Allow, &created)
			r.Created = time.UnixMicro(created).UTC()
			return r, err
		}, "SELECT id, tool, pattern, allow, created FROM rules WHERE workspace = +? ORDER BY id", workspace)
	})
	return out, s.fault("read rules", err)
}

// RemoveRule implements session.Rules.
func (s *Store) RemoveRule(ctx context.Context, workspace string, id int64) (bool, error) {
	return runFact(ctx, s, func(w *writer) (bool, error) {
		err := w.row("DELETE FROM rules WHERE workspace = ? AND id = ? RETURNING id", workspace, id).Scan(&id)
		if errors.Is(err, errNoRow) {
			return false, nil
		}
		return err == nil, err
	})
}

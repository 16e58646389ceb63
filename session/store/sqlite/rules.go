package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rind-dev/rind/session"
)

// AddRule implements session.Rules. A rule that replaces another is a new one with an id of its own, so that whoever saw the old one
// listed does not revoke the new one by its number.
func (s *Store) AddRule(ctx context.Context, r session.Rule) (session.Rule, error) {
	return runFact(ctx, s, func(ctx context.Context, w *writer) (session.Rule, error) {
		r := r
		r.Created = s.opt.Now().UTC().Truncate(time.Microsecond)
		if err := w.exec(ctx, "DELETE FROM rules WHERE workspace = ? AND tool = ? AND pattern = ?", r.Workspace, r.Tool, r.Pattern); err != nil {
			return session.Rule{}, err
		}
		return r, w.row(ctx, "INSERT INTO rules (workspace, tool, pattern, allow, created) VALUES (?, ?, ?, ?, ?) RETURNING id",
			r.Workspace, r.Tool, r.Pattern, r.Allow, r.Created.UnixMicro()).Scan(&r.ID)
	})
}

// Rules implements session.Rules.
func (s *Store) Rules(ctx context.Context, workspace string) ([]session.Rule, error) {
	db, err := s.db(ctx)
	if err != nil {
		return nil, err
	}
	out, err := retry(ctx, func() ([]session.Rule, error) {
		rows, err := db.QueryContext(ctx, "SELECT id, tool, pattern, allow, created FROM rules WHERE workspace = ? ORDER BY id", workspace)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var out []session.Rule
		for rows.Next() {
			r := session.Rule{Workspace: workspace}
			var created int64
			if err := rows.Scan(&r.ID, &r.Tool, &r.Pattern, &r.Allow, &created); err != nil {
				return nil, err
			}
			r.Created = time.UnixMicro(created).UTC()
			out = append(out, r)
		}
		return out, rows.Err()
	})
	return out, s.fault("read rules", err)
}

// RemoveRule implements session.Rules.
func (s *Store) RemoveRule(ctx context.Context, workspace string, id int64) (bool, error) {
	return runFact(ctx, s, func(ctx context.Context, w *writer) (bool, error) {
		err := w.row(ctx, "DELETE FROM rules WHERE workspace = ? AND id = ? RETURNING id", workspace, id).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	})
}

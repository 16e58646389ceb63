package sqlite

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Sessions implements session.Log. A page token holds where the listing began and the last place shown, in the order of activity.
func (s *Store) Sessions(ctx context.Context, q session.Query) ([]session.Meta, string, error) {
	db, err := s.db(ctx)
	if err != nil {
		return nil, "", err
	}
	start, below := int64(0), int64(1)<<62
	if q.Page != "" {
		a, b, ok := strings.Cut(q.Page, ".")
		var err1, err2 error
		start, err1 = strconv.ParseInt(a, 36, 64)
		below, err2 = strconv.ParseInt(b, 36, 64)
		if !ok || err1 != nil || err2 != nil {
			return nil, "", protocol.Errorf(protocol.InvalidRequest, "Invalid page token.")
		}
	}
	where, args := "touched < ? AND "+notGone, []any{below}
	if start > 0 {
		where += " AND touched <= ?"
		args = append(args, start)
	}
	if !q.All {
		where += " AND user_prompt = 1"
	}
	if q.Workspace != "" {
		where += " AND workspace = ?"
		args = append(args, q.Workspace)
	}
	for _, w := range q.Exclude {
		where += " AND workspace <> ?"
		args = append(args, w)
	}
	type found struct {
		metas []session.Meta
		last  int64
		first int64
	}
	f, err := retry(ctx, func() (found, error) {
		var f found
		rows, err := db.QueryContext(ctx, "SELECT "+metaColumns+" FROM sessions WHERE "+where+" ORDER BY touched DESC LIMIT ?", append(args, q.Limit+1)...)
		if err != nil {
			return f, err
		}
		defer rows.Close()
		for rows.Next() {
			m, touched, err := s.scanMeta(rows)
			if err != nil {
				return f, err
			}
			if f.metas == nil {
				f.first = touched
			}
			if len(f.metas) < q.Limit {
				f.last = touched
			}
			f.metas = append(f.metas, m)
		}
		return f, rows.Err()
	})
	if err != nil {
		return nil, "", s.fault("list", err)
	}
	next := ""
	if len(f.metas) > q.Limit {
		f.metas = f.metas[:q.Limit]
		if start == 0 {
			start = f.first
		}
		next = strconv.FormatInt(start, 36) + "." + strconv.FormatInt(f.last, 36)
	}
	owners := map[string]bool{}
	for i := range f.metas {
		o := f.metas[i].Owner
		if _, asked := owners[o]; !asked {
			owners[o] = s.inst.alive(o)
		}
		f.metas[i].OwnerAlive = owners[o]
	}
	return f.metas, next, nil
}

// Turns implements session.Log.
func (s *Store) Turns(ctx context.Context, q session.TurnQuery) ([]session.TurnPlace, error) {
	db, err := s.db(ctx)
	if err != nil {
		return nil, err
	}
	if q.Before == 0 {
		q.Before = 1 << 62
	}
	where, args := "t.id < ?", []any{q.Before}
	if q.Session != "" {
		where += " AND t.session = (SELECT id FROM sessions WHERE session = ?)"
		args = append(args, string(q.Session))
	}
	out, err := retry(ctx, func() ([]session.TurnPlace, error) {
		rows, err := db.QueryContext(ctx, "SELECT t.id, t.turn, s.session, t.ended IS NOT NULL FROM turns t JOIN sessions s ON s.id = t.session WHERE "+where+
			" ORDER BY t.id DESC LIMIT ?", append(args, q.Limit)...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var out []session.TurnPlace
		for rows.Next() {
			var t session.TurnPlace
			if err := rows.Scan(&t.Place, &t.Turn, &t.Session, &t.Ended); err != nil {
				return nil, err
			}
			out = append(out, t)
		}
		return out, rows.Err()
	})
	return out, s.fault("list", err)
}

// Usage implements session.Log.
func (s *Store) Usage(ctx context.Context, since time.Time) (session.UsageReport, error) {
	var rep session.UsageReport
	for _, part := range []struct {
		to    *[]session.UsageRow
		name  string
		order string
	}{
		{&rep.Days, "date(a.time / 1000000, 'unixepoch')", "1"},
		{&rep.Models, "a.model", "sum(a.input + a.output) DESC"},
		{&rep.Sessions, "s.session", "max(a.time) DESC"},
	} {
		db, err := s.db(ctx)
		if err != nil {
			return rep, err
		}
		*part.to, err = retry(ctx, func() ([]session.UsageRow, error) {
			rows, err := db.QueryContext(ctx, "SELECT "+part.name+", sum(a.input), sum(a.cached), sum(a.output), sum(a.reasoning), count(*), sum(a.compaction), max(a.time) FROM samples a JOIN sessions s ON s.id = a.session WHERE a.time >= ? GROUP BY 1 ORDER BY "+part.order, since.UnixMicro())
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			var out []session.UsageRow
			for rows.Next() {
				var r session.UsageRow
				var last int64
				if err := rows.Scan(&r.Name, &r.Input, &r.Cached, &r.Output, &r.Reasoning, &r.Samples, &r.Compactions, &last); err != nil {
					return nil, err
				}
				r.Last = time.UnixMicro(last).UTC()
				out = append(out, r)
			}
			return out, rows.Err()
		})
		if err != nil {
			return rep, s.fault("usage", err)
		}
	}
	return rep, nil
}

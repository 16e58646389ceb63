package sqlite

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Sessions implements session.Log.
func (s *Store) Sessions(ctx context.Context, q session.Query) ([]session.Meta, string, error) {
	from, err := parsePage(q.Page)
	if err != nil {
		return nil, "", err
	}
	where, args := from.where(q)
	found, err := read(ctx, s, func(c *connection) ([]listed, error) {
		return all(c, scanMeta, "SELECT "+metaColumns+" FROM sessions WHERE "+where+" ORDER BY touched DESC LIMIT +?", append(args, q.Limit+1)...)
	})
	if err != nil {
		return nil, "", s.fault("list", err)
	}
	next := ""
	if len(found) > q.Limit { // one more than asked for: there is another page
		found = found[:q.Limit]
		next = page{cmp.Or(from.start, found[0].touched), found[q.Limit-1].touched}.token()
	}
	metas := make([]session.Meta, len(found))
	for i := range found {
		metas[i] = found[i].Meta
	}
	s.markOwners(metas)
	return metas, next, nil
}

// page is where a page of a list goes on: what was touched after the listing began is left out of it, so that no session shows twice.
type page struct {
	start int64 // where the listing began; 0 for its first page
	below int64 // the last place shown
}

func parsePage(token string) (page, error) {
	if token == "" {
		return page{below: 1 << 62}, nil
	}
	start, below, ok := strings.Cut(token, ".")
	p := page{}
	var bad1, bad2 error
	p.start, bad1 = strconv.ParseInt(start, 36, 64)
	p.below, bad2 = strconv.ParseInt(below, 36, 64)
	if !ok || bad1 != nil || bad2 != nil || p.start < 1 || p.below < 1 {
		return page{}, protocol.Errorf(protocol.InvalidRequest, "Invalid page token.")
	}
	return p, nil
}

func (p page) token() string {
	return strconv.FormatInt(p.start, 36) + "." + strconv.FormatInt(p.below, 36)
}

// where is the condition for the sessions of a query from the page on.
func (p page) where(q session.Query) (string, []any) {
	where, args := "touched < ? AND "+notGone, []any{p.below}
	if p.start > 0 {
		where += " AND touched <= ?"
		args = append(args, p.start)
	}
	if !q.All {
		where += " AND user_prompt = 1"
	}
	if q.Workspace != "" {
		where += " AND workspace = +?"
		args = append(args, q.Workspace)
	}
	for _, w := range q.Exclude {
		where += " AND workspace <> +?"
		args = append(args, w)
	}
	return where, args
}

// markOwners says which sessions have an owner that lives. Each owner is looked at once.
func (s *Store) markOwners(metas []session.Meta) {
	alive := map[string]bool{}
	for i := range metas {
		owner := metas[i].Owner
		if _, asked := alive[owner]; !asked {
			alive[owner] = s.inst.alive(owner)
		}
		metas[i].OwnerAlive = alive[owner]
	}
}

// Turns implements session.Log.
func (s *Store) Turns(ctx context.Context, q session.TurnQuery) ([]session.TurnPlace, error) {
	if q.Before == 0 {
		q.Before = 1 << 62
	}
	where, args := "t.id < ?", []any{q.Before}
	if q.Session != "" {
		where += " AND t.session = (SELECT id FROM sessions WHERE session = ?)"
		args = append(args, string(q.Session))
	}
	out, err := read(ctx, s, func(c *connection) ([]session.TurnPlace, error) {
		return all(c, func(st *sqlite.Stmt) (t session.TurnPlace, err error) {
			err = scan(st, &t.Place, (*string)(&t.Turn), (*string)(&t.Session), &t.Ended)
			return t, err
		}, "SELECT t.id, t.turn, s.session, t.ended IS NOT NULL FROM turns t JOIN sessions s ON s.id = t.session WHERE "+where+" ORDER BY t.id DESC LIMIT +?", append(args, q.Limit)...)
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
		var err error
		*part.to, err = read(ctx, s, func(c *connection) ([]session.UsageRow, error) {
			return all(c, func(st *sqlite.Stmt) (session.UsageRow, error) {
				var r session.UsageRow
				var last int64
				err := scan(st, &r.Name, &r.Input, &r.Cached, &r.Output, &r.Reasoning, &r.Samples, &r.Compactions, &last)
				r.Last = time.UnixMicro(last).UTC()
				return r, err
			}, "SELECT "+part.name+", sum(a.input), sum(a.cached), sum(a.output), sum(a.reasoning), count(*), sum(a.compaction), max(a.time) FROM samples a JOIN sessions s ON s.id = a.session WHERE a.time >= ? GROUP BY 1 ORDER BY "+part.order, since.UnixMicro())
		})
		if err != nil {
			return rep, s.fault("usage", err)
		}
	}
	return rep, nil
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// What is read of an entry. To fetch a column costs more than to find the row, whatever is in it, so the small numbers share one: microseconds,
// eight bits of kind, two of count (enough until the year 2255).
const (
	entryColumns = "e.seq, e.number, (e.time << 10) | (e.kind << 2) | e.count, e.event, e.more"
	turnColumn   = "ifnull(e.turn, 0), " // before them, where a page may have entries of several turns or of none
)

// intColumn is a column that holds an integer. As a sql.Scanner it spares the detour that database/sql takes through reflection.
type intColumn int64

// Scan implements sql.Scanner.
func (n *intColumn) Scan(v any) error {
	i, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T where a number belongs", v)
	}
	*n = intColumn(i)
	return nil
}

// textColumn is a column that holds bytes, or nothing; it keeps a copy of them.
type textColumn struct {
	*room
	b []byte
}

// Scan implements sql.Scanner.
func (t *textColumn) Scan(v any) error {
	switch v := v.(type) {
	case []byte:
		t.b = t.keep(v)
	case string:
		t.b = t.keep([]byte(v))
	case nil:
		t.b = nil
	default:
		return fmt.Errorf("%T where text belongs", v)
	}
	return nil
}

// room is where the bytes of a page lie: in few pieces of memory, rather than in one for each.
type room struct {
	size int // of a piece
	free []byte
}

func (r *room) keep(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if len(b) > len(r.free) {
		r.free = make([]byte, max(r.size, len(b)))
	}
	kept := r.free[:len(b):len(b)]
	r.free = r.free[len(b):]
	copy(kept, b)
	return kept
}

// page reads all rows of entryColumns, which turnColumn is before or not, and closes them; the turns are still to be named.
func (s *Store) page(rows *sql.Rows, turns bool, what string, limit int) ([]session.Entry, []span, error) {
	defer rows.Close()
	out := make([]session.Entry, 0, min(limit, 256))
	bytes := &room{size: min(limit*512, 16<<10)}
	var turn, seq, first, packed intColumn
	event, more := textColumn{room: bytes}, textColumn{room: bytes}
	into := []any{&turn, &seq, &first, &packed, &event, &more}
	if !turns {
		into = into[1:]
	}
	spans := make([]span, 0, 8) // neighbours are mostly of one turn
	for rows.Next() {
		err := rows.Scan(into...)
		if err != nil || event.b != nil && !protocol.Valid(event.b) || more.b != nil && !protocol.Valid(more.b) {
			return nil, nil, fmt.Errorf("%w: %s: entry %d of %s is not readable: run 'rind doctor'; nothing was changed", session.ErrCorrupt, s.path, seq, what)
		}
		if n := len(spans); n == 0 || spans[n-1].turn != int64(turn) {
			spans = append(spans, span{turn: int64(turn)})
		}
		spans[len(spans)-1].entries++
		out = append(out, session.Entry{
			Seq: session.Seq(seq), Kind: protocol.Kind(packed >> 2), Time: time.UnixMicro(int64(packed >> 10)).UTC(), Event: event.b, More: more.b,
			PortableFirst: int64(first), PortableCount: int(packed & 3),
		})
	}
	return out, spans, rows.Err()
}

// span is a run of entries of one turn; 0 is none.
type span struct {
	turn    int64
	entries int
}

// nameTurns fills in the turns of a page. They are looked up once each: joining them to every row costs a quarter of the whole page.
func nameTurns(ctx context.Context, tx *sql.Tx, spans []span, out []session.Entry) error {
	names := map[int64]session.TurnID{0: ""}
	at := 0
	for _, sp := range spans {
		name, known := names[sp.turn]
		if !known {
			var found string
			if err := tx.QueryRowContext(ctx, "SELECT turn FROM turns WHERE id = ?", sp.turn).Scan(&found); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			name = session.TurnID(found)
			names[sp.turn] = name
		}
		for range sp.entries {
			out[at].Turn = name
			at++
		}
	}
	return nil
}

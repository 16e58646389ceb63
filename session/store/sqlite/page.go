package sqlite

import (
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// What is read of an entry. To fetch a column costs more than to find the row, whatever is in it, so the small numbers share one: microseconds,
// eight bits of kind, two of count (enough until the year 2255).
const (
	entryColumns = "e.seq, e.number, (e.time << 10) | (e.kind << 2) | e.count, e.event, e.more"
	turnColumn   = "ifnull(e.turn, 0), " // before them, where a page may have entries of several turns or of none
)

// blobInto reads a column of bytes, nil for none and for no bytes; false when it holds something else.
func blobInto(p *session.Page, st *sqlite.Stmt, column int) ([]byte, bool) {
	switch st.ColumnType(column) {
	case sqlite.TypeNull:
		return nil, true
	case sqlite.TypeBlob, sqlite.TypeText:
	default:
		return nil, false
	}
	n := st.ColumnLen(column)
	if n == 0 {
		return nil, true
	}
	b := p.Bytes(n)
	st.ColumnBytes(column, b)
	return b, true
}

// page reads a page of entryColumns, which turnColumn is before or not; the turns are still to be named.
func (s *Store) page(c *connection, into *session.Page, turns bool, what string, limit int, query string, args ...any) ([]session.Entry, []span, error) {
	if into == nil {
		into = &session.Page{}
	}
	out := into.Begin(limit)
	spans := make([]span, 0, 8) // neighbours are mostly of one turn
	first := 0                  // of entryColumns
	if turns {
		first = 1
	}
	err := c.each(func(st *sqlite.Stmt) error {
		sound := true
		number := func(column int) int64 {
			sound = sound && st.ColumnType(column) == sqlite.TypeInteger
			return st.ColumnInt64(column)
		}
		text := func(column int) []byte {
			b, ok := blobInto(into, st, column)
			sound = sound && ok && (b == nil || protocol.Valid(b))
			return b
		}
		var turn int64
		if turns {
			turn = number(0)
		}
		seq, portable, packed := number(first), number(first+1), number(first+2)
		event, more := text(first+3), text(first+4)
		if !sound {
			return s.damaged(what, session.Seq(seq))
		}
		if n := len(spans); n == 0 || spans[n-1].turn != turn {
			spans = append(spans, span{turn: turn})
		}
		spans[len(spans)-1].entries++
		out = append(out, session.Entry{
			Seq: session.Seq(seq), Kind: protocol.Kind(packed >> 2), Time: time.UnixMicro(packed >> 10).UTC(), Event: event, More: more,
			PortableFirst: portable, PortableCount: int(packed & 3),
		})
		return nil
	}, query, args...)
	into.End(out)
	return out, spans, err
}

// damaged is the error of an entry that is not readable.
func (s *Store) damaged(what string, seq session.Seq) error {
	return &session.DamagedEntry{
		Seq: seq,
		Err: fmt.Errorf("%w: %s: entry %d of %s is not readable: run 'rind doctor'; nothing was changed", session.ErrCorrupt, s.path, seq, what),
	}
}

// span is a run of entries of one turn; 0 is none.
type span struct {
	turn    int64
	entries int
}

// nameTurns fills in the turns of a page. They are looked up once each: joining them to every row costs a quarter of the whole page.
func (c *connection) nameTurns(spans []span, out []session.Entry) error {
	names := map[int64]session.TurnID{0: ""}
	at := 0
	for _, sp := range spans {
		name, known := names[sp.turn]
		if !known {
			if err := c.row("SELECT turn FROM turns WHERE id = ?", sp.turn).Scan((*string)(&name)); err != nil && !errors.Is(err, errNoRow) {
				return err
			}
			names[sp.turn] = name
		}
		for range sp.entries {
			out[at].Turn = name
			at++
		}
	}
	return nil
}

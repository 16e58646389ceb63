package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// inView returns where the entries of a view are found and the condition. The index says what is a fact, so that an increment between two of them
// costs a look at the index, 100 ns, and in files of earlier versions nothing. SQLite refuses the query should the index ever not fit.
func inView(v protocol.View) (table, condition string) {
	const facts = "entries e INDEXED BY entries_facts"
	switch v {
	case protocol.ViewFacts:
		return facts, " AND e.class = 0"
	case protocol.ViewDurable:
		return facts, " AND e.class = 0 AND e.view = " + strconv.Itoa(int(protocol.Durable))
	case protocol.ViewTasks:
		return facts, " AND e.class = 0 AND e.view = " + strconv.Itoa(int(protocol.DurableTask))
	default:
		return "entries e", ""
	}
}

func (s *Store) exists(ctx context.Context, id session.SessionID, n int) error {
	if n > 0 {
		return nil
	}
	_, err := s.Session(ctx, id)
	return err
}

// direction is how a page is read: behind a place, oldest first, or before it, newest first.
type direction struct{ from, order string }

var (
	forward  = direction{" AND e.seq > ?", " ORDER BY e.seq"}
	backward = direction{" AND e.seq < ?", " ORDER BY e.seq DESC"}
)

// entries reads a page of a session. Its rows and their turns are of one moment.
func (s *Store) entries(ctx context.Context, id session.SessionID, at session.Seq, d direction, limit int, v protocol.View) ([]session.Entry, error) {
	table, condition := inView(v)
	rest := " FROM " + table + " WHERE e.session = (SELECT id FROM sessions WHERE session = ? AND " + notGone + ")" + d.from + condition + d.order + " LIMIT +?"
	what := "session " + string(id)
	out, err := readShort(ctx, s, func(c *connection) (out []session.Entry, err error) {
		err = c.within(func() error {
			page, spans, unread := s.page(c, nil, true, what, limit, "SELECT "+turnColumn+entryColumns+rest, string(id), int64(at), limit)
			if isDamage(unread) {
				// The index tells which entry comes next also where its row cannot be read.
				last, next := at, int64(0)
				if n := len(page); n > 0 {
					last = page[n-1].Seq
				}
				if c.row("SELECT e.seq"+rest, string(id), int64(last), 1).Scan(&next) == nil {
					unread = s.damaged(what, session.Seq(next))
				}
			}
			if err := c.nameTurns(spans, page); err != nil {
				return err
			}
			out = page
			return unread
		})
		return out, err
	})
	if err != nil {
		return out, s.fault("read", err)
	}
	giveWay(len(out))
	return out, s.exists(ctx, id, len(out))
}

// giveWay lets others run behind a page of many rows. Who replays asks for the next one at once, and a few of those keep a core for as long as they
// last: whoever comes back from a flush stands in the scheduler's common queue, which it looks into every 61st time while there is anything else.
func giveWay(rows int) {
	if rows >= 64 { // less is no work to speak of
		runtime.Gosched()
	}
}

// Read implements session.Log.
func (s *Store) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	return s.entries(ctx, id, after, forward, limit, v)
}

// ReadBack implements session.Log.
func (s *Store) ReadBack(ctx context.Context, id session.SessionID, before session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if before == 0 {
		before = 1 << 62
	}
	return s.entries(ctx, id, before, backward, limit, v)
}

// ReadTurn implements session.Log.
func (s *Store) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int, into *session.Page) ([]session.Entry, error) {
	const query = "SELECT " + entryColumns + " FROM entries e WHERE e.turn = (SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session WHERE t.turn = +? AND s." + notGone +
		") AND e.count > 0 AND e.number >= ? AND e.number + e.count - 1 > ? ORDER BY e.number LIMIT +?"
	out, err := readShort(ctx, s, func(c *connection) ([]session.Entry, error) {
		out, _, err := s.page(c, into, false, "turn "+string(turn), limit, query, string(turn), after-1, after, limit)
		for i := range out {
			out[i].Turn = turn
		}
		return out, err
	})
	giveWay(len(out))
	if err != nil || len(out) > 0 {
		return out, s.fault("read", err)
	}
	_, err = s.TurnSession(ctx, turn)
	return out, err
}

// one reads a single row.
func (s *Store) one(ctx context.Context, what, query string, args []any, dest ...any) error {
	_, err := readShort(ctx, s, func(c *connection) (nothing, error) { return nothing{}, c.row(query, args...).Scan(dest...) })
	return s.notFound(what, err)
}

// notFound makes the port's error of a query that found nothing, and the store's of one that failed.
func (s *Store) notFound(what string, err error) error {
	if errors.Is(err, errNoRow) {
		return fmt.Errorf("%s: %w", what, session.ErrNotFound)
	}
	return s.fault("read", err)
}

// TurnSession implements session.Log.
func (s *Store) TurnSession(ctx context.Context, turn session.TurnID) (session.SessionID, error) {
	var id string
	err := s.one(ctx, "turn "+string(turn), "SELECT s.session FROM turns t JOIN sessions s ON s.id = t.session WHERE t.turn = +? AND s."+notGone, []any{string(turn)}, &id)
	return session.SessionID(id), err
}

const metaColumns = "session, conversation, workspace, parent, created, head, owner, activity, title, preview, messages, tool_calls, user_prompt, metadata, touched"

// listed is a session with its place in the order of activity.
type listed struct {
	session.Meta
	touched int64
}

// scanMeta reads metaColumns.
func scanMeta(st *sqlite.Stmt) (m listed, err error) {
	var created, head, activity int64
	err = scan(st, (*string)(&m.ID), &m.ConversationID, &m.Workspace, (*string)(&m.Parent), &created, &head, &m.Owner, &activity, &m.Title, &m.Preview, &m.Messages, &m.ToolCalls, &m.UserPrompt,
		(*[]byte)(&m.Metadata), &m.touched)
	m.Created, m.Head, m.Activity = time.UnixMicro(created).UTC(), session.Seq(head), time.UnixMicro(activity).UTC()
	return m, err
}

func (s *Store) meta(ctx context.Context, what, where string, arg string) (session.Meta, error) {
	m, err := readShort(ctx, s, func(c *connection) (m listed, err error) {
		err = c.first(func(st *sqlite.Stmt) (err error) {
			m, err = scanMeta(st)
			return err
		}, "SELECT "+metaColumns+" FROM sessions WHERE "+notGone+" AND "+where, arg)
		return m, err
	})
	if err != nil {
		return session.Meta{}, s.notFound(what, err)
	}
	m.OwnerAlive = s.inst.alive(m.Owner)
	return m.Meta, nil
}

// Session implements session.Log.
func (s *Store) Session(ctx context.Context, id session.SessionID) (session.Meta, error) {
	return s.meta(ctx, "session "+string(id), "session = ?", string(id))
}

// Conversation implements session.Log.
func (s *Store) Conversation(ctx context.Context, conv string) (session.Meta, error) {
	return s.meta(ctx, "conversation "+conv, "conversation = ?", conv)
}

// Fold implements session.Log.
func (s *Store) Fold(ctx context.Context, id session.SessionID) ([]byte, session.Seq, error) {
	var fold []byte
	var seq int64
	err := s.one(ctx, "session "+string(id), "SELECT fold, fold_seq FROM sessions WHERE session = ?", []any{string(id)}, &fold, &seq)
	return fold, session.Seq(seq), err
}

// Key implements session.Log.
func (s *Store) Key(ctx context.Context, id session.SessionID, surface, key string) (session.Key, error) {
	k := session.Key{Surface: surface, Key: key}
	var turn string
	err := s.one(ctx, "key", "SELECT digest, turn FROM keys WHERE session = (SELECT id FROM sessions WHERE session = ? AND "+notGone+") AND surface = ? AND key = ?",
		[]any{string(id), surface, key}, &k.Digest, &turn)
	k.Turn = session.TurnID(turn)
	return k, err
}

// Health implements session.Log.
func (s *Store) Health(ctx context.Context) (session.Health, error) {
	h := session.Health{Path: s.path}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			h.Bytes += info.Size()
		}
	}
	if err := s.one(ctx, "store", "SELECT (SELECT count(*) FROM sessions WHERE "+notGone+"), (SELECT count(*) FROM entries), (SELECT value FROM meta WHERE name = 'written_by'), (SELECT value FROM meta WHERE name = 'readable_from')",
		nil, &h.Sessions, &h.Entries, &h.WrittenBy, &h.ReadableFrom); err != nil {
		return h, err
	}
	_, err := read(ctx, s, func(c *connection) (nothing, error) {
		return nothing{}, c.row("SELECT group_concat(integrity_check, '; ') FROM (SELECT integrity_check FROM pragma_integrity_check LIMIT 5)").Scan(&h.Integrity)
	})
	return h, s.fault("read", err)
}

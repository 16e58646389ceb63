package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Words of protocol used all over this room.
type (
	SessionID = protocol.SessionID
	TurnID    = protocol.TurnID
	Seq       = protocol.Seq
	Entry     = protocol.Entry
)

// Errors of the store ports. An implementation wraps them (errors.Is), with its own text before them; that text names paths
// and versions, is one line, and is fit to be shown to a user.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	// ErrBusy: another living instance holds the lease.
	ErrBusy = errors.New("in use by another process")
	// ErrLocked: the store as a whole stayed locked by another process for 5 s; no session is to blame.
	ErrLocked = errors.New("store is locked by another process")
	// ErrFenced: the lease is stale; another instance has taken the session since.
	ErrFenced = errors.New("lease is stale")
	// ErrGap: the batch does not follow the log's head; nothing was written. It is what the batches behind a failed one get.
	ErrGap      = errors.New("batch does not follow the head")
	ErrFull     = errors.New("disk is full")
	ErrReadOnly = errors.New("store cannot be written")
	ErrCorrupt  = errors.New("store is damaged")
	ErrNewer    = errors.New("store was written by a newer version")
	ErrKeyUsed  = errors.New("idempotency key is taken")
	ErrClosed   = errors.New("store is closed")
)

// DamagedEntry is an ErrCorrupt of one entry; those behind it may be readable.
type DamagedEntry struct {
	Seq Seq
	Err error // wraps ErrCorrupt; its text names the entry
}

func (e *DamagedEntry) Error() string { return e.Err.Error() }
func (e *DamagedEntry) Unwrap() error { return e.Err }

// Lease is one instance's right to append to one session. The zero Lease is none.
type Lease struct {
	Session SessionID
	Epoch   int64 // grows by one with every Acquire of the session
	Head    Seq   // of the log when the lease was taken
}

// Meta describes a session without reading its log.
type Meta struct {
	ID             SessionID
	ConversationID string // "conv_" + hex32
	Workspace      string // absolute, links resolved
	Parent         SessionID
	Created        time.Time
	Row            // what the session itself keeps there
	Head           Seq
	Owner          string // instance that holds the lease, "" for none; see Alive
	OwnerAlive     bool
}

// Row is the summary of a session, replaced whole by each batch that carries one.
type Row struct {
	Title      string
	Preview    string    // at most 200 characters
	Activity   time.Time // last activity; lists are ordered by it
	Messages   int
	ToolCalls  int
	UserPrompt bool            // it has a user message: only then is it listed
	Metadata   json.RawMessage // of the portable conversation; nil is {}
	Fold       []byte          // the session's own snapshot of its state at FoldSeq, opaque to the store; nil leaves the stored one
	FoldSeq    Seq
	Usage      *UsageSample // counted into the usage tables; nil for none
}

// UsageSample is one sampling, for usage/summary.
type UsageSample struct {
	Time                             time.Time
	Model                            string
	Input, Cached, Output, Reasoning int
	Compaction                       bool
}

// Key claims an idempotency key in the transaction of its batch.
type Key struct {
	Surface string // scope beside the session: "rind", "acp", "portable"
	Key     string
	Digest  string // fingerprint of the request
	Turn    TurnID
}

// Batch is what one transaction appends.
type Batch struct {
	Entries []Entry // Seq contiguous, the first one Head+1; Event and More are not changed by the store
	Keys    []Key
	Row     *Row // nil leaves the row but for its activity
	// Retake takes a lease again that was given back: ErrFenced when another instance has had it since, ErrNotFound when the session is gone.
	Retake bool
	// Release gives the lease back with the batch, as Log.Release does.
	Release bool
}

// Query selects sessions for a list: newest activity first.
type Query struct {
	Workspace string   // "" for all
	Exclude   []string // workspaces left out
	Limit     int      // 1..200
	Page      string   // "" for the first; else the next of the page before
	All       bool     // also sessions without a user message
}

// TurnQuery selects turns for a list.
type TurnQuery struct {
	Session SessionID // "" for all
	Before  int64     // only places below; 0 for the newest
	Limit   int
}

// TurnPlace is a turn in the list of all turns of the store.
type TurnPlace struct {
	Turn    TurnID
	Session SessionID
	Place   int64 // 1 or more; grows with the first entries of turns. That of a deleted turn may be given again, above all that are left
	Ended   bool
}

// Log is the store of sessions and their entries. Implementations are safe for concurrent use.
//
// What Append acknowledged survives kill -9 of the process; what it acknowledged of a batch with a fact survives loss of power.
// No method leaves a read transaction open when it returns.
type Log interface {
	// Create makes an empty session with head 0. ErrExists if the id is taken.
	Create(ctx context.Context, m Meta) error
	// Acquire takes the lease for this instance, whose liveness the store itself proves. ErrBusy while another living instance
	// holds it, ErrNotFound. Acquiring what one holds already gives the same epoch again.
	Acquire(ctx context.Context, id SessionID) (Lease, error)
	// Release gives the lease back; a stale lease is no error.
	Release(ctx context.Context, l Lease) error
	// Append writes b in one transaction and then calls done exactly once, from a goroutine of the store; done must not block.
	// It returns at once. Batches of one session are written in the order of their calls; when one fails, those
	// behind it fail with ErrGap until a batch follows the head again. A stale lease gives ErrFenced, a taken key ErrKeyUsed.
	Append(l Lease, b Batch, done func(error))
	// Read returns up to limit entries of v with Seq > after, oldest first. One that is not readable ends the page with a *DamagedEntry, or with
	// ErrCorrupt where the damage hides which one it is; beside the error stand the entries before it. Entries of a page may share memory: one
	// that is kept keeps more than itself.
	Read(ctx context.Context, id SessionID, after Seq, limit int, v protocol.View) ([]Entry, error)
	// ReadBack returns up to limit entries of v with Seq < before, newest first; before 0 means from the head.
	ReadBack(ctx context.Context, id SessionID, before Seq, limit int, v protocol.View) ([]Entry, error)
	// ReadTurn returns up to limit entries of turn that hold a portable event numbered > after, in order. It may read into a page.
	ReadTurn(ctx context.Context, turn TurnID, after int64, limit int, into *Page) ([]Entry, error)
	// TurnSession finds the session of a turn. ErrNotFound.
	TurnSession(ctx context.Context, turn TurnID) (SessionID, error)
	// Turns lists turns, the one whose first entry is newest first. A session that is not there has none.
	Turns(ctx context.Context, q TurnQuery) ([]TurnPlace, error)
	// Session describes one session. ErrNotFound.
	Session(ctx context.Context, id SessionID) (Meta, error)
	// Conversation finds a session by its conversation id. ErrNotFound.
	Conversation(ctx context.Context, conv string) (Meta, error)
	// Fold returns the newest stored snapshot and its Seq; nil and 0 when there is none.
	Fold(ctx context.Context, id SessionID) ([]byte, Seq, error)
	// Key looks an idempotency key up. ErrNotFound.
	Key(ctx context.Context, id SessionID, surface, key string) (Key, error)
	// Sessions lists; next is "" on the last page. A session touched after the first page was made is left out of later ones.
	Sessions(ctx context.Context, q Query) (page []Meta, next string, err error)
	// Delete removes a session and its bytes. ErrBusy while another living instance holds the lease.
	Delete(ctx context.Context, id SessionID) error
	// Prune applies the retention rules of the catalogue to turns that ended before t, and reports entries removed.
	Prune(ctx context.Context, before time.Time) (int, error)
	// Watch rings whenever another instance committed something: an id whose log or inbox may have grown, "" for sessions that were deleted.
	// Ids may repeat and merge; none is lost. The channel is closed when ctx ends.
	Watch(ctx context.Context) (<-chan SessionID, error)
	// Usage sums samples per day, model and session since a time.
	Usage(ctx context.Context, since time.Time) (UsageReport, error)
	// Writable is nil where a write would be taken now, else the error it would get, whatever it wrote. It may be asked at every moment: as long as
	// writes go well and there is room it writes nothing, and what it tries otherwise leaves nothing behind.
	Writable(ctx context.Context) error
	// Health checks the store: integrity, sizes, versions.
	Health(ctx context.Context) (Health, error)
	// Close ends the store after the last acknowledge. Idempotent.
	Close() error
}

// UsageReport is the store's part of usage/summary (docs/protocol/rind-v2.md section 4.10).
type UsageReport struct {
	Days     []UsageRow // Name is YYYY-MM-DD, UTC, oldest first
	Models   []UsageRow // most tokens first
	Sessions []UsageRow // Name is a session id, newest first
}

// UsageRow sums the samples of one day, model or session.
type UsageRow struct {
	Name                             string
	Input, Cached, Output, Reasoning int64
	Samples, Compactions             int64
	Last                             time.Time
}

// Health is what `rind doctor` shows of a store.
type Health struct {
	Path         string
	Bytes        int64 // of the file and its side files
	Sessions     int64
	Entries      int64
	WrittenBy    int    // schema number of the last writer
	ReadableFrom int    // oldest schema number that may read the file
	Integrity    string // "ok", or what is wrong
}

// Letter is a request of another process to the owner of a session (promise 7): cancel, answer.
type Letter struct {
	ID      int64
	Session SessionID
	Body    json.RawMessage
	Outcome json.RawMessage // nil while open
}

// Inbox carries letters to the owner of a session and outcomes back, without a lease.
type Inbox interface {
	Post(ctx context.Context, id SessionID, body json.RawMessage) (int64, error)
	// Open lists letters without an outcome, oldest first.
	Open(ctx context.Context, id SessionID) ([]Letter, error)
	// Settle records the outcome of a letter; it is an error if it has one or is gone.
	Settle(ctx context.Context, letter int64, outcome json.RawMessage) error
	// Outcome returns it, nil while there is none.
	Outcome(ctx context.Context, letter int64) (json.RawMessage, error)
	// Withdraw removes a letter that has no outcome; false if it has one by now.
	Withdraw(ctx context.Context, letter int64) (bool, error)
}

// Store is everything one store file offers.
type Store interface {
	Log
	Inbox
	Rules
}

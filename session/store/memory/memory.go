// Package memory keeps sessions in memory: for tests, and for runs that are not to leave anything behind. It keeps every promise
// of session.Store but that of outliving the process.
//
// A Backing is what a file is to other stores; each Store opened on it plays one process. A Store owns no goroutine: appends are
// acknowledged in order by one that lives only while some are waiting.
package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Backing holds the data several Stores share.
type Backing struct {
	mu       sync.Mutex
	sessions map[session.SessionID]*record
	turns    map[session.TurnID]*turn
	letters  map[int64]*session.Letter
	nextID   int64
	alive    map[string]bool
	watchers map[*watcher]bool
	usage    []usage
	touch    int64 // counts activity, so that lists have a total order
}

type record struct {
	meta    session.Meta
	entries []session.Entry
	keys    map[string]session.Key
	epoch   int64
	touched int64
}

type turn struct {
	session  session.SessionID
	portable bool
	ended    time.Time
}

type usage struct {
	session session.SessionID
	sample  session.UsageSample
}

type watcher struct {
	store *Store
	ids   map[session.SessionID]bool
	wake  chan struct{}
}

// NewBacking makes an empty one.
func NewBacking() *Backing {
	return &Backing{
		sessions: map[session.SessionID]*record{}, turns: map[session.TurnID]*turn{}, letters: map[int64]*session.Letter{},
		alive: map[string]bool{}, watchers: map[*watcher]bool{},
	}
}

// Store is one process's access to a Backing.
type Store struct {
	b        *Backing
	instance string

	mu      sync.Mutex // guards pending and closed
	pending []func()
	running bool
	closed  bool
}

var _ session.Store = (*Store)(nil)

// New opens a store on a Backing of its own.
func New() *Store { return NewBacking().Open("memory") }

// Open opens a store as the named instance, which is alive until Close.
func (b *Backing) Open(instance string) *Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive[instance] = true
	return &Store{b: b, instance: instance}
}

// Kill plays the death of the process: the instance is not alive any more and nothing it has under way is stored.
func (s *Store) Kill() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.alive, s.instance)
}

// Close implements session.Log.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	delete(s.b.alive, s.instance)
	return nil
}

func (b *Backing) find(id session.SessionID) (*record, error) {
	r := b.sessions[id]
	if r == nil {
		return nil, fmt.Errorf("session %s: %w", id, session.ErrNotFound)
	}
	return r, nil
}

// Create implements session.Log.
func (s *Store) Create(_ context.Context, m session.Meta) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.sessions[m.ID] != nil {
		return fmt.Errorf("session %s: %w", m.ID, session.ErrExists)
	}
	s.b.touch++
	m.Head, m.Owner, m.OwnerAlive = 0, "", false
	s.b.sessions[m.ID] = &record{meta: m, keys: map[string]session.Key{}, touched: s.b.touch}
	return nil
}

// Acquire implements session.Log.
func (s *Store) Acquire(_ context.Context, id session.SessionID) (session.Lease, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return session.Lease{}, err
	}
	owner := r.meta.Owner
	if owner != "" && owner != s.instance && s.b.alive[owner] {
		return session.Lease{}, fmt.Errorf("session %s: %w", id, session.ErrBusy)
	}
	if owner != s.instance {
		r.meta.Owner = s.instance
		r.epoch++
	}
	return session.Lease{Session: id, Epoch: r.epoch, Head: r.meta.Head}, nil
}

// Release implements session.Log.
func (s *Store) Release(_ context.Context, l session.Lease) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if r := s.b.sessions[l.Session]; r != nil && r.epoch == l.Epoch && r.meta.Owner == s.instance {
		r.meta.Owner = ""
	}
	return nil
}

// Append implements session.Log.
func (s *Store) Append(l session.Lease, b session.Batch, done func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, func() { done(s.append(l, b)) })
	if !s.running {
		s.running = true
		go s.work()
	}
}

func (s *Store) work() {
	for {
		s.mu.Lock()
		if len(s.pending) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		f := s.pending[0]
		s.pending = s.pending[1:]
		s.mu.Unlock()
		f()
	}
}

func (s *Store) append(l session.Lease, b session.Batch) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return session.ErrClosed
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(l.Session)
	if err != nil {
		return err
	}
	if r.epoch != l.Epoch || r.meta.Owner != s.instance {
		return fmt.Errorf("session %s: %w", l.Session, session.ErrFenced)
	}
	for i := range b.Entries {
		if b.Entries[i].Seq != r.meta.Head+session.Seq(i)+1 {
			return fmt.Errorf("session %s: entry %d after head %d: %w", l.Session, b.Entries[i].Seq, r.meta.Head, session.ErrGap)
		}
	}
	for _, k := range b.Keys {
		if _, taken := r.keys[k.Surface+"\x00"+k.Key]; taken {
			return fmt.Errorf("session %s: %w", l.Session, session.ErrKeyUsed)
		}
	}
	for _, k := range b.Keys {
		r.keys[k.Surface+"\x00"+k.Key] = k
	}
	for _, e := range b.Entries {
		r.entries = append(r.entries, e)
		r.meta.Head = e.Seq
		s.b.track(l.Session, &e)
	}
	if b.Row != nil {
		fold, seq := r.meta.Fold, r.meta.FoldSeq
		r.meta.Row = *b.Row
		if b.Row.Fold == nil {
			r.meta.Fold, r.meta.FoldSeq = fold, seq
		}
		if b.Row.Usage != nil {
			s.b.usage = append(s.b.usage, usage{l.Session, *b.Row.Usage})
		}
	} else if n := len(b.Entries); n > 0 {
		r.meta.Activity = b.Entries[n-1].Time
	}
	s.b.touch++
	r.touched = s.b.touch
	s.b.ring(s, l.Session)
	return nil
}

// track keeps what is known of a turn.
func (b *Backing) track(id session.SessionID, e *session.Entry) {
	if e.Turn == "" {
		return
	}
	t := b.turns[e.Turn]
	if t == nil {
		t = &turn{session: id}
		b.turns[e.Turn] = t
	}
	if e.Kind == protocol.KindTurnAccepted {
		if body, err := protocol.Decode(e); err == nil {
			t.portable = body.(*protocol.TurnAccepted).More.Surface == protocol.SurfacePortable
		}
	}
	if e.Kind.Info().Terminal {
		t.ended = e.Time
	}
}

func (b *Backing) ring(from *Store, id session.SessionID) {
	for w := range b.watchers {
		if w.store.instance == from.instance {
			continue
		}
		w.ids[id] = true
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Read implements session.Log.
func (s *Store) Read(_ context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return nil, err
	}
	i := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].Seq > after })
	var out []session.Entry
	for ; i < len(r.entries) && len(out) < limit; i++ {
		if r.entries[i].In(v) {
			out = append(out, r.entries[i])
		}
	}
	return out, nil
}

// ReadBack implements session.Log.
func (s *Store) ReadBack(_ context.Context, id session.SessionID, before session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return nil, err
	}
	var out []session.Entry
	for i := len(r.entries) - 1; i >= 0 && len(out) < limit; i-- {
		if (before == 0 || r.entries[i].Seq < before) && r.entries[i].In(v) {
			out = append(out, r.entries[i])
		}
	}
	return out, nil
}

// ReadTurn implements session.Log.
func (s *Store) ReadTurn(_ context.Context, id session.TurnID, after int64, limit int) ([]session.Entry, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	t := s.b.turns[id]
	if t == nil {
		return nil, fmt.Errorf("turn %s: %w", id, session.ErrNotFound)
	}
	r, err := s.b.find(t.session)
	if err != nil {
		return nil, err
	}
	var out []session.Entry
	for i := range r.entries {
		e := &r.entries[i]
		if e.Turn == id && e.PortableCount > 0 && e.PortableFirst+int64(e.PortableCount)-1 > after && len(out) < limit {
			out = append(out, *e)
		}
	}
	return out, nil
}

// TurnSession implements session.Log.
func (s *Store) TurnSession(_ context.Context, id session.TurnID) (session.SessionID, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	t := s.b.turns[id]
	if t == nil {
		return "", fmt.Errorf("turn %s: %w", id, session.ErrNotFound)
	}
	return t.session, nil
}

func (b *Backing) describe(r *record) session.Meta {
	m := r.meta
	m.OwnerAlive = m.Owner != "" && b.alive[m.Owner]
	return m
}

// Session implements session.Log.
func (s *Store) Session(_ context.Context, id session.SessionID) (session.Meta, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return session.Meta{}, err
	}
	return s.b.describe(r), nil
}

// Conversation implements session.Log.
func (s *Store) Conversation(_ context.Context, conv string) (session.Meta, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for _, r := range s.b.sessions {
		if r.meta.ConversationID == conv {
			return s.b.describe(r), nil
		}
	}
	return session.Meta{}, fmt.Errorf("conversation %s: %w", conv, session.ErrNotFound)
}

// Fold implements session.Log.
func (s *Store) Fold(_ context.Context, id session.SessionID) ([]byte, session.Seq, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return nil, 0, err
	}
	return r.meta.Fold, r.meta.FoldSeq, nil
}

// Key implements session.Log.
func (s *Store) Key(_ context.Context, id session.SessionID, surface, key string) (session.Key, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return session.Key{}, err
	}
	k, ok := r.keys[surface+"\x00"+key]
	if !ok {
		return session.Key{}, fmt.Errorf("key: %w", session.ErrNotFound)
	}
	return k, nil
}

// Sessions implements session.Log. A page token holds the start of the listing and the last place shown.
func (s *Store) Sessions(_ context.Context, q session.Query) ([]session.Meta, string, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	start, below := s.b.touch, s.b.touch+1
	if q.Page != "" {
		a, c, ok := strings.Cut(q.Page, ".")
		var err1, err2 error
		start, err1 = strconv.ParseInt(a, 36, 64)
		below, err2 = strconv.ParseInt(c, 36, 64)
		if !ok || err1 != nil || err2 != nil {
			return nil, "", protocol.Errorf(protocol.InvalidRequest, "Invalid page token.")
		}
	}
	var found []*record
	for _, r := range s.b.sessions {
		if r.touched > start || r.touched >= below || !q.All && !r.meta.UserPrompt || q.Workspace != "" && r.meta.Workspace != q.Workspace {
			continue
		}
		excluded := false
		for _, w := range q.Exclude {
			excluded = excluded || w == r.meta.Workspace
		}
		if !excluded {
			found = append(found, r)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].touched > found[j].touched })
	next := ""
	if len(found) > q.Limit {
		found = found[:q.Limit]
		next = strconv.FormatInt(start, 36) + "." + strconv.FormatInt(found[len(found)-1].touched, 36)
	}
	page := make([]session.Meta, 0, len(found))
	for _, r := range found {
		page = append(page, s.b.describe(r))
	}
	return page, next, nil
}

// Delete implements session.Log.
func (s *Store) Delete(_ context.Context, id session.SessionID) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	r, err := s.b.find(id)
	if err != nil {
		return err
	}
	if o := r.meta.Owner; o != "" && o != s.instance && s.b.alive[o] {
		return fmt.Errorf("session %s: %w", id, session.ErrBusy)
	}
	delete(s.b.sessions, id)
	for t, rec := range s.b.turns {
		if rec.session == id {
			delete(s.b.turns, t)
		}
	}
	for l, letter := range s.b.letters {
		if letter.Session == id {
			delete(s.b.letters, l)
		}
	}
	s.b.ring(s, id)
	return nil
}

// Prune implements session.Log.
func (s *Store) Prune(_ context.Context, before time.Time) (int, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	removed := 0
	for _, r := range s.b.sessions {
		newest := map[protocol.Kind]session.Seq{}
		for i := range r.entries {
			newest[r.entries[i].Kind] = r.entries[i].Seq
		}
		kept := r.entries[:0:0]
		for _, e := range r.entries {
			if s.b.prunable(&e, before, newest) {
				removed++
				continue
			}
			kept = append(kept, e)
		}
		r.entries = kept
	}
	return removed, nil
}

func (b *Backing) prunable(e *session.Entry, before time.Time, newest map[protocol.Kind]session.Seq) bool {
	prune := e.Kind.Info().Prune
	if prune == protocol.Keep || prune == protocol.PruneOlder && newest[e.Kind] == e.Seq {
		return false
	}
	ended, portable := e.Time, false
	if e.Turn != "" {
		t := b.turns[e.Turn]
		ended, portable = t.ended, t.portable
	}
	if ended.IsZero() || !ended.Before(before) {
		return false
	}
	return prune != protocol.PruneEditor || !portable
}

// Watch implements session.Log.
func (s *Store) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	w := &watcher{store: s, ids: map[session.SessionID]bool{}, wake: make(chan struct{}, 1)}
	s.b.mu.Lock()
	s.b.watchers[w] = true
	s.b.mu.Unlock()
	out := make(chan session.SessionID)
	go func() {
		defer close(out)
		defer func() {
			s.b.mu.Lock()
			delete(s.b.watchers, w)
			s.b.mu.Unlock()
		}()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.wake:
			}
			s.b.mu.Lock()
			ids := w.ids
			w.ids = map[session.SessionID]bool{}
			s.b.mu.Unlock()
			for id := range ids {
				select {
				case out <- id:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}

// Usage implements session.Log.
func (s *Store) Usage(_ context.Context, since time.Time) (session.UsageReport, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	days, models, sessions := map[string]*session.UsageRow{}, map[string]*session.UsageRow{}, map[string]*session.UsageRow{}
	for _, u := range s.b.usage {
		if u.sample.Time.Before(since) {
			continue
		}
		add(days, u.sample.Time.UTC().Format(time.DateOnly), u.sample)
		add(models, u.sample.Model, u.sample)
		add(sessions, string(u.session), u.sample)
	}
	rep := session.UsageReport{Days: rows(days), Models: rows(models), Sessions: rows(sessions)}
	sort.Slice(rep.Days, func(i, j int) bool { return rep.Days[i].Name < rep.Days[j].Name })
	total := func(r session.UsageRow) int64 { return r.Input + r.Output }
	sort.Slice(rep.Models, func(i, j int) bool { return total(rep.Models[i]) > total(rep.Models[j]) })
	sort.Slice(rep.Sessions, func(i, j int) bool { return rep.Sessions[i].Last.After(rep.Sessions[j].Last) })
	return rep, nil
}

func add(m map[string]*session.UsageRow, name string, u session.UsageSample) {
	r := m[name]
	if r == nil {
		r = &session.UsageRow{Name: name}
		m[name] = r
	}
	r.Input += int64(u.Input)
	r.Cached += int64(u.Cached)
	r.Output += int64(u.Output)
	r.Reasoning += int64(u.Reasoning)
	r.Samples++
	if u.Compaction {
		r.Compactions++
	}
	if u.Time.After(r.Last) {
		r.Last = u.Time
	}
}

func rows(m map[string]*session.UsageRow) []session.UsageRow {
	out := make([]session.UsageRow, 0, len(m))
	for _, r := range m {
		out = append(out, *r)
	}
	return out
}

// Health implements session.Log.
func (s *Store) Health(context.Context) (session.Health, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	h := session.Health{Path: ":memory:", Sessions: int64(len(s.b.sessions)), Integrity: "ok"}
	for _, r := range s.b.sessions {
		h.Entries += int64(len(r.entries))
	}
	return h, nil
}

// Post implements session.Inbox.
func (s *Store) Post(_ context.Context, id session.SessionID, body json.RawMessage) (int64, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if _, err := s.b.find(id); err != nil {
		return 0, err
	}
	s.b.nextID++
	s.b.letters[s.b.nextID] = &session.Letter{ID: s.b.nextID, Session: id, Body: body}
	s.b.ring(s, id)
	return s.b.nextID, nil
}

// Open implements session.Inbox.
func (s *Store) Open(_ context.Context, id session.SessionID) ([]session.Letter, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	var out []session.Letter
	for _, l := range s.b.letters {
		if l.Session == id && l.Outcome == nil {
			out = append(out, *l)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, nil
}

// Settle implements session.Inbox.
func (s *Store) Settle(_ context.Context, id int64, outcome json.RawMessage) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil || l.Outcome != nil {
		return fmt.Errorf("letter %d: %w", id, session.ErrNotFound)
	}
	l.Outcome = outcome
	return nil
}

// Outcome implements session.Inbox.
func (s *Store) Outcome(_ context.Context, id int64) (json.RawMessage, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil {
		return nil, fmt.Errorf("letter %d: %w", id, session.ErrNotFound)
	}
	return l.Outcome, nil
}

// Withdraw implements session.Inbox.
func (s *Store) Withdraw(_ context.Context, id int64) (bool, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	l := s.b.letters[id]
	if l == nil || l.Outcome != nil {
		return false, nil
	}
	delete(s.b.letters, id)
	return true, nil
}

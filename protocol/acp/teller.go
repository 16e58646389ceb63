package acp

import (
	"encoding/json"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Told is one thing a connection is told: an update, or something that has no update of its own. Exactly one of its members but Cursor and Over is set.
type Told struct {
	Chunk    *Chunk
	Update   json.RawMessage
	Ask      *Ask
	Resolved string // action id: whoever is still asked is not any more
	Settings *protocol.SessionSettingsChanged

	Over   string       // with an update: the call in a terminal of the client that it closes
	Cursor protocol.Seq // all facts up to here are told with this; 0 for none
}

// Raw is the update that is told; nil where there is none.
func (t *Told) Raw() json.RawMessage {
	if t.Chunk != nil {
		return t.Chunk.Encode()
	}
	return t.Update
}

// Ask is a person to be asked.
type Ask struct {
	Action   string
	CallID   string
	Turn     protocol.TurnID
	Approval *protocol.ApprovalRequested     // or
	Question *protocol.UserQuestionRequested // exactly one
}

// Teller turns the entries of one session's log into what one connection is told of them (docs/protocol/acp.md section 3). What it told of a
// message adds up to that message: the missing rest comes as one chunk with the message's fact.
type Teller struct {
	Session protocol.SessionID
	Root    string // absolute: the session's folder
	Caps    ClientCapabilities
	// Own reports whether a prompt of this connection asked for a turn and will be answered.
	Own func(protocol.TurnID) bool
	// Terminal reports whether a call runs in a terminal of this client, and whether the client was shown it and shows it still. May be nil.
	Terminal func(callID string) (open, shown bool)
	// Commands are ours, to which those of a hosted agent come.
	Commands []Command

	replay bool // history: whole messages, no progress, nobody is asked
	knows  bool // the client knows calls from before where it is told from
	base   int  // of dst of the call that runs: nothing before it may be changed
	merge  bool
	stale  bool // the entry being told is followed by a newer one of the same news

	owed     protocol.Seq // a fact that had no update to carry its cursor
	held     bool         // no cursor is told: something before it is not told yet
	text     map[protocol.TurnID]*heard
	thought  map[protocol.TurnID]*heard
	calls    map[string]*callTold // announced, or not to be
	order    []string             // of calls that are open
	diffs    map[string][]CallContent
	asks     []*Ask // open
	usage    *protocol.TokenStatsUpdated
	cost     float64 // of the session so far, US dollars
	progress map[string]time.Time
	dropped  map[protocol.TurnID][]string // inputs of own turns
}

// heard is how much of a message was told, and in a replay how much of it there is.
type heard struct {
	id    string
	chars int
	sum   uint64 // of the text told
	sofar []byte // of a replay
}

// callTold is a tool call.
type callTold struct {
	turn    protocol.TurnID
	started bool
	hidden  bool // no update tells of it
	made    bool // announced for an action without a call
	known   *CallUpdate
}

// NewTeller makes a Teller for a follower that is told what comes from now on.
func NewTeller(id protocol.SessionID, root string, caps ClientCapabilities, own func(protocol.TurnID) bool) *Teller {
	return &Teller{
		Session: id, Root: root, Caps: caps, Own: own, text: map[protocol.TurnID]*heard{}, thought: map[protocol.TurnID]*heard{},
		calls: map[string]*callTold{}, diffs: map[string][]CallContent{}, progress: map[string]time.Time{},
		dropped: map[protocol.TurnID][]string{},
	}
}

// Replay makes it tell history until EndReplay. With knows the client knows what came before: a call may be updated without being announced.
func (t *Teller) Replay(knows bool) { t.replay, t.knows = true, knows }

// Resume says how much of the open message of a turn the client knows already.
func (t *Teller) Resume(turn protocol.TurnID, message, told string) {
	if told != "" {
		t.text[turn] = &heard{id: message, chars: protocol.CharLen(told), sum: more(sum0, told)}
	}
}

// Spent says what the session had cost before what is told, in US dollars.
func (t *Teller) Spent(cost float64) { t.cost = cost }

// Known says of a call that is open and was not announced: it is, before anything is told of it.
func (t *Teller) Known(turn protocol.TurnID, id, name string, args json.RawMessage) {
	c := Describe(t.Root, id, name, args)
	t.calls[id] = &callTold{turn: turn, hidden: hidden(name), known: &c}
}

// forget drops what was told of a turn's open messages: they are open no more.
func (t *Teller) forget(turn protocol.TurnID) {
	delete(t.text, turn)
	delete(t.thought, turn)
}

// Tell adds to dst what the connection is told of entries, which follow those of the call before; pruned ones may be missing. With merge the
// follower lags, and pieces of one text are told as one.
func (t *Teller) Tell(dst []Told, entries []protocol.Entry, merge bool) []Told {
	t.base, t.merge = len(dst), merge
	for i := range entries {
		e := &entries[i]
		n := len(dst)
		t.stale = merge && superseded(entries[i:])
		dst = t.one(dst, e)
		if e.Class() == protocol.Fact {
			t.owed = e.Seq
		}
		t.carry(dst[n:])
	}
	return dst
}

// one tells an entry.
func (t *Teller) one(dst []Told, e *protocol.Entry) []Told {
	if row := &told[e.Kind]; row.tell != nil {
		if b, err := protocol.Decode(e); err == nil && b != nil {
			return row.tell(t, dst, e, b)
		}
	}
	return dst
}

// carry gives the last update of what was told the cursor that is owed.
func (t *Teller) carry(fresh []Told) {
	if t.owed == 0 || t.held {
		return
	}
	for j := len(fresh) - 1; j >= 0; j-- {
		if fresh[j].Chunk != nil || fresh[j].Update != nil {
			fresh[j].Cursor, t.owed = t.owed, 0
			return
		}
	}
}

// Replaying reports whether it tells history.
func (t *Teller) Replaying() bool { return t.replay }

// Speaking reports whether a message is open that was told in part: what is told now stands in the middle of it.
func (t *Teller) Speaking() bool { return !t.replay && len(t.text)+len(t.thought) > 0 }

// Pass takes note of an entry that is not told where it stands. With held it, or one before it, is to be told with Whole yet, and until then no
// cursor is told.
func (t *Teller) Pass(e *protocol.Entry, held bool) {
	if t.held = held; e.Class() == protocol.Fact {
		t.owed = e.Seq
	}
}

// Whole tells the facts of a turn that were passed before. With held there is more that was passed and is not told yet.
func (t *Teller) Whole(dst []Told, facts []protocol.Entry, held bool) []Told {
	n := len(dst)
	t.base, t.merge, t.stale, t.held = n, false, false, held
	for i := range facts {
		dst = t.one(dst, &facts[i])
	}
	t.carry(dst[n:])
	return dst
}

// superseded reports whether a newer one of the same news follows the first of entries.
func superseded(entries []protocol.Entry) bool {
	first := &entries[0]
	if first.Kind != protocol.KindTokenStatsUpdated {
		return false
	}
	for i := range entries[1:] {
		if e := &entries[1+i]; e.Kind == first.Kind && e.Turn == first.Turn {
			return true
		}
	}
	return false
}

// Owed is the cursor of a fact that no update carried yet, for an answer to carry.
func (t *Teller) Owed() protocol.Seq {
	if t.held {
		return 0
	}
	return t.owed
}

// Dropped are the inputs of a turn of this connection that never reached the model; they are named once.
func (t *Teller) Dropped(turn protocol.TurnID) []string {
	ids := t.dropped[turn]
	delete(t.dropped, turn)
	return ids
}

// Usage is the newest sampling told of; nil for none.
func (t *Teller) Usage() *protocol.TokenStatsUpdated { return t.usage }

// sum0 is the sum of no text.
const sum0 = 14695981039346656037

// more goes on with the sum of a text (FNV-1a): however it is cut into pieces, the sum is the same.
func more(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * 1099511628211
	}
	return sum
}

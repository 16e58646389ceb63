package acpagent

import (
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// talk turns what a child says in one turn into facts (docs/protocol/acp.md section 5.2). Its methods may be called from several goroutines; what
// is recorded keeps the order of the calls.
type talk struct {
	host    *host
	c       *child
	t       *session.Turn
	unasked bool // nobody can be asked

	mu      sync.Mutex // guards what follows; held while facts are recorded, so that they keep their order
	closed  bool
	heard   time.Time
	message string // id of the message being said; "" for none
	text    strings.Builder
	thought strings.Builder
	theirs  string // its id as the child names it
	kind    string // of the newest chunk
	step    string // id of the newest message: calls behind it belong to it
	calls   map[string]*call
	order   []*call
	size    int // of the child's context; 0 unknown
	err     error
	said    string // all of the prompt that is being answered: an echo of it is nothing new
	parts   bool   // the prompt carries more than text
	given   []*given
	stopped chan struct{} // closed when the turn is being cancelled: nobody is asked any more
	halted  bool

	compactions   map[string]*compaction // of its context, by the child's id
	asksToCompact bool                   // the person asked for one

	rung  chan struct{}   // an input for it may wait
	line  []chan struct{} // who wants to ask the person, in their order; closed is that of the first, who may
	asked int             // requests for consent without an answer
}

func newTalk(ho *host, c *child, t *session.Turn) *talk {
	return &talk{
		host: ho, c: c, t: t, calls: map[string]*call{}, heard: time.Now(), compactions: map[string]*compaction{},
		stopped: make(chan struct{}), rung: make(chan struct{}, 1),
	}
}

// quiet is how long nothing was said.
func (k *talk) quiet() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.heard)
}

// update takes one update; false when the turn has ended.
func (k *talk) update(u *acp.HostUpdate) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.heard = time.Now()
	switch u.Kind {
	case acp.AgentChunk, acp.ThoughtChunk:
		k.chunk(u)
	case acp.ToolCall, acp.ToolCallUpdate:
		k.toolCall(&u.HostCall, u.Content)
	case acp.PlanUpdate:
		k.c.seenTo(acp.PlanUpdate)
		k.flush(planOf(u))
	case acp.UsageUpdate:
		k.level(u)
	case acp.CommandsUpdate:
		k.t.Note(k.host.offers(u.Commands))
	case acp.InfoUpdate:
		k.host.retitle(u)
	case acp.OptionsUpdate, acp.ModeUpdate:
		k.adopt(u)
	case acp.CompactionUpdate, acp.CompactionChunk:
		k.compacts(u)
	case acp.NoticeUpdate:
		k.noticed(u)
	case acp.UserChunk:
		k.userChunk(u)
	default:
		k.event(u)
	}
	return true
}

// noticed takes a line the child wants shown beside the conversation. k.mu is held.
func (k *talk) noticed(u *acp.HostUpdate) {
	if u.Title == nil || *u.Title == "" {
		k.event(u)
		return
	}
	k.notice(u.Severity, *u.Title, u)
}

// pause closes the message that is being said.
func (k *talk) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
}

// chunk takes a piece of a message or of a thought.
func (k *talk) chunk(u *acp.HostUpdate) {
	b := acp.ReadHostBlock(u.Content)
	if !b.Plain {
		k.event(u)
	}
	if b.Text == "" {
		return
	}
	fresh := k.message == "" || u.MessageID != k.theirs && u.MessageID != "" && k.theirs != ""
	if u.Kind == acp.ThoughtChunk && k.kind == acp.AgentChunk { // a thought after words begins anew; words after a thought go with it
		fresh = true
	}
	if k.kind == acp.ThoughtChunk && u.Kind == acp.AgentChunk && k.message != "" {
		fresh = false
	}
	if fresh {
		k.flush()
		k.message = k.t.NewID()
	}
	k.theirs, k.kind = u.MessageID, u.Kind
	if u.Kind == acp.ThoughtChunk {
		k.thought.WriteString(b.Text)
		k.t.Think(k.message, b.Text)
		return
	}
	k.text.WriteString(b.Text)
	k.t.Say(k.message, b.Text)
}

// flush closes the message that is being said, and records bodies behind it in the same transaction. k.mu is held.
func (k *talk) flush(bodies ...protocol.Body) {
	var all []protocol.Body
	if k.thought.Len() > 0 {
		r := &protocol.ReasoningCompleted{Content: k.thought.String()}
		r.ContentChars = protocol.CharLen(r.Content)
		r.More.MessageID, r.More.Provider = k.message, k.c.spec.Provider
		all = append(all, r)
		k.c.seenTo(acp.ThoughtChunk)
	}
	if k.text.Len() > 0 {
		m := &protocol.AssistantMessageCompleted{Content: k.text.String(), MessageID: k.message}
		m.ContentChars = protocol.CharLen(m.Content)
		all = append(all, m)
	}
	if k.message != "" {
		k.step = k.message
	}
	k.message, k.theirs, k.kind = "", "", ""
	k.text.Reset()
	k.thought.Reset()
	k.record(append(all, bodies...)...)
}

// record appends facts. What a cancel forbids, a start, is left out then: the rest is told all the same. k.mu is held.
func (k *talk) record(bodies ...protocol.Body) {
	if len(bodies) == 0 {
		return
	}
	if k.halted {
		bodies = withoutStarts(bodies)
	}
	err := k.t.Record(bodies...)
	if err != nil && !k.halted {
		if rest := withoutStarts(bodies); len(rest) < len(bodies) && !storeFault(err) {
			err = k.t.Record(rest...)
		}
	}
	if err != nil && k.err == nil {
		k.err = err
	}
}

func withoutStarts(bodies []protocol.Body) []protocol.Body {
	var out []protocol.Body
	for _, b := range bodies {
		if _, ok := b.(*protocol.ToolCallStarted); !ok {
			out = append(out, b)
		}
	}
	return out
}

// close ends the messages and calls that are open; status is that of calls without an end.
func (k *talk) close(status string) error {
	k.halt()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	for _, c := range k.order {
		if !c.done {
			k.end(c, status, "The turn ended before this call did.")
		}
	}
	k.closed = true
	if k.err != nil && !storeFault(k.err) { // the turn was closed by somebody else, or is being cancelled
		return nil
	}
	return k.err
}

// storeFault reports whether an error says that the log could not be written.
func storeFault(err error) bool {
	kind := protocol.KindOf(err)
	return kind == protocol.PersistenceError || kind == protocol.SessionBusy
}

// halt ends the asking: what is open is answered as cancelled.
func (k *talk) halt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.halted {
		k.halted = true
		close(k.stopped)
	}
}

// cancel says to the child that the turn is cancelled, and returns what comes when its answer is not waited for any longer.
func (k *talk) cancel(most time.Duration) <-chan time.Time {
	k.halt()
	k.c.notify(acp.MethodCancel, object{"sessionId": k.c.session().ID})
	return time.After(most)
}

func planOf(u *acp.HostUpdate) *protocol.PlanUpdated {
	p := &protocol.PlanUpdated{Plan: []protocol.PlanStep{}}
	for _, e := range u.Entries {
		status := e.Status
		if status != "in_progress" && status != "completed" {
			status = "pending"
		}
		p.Plan = append(p.Plan, protocol.PlanStep{Step: e.Content, Status: status})
	}
	return p
}

// level takes how full the child's context is.
func (k *talk) level(u *acp.HostUpdate) {
	if u.Used == nil || u.Size == nil || *u.Size <= 0 {
		k.event(u)
		return
	}
	k.c.seenTo(acp.UsageUpdate)
	k.size = *u.Size
	b := k.stats(*u.Used, 0, 0, 0)
	b.More.Level = true
	b.Stats.ContextWindowTokens, b.Stats.ContextUsagePercent = *u.Size, float64(*u.Used)/float64(*u.Size)
	var cost struct {
		Amount   *float64 `json:"amount"`
		Currency string   `json:"currency"`
	}
	if json.Unmarshal(u.Cost, &cost) == nil && cost.Amount != nil && (cost.Currency == "USD" || cost.Currency == "") {
		if more := k.c.spent.upTo(*cost.Amount); more > 0 {
			b.More.Cost = &more
		}
	}
	k.t.Note(b)
}

// spent is what the child's session has cost so far, in US dollars, as the child says: each time the whole of it.
type spent struct {
	amount  float64
	guessed bool // it came back, and amount is what our log knows of the session
}

// upTo takes a new amount and returns what came to it. One that is less than before began anew.
func (s *spent) upTo(amount float64) (more float64) {
	more = amount - s.amount
	switch {
	case more >= 0:
	case s.guessed: // others had a part in what the log knows
		more = 0
	default:
		more = amount
	}
	*s = spent{amount: amount}
	return more
}

// used takes what the turn used.
func (k *talk) used(u *acp.HostUsage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flush()
	k.c.seenTo(acp.UsageUpdate)
	k.t.Note(k.stats(u.Input, u.Cached, u.Output, u.Thought))
}

func (k *talk) stats(in, cached, out, thought int) *protocol.TokenStatsUpdated {
	b := &protocol.TokenStatsUpdated{}
	b.Stats = protocol.Stats{
		SamplingKind: "assistant", InputTokens: in, CachedInputTokens: cached, OutputTokens: out, ReasoningOutputTokens: thought,
		TotalTokens: in + out, Anchor: "provider",
	}
	if in > 0 {
		b.Stats.CacheHitRate = float64(cached) / float64(in)
	}
	b.More.Model, b.More.Provider = k.t.Selection.Model, k.c.spec.Provider
	return b
}

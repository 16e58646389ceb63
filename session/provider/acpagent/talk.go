package acpagent

import (
	"sync"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// talk turns what a child says in one turn into facts (docs/protocol/acp.md section 5.2): it owns the message that is being said, the calls that
// are open, and the line of those who want to ask the person. Its methods may be called from several goroutines; what is recorded keeps the
// order of the calls.
type talk struct {
	host    *host
	c       *child
	t       *session.Turn
	unasked bool          // nobody can be asked
	stopped chan struct{} // closed when the turn is being cancelled or over: nobody is asked any more
	rung    chan struct{} // an input for it may wait

	mu     sync.Mutex // guards what follows; held while facts are recorded, so that they keep their order
	closed bool       // nothing is told any more
	err    error      // the first that kept something out of the log

	message     message // that is being said
	step        string  // id of the newest one: calls behind it belong to it
	calls       map[string]*call
	order       []*call                // also those of ours, which the child has no id for
	compactions map[string]*compaction // of its context, by the child's id
	prompt      prompt                 // that is being answered
	given       []*given
	line        line
	asked       int // requests for consent without an answer
}

func newTalk(ho *host, c *child, t *session.Turn) *talk {
	return &talk{
		host: ho, c: c, t: t, calls: map[string]*call{}, compactions: map[string]*compaction{},
		stopped: make(chan struct{}), rung: make(chan struct{}, 1),
	}
}

// update takes one update; false when the turn has ended.
func (k *talk) update(u *acp.HostUpdate) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
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
	k.t.Note(noticeOf(u.Severity, *u.Title, u.Raw))
}

func planOf(u *acp.HostUpdate) protocol.Body {
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

// event keeps an update as it was sent.
func (k *talk) event(u *acp.HostUpdate) {
	k.t.Note(k.c.providerEvent(acp.MethodUpdate, u.Raw))
}

// record appends facts. What a cancel forbids, a start, is left out then: the rest is told all the same. k.mu is held.
func (k *talk) record(bodies ...protocol.Body) {
	if len(bodies) == 0 {
		return
	}
	if k.halted() {
		bodies = withoutStarts(bodies)
	}
	err := k.t.Record(bodies...)
	if err != nil && !k.halted() {
		if rest := withoutStarts(bodies); len(rest) < len(bodies) && !storeFault(err) {
			err = k.t.Record(rest...)
		}
	}
	k.fails(err)
}

// fails keeps the first error that kept something out of the log. k.mu is held.
func (k *talk) fails(err error) {
	if k.err == nil {
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

// storeFault reports whether an error says that the log could not be written.
func storeFault(err error) bool {
	kind := protocol.KindOf(err)
	return kind == protocol.PersistenceError || kind == protocol.SessionBusy
}

// close ends the messages and calls that are open; status is that of calls without an end. An error says that the log could not be written.
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
	if !storeFault(k.err) { // the turn was closed by somebody else, or is being cancelled
		return nil
	}
	return k.err
}

// halt ends the asking: what is open is answered as cancelled.
func (k *talk) halt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.halted() {
		close(k.stopped)
	}
}

// halted reports whether nobody is asked any more, and nothing done. It stays so under k.mu.
func (k *talk) halted() bool {
	select {
	case <-k.stopped:
		return true
	default:
		return false
	}
}

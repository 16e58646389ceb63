package httpapi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// batches notes the kinds of each batch that is appended, and counts what else is done about leases.
type batches struct {
	session.Store
	mu    sync.Mutex
	all   [][]protocol.Kind
	other int
}

func (b *batches) Acquire(ctx context.Context, id session.SessionID) (session.Lease, error) {
	b.mu.Lock()
	b.other++
	b.mu.Unlock()
	return b.Store.Acquire(ctx, id)
}

func (b *batches) Release(ctx context.Context, l session.Lease) error {
	b.mu.Lock()
	b.other++
	b.mu.Unlock()
	return b.Store.Release(ctx, l)
}

func (b *batches) Append(l session.Lease, batch session.Batch, done func(error)) {
	var kinds []protocol.Kind
	for i := range batch.Entries {
		kinds = append(kinds, batch.Entries[i].Kind)
	}
	b.mu.Lock()
	b.all = append(b.all, kinds)
	b.mu.Unlock()
	b.Store.Append(l, batch, done)
}

// An execution that finds room is accepted and started in one batch, and its end is another. Alone in its conversation it takes the lease with
// the one and gives it back with the other.
func TestAnExecutionThatFindsRoomStartsInTheBatchOfItsAcceptance(t *testing.T) {
	store := &batches{Store: memory.NewBacking().Open("a")}
	p := serve(t, store, &model{})
	c := p.conversation()
	sound(t, p.follow(p.start(c, "mock", "", `,"config":{"prefix":""}`), nil, nil))
	store.mu.Lock()
	store.all, store.other = nil, 0
	store.mu.Unlock()
	sound(t, p.follow(p.start(c, "mock", "", `,"config":{"prefix":""}`), nil, nil))
	store.mu.Lock()
	defer store.mu.Unlock()
	want := [][]protocol.Kind{{protocol.KindTurnAccepted, protocol.KindUserMessage, protocol.KindTurnStarted}, {protocol.KindTurnCompleted}}
	if !slices.EqualFunc(store.all, want, slices.Equal[[]protocol.Kind]) {
		t.Errorf("batches %v, want %v", store.all, want)
	}
	if store.other != 0 {
		t.Errorf("beside them the lease was asked for or given back %d times", store.other)
	}
}

// deaf is a store that does not hear what other processes commit.
type deaf struct{ session.Store }

func (deaf) Watch(context.Context) (<-chan session.SessionID, error) {
	never := make(chan session.SessionID)
	close(never)
	return never, nil
}

// What is remembered of an execution is where it is, not that it is there: another process may delete its conversation.
func TestAnExecutionThatWasJustUsedIsNotFoundOnceAnotherProcessDeletedIt(t *testing.T) {
	backing := memory.NewBacking()
	other := backing.Open("b")
	defer other.Close()
	p := serve(t, deaf{backing.Open("a")}, &model{})
	c := p.must(201, "POST", "/v1/conversations", `{"metadata":{"keep":1}}`).member("id")
	id := p.start(c, "mock", "x", "")
	sound(t, p.follow(id, nil, nil))
	meta, err := other.Conversation(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for err = other.Delete(t.Context(), meta.ID); err != nil; err = other.Delete(t.Context(), meta.ID) { // until the lease was given back
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	gone := p.must(404, "GET", "/v1/executions/"+id+"/events", "", "Accept", "text/event-stream")
	if gone.member("code") != "NOT_FOUND" || gone.header.Get("Content-Type") != "application/json" {
		t.Errorf("a stream is refused with %v %s", gone.header, gone.body)
	}
	p.must(404, "GET", "/v1/conversations/"+c, "")
	p.must(404, "GET", "/v1/executions/"+id, "")
	p.must(404, "GET", "/v1/executions/"+id+"/events", "")
	p.must(404, "GET", "/v1/executions/"+id+"/artifacts", "")
	p.must(404, "POST", "/v1/executions/"+id+":cancel", "{}")
	p.must(404, "POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"mock","input":"x"}`)
}

// looks counts how often the store was asked which session an execution is of.
type looks struct {
	session.Store
	n atomic.Int32
}

func (l *looks) TurnSession(ctx context.Context, turn session.TurnID) (session.SessionID, error) {
	l.n.Add(1)
	return l.Store.TurnSession(ctx, turn)
}

func TestOnlyTheFirstStreamOfAnExecutionThatWasJustAcceptedHereDoesNotAskTheStoreForIt(t *testing.T) {
	store := &looks{Store: memory.NewBacking().Open("a")}
	p := serve(t, store, &model{})
	id := p.start(p.conversation(), "mock", "x", "")
	sound(t, p.follow(id, nil, nil))
	if n := store.n.Load(); n > 1 { // one where this machine took more than a second
		t.Errorf("following it at once asked %d times", n)
	}
	before := store.n.Load()
	sound(t, p.follow(id, nil, nil))
	if n := store.n.Load() - before; n != 1 {
		t.Errorf("following it again asked %d times, want 1", n)
	}
}

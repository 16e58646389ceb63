package httpapi

import (
	"context"
	"slices"
	"sync"
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

// What is remembered of an execution is where it is, not that it is there: another process may delete its conversation.
func TestAnExecutionThatWasJustUsedIsNotFoundOnceAnotherProcessDeletedIt(t *testing.T) {
	backing := memory.NewBacking()
	other := backing.Open("b")
	defer other.Close()
	p := serve(t, backing.Open("a"), &model{})
	c := p.conversation()
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
	p.must(404, "GET", "/v1/executions/"+id, "")
	p.must(404, "GET", "/v1/executions/"+id+"/events", "")
	p.must(404, "GET", "/v1/executions/"+id+"/artifacts", "")
	p.must(404, "POST", "/v1/executions/"+id+":cancel", "{}")
	p.must(404, "POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"mock","input":"x"}`)
}

package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// keptLate is a store that stores a draft once it was looked for, and before that is answered.
type keptLate struct {
	*memory.Store
	keep func()
}

func (k *keptLate) Conversation(ctx context.Context, id string) (session.Meta, error) {
	meta, err := k.Store.Conversation(ctx, id)
	k.late()
	return meta, err
}

func (k *keptLate) Session(ctx context.Context, id session.SessionID) (session.Meta, error) {
	meta, err := k.Store.Session(ctx, id)
	k.late()
	return meta, err
}

// Watch implements session.Store: it does not hear what other processes commit.
func (*keptLate) Watch(context.Context) (<-chan session.SessionID, error) {
	never := make(chan session.SessionID)
	close(never)
	return never, nil
}

func (k *keptLate) late() {
	if keep := k.keep; keep != nil {
		k.keep = nil
		keep()
	}
}

func TestOnlyADraftIsDescribedWithoutTheStore(t *testing.T) {
	ways := map[string]func(ss *session.Sessions, m session.Meta) (session.Meta, error){
		"by its id": func(ss *session.Sessions, m session.Meta) (session.Meta, error) {
			return ss.Described(context.Background(), m.ID)
		},
		"by its conversation": func(ss *session.Sessions, m session.Meta) (session.Meta, error) {
			return ss.Conversation(context.Background(), m.ConversationID)
		},
	}
	for name, look := range ways {
		synctest.Test(t, func(t *testing.T) {
			backing := memory.NewBacking()
			store := &keptLate{Store: backing.Open("a")}
			m := say(done())
			loop, err := session.NewLoop(session.Loop{Models: m})
			if err != nil {
				t.Fatal(err)
			}
			h := &house{t: t, store: store.Store, model: m, all: session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})}
			s := h.draft()
			draft, err := h.all.Described(t.Context(), s.ID)
			if err != nil || draft.ConversationID == "" || draft.Workspace != "/w" {
				t.Fatalf("%s: a draft is %+v, %v", name, draft, err)
			}
			store.keep = func() {
				if err := s.Keep(context.Background(), json.RawMessage(`{"keep":1}`)); err != nil {
					t.Error(err)
				}
				synctest.Wait() // its lease is given back
			}
			if m, err := look(h.all, draft); err != nil || string(m.Metadata) != `{"keep":1}` {
				t.Errorf("%s: what was stored while it was looked for is %+v, %v", name, m, err)
			}
			// The session is open here all the same.
			other := backing.Open("b")
			if _, err := other.Acquire(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			if err := other.Delete(t.Context(), s.ID); err != nil {
				t.Fatal(err)
			}
			if m, err := look(h.all, draft); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: what another process has deleted is %+v, %v", name, m, err)
			}
			_ = other.Close()
			h.close()
		})
	}
}

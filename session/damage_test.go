package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// spoiled is a store in which one entry of a session is no longer what it was.
type spoiled struct {
	*memory.Store
	id       session.SessionID
	seq      session.Seq
	unfolded bool // and its snapshot is gone
}

func (s *spoiled) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	page, err := s.Store.Read(ctx, id, after, limit, v)
	for i := range page {
		if id == s.id && page[i].Seq == s.seq {
			page[i].Event, page[i].More = json.RawMessage(`{"content":[7]}`), json.RawMessage(`{"text":[7]}`)
		}
	}
	return page, err
}

func (s *spoiled) Fold(ctx context.Context, id session.SessionID) ([]byte, session.Seq, error) {
	if s.unfolded {
		return nil, 0, nil
	}
	return s.Store.Fold(ctx, id)
}

func TestADamagedEntryIsNamedWhereItIsNeededAndNoOtherSessionIsTouched(t *testing.T) {
	for _, kind := range []protocol.Kind{protocol.KindUserMessage, protocol.KindAssistantMessageCompleted} {
		for _, unfolded := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, " unfolded ", unfolded), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					backing := memory.NewBacking()
					a := newHouse(t, backing.Open("a"), say(done()))
					s, other := a.draft(), a.draft()
					a.prompt(s, "one")
					a.prompt(s, "two")
					a.prompt(other, "three")
					store := &spoiled{Store: backing.Open("b"), id: s.ID, unfolded: unfolded}
					for _, e := range a.entries(s.ID) {
						if e.Kind == kind && store.seq == 0 {
							store.seq = e.Seq
						}
					}
					a.close()

					m := say(done())
					loop, err := session.NewLoop(session.Loop{Models: m})
					if err != nil {
						t.Fatal(err)
					}
					b := &house{t: t, store: store.Store, model: m}
					b.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m})
					named := func(what string, err error) {
						t.Helper()
						want := fmt.Sprintf("entry %d of session %s is not readable: run 'rind doctor'", store.seq, s.ID)
						if protocol.KindOf(err) != protocol.PersistenceError || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "json") {
							t.Errorf("%s: %v", what, err)
						}
					}
					opened, err := b.all.Open(context.Background(), s.ID)
					if unfolded {
						named("opened", err)
					} else if err != nil {
						t.Fatal(err)
					} else {
						named("its messages", opened.RecallNow(context.Background(), func(*session.Recalled) {}))
						o := b.prompt(opened, "four")
						if o.Fault == nil || o.Fault.Type != string(protocol.PersistenceError) {
							t.Errorf("a prompt ended as %+v", o)
						} else {
							named("a prompt", protocol.Errorf(protocol.PersistenceError, "%s", o.Fault.Message))
						}
						opened.Close()
						synctest.Wait()
					}
					if len(m.requests) > 0 {
						t.Error("the model was asked about a conversation that is not whole")
					}
					if o := b.prompt(b.open(other.ID), "five"); o.Outcome != session.OutcomeCompleted {
						t.Errorf("the other session: %+v", o)
					}
					if err := b.all.Delete(context.Background(), s.ID); err != nil {
						t.Errorf("deleted: %v", err)
					}
					synctest.Wait()
					if _, err := b.all.Open(context.Background(), s.ID); protocol.KindOf(err) != protocol.SessionNotFound {
						t.Errorf("after its deletion: %v", err)
					}
					b.close()
				})
			})
		}
	}
}

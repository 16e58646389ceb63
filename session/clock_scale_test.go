package session_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// jumpingClock shows a time that is moved by hours, forth and back, every few times it is asked. Waiting is real all the same.
type jumpingClock struct {
	mu  sync.Mutex
	rnd *rand.Rand
	off time.Duration
}

func (c *jumpingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rnd.IntN(4) == 0 {
		c.off = time.Duration(c.rnd.IntN(100)-50) * time.Hour
	}
	return time.Now().Add(c.off).Round(0)
}

// TestAClockThatJumpsForHoursChangesNoOrderAndProlongsNoWait runs turns with calls, and goals whose turns fail and wait, in one process after
// the other on a clock that jumps all the time.
func TestAClockThatJumpsForHoursChangesNoOrderAndProlongsNoWait(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			clock := &jumpingClock{rnd: rand.New(rand.NewPCG(seed, 7))}
			store := memory.New()
			fails := 0
			m := &model{}
			m.play = func(_ context.Context, r session.ModelRequest, yield func(session.Chunk, error) bool) {
				last := r.Messages[len(r.Messages)-1]
				switch {
				case fails > 0:
					fails--
					yield(session.Chunk{}, &session.ModelError{Fault: session.FaultRejected, Message: "no"})
				case last.Role == session.RoleUser && last.Text == "look":
					for _, c := range append(callChunks("call_"+protocol.RandomIDs{}.Hex32(), "look", `{}`), finish(session.FinishCalls)) {
						if !yield(c, nil) {
							return
						}
					}
				default:
					_ = yield(text("said"), nil) && yield(finish(session.FinishStop), nil)
				}
			}
			var id session.SessionID
			for process := range 3 {
				loop, err := session.NewLoop(session.Loop{Models: m, Tools: []session.Tool{readTool("look", func() string { return "seen" })}, Now: clock.Now})
				if err != nil {
					t.Fatal(err)
				}
				h := &house{t: t, store: store, model: m}
				h.all = session.NewSessions(session.Config{Store: store, Agent: loop, Models: m, Now: clock.Now})
				var s *session.Session
				if process == 0 {
					s = h.draft()
					id = s.ID
				} else {
					s = h.open(id)
				}
				for i := range 10 {
					began := time.Now()
					if o := h.prompt(s, []string{"look", "talk"}[i%2]); o.Outcome != session.OutcomeCompleted {
						t.Fatalf("prompt %d: %+v", i, o)
					}
					if took := time.Since(began); took > time.Second {
						t.Errorf("prompt %d took %v", i, took)
					}
				}
				fails = 2 // of the goal's turns: the next ones wait some seconds
				setGoal(t, s, "reach it", 4, false)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if g := h.goal(s); g.Status != session.GoalSpent {
					t.Errorf("process %d: a goal whose turns waited: %+v", process, g)
				}
				checkLog(t, h)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				if err := h.all.Shutdown(ctx); err != nil {
					t.Errorf("shutdown: %v", err)
				}
				cancel()
			}
			es, err := store.Read(context.Background(), id, 0, 1<<20, protocol.ViewAll)
			if err != nil {
				t.Fatal(err)
			}
			newest := map[session.TurnID]time.Time{}
			for i := range es {
				if es[i].Seq != session.Seq(i+1) || es[i].Turn != "" && es[i].Time.Before(newest[es[i].Turn]) {
					t.Errorf("entry %d (%s, seq %d) of %v is out of order", i, es[i].Kind, es[i].Seq, es[i].Time)
				}
				newest[es[i].Turn] = es[i].Time
				if b, _ := protocol.Decode(&es[i]); b != nil {
					if end, ok := b.(*protocol.TurnCompleted); ok && end.DurationMS < 0 {
						t.Errorf("a turn took %d ms", end.DurationMS)
					}
				}
			}
			_ = store.Close()
		})
	}
}

package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// slowToFind is a store whose finding of an execution can be held up.
type slowToFind struct {
	*memory.Store
	held atomic.Bool
	let  chan struct{}
}

func (s *slowToFind) TurnSession(ctx context.Context, id session.TurnID) (session.SessionID, error) {
	if s.held.Load() {
		<-s.let
	}
	return s.Store.TurnSession(ctx, id)
}

// leaky is a provider whose error tells a secret.
type leaky struct{}

func (leaky) Run(context.Context, *session.Execution) (string, error) {
	return "", errors.New("upstream said 401 for key sk-abcdef0123456789")
}

// serving is a process whose store and providers are the test's.
func serving(t peers.T, w *peers.World, slow *slowToFind, mask func(string) string, more ...executions.Provider) *process {
	t.Helper()
	p := launch(t, w, "a", `[{"text":"hi"}]`, "")
	slow.Store, slow.let = p.Store, make(chan struct{})
	p.All = session.NewSessions(session.Config{Store: slow, Agent: &session.Loop{}, Models: peers.Scripted{Script: p.Play, Listed: models}, IDs: &w.IDs})
	p.All.SetExecutions(session.ExecutionOptions{Mask: mask})
	p.d = dispatcher.New(dispatcher.Config{
		Sessions: p.All, Workspace: "/w", Version: "0.0.0", Executions: executions.New(executions.Config{
			Sessions: p.All, Version: "0.0.0", Providers: append([]executions.Provider{executions.Script("0.0.0")}, more...),
		}),
	})
	return p
}

// A request for events that is cancelled before its answer is answered once, with RequestCancelled, and follows nothing; behind its answer there
// is nothing left to cancel, and the follow goes on.
func TestACancelledRequestForEventsFollowsNothingAndALateCancelChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowToFind{}
		p := serving(t, peers.NewWorld(), slow, nil)
		c := p.connect(rindv2.JSONRPC)
		c.hello()
		id := execute(c, made(c), "script", `{"steps":[{"delta":"a"},{"approval":{"title":"Go on?"}},{"delta":"b"}]}`)
		synctest.Wait()
		events := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
		var ask portable.Action
		if err := json.Unmarshal(events[len(events)-1].Data, &ask); err != nil {
			t.Fatal(err)
		}
		cancel := func(request string) {
			c.Send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":` + request + `}}` + "\n")
			synctest.Wait()
		}
		slow.held.Store(true)
		taken := c.send("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		synctest.Wait()
		cancel(taken)
		if l := c.response(taken); l.err == nil || l.err.Type != string(rindv2.RequestCancelled) {
			t.Errorf("cancelled before its answer: %s", l.raw)
		}
		slow.held.Store(false)
		close(slow.let)
		synctest.Wait()

		other := p.connect(rindv2.JSONRPC) // whose follow is answered before it is cancelled
		other.hello()
		late := other.send("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		if page := part(t, other.response(late)); !page.Following || len(page.Events) != len(events) {
			t.Errorf("a page of %d events, following: %v", len(page.Events), page.Following)
		}
		other.Send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":` + late + `}}` + "\n")
		synctest.Wait()

		c.call("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":{"approved":true}}`, id, ask.ID))
		other.await("end", ends(id))
		synctest.Wait()
		if got := followed(t, c.Got(), id); len(got) != 0 {
			t.Errorf("%d events were told to the one who had cancelled", len(got))
		}
		if got := followed(t, other.Got(), id); len(got) != 4 || got[0].Type != "action.responded" {
			t.Errorf("%d events were told to the one who cancelled late", len(got))
		}
		answers := 0
		for _, l := range c.Got() {
			if l.id == taken {
				answers++
			}
		}
		if answers != 1 {
			t.Errorf("the cancelled request has %d answers", answers)
		}
		p.end()
	})
}

// Section 9: secrets are masked in a provider's error, in the record, in the page, in what is followed and in the log.
func TestSecretsInAProvidersErrorAreMaskedOnLines(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		const secret, masked = "sk-abcdef0123456789", "upstream said 401 for key [hidden]"
		slow := &slowToFind{}
		manifest := portable.NewManifest("leaky", "Leaky", "1", "embedded", "parallel", map[string]string{})
		p := serving(t, peers.NewWorld(), slow, func(s string) string { return strings.ReplaceAll(s, secret, "[hidden]") }, executions.Provider{Manifest: manifest, Runner: leaky{}})
		c := p.connect(env)
		c.hello()
		conv := made(c)
		sid := c.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, conv)).text("session_id")
		c.call("session/subscribe", fmt.Sprintf(`{"session_id":%q}`, sid))
		id := execute(c, conv, "leaky", `{}`)
		c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		synctest.Wait()
		var x portable.Execution
		if err := json.Unmarshal(c.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).result, &x); err != nil {
			t.Fatal(err)
		}
		events := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
		if last := events[len(events)-1]; x.State != "failed" || x.Error == nil || x.Error.Message != masked || last.Type != "run.failed" || !strings.Contains(string(last.Data), masked) {
			t.Errorf("%s with %+v, told as %s", x.State, x.Error, last.Data)
		}
		for _, l := range c.Got() {
			if strings.Contains(l.raw, secret) {
				t.Errorf("told: %s", l.raw)
			}
		}
		for _, e := range p.Entries(sid) {
			if strings.Contains(string(e.Event)+string(e.More), secret) {
				t.Errorf("in the log: %s %s", e.Event, e.More)
			}
		}
		p.end()
	})
}

// Section 10: what stood in line when its process ended is started, in its order, by the process an editor works with, once that
// comes to hold the conversation; opening and reading it starts nothing.
func TestWhatAProcessLeftInLineIsStartedByTheEditorsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		a := executing(t, w, "a")
		a.All.SetExecutions(session.ExecutionOptions{Running: 1})
		c := a.connect(rindv2.Rind)
		c.hello()
		conv := made(c)
		running := execute(c, conv, "script", `{"steps":[{"sleepMs":3600000}]}`)
		ids := []string{execute(c, conv, "agent", `{}`), execute(c, conv, "mock", `{}`), execute(c, conv, "agent", `{}`)}
		synctest.Wait()
		a.end()

		b := executing(t, w, "b")
		d := b.connect(rindv2.Rind)
		d.hello()
		state := func(id string) string {
			return d.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).text("state")
		}
		for _, id := range ids {
			if s := state(id); s != "queued" {
				t.Errorf("by reading it became %s", s)
			}
		}
		fresh := execute(d, conv, "agent", `{}`)
		time.Sleep(time.Second) // of the bubble: all of them have ended
		var began []string
		for _, e := range b.Entries(d.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, conv)).text("session_id")) {
			if id := "exec_" + string(e.Turn); e.Kind == protocol.KindTurnStarted && (id == ids[0] || id == ids[2] || id == fresh) {
				began = append(began, id)
			}
		}
		if want := []string{ids[0], ids[2], fresh}; !slices.Equal(began, want) {
			t.Errorf("of the serial lane began %v, want %v", began, want)
		}
		if s := state(running); s != "cancelled" {
			t.Errorf("what had started is %s", s)
		}
		if s := state(ids[1]); s != "succeeded" {
			t.Errorf("the one beside them is %s", s)
		}
		b.end()
	})
}

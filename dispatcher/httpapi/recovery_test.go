package httpapi

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// cleaning is a provider with a cancel hook.
type cleaning struct {
	session.Runner
	hook func(ctx context.Context, turn session.TurnID, reason *string) error
}

func (c cleaning) Cancel(ctx context.Context, x *session.Execution, reason *string) error {
	return c.hook(ctx, x.Turn, reason)
}

// left is an execution that a process left behind when it was killed, and what the next one makes of it.
type left struct {
	name, id   string
	was, state string
	added      string // events behind what was told before
	end        string // data of the last one
	action     string // the answer to it
	record     []byte
	events     []portable.Event
}

// N12, N13, N14: the table of section 10. What a killed process left is closed once, behind what was told of it, with the text that says what
// became of it; its actions are dead. What waits for a person is not touched, and what stands behind that neither.
func TestWhatAKilledProcessLeftBecomesWhatTheTableSays(t *testing.T) {
	backing := memory.NewBacking()
	let := make(chan struct{})
	defer close(let)
	deaf := func(_ context.Context, yield func(session.Chunk, error) bool) { // it does not hear that it is to end
		if yield(session.Chunk{Kind: session.ChunkText, Text: "half"}, nil) {
			<-let
		}
	}
	h := newHeld()
	slow := cleaning{h, func(context.Context, session.TurnID, *string) error { <-let; return nil }}
	store := backing.Open("dead")
	m := &model{replies: replies{calling("first", "act", "{}"), deaf}}
	p := serve(t, store, m, func(c *Config) {
		c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: time.Minute})
		can := map[string]string{"execution.cancel": portable.Native}
		c.Commands = commands(c.Sessions,
			executions.Provider{Runner: h, Manifest: portable.NewManifest("held", "Held", "1", "embedded", "parallel", can)},
			executions.Provider{Runner: h, Manifest: portable.NewManifest("gone", "Gone", "1", "embedded", "parallel", can)},
			executions.Provider{Runner: slow, Manifest: portable.NewManifest("slow", "Slow", "1", "embedded", "parallel", can)})
	})
	const unfinished = `{"code":"PROVIDER_ERROR","message":"runtime stopped before the execution finished"}`
	const cut = `{"providerCleanupError":"runtime stopped during provider cleanup"}`
	var all []*left
	leave := func(x *left) *left {
		all = append(all, x)
		return x
	}
	cancel := func(id, body string) { // nobody waits for its answer
		go func() {
			ctx, over := context.WithTimeout(context.Background(), 10*time.Second)
			defer over()
			r := p.request(ctx, "POST", "/v1/executions/"+id+":cancel", body)
			if resp, err := p.http.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}()
		p.becomes(id, "cancelling")
	}

	agents := p.conversation()
	waiting := leave(&left{name: "waiting", was: "awaiting_approval", state: "awaiting_approval", id: p.start(agents, "agent", "1", "")})
	p.until(waiting.id, "action.required")
	leave(&left{name: "behind one that waits", was: "queued", state: "queued", id: p.start(agents, "agent", "2", "")})
	spoken := p.conversation()
	talking := leave(&left{name: "running, agent", was: "running", state: "failed", added: "rind.message_completed run.failed", end: unfinished, id: p.start(spoken, "agent", "3", "")})
	p.until(talking.id, "output.text.delta")
	leave(&left{name: "its provider is gone", was: "queued", state: "failed", added: "run.failed", end: `{"code":"PROVIDER_ERROR","message":"provider gone is not available after restart"}`, id: func() string {
		for range 64 { // one conversation has room for no more
			p.start(spoken, "held", "full", "")
		}
		return p.start(spoken, "gone", "x", "")
	}()})
	leave(&left{name: "a capability is gone", was: "queued", state: "failed", added: "run.failed", end: `{"code":"PROVIDER_ERROR","message":"provider held is not available after restart"}`, id: p.start(spoken, "held", "x", `,"requiredCapabilities":["execution.cancel"]`)})
	leave(&left{name: "running", was: "running", state: "failed", added: "run.failed", end: unfinished, id: p.start(p.conversation(), "held", "x", "")})
	asked := leave(&left{name: "awaiting, cannot wait", was: "awaiting_approval", state: "failed", added: "run.failed", end: unfinished, id: p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)})
	var dead portable.Action
	_ = json.Unmarshal(p.until(asked.id, "action.required").Data, &dead)
	asked.action = dead.ID
	hooked := leave(&left{
		name: "cancelling, with a reason", was: "cancelling", state: "cancelled", added: "run.cancelled",
		end: strings.Replace(cut, "}", `,"reason":"why"}`, 1), id: p.start(p.conversation(), "slow", "x", ""),
	})
	p.until(hooked.id, "run.started")
	cancel(hooked.id, `{"reason":"why"}`)
	stuck := leave(&left{name: "cancelling, agent", was: "cancelling", state: "cancelled", added: "rind.message_completed run.cancelled", end: cut, id: p.start(p.conversation(), "agent", "x", "")})
	p.until(stuck.id, "output.text.delta")
	cancel(stuck.id, "")
	for _, x := range all {
		a := p.must(200, "GET", "/v1/executions/"+x.id, "")
		if x.record, x.events = a.body, p.events(x.id); a.member("state") != x.was {
			t.Fatalf("%s: %s", x.name, a.body)
		}
	}
	store.Kill()

	for _, process := range []string{"next", "one more"} { // what was closed once stays as it is
		next := backing.Open(process)
		q := serve(t, next, m, func(c *Config) {
			c.Commands = commands(c.Sessions, executions.Provider{Runner: h, Manifest: portable.NewManifest("held", "Held", "1", "embedded", "parallel", nil)})
		})
		for _, x := range all {
			a := q.must(200, "GET", "/v1/executions/"+x.id, "")
			events := q.events(x.id)
			told := min(len(x.events), len(events))
			if a.member("state") != x.state || lines(events[:told]) != lines(x.events) || types(events[told:]) != x.added {
				t.Errorf("%s, in the %s process: %s, told %s and then %s", x.name, process, a.body, types(x.events), types(events[told:]))
			}
			if x.added == "" {
				if string(a.body) != string(x.record) {
					t.Errorf("%s: was %s, is %s", x.name, x.record, a.body)
				}
				continue
			}
			sound(t, events)
			if got := string(events[len(events)-1].Data); got != x.end || a.member("endedAt") != events[len(events)-1].Time {
				t.Errorf("%s: ends with %s, %s", x.name, got, a.body)
			}
			if x.action != "" {
				if a := q.must(404, "POST", "/v1/executions/"+x.id+"/actions/"+x.action+":respond", `{"approved":true}`); a.member("code") != "ACTION_NOT_FOUND" {
					t.Errorf("%s: answered %s", x.name, a.body)
				}
			}
			if again := q.must(200, "POST", "/v1/executions/"+x.id+":cancel", `{"reason":"too late"}`); string(again.body) != string(a.body) {
				t.Errorf("%s: cancelled it is %s", x.name, again.body)
			}
		}
		next.Kill()
	}
}

// Section 10: an execution that waited longer than --requeue-within is not started any more; its provider hears nothing of it.
func TestAnExecutionThatWaitedTooLongIsNotStartedByTheNextProcess(t *testing.T) {
	backing := memory.NewBacking()
	h, next := newHeld(), newHeld()
	m := &model{replies: replies{saying("ok")}}
	store := backing.Open("dead")
	p := serve(t, store, m, h.with(1))
	c := p.conversation()
	first := p.start(c, "held", "first", "")
	<-h.begun
	ids := []string{p.start(c, "held", "x", ""), p.start(c, "agent", "x", "")}
	time.Sleep(2 * time.Millisecond) // they are older than the millisecond that the next process gives them
	store.Kill()
	q := serve(t, backing.Open("next"), m, next.with(1), func(c *Config) {
		if err := c.Commands.Recover(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	})
	for _, id := range ids {
		events := q.events(id)
		sound(t, events)
		x := q.must(200, "GET", "/v1/executions/"+id, "")
		if want := `{"code":"PROVIDER_ERROR","message":"runtime stopped before the execution started"}`; types(events) != "run.queued run.failed" ||
			string(events[1].Data) != want || x.member("startedAt") != "" || x.member("state") != "failed" {
			t.Errorf("%s: %s, %s", types(events), events[len(events)-1].Data, x.body)
		}
	}
	sound(t, q.events(first))
	if len(next.order) > 0 || m.requests() > 0 {
		t.Errorf("the provider was called with %q, the model %d times", next.order, m.requests())
	}
}

// shut is a store that for a while reads no turn, or no log, or writes nothing.
type shut struct {
	session.Store
	turns, logs, writes atomic.Bool
	refused             atomic.Int64
}

func (l *shut) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int, into *session.Page) ([]session.Entry, error) {
	if l.turns.Load() {
		l.refused.Add(1)
		return nil, session.ErrLocked
	}
	return l.Store.ReadTurn(ctx, turn, after, limit, into)
}

func (l *shut) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	if l.logs.Load() {
		l.refused.Add(1)
		return nil, session.ErrLocked
	}
	return l.Store.Read(ctx, id, after, limit, v)
}

func (l *shut) Append(held session.Lease, b session.Batch, done func(error)) {
	if l.writes.Load() {
		l.refused.Add(1)
		go done(session.ErrLocked)
		return
	}
	l.Store.Append(held, b, done)
}

// Section 10: an execution that stood in line and cannot be read for a moment is not given up for that: it stays in line, and is started once it
// can be read, though nobody comes to its conversation.
func TestWhatStoodInLineIsNotGivenUpBecauseItCannotBeReadForAMoment(t *testing.T) {
	for what, part := range map[string]func(*shut) *atomic.Bool{
		"its acceptance":   func(l *shut) *atomic.Bool { return &l.turns },
		"its conversation": func(l *shut) *atomic.Bool { return &l.logs },
		"nothing is kept":  func(l *shut) *atomic.Bool { return &l.writes },
	} {
		t.Run(what, func(t *testing.T) {
			backing := memory.NewBacking()
			h, next := newHeld(), newHeld()
			m := &model{replies: replies{saying("ok")}}
			dead := backing.Open("dead")
			p := serve(t, dead, m, h.with(1))
			c := p.conversation()
			first := p.start(c, "held", "first", "")
			<-h.begun
			id := p.start(c, "held", "queued", "")
			dead.Kill()

			store := &shut{Store: backing.Open("next")}
			part(store).Store(true)
			q := serve(t, store, m, next.with(1))
			next.let <- struct{}{}
			part(store).Store(false)
			sound(t, q.follow(id, nil, nil))
			sound(t, q.follow(first, nil, nil))
			if got := strings.Join(next.order, " "); got != "queued" || store.refused.Load() == 0 {
				t.Errorf("started %s, %d reads refused", got, store.refused.Load())
			}
		})
	}
}

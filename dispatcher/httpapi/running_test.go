package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// held is a provider whose runs wait until they are let go.
type held struct {
	mu        sync.Mutex
	order     []string // inputs, as they began
	now, most int
	let       chan struct{}
	begun     chan string
}

func newHeld() *held {
	return &held{let: make(chan struct{}, 10_000), begun: make(chan string, 10_000)}
}

func (h *held) Run(ctx context.Context, x *session.Execution) (string, error) {
	h.mu.Lock()
	h.order = append(h.order, x.Input)
	h.now++
	h.most = max(h.most, h.now)
	h.mu.Unlock()
	h.begun <- x.Input
	defer func() {
		h.mu.Lock()
		h.now--
		h.mu.Unlock()
	}()
	select {
	case <-h.let:
		return x.Input, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// with adds the provider, and bounds what runs at one time.
func (h *held) with(running int) option {
	return func(c *Config) {
		c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: 200 * time.Millisecond, Running: running})
		c.Commands = commands(c.Sessions, executions.Provider{
			Runner: h, Manifest: portable.NewManifest("held", "Held", "1", "embedded", "parallel", map[string]string{"execution.cancel": portable.Native}),
		})
	}
}

func (p *place) state(id string) string {
	p.t.Helper()
	return p.must(200, "GET", "/v1/executions/"+id, "").member("state")
}

// N25: what exceeds --max-running waits, over all conversations, and starts in the order of its acceptance.
func TestNoMoreRunThanMayAndTheOthersStartInTheOrderOfTheirAcceptance(t *testing.T) {
	h := newHeld()
	p := mocking(t, h.with(2))
	var ids, want []string
	conversations := []string{p.conversation(), p.conversation(), p.conversation()}
	for i := range 12 {
		want = append(want, fmt.Sprint(i))
		ids = append(ids, p.start(conversations[i%3], "held", fmt.Sprint(i), ""))
		if i < 2 {
			<-h.begun
		}
	}
	for i, id := range ids {
		if got := p.state(id); (i < 2) != (got == "running") || i >= 2 && got != "queued" {
			t.Errorf("execution %d is %s", i, got)
		}
	}
	gone := ids[5]
	if x := p.must(200, "POST", "/v1/executions/"+gone+":cancel", ""); x.member("state") != "cancelled" || types(p.events(gone)) != "run.queued run.cancelled" {
		t.Errorf("cancelled in line: %s", x.body)
	}
	want = slices.Delete(want, 5, 6)
	for range len(want) - 2 { // one by one: the next begins before another place is free
		h.let <- struct{}{}
		<-h.begun
	}
	h.let <- struct{}{}
	h.let <- struct{}{}
	for _, id := range ids {
		if id != gone {
			sound(t, p.follow(id, nil, nil))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortFunc(h.order[:2], strings.Compare)
	if h.most != 2 || !slices.Equal(h.order, want) {
		t.Errorf("%d at one time, in the order %v, want %v", h.most, h.order, want)
	}
}

// Section 1: an execution that waits for a person holds no place, and goes on at once after its answer.
func TestAnExecutionThatWaitsForAPersonLetsAnotherOneRun(t *testing.T) {
	for _, provider := range []string{"mock", "agent"} {
		t.Run(provider, func(t *testing.T) {
			h := newHeld()
			p := serve(t, memory.New(), &model{replies: replies{calling("first", "act", "{}"), saying("ok")}}, h.with(1))
			config := ""
			if provider == "mock" {
				config = `,"config":{"requireApproval":true}`
			}
			waiting := p.start(p.conversation(), provider, "x", config)
			var a portable.Action
			if err := json.Unmarshal(p.until(waiting, "action.required").Data, &a); err != nil {
				t.Fatal(err)
			}
			beside := p.start(p.conversation(), "held", "beside", "")
			<-h.begun
			p.must(200, "POST", "/v1/executions/"+waiting+"/actions/"+a.ID+":respond", `{"approved":true}`)
			events := p.follow(waiting, nil, nil)
			sound(t, events)
			if events[len(events)-1].Type != "run.completed" || p.state(beside) != "running" {
				t.Errorf("%s, the other is %s", types(events), p.state(beside))
			}
			third := p.start(p.conversation(), "held", "third", "")
			if s := p.state(third); s != "queued" {
				t.Errorf("the third is %s while the place is taken", s)
			}
			h.let <- struct{}{}
			<-h.begun
			h.let <- struct{}{}
			sound(t, p.follow(third, nil, nil))
		})
	}
}

// N25 for the serial lane: two conversations, one place.
func TestExecutionsOfTheAgentWaitForAPlaceToo(t *testing.T) {
	hold := make(chan struct{})
	h := newHeld()
	p := serve(t, memory.New(), &model{replies: replies{heldUntil(hold), saying("ok")}}, h.with(1))
	first := p.start(p.conversation(), "agent", "1", "")
	p.until(first, "run.started")
	c := p.conversation()
	dropped, second := p.start(c, "agent", "2", ""), p.start(c, "agent", "3", "")
	p.must(200, "POST", "/v1/executions/"+dropped+":cancel", "")
	if got := p.state(second); got != "queued" {
		t.Errorf("the second is %s", got)
	}
	close(hold)
	for _, id := range []string{first, second} {
		events := p.follow(id, nil, nil)
		sound(t, events)
		if events[len(events)-1].Type != "run.completed" {
			t.Errorf("%s", types(events))
		}
	}
}

// N14, N25: what stood in line when its process ended is started by the next one, in the order of its acceptance.
func TestWhatStoodInLineIsStartedInItsOrderAfterARestart(t *testing.T) {
	backing := memory.NewBacking()
	h := newHeld()
	m := &model{replies: replies{saying("ok")}}
	p := serve(t, backing.Open("a"), m, h.with(1))
	conversations := []string{p.conversation(), p.conversation()}
	first := p.start(conversations[0], "held", "first", "")
	<-h.begun
	var ids, want []string
	for i := range 24 {
		want = append(want, fmt.Sprint(i))
		ids = append(ids, p.start(conversations[i%2], "held", fmt.Sprint(i), ""))
	}
	p.stop()
	next := newHeld()
	for range ids {
		next.let <- struct{}{}
	}
	q := serve(t, backing.Open("b"), m, next.with(1))
	for _, id := range ids {
		events := q.follow(id, nil, nil)
		sound(t, events)
		if types(events) != "run.queued run.started output.text.done run.completed" {
			t.Errorf("%s", types(events))
		}
	}
	if got := q.events(first); !strings.Contains(string(got[len(got)-1].Data), "runtime shutting down") {
		t.Errorf("the first ended with %s", got[len(got)-1].Data)
	}
	if !slices.Equal(next.order, want) {
		t.Errorf("started in the order %v", next.order)
	}
}

// Section 10: what stands in line is also started by a process that was there before and takes the lease next; a provider that is gone is
// named.
func TestTheProcessThatTakesTheLeaseNextStartsWhatStandsInLine(t *testing.T) {
	backing := memory.NewBacking()
	h, next := newHeld(), newHeld()
	m := &model{replies: replies{saying("ok")}}
	p := serve(t, backing.Open("a"), m, h.with(1))
	c := p.conversation()
	p.start(c, "held", "first", "")
	<-h.begun
	queued := p.start(c, "held", "queued", "")
	next.let <- struct{}{}
	next.let <- struct{}{}
	q := serve(t, backing.Open("b"), m, next.with(1)) // it recovers nothing: the first process lives
	p.stop()
	fresh := q.start(c, "held", "fresh", "")
	for _, id := range []string{queued, fresh} {
		sound(t, q.follow(id, nil, nil))
	}
	if got := strings.Join(next.order, " "); got != "queued fresh" {
		t.Errorf("started %s", got)
	}

	left := q.start(c, "held", "holds", "")
	<-next.begun
	<-next.begun
	<-next.begun
	orphan := q.start(c, "held", "orphan", "")
	q.stop()
	r := serve(t, backing.Open("c"), m)
	events := r.events(orphan)
	sound(t, events)
	if want := `{"code":"PROVIDER_ERROR","message":"provider held is not available after restart"}`; string(events[len(events)-1].Data) != want {
		t.Errorf("an execution without its provider ends with %s", events[len(events)-1].Data)
	}
	sound(t, r.events(left))
}

// N23, N27: what goes on in another process has the limits it was accepted with; stopped time counts.
func TestAnExecutionThatGoesOnInAnotherProcessKeepsItsLimits(t *testing.T) {
	for _, c := range []struct {
		config, text string
		pause        time.Duration
	}{
		{`{"maxSteps":2}`, "Execution exceeded maxSteps 2", 0},
		{`{"timeout":0.2}`, "Execution exceeded its timeout of 0.2 s", 250 * time.Millisecond},
		{`{"maxTokens":25}`, "Execution exceeded maxTokens 25", 0},
	} {
		t.Run(c.config, func(t *testing.T) {
			backing := memory.NewBacking()
			step := counting(10, calling("a", "act", "{}"))
			m := &model{replies: replies{step}}
			p := serve(t, backing.Open("a"), m)
			id := p.start(p.conversation(), "agent", "x", `,"config":`+c.config)
			for round := 0; ; round++ { // each call is asked for; the process changes in between
				state := ""
				testkit.Eventually(t, "it asks, or has failed", func() bool {
					state = p.state(id)
					return state == "failed" || state == "awaiting_approval"
				})
				if state == "failed" {
					break
				}
				if round > 1000 {
					t.Fatalf("it goes on: %s", types(p.events(id)))
				}
				var a portable.Action
				for _, e := range p.events(id) {
					if e.Type == "action.required" {
						_ = json.Unmarshal(e.Data, &a)
					}
				}
				if c.pause == 0 || round == 0 {
					p.stop()
					p = serve(t, backing.Open(fmt.Sprint("next", round)), m)
				}
				time.Sleep(c.pause)
				p.do("POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
			}
			events := p.events(id)
			sound(t, events)
			if want := `{"code":"PROVIDER_ERROR","message":"` + c.text + `"}`; string(events[len(events)-1].Data) != want {
				t.Errorf("ended with %s", events[len(events)-1].Data)
			}
		})
	}
}

// counting plays a completion that costs tokens.
func counting(tokens int, play func(context.Context, func(session.Chunk, error) bool)) func(context.Context, func(session.Chunk, error) bool) {
	return func(ctx context.Context, yield func(session.Chunk, error) bool) {
		if yield(session.Chunk{Kind: session.ChunkUsage, Usage: session.Usage{Input: tokens, Output: tokens}}, nil) {
			play(ctx, yield)
		}
	}
}

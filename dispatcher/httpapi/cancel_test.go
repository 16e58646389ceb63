package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// doing is a provider made of a function.
type doing func(ctx context.Context, x *session.Execution) (string, error)

func (d doing) Run(ctx context.Context, x *session.Execution) (string, error) { return d(ctx, x) }

// providing adds a provider of the parallel lane, named own.
func providing(o session.ExecutionOptions, r session.Runner) option {
	return func(c *Config) {
		c.Sessions.SetExecutions(o)
		c.Commands = commands(c.Sessions, executions.Provider{
			Runner: r, Manifest: portable.NewManifest("own", "Own", "1", "embedded", "parallel", map[string]string{"execution.cancel": portable.Native}),
		})
	}
}

// Section 7: while an execution is being cancelled its hook works once, everybody who cancels it waits for that, and the first reason counts; who
// hangs up undoes nothing. Its action is dead and it asks for none, but what it tells is told; what it returns counts no more, and behind the
// end it says nothing.
func TestACancelIsOneCleanupThatAllWaitForAndDuringItTheProviderMaySpeak(t *testing.T) {
	type hooked struct {
		turn   session.TurnID
		reason *string
	}
	hooks, release := make(chan hooked, 10), make(chan struct{})
	late := make(chan error, 10)
	own := cleaning{doing(func(ctx context.Context, x *session.Execution) (string, error) {
		if _, err := x.Ask(session.ActionAsk{Title: "Go on?"}); err != nil {
			return "", err
		}
		<-ctx.Done()
		if _, err := x.Ask(session.ActionAsk{Title: "Really?"}); err == nil {
			late <- errors.New("it may ask while it is being cancelled")
		}
		for kind, data := range map[string]string{
			session.EmitDelta: `{"text":"bye"}`, session.EmitArtifact: `{"id":"a","name":"n","mediaType":"m/t"}`, session.EmitEvent: `{"provider":"own","method":"tick","params":{}}`,
		} {
			late <- x.Emit(kind, json.RawMessage(data))
		}
		<-release
		for x.Emit(session.EmitEvent, json.RawMessage(`{"provider":"own","method":"tock","params":{}}`)) == nil { // until it has ended
			time.Sleep(time.Millisecond)
		}
		late <- nil
		return "success", nil
	}), func(_ context.Context, turn session.TurnID, reason *string) error {
		hooks <- hooked{turn, reason}
		<-release
		return nil
	}}
	p := mocking(t, providing(session.ExecutionOptions{Cleanup: time.Minute}, own))
	id := p.start(p.conversation(), "own", "x", "")
	var a portable.Action
	if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		resp, err := p.http.Do(p.request(ctx, "POST", "/v1/executions/"+id+":cancel", `{"reason":"first"}`))
		if err == nil {
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	h := <-hooks
	if "exec_"+string(h.turn) != id || h.reason == nil || *h.reason != "first" {
		t.Errorf("the hook was told %+v", h)
	}
	hangUp()
	if err := <-gone; err == nil {
		t.Error("a cancel was answered before its cleanup was done")
	}
	for range 3 {
		if err := <-late; err != nil {
			t.Errorf("while it is being cancelled: %v", err)
		}
	}
	records := make(chan string, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			records <- string(p.must(200, "POST", "/v1/executions/"+id+":cancel", fmt.Sprintf(`{"reason":"r%d"}`, i)).body)
		})
	}
	for _, answer := range []string{`{"approved":true}`, `[]`} { // that it is dead comes before what is wrong with an answer
		if x := p.must(404, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", answer); x.member("code") != "ACTION_NOT_FOUND" {
			t.Errorf("%s while it is being cancelled: %s", answer, x.body)
		}
	}
	if s := p.state(id); s != "cancelling" {
		t.Errorf("meanwhile it is %s", s)
	}
	close(release)
	wg.Wait()
	if err := <-late; err != nil {
		t.Error(err)
	}
	now := string(p.must(200, "GET", "/v1/executions/"+id, "").body)
	for range 8 {
		if r := <-records; r != now {
			t.Errorf("one cancel was answered %s, and it is %s", r, now)
		}
	}
	events := p.events(id)
	sound(t, events)
	count := map[string]int{}
	for _, e := range events {
		count[types([]portable.Event{e})]++
	}
	if end := events[len(events)-1]; string(end.Data) != `{"reason":"first"}` || count["output.text.delta"] != 1 || count["artifact.created"] != 1 || count["tick"] != 1 || count["action.required"] != 1 {
		t.Errorf("%s ends with %s", types(events), end.Data)
	}
	if len(hooks) > 0 {
		t.Error("the hook was called again")
	}
}

// Section 7: the hook is called once with what there is of a reason, also where Run never was; an error of it, or a panic, is told, and the
// execution is cancelled all the same.
func TestWhateverTheHookDoesTheExecutionIsCancelled(t *testing.T) {
	for _, c := range []struct {
		name, body, end string
		line            bool // it is cancelled while it stands in line
		hook            func() error
	}{
		{"in line, without a reason", "", `{}`, true, func() error { return nil }},
		{"in line, with a hook that fails", `{"reason":"why"}`, `{"providerCleanupError":"no","reason":"why"}`, true, func() error { return errors.New("no") }},
		{"an error without text", `{}`, `{"providerCleanupError":"Provider failed"}`, false, func() error { return errors.New("") }},
		{"a panic", `{}`, `{"providerCleanupError":"Provider crashed"}`, false, func() error { panic("secret") }},
		{"a long error", `{}`, `{"providerCleanupError":"` + strings.Repeat("x", 4095) + `"}`, false, func() error { return errors.New(strings.Repeat("x", 4095) + "éé") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran, hooks := make(chan string, 10), make(chan *string, 10)
			own := cleaning{doing(func(ctx context.Context, x *session.Execution) (string, error) {
				ran <- x.Input
				<-ctx.Done()
				return "", context.Cause(ctx)
			}), func(_ context.Context, _ session.TurnID, reason *string) error {
				hooks <- reason
				return c.hook()
			}}
			p := mocking(t, providing(session.ExecutionOptions{Cleanup: time.Minute, Running: 1}, own))
			conversation := p.conversation()
			id := p.start(conversation, "own", "first", "")
			<-ran
			if c.line {
				id = p.start(conversation, "own", "second", "")
			}
			x := p.must(200, "POST", "/v1/executions/"+id+":cancel", c.body)
			again := p.must(200, "POST", "/v1/executions/"+id+":cancel", `{"reason":"once more"}`)
			events := p.events(id)
			sound(t, events)
			if got := string(events[len(events)-1].Data); got != c.end || x.member("state") != "cancelled" || string(again.body) != string(x.body) {
				t.Errorf("ends with %s: %s, then %s", got, x.body, again.body)
			}
			if reason := <-hooks; (reason != nil) != strings.Contains(c.body, "reason") {
				t.Errorf("the hook was told the reason %v", reason)
			}
			if len(hooks) > 0 || len(ran) > 0 {
				t.Errorf("the hook was called %d times more, run %d times", len(hooks), len(ran))
			}
		})
	}
}

// Sections 6 and 7: a run that does not hear that it is to end is not waited for longer than a cleanup may take. What it says late is dropped,
// and its lane is freed when it comes back, or one cleanup timeout after the end.
func TestARunThatDoesNotHearIsLeftBehindAndItsLaneIsFreed(t *testing.T) {
	cut := `"providerCleanupError":"provider cleanup timed out after 200ms"`
	for _, c := range []struct {
		name, provider, config, cancel, end string
		returns                             bool // once the execution has ended
	}{
		{"agent, cancelled", "agent", "", `{"reason":"why"}`, "{" + cut + `,"reason":"why"}`, false},
		{"agent, out of time", "agent", `,"config":{"timeout":4}`, "", `{"code":"PROVIDER_ERROR","message":"Execution exceeded its timeout of 4 s"}`, false}, // long enough to speak
		{"agent, comes back late", "agent", "", `{}`, "{" + cut + "}", true},
		{"parallel, cancelled", "own", "", `{"reason":"why"}`, `{"reason":"why"}`, false},
		{"parallel, comes back late", "own", "", `{}`, `{}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			let := make(chan struct{})
			returned := sync.OnceFunc(func() { close(let) })
			defer returned()
			deaf := func(_ context.Context, yield func(session.Chunk, error) bool) {
				if yield(session.Chunk{Kind: session.ChunkText, Text: "half"}, nil) {
					<-let
					saying("late")(context.Background(), yield)
				}
			}
			own := doing(func(_ context.Context, x *session.Execution) (string, error) {
				if x.Input == "next" {
					return "", nil
				}
				_ = x.Say("half")
				<-let
				_ = x.Say("late")
				return "late success", nil
			})
			cleanup := 200 * time.Millisecond
			if c.provider == "own" && c.returns { // its return frees the lane: nothing else does
				cleanup = time.Minute
			}
			p := serve(t, memory.New(), &model{replies: replies{deaf, saying("ok")}}, providing(session.ExecutionOptions{Cleanup: cleanup}, own))
			conversation := p.conversation()
			id := p.start(conversation, c.provider, "x", c.config)
			p.until(id, "output.text.delta")
			for i := 1; c.provider == "own" && i < 64; i++ { // one conversation has room for no more
				p.start(conversation, c.provider, "x", "")
			}
			next := p.start(conversation, c.provider, "next", "")
			if c.cancel != "" {
				if x := p.must(200, "POST", "/v1/executions/"+id+":cancel", c.cancel); x.member("state") != "cancelled" {
					t.Errorf("cancelled: %s", x.body)
				}
			}
			events := p.follow(id, nil, nil)
			if s := p.state(next); s != "queued" && cleanup == time.Minute { // the shorter one may be over by now: then the times tell
				t.Errorf("while the run is not back the next is %s", s)
			}
			if c.returns {
				returned()
			}
			began := p.until(next, "run.started")
			ended, err := time.Parse(time.RFC3339, events[len(events)-1].Time)
			if err != nil {
				t.Fatal(err)
			}
			start, err := time.Parse(time.RFC3339, began.Time)
			if err != nil {
				t.Fatal(err)
			}
			if waited := start.Sub(ended); !c.returns && waited < cleanup-10*time.Millisecond {
				t.Errorf("the next one began %s after the end", waited)
			}
			returned()
			sound(t, p.follow(next, nil, nil))
			after := p.events(id)
			sound(t, after)
			if end := string(after[len(after)-1].Data); end != c.end || lines(after) != lines(events) {
				t.Errorf("%s ends with %s", types(after), end)
			}
			if c.provider == "agent" && !strings.Contains(types(after), "output.text.delta rind.message_completed run.") {
				t.Errorf("what was said is not kept: %s", types(after))
			}
		})
	}
}

// Section 1.2: at the end of the runtime an agent that does not hear is left behind too, and its execution has its end.
func TestAnAgentThatDoesNotHearDoesNotKeepTheRuntimeFromRecordingItsEnd(t *testing.T) {
	backing := memory.NewBacking()
	let := make(chan struct{})
	defer close(let)
	deaf := func(_ context.Context, yield func(session.Chunk, error) bool) {
		if yield(session.Chunk{Kind: session.ChunkText, Text: "half"}, nil) {
			<-let
		}
	}
	m := &model{replies: replies{deaf}}
	p := serve(t, backing.Open("a"), m)
	id := p.start(p.conversation(), "agent", "x", "")
	p.until(id, "output.text.delta")
	p.stop()
	events := serve(t, backing.Open("b"), m).events(id)
	sound(t, events)
	want := `{"providerCleanupError":"provider cleanup timed out after 200ms","reason":"runtime shutting down"}`
	if end := string(events[len(events)-1].Data); end != want {
		t.Errorf("ended with %s", end)
	}
}

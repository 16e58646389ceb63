package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// N22: the table of section 9, by providers that take no notice of what they are told: each violation ends the execution with its text, and
// what they do or return afterwards changes nothing.
func TestEveryViolationOfAProviderEndsItsExecutionWithItsText(t *testing.T) {
	emits := func(kind, data string) doing {
		return func(_ context.Context, x *session.Execution) (string, error) {
			_ = x.Emit(kind, json.RawMessage(data))
			_ = x.Say("behind it")
			return "success", nil
		}
	}
	asks := func(a session.ActionAsk) doing {
		return func(_ context.Context, x *session.Execution) (string, error) {
			_, _ = x.Ask(a)
			return "success", nil
		}
	}
	fails := func(text string) doing {
		return func(context.Context, *session.Execution) (string, error) { return "success", errors.New(text) }
	}
	const (
		reserved = "Provider emitted a reserved or unknown event type"
		noObject = "Provider emitted invalid JSON event data"
		noDelta  = "Provider emitted an invalid text delta"
		noFile   = "Provider emitted an invalid artifact descriptor"
		noAction = "Provider requested an invalid action"
	)
	deep := func(n int) string {
		return `{"text":"x","a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
	}
	for _, c := range []struct {
		name string
		run  doing
		want string // "": it succeeds
	}{
		{"a start of its own", emits("run.started", `{}`), reserved},
		{"an action beside Ask", emits("action.required", `{"id":"a"}`), reserved},
		{"no type", emits("", `{}`), reserved},
		{"an event that is an array", emits(session.EmitEvent, `[]`), noObject},
		{"an event that is null", emits(session.EmitEvent, `null`), noObject},
		{"an event that breaks off", emits(session.EmitEvent, `{"a":`), noObject},
		{"an event of nothing", emits(session.EmitEvent, ``), noObject},
		{"an artifact that is a string", emits(session.EmitArtifact, `"x"`), noObject},
		{"a delta 257 deep", emits(session.EmitDelta, deep(257)), noObject},
		{"a delta 256 deep", emits(session.EmitDelta, deep(256)), ""},
		{"an event over 8 MiB", emits(session.EmitEvent, `{"a":"`+strings.Repeat("x", 8<<20)+`"}`), noObject},
		{"a delta without text", emits(session.EmitDelta, `{}`), noDelta},
		{"a delta whose text is null", emits(session.EmitDelta, `{"text":null}`), noDelta},
		{"a delta whose text has another case", emits(session.EmitDelta, `{"Text":"x"}`), noDelta},
		{"an artifact whose members have another case", emits(session.EmitArtifact, `{"ID":"a","NAME":"n","MEDIATYPE":"m/t"}`), noFile},
		{"an artifact whose uri is null", emits(session.EmitArtifact, `{"id":"a","name":"n","mediaType":"m/t","uri":null}`), noFile},
		{"an artifact whose metadata is null", emits(session.EmitArtifact, `{"id":"a","name":"n","mediaType":"m/t","metadata":null}`), noFile},
		{"an artifact without id", emits(session.EmitArtifact, `{"name":"n","mediaType":"m/t"}`), noFile},
		{"an artifact without media type", emits(session.EmitArtifact, `{"id":"a","name":"n","mediaType":""}`), noFile},
		{"an artifact with an empty uri", emits(session.EmitArtifact, `{"id":"a","name":"n","mediaType":"m/t","uri":""}`), noFile},
		{"an artifact whose metadata is a list", emits(session.EmitArtifact, `{"id":"a","name":"n","mediaType":"m/t","metadata":[]}`), noFile},
		{"an action without a title", asks(session.ActionAsk{}), noAction},
		{"an action whose payload is a list", asks(session.ActionAsk{Title: "t", Payload: json.RawMessage(`[]`)}), noAction},
		{"an action whose payload breaks off", asks(session.ActionAsk{Title: "t", Payload: json.RawMessage(`{`)}), noAction},
		{"an action that is left open", asks(session.ActionAsk{Title: "t"}), "Provider finished with an unresolved action"},
		{"an error", fails("it went wrong"), "it went wrong"},
		{"an error without text", fails(""), "Provider failed"},
		{"an error longer than 4 KiB", fails(strings.Repeat("x", 4095) + "éé"), strings.Repeat("x", 4095)},
		{"a panic", func(context.Context, *session.Execution) (string, error) { panic("secret") }, "Provider crashed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mocking(t, providing(session.ExecutionOptions{Cleanup: time.Minute}, c.run))
			id := p.start(p.conversation(), "own", "x", "")
			events := p.follow(id, nil, nil)
			sound(t, events)
			x := p.must(200, "GET", "/v1/executions/"+id, "")
			if c.want == "" {
				if x.member("state") != "succeeded" || x.member("finalOutput") != "success" {
					t.Errorf("%s", x.body)
				}
				return
			}
			var failed struct{ Code, Message string }
			if err := json.Unmarshal(events[len(events)-1].Data, &failed); err != nil || failed.Code != "PROVIDER_ERROR" || failed.Message != c.want || x.member("state") != "failed" {
				t.Errorf("%s, ended with %.200s", x.body, events[len(events)-1].Data)
			}
			for _, e := range events {
				switch e.Type {
				case "output.text.delta", "output.text.done", "artifact.created":
					t.Errorf("%s is told", e.Type)
				case "action.required": // it died with its execution
					var a portable.Action
					_ = json.Unmarshal(e.Data, &a)
					p.must(404, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
				}
			}
		})
	}
}

// Section 8: a provider that asks while its action is open is refused, which does not end it; the first action is still the open one.
func TestAProviderAsksOneThingAtATime(t *testing.T) {
	refused := make(chan error, 1)
	p := mocking(t, providing(session.ExecutionOptions{}, doing(func(ctx context.Context, x *session.Execution) (string, error) {
		first, err := x.Ask(session.ActionAsk{Title: "first"})
		if err != nil {
			return "", err
		}
		_, err = x.Ask(session.ActionAsk{Title: "second", Input: true})
		refused <- err
		_, err = first.Wait(ctx)
		return "answered", err
	})))
	id := p.start(p.conversation(), "own", "x", "")
	if err := <-refused; err == nil || err.Error() != "INVALID_STATE" {
		t.Errorf("a second action: %v", err)
	}
	var a portable.Action
	if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil || a.Title != "first" {
		t.Fatalf("it asks %+v, %v", a, err)
	}
	path := "/v1/executions/" + id + "/actions/" + a.ID + ":respond"
	other := p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)
	p.must(404, "POST", "/v1/executions/"+other+"/actions/"+a.ID+":respond", `{"approved":true}`) // A08
	if x := p.must(200, "POST", path, `{"approved":true}`); x.member("state") != "running" {
		t.Errorf("answered with %s", x.body)
	}
	sound(t, p.follow(id, nil, nil))
	for _, malformed := range []string{`[]`, `{"approved":"yes"}`} { // that it was answered comes first
		if x := p.must(409, "POST", path, malformed); x.member("code") != "ACTION_ALREADY_RESOLVED" {
			t.Errorf("%s behind the end: %s", malformed, x.body)
		}
	}
	p.must(200, "POST", "/v1/executions/"+other+":cancel", "")
}

// Section 6: a key belongs to its conversation, byte by byte; a replay is the record as it is now and adds nothing.
func TestAKeyIsItsBytesInItsConversation(t *testing.T) {
	p := mocking(t)
	c, d := p.conversation(), p.conversation()
	start := func(conversation, key string) *answered {
		k, _ := json.Marshal(key)
		return p.must(202, "POST", "/v1/executions", `{"conversationId":"`+conversation+`","providerId":"mock","input":"x","config":{"requireApproval":true},"idempotencyKey":`+string(k)+`}`)
	}
	first := map[string]string{}
	for _, k := range []struct{ conversation, key string }{{c, "k"}, {d, "k"}, {c, "K"}, {c, "k "}, {c, "k\x00"}, {c, "k\x00l"}, {c, "é"}, {c, "e\u0301"}} {
		x := start(k.conversation, k.key)
		id := x.member("id")
		if was := first[id]; was != "" || x.member("state") != "queued" || x.member("startedAt") != "" {
			t.Errorf("%q: %s, and %q has it", k.key, x.body, was)
		}
		first[id] = k.key
		p.until(id, "action.required")
		before := lines(p.events(id))
		if again := start(k.conversation, k.key); again.member("id") != id || again.member("state") != "awaiting_approval" || lines(p.events(id)) != before {
			t.Errorf("%q again: %s", k.key, again.body)
		}
	}
}

// Section 8: an approval that shows no options is decided by approved alone, whatever else an answer says.
func TestAnApprovalWithoutOptionsIsDecidedByApprovedAlone(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	for body, want := range map[string]string{
		`{}`: "failed", `{"value":"allow_once"}`: "failed", `{"value":{"optionId":"allow_once"}}`: "failed", `{"value":true}`: "failed",
		`{"approved":false,"value":"allow_once"}`: "failed", `{"approved":true}`: "succeeded", `{"approved":true,"value":"looks good"}`: "succeeded",
		`{"approved":true,"value":"reject_once","metadata":{"by":"me"}}`: "succeeded",
	} {
		id := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
		var a portable.Action
		if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
			t.Fatal(err)
		}
		p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", body)
		events := p.follow(id, nil, nil)
		if got := p.state(id); got != want {
			t.Errorf("%s: %s, %s", body, got, events[len(events)-1].Data)
		}
	}
}

// behindTheEnd is a store that, once it is told to, reads facts only when the last turn that was accepted has ended.
type behindTheEnd struct {
	session.Store
	turn atomic.Pointer[session.TurnID]
}

func (b *behindTheEnd) Read(ctx context.Context, id session.SessionID, after session.Seq, limit int, v protocol.View) ([]session.Entry, error) {
	for turn := b.turn.Load(); turn != nil && v == protocol.ViewFacts && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if page, err := b.ReadTurn(ctx, *turn, 0, 100, nil); err != nil || page[len(page)-1].Kind.Info().Terminal {
			break
		}
	}
	return b.Store.Read(ctx, id, after, limit, v)
}

// Route 11: an answer is answered with the execution as it was when it was accepted, running, also when that has ended before anybody looked.
func TestAnAnswerIsAnsweredWithTheExecutionAsItWasThen(t *testing.T) {
	store := &behindTheEnd{Store: memory.New()}
	p := serve(t, store, &model{})
	for _, config := range []string{`{"requireApproval":true,"delayMs":0}`, `{"requestInput":true,"delayMs":0}`} {
		id := p.start(p.conversation(), "mock", "x", `,"config":`+config)
		var a portable.Action
		if err := json.Unmarshal(p.until(id, "action.required").Data, &a); err != nil {
			t.Fatal(err)
		}
		turn, _ := portable.TurnID(id)
		store.turn.Store(&turn)
		x := p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
		store.turn.Store(nil)
		var responded portable.Event
		for _, e := range p.events(id) {
			if e.Type == "action.responded" {
				responded = e
			}
		}
		if x.member("state") != "running" || x.member("endedAt") != "" || x.member("finalOutput") != "" || x.member("updatedAt") != responded.Time || p.state(id) != "succeeded" {
			t.Errorf("%s: answered %s, responded at %s", config, x.body, responded.Time)
		}
	}
}

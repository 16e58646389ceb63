package httpapi

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// N16, N20: a second process on the same store follows, answers and cancels what the first one runs; it starts nothing there.
func TestASecondProcessFollowsAnswersAndCancelsButStartsNothing(t *testing.T) {
	backing := memory.NewBacking()
	hang := func(ctx context.Context, yield func(session.Chunk, error) bool) {
		<-ctx.Done()
		yield(session.Chunk{}, context.Cause(ctx))
	}
	m := &model{replies: replies{calling("first", "act", "{}"), hang}}
	p := serve(t, backing.Open("a"), m)
	c := p.conversation()
	agent := p.start(c, "agent", "x", "")
	beside := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	var asked, mocked portable.Action
	_ = json.Unmarshal(p.until(agent, "action.required").Data, &asked)
	_ = json.Unmarshal(p.until(beside, "action.required").Data, &mocked)

	q := serve(t, backing.Open("b"), m)
	if s := q.must(200, "GET", "/v1/executions/"+beside, "").member("state"); s != "awaiting_approval" {
		t.Errorf("a living process's execution is %s in another", s)
	}
	a := q.must(503, "POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"mock","input":"x"}`)
	if a.member("message") != "Conversation is in use by another process" || a.header.Get("Retry-After") == "" {
		t.Errorf("start: %s", a.body)
	}
	stream := make(chan []portable.Event, 1)
	go func() { stream <- q.follow(agent, nil, nil) }()
	q.must(200, "POST", "/v1/executions/"+agent+"/actions/"+asked.ID+":respond", `{"approved":true}`)
	q.must(200, "POST", "/v1/executions/"+beside+"/actions/"+mocked.ID+":respond", `{"approved":true}`)
	q.must(409, "POST", "/v1/executions/"+beside+"/actions/"+mocked.ID+":respond", `{"approved":true}`)
	sound(t, q.follow(beside, nil, nil))
	p.until(agent, "rind.tool_result")
	x := q.must(200, "POST", "/v1/executions/"+agent+":cancel", `{"reason":"from outside"}`)
	if x.member("state") != "cancelled" {
		t.Errorf("cancel: %s", x.body)
	}
	events := <-stream
	sound(t, events)
	if lines(events) != lines(p.events(agent)) || p.tool.count() != 1 {
		t.Errorf("the second process told %s; the tool ran %d times", types(events), p.tool.count())
	}
	testkit.Eventually(t, "the second process starts something once the first is idle and has given its lease back", func() bool {
		return q.do("POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"mock","input":"x"}`).status == 202
	})
}

// late is a store that hears of other processes after a while, as one on disk does.
type late struct{ session.Store }

func (l late) Watch(ctx context.Context) (<-chan session.SessionID, error) {
	bells, err := l.Store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	out := make(chan session.SessionID)
	go func() {
		defer close(out)
		for id := range bells {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			select {
			case out <- id:
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}

func TestAnExecutionOfAnotherProcessThatWasNotHeardOfYetIsFollowedToItsEnd(t *testing.T) {
	backing := memory.NewBacking()
	p := serve(t, backing.Open("a"), &model{})
	q := serve(t, late{backing.Open("b")}, &model{})
	c := p.conversation()
	sound(t, q.follow(p.start(c, "mock", "x", ""), nil, nil)) // it has the session open from here on
	for _, config := range []string{`{"delayMs":0}`, `{"delayMs":30}`} {
		id := p.start(c, "mock", "one two three", `,"config":`+config)
		events := q.follow(id, nil, nil)
		sound(t, events)
		if got := lines(events); got != lines(p.events(id)) {
			t.Errorf("config %s: told %s", config, types(events))
		}
		if rest := q.follow(id, nil, nil); lines(rest) != lines(events) {
			t.Errorf("config %s: told %s afterwards", config, types(rest))
		}
	}
}

// Section 8: what became of an action is said alike by every process, also by one that has not heard of it yet, and whatever the answer is like.
func TestAProcessThatHasNotHeardOfTheEndOfAnActionSaysWhatBecameOfIt(t *testing.T) {
	backing := memory.NewBacking()
	p := serve(t, backing.Open("a"), &model{})
	q := serve(t, late{backing.Open("b")}, &model{})
	for _, config := range []string{`{"requireApproval":true}`, `{"requestInput":true}`} {
		for _, end := range []struct {
			by, body string
			status   int
			code     string
		}{
			{"answer", `{"approved":true,"value":"yes"}`, 409, "ACTION_ALREADY_RESOLVED"},
			{"cancel", "", 404, "ACTION_NOT_FOUND"},
		} {
			for _, answer := range []string{`[]`, `{"approved":1}`, `{"approved":true,"value":"yes"}`} {
				id := p.start(p.conversation(), "mock", "x", `,"config":`+config)
				var a portable.Action
				_ = json.Unmarshal(p.until(id, "action.required").Data, &a)
				path := "/v1/executions/" + id + "/actions/" + a.ID + ":respond"
				q.must(400, "POST", path, `[]`) // it has the session open from here on
				if end.by == "answer" {
					p.must(200, "POST", path, end.body)
				} else {
					p.must(200, "POST", "/v1/executions/"+id+":cancel", end.body)
				}
				if x := q.do("POST", path, answer); x.status != end.status || x.member("code") != end.code {
					t.Errorf("%s behind the %s with %s: %d %s", answer, end.by, config, x.status, x.body)
				}
				p.follow(id, nil, nil)
			}
		}
	}
}

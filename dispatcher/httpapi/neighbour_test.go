package httpapi

import (
	"context"
	"encoding/json"
	"testing"
	"time"

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
	deadline := time.Now().Add(5 * time.Second) // the first is idle once it has given its lease back
	for q.do("POST", "/v1/executions", `{"conversationId":"`+c+`","providerId":"mock","input":"x"}`).status != 202 {
		if time.Now().After(deadline) {
			t.Fatal("the second process cannot start anything after the first one is idle")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

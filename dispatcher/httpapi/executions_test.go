package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

type replies = []func(context.Context, func(session.Chunk, error) bool)

func sound(t *testing.T, events []portable.Event) {
	t.Helper()
	ends, last := 0, ""
	for i, e := range events {
		if e.Sequence != int64(i+1) || e.Time < last {
			t.Errorf("event %d has number %d at %s after %s", i+1, e.Sequence, e.Time, last)
		}
		last = e.Time
		if portable.Terminal(e.Type) {
			ends++
		}
	}
	if ends != 1 || !portable.Terminal(events[len(events)-1].Type) {
		t.Errorf("%d ends in %s", ends, types(events))
	}
}

// lines writes events as they were told, to compare them.
func lines(events []portable.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.Write(protocol.MustMarshal(e))
		b.WriteByte('\n')
	}
	return b.String()
}

// A01, A02, A05, A07, A10 for the agent: an approval is answered over HTTP, once.
func TestAnApprovalOfTheAgentIsAnsweredOnceAndTheToolRunsOnce(t *testing.T) {
	p := serve(t, memory.New(), &model{replies: replies{calling("first", "act", "{}"), saying("second ", "message")}})
	conversation := p.conversation()
	id := p.start(conversation, "agent", "do it", "")
	required := p.until(id, "action.required")
	var a portable.Action
	if err := json.Unmarshal(required.Data, &a); err != nil || a.Kind != "approval" || a.ExecutionID != id || a.Title == "" {
		t.Fatalf("action %s: %v", required.Data, err)
	}
	if s := p.must(200, "GET", "/v1/executions/"+id, "").member("state"); s != "awaiting_approval" {
		t.Errorf("state %s", s)
	}
	path := "/v1/executions/" + id + "/actions/" + a.ID + ":respond"
	for _, bad := range []string{`{"approved":"yes"}`, `[]`, `{"value":"no_such_option"}`, `{"approved":false,"value":"allow_once"}`} {
		p.must(400, "POST", path, bad)
	}
	p.must(400, "POST", path, "")
	p.must(404, "POST", "/v1/executions/"+id+"/actions/action_"+strings.Repeat("0", 32)+":respond", "{}")
	var wg sync.WaitGroup
	codes := make(chan int, 16)
	for range 16 {
		wg.Go(func() { codes <- p.do("POST", path, `{"approved":true}`).status })
	}
	wg.Wait()
	close(codes)
	got := map[int]int{}
	for c := range codes {
		got[c]++
	}
	if got[200] != 1 || got[409] != 15 {
		t.Errorf("answers %v", got)
	}
	events := p.follow(id, nil, nil)
	sound(t, events)
	want := "run.queued run.started output.text.delta rind.message_completed rind.tool_requested action.required action.responded rind.tool_started rind.tool_result output.text.delta rind.message_completed output.text.done run.completed"
	if got := strings.ReplaceAll(types(events), " rind.usage", ""); got != want {
		t.Errorf("told %s", got)
	}
	text := ""
	for _, e := range events {
		if e.Type == "output.text.delta" {
			var d struct{ Text string }
			_ = json.Unmarshal(e.Data, &d)
			text += d.Text
		}
	}
	x := p.must(200, "GET", "/v1/executions/"+id, "")
	if text != "first\n\nsecond message" || x.member("finalOutput") != text || x.member("state") != "succeeded" {
		t.Errorf("deltas %q, %s", text, x.body)
	}
	if p.tool.count() != 1 {
		t.Errorf("the tool ran %d times", p.tool.count())
	}
	p.must(409, "POST", path, `{"approved":false}`)
	c := p.must(200, "GET", "/v1/conversations/"+conversation, "")
	if c.header.Get("Rind-Session-Id") == "" {
		t.Error("the conversation names no session")
	}
}

// N17: two executions of the agent in one conversation run one after the other; those of mock beside them.
func TestTheSerialLaneIsAFIFOAndParallelOnesRunBesideIt(t *testing.T) {
	hold := make(chan struct{})
	p := serve(t, memory.New(), &model{replies: replies{heldUntil(hold), saying("ok")}})
	c := p.conversation()
	first := p.start(c, "agent", "1", "")
	p.until(first, "run.started")
	second, third := p.start(c, "agent", "2", ""), p.start(c, "agent", "3", "")
	beside := p.start(c, "mock", "x", "")
	sound(t, p.follow(beside, nil, nil))
	for _, id := range []string{second, third} {
		if s := p.must(200, "GET", "/v1/executions/"+id, "").member("state"); s != "queued" {
			t.Errorf("%s while the lane is taken", s)
		}
	}
	x := p.must(200, "POST", "/v1/executions/"+second+":cancel", `{"reason":"not needed"}`)
	if x.member("state") != "cancelled" || types(p.events(second)) != "run.queued run.cancelled" {
		t.Errorf("cancelled in line: %s, %s", x.body, types(p.events(second)))
	}
	close(hold)
	a, b := p.follow(first, nil, nil), p.follow(third, nil, nil)
	sound(t, a)
	sound(t, b)
	if b[1].Time < a[len(a)-1].Time {
		t.Errorf("the third started at %s, the first ended at %s", b[1].Time, a[len(a)-1].Time)
	}
}

// X01, X05: a cancel is answered with the end, and once.
func TestACancelOfTheAgentIsAnsweredWithItsEnd(t *testing.T) {
	hang := func(ctx context.Context, yield func(session.Chunk, error) bool) {
		if yield(session.Chunk{Kind: session.ChunkText, Text: "half"}, nil) {
			<-ctx.Done()
			yield(session.Chunk{}, context.Cause(ctx))
		}
	}
	p := serve(t, memory.New(), &model{replies: replies{hang}})
	id := p.start(p.conversation(), "agent", "x", "")
	p.until(id, "output.text.delta")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			x := p.do("POST", "/v1/executions/"+id+":cancel", fmt.Sprintf(`{"reason":"r%d"}`, i))
			if x.status != 200 || x.member("state") != "cancelled" {
				t.Errorf("cancel %d: %d %s", i, x.status, x.body)
			}
		})
	}
	wg.Wait()
	events := p.events(id)
	sound(t, events)
	p.must(200, "POST", "/v1/executions/"+id+":cancel", "")
	if again := p.events(id); len(again) != len(events) || !strings.Contains(string(events[len(events)-1].Data), `"reason":"r`) {
		t.Errorf("%s, then %s", types(events), types(again))
	}
}

// Limits of section 11, with their texts.
func TestPassedLimitsFailTheExecutionWithTheirTexts(t *testing.T) {
	hang := func(ctx context.Context, yield func(session.Chunk, error) bool) {
		<-ctx.Done()
		yield(session.Chunk{}, context.Cause(ctx))
	}
	for _, c := range []struct {
		config, text string
		play         replies
	}{
		{`{"timeout":0.05}`, "Execution exceeded its timeout of 0.05 s", replies{hang}},
		{`{"maxSteps":1,"approvals":"never"}`, "Execution exceeded maxSteps 1", replies{calling("a", "act", "{}")}},
		{`{"colour":"red"}`, "Invalid agent config: colour", replies{saying("no")}},
	} {
		p := serve(t, memory.New(), &model{replies: c.play})
		id := p.start(p.conversation(), "agent", "x", `,"config":`+c.config)
		events := p.follow(id, nil, nil)
		sound(t, events)
		end := events[len(events)-1]
		if want := `{"code":"PROVIDER_ERROR","message":"` + c.text + `"}`; end.Type != "run.failed" || string(end.Data) != want {
			t.Errorf("%s: %s %s", c.config, end.Type, end.Data)
		}
		p.stop()
	}
}

// S02, S03, S11, V04: every cursor gives exactly what is behind it, as page and as stream.
func TestEveryCursorGivesExactlyWhatIsBehindIt(t *testing.T) {
	p := mocking(t)
	id := p.start(p.conversation(), "mock", "a b c d", `,"config":{"requireApproval":true,"delayMs":1}`)
	whole := make(chan []portable.Event, 1)
	go func() {
		events, err := p.read(id, nil, nil)
		if err != nil {
			t.Error(err)
		}
		whole <- events
	}()
	var a portable.Action
	_ = json.Unmarshal(p.until(id, "action.required").Data, &a)
	p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
	live := <-whole
	sound(t, live)
	for n := range len(live) + 1 {
		var l portable.EventList
		_ = json.Unmarshal(p.must(200, "GET", fmt.Sprintf("/v1/executions/%s/events?after=%d", id, n), "").body, &l)
		stream := p.follow(id, []string{"Last-Event-ID", fmt.Sprint(n)}, nil)
		for name, got := range map[string][]portable.Event{"page": l.Events, "stream": stream} {
			if lines(got) != lines(live[n:]) {
				t.Errorf("%s behind %d: %d events", name, n, len(got))
			}
		}
	}
}

// I01, I05, I08: a key does the work once, also over a restart.
func TestAKeyDoesTheWorkOnceAlsoInTheNextProcess(t *testing.T) {
	backing := memory.NewBacking()
	m := &model{replies: replies{saying("ok")}}
	p := serve(t, backing.Open("a"), m)
	c := p.conversation()
	body := `{"conversationId":"` + c + `","providerId":"agent","input":"x","idempotencyKey":"k"}`
	ids := make(chan string, 32)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { ids <- p.do("POST", "/v1/executions", body).member("id") })
	}
	wg.Wait()
	close(ids)
	id := <-ids
	for other := range ids {
		if other != id || id == "" {
			t.Fatalf("%q and %q", id, other)
		}
	}
	p.follow(id, nil, nil)
	p.stop()
	q := serve(t, backing.Open("b"), m)
	again := q.must(202, "POST", "/v1/executions", body)
	if again.member("id") != id || again.member("state") != "succeeded" {
		t.Errorf("replayed %s", again.body)
	}
	q.must(409, "POST", "/v1/executions", strings.Replace(body, `"x"`, `"y"`, 1))
	if n := m.requests(); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// N23: an approval outlives the process; its answer in the next one ends the turn and the tool runs once.
func TestAnAwaitingExecutionOfTheAgentOutlivesItsProcess(t *testing.T) {
	backing := memory.NewBacking()
	m := &model{replies: replies{calling("first", "act", "{}"), saying("done")}}
	p := serve(t, backing.Open("a"), m)
	c := p.conversation()
	id := p.start(c, "agent", "x", "")
	var a portable.Action
	_ = json.Unmarshal(p.until(id, "action.required").Data, &a)
	before := p.events(id)
	p.stop()
	q := serve(t, backing.Open("b"), m)
	if after := q.events(id); lines(after) != lines(before) || q.must(200, "GET", "/v1/executions/"+id, "").member("state") != "awaiting_approval" {
		t.Errorf("was %s, is %s", types(before), types(after))
	}
	behind := q.start(c, "agent", "later", "")
	q.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
	events := q.follow(id, nil, nil)
	sound(t, events)
	if q.tool.count() != 1 || events[len(events)-1].Type != "run.completed" {
		t.Errorf("the tool ran %d times: %s", q.tool.count(), types(events))
	}
	sound(t, q.follow(behind, nil, nil))
}

// X11, X12, X18, X19, F01-F03, A15: what a provider does wrong ends its execution, with the text of the contract.
func TestProvidersThatMisbehaveEndWithTheTextsOfTheContract(t *testing.T) {
	p := mocking(t, func(c *Config) { c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: time.Minute}) })
	hasty := mocking(t, func(c *Config) { c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: 200 * time.Millisecond}) })
	for mode, want := range map[string]string{
		"throw": "fixture threw", "reserved-event": "Provider emitted a reserved or unknown event type", "invalid-delta": "Provider emitted an invalid text delta",
		"invalid-artifact": "Provider emitted an invalid artifact descriptor", "duplicate-artifact": "Provider emitted duplicate artifact id: dup",
		"open-action": "Provider finished with an unresolved action",
	} {
		id := p.start(p.conversation(), "fixture", "x", `,"config":{"mode":"`+mode+`"}`)
		events := p.follow(id, nil, nil)
		sound(t, events)
		if end := events[len(events)-1]; end.Type != "run.failed" || string(end.Data) != `{"code":"PROVIDER_ERROR","message":"`+want+`"}` {
			t.Errorf("%s: %s %s", mode, end.Type, end.Data)
		}
	}
	for mode, want := range map[string]string{
		"cleanup-error": `{"providerCleanupError":"fixture cleanup failed","reason":"why"}`, "late-emit": `{"reason":"why"}`, "ignore-abort": `{"reason":"why"}`,
		"slow-cleanup": `{"providerCleanupError":"provider cleanup timed out after 200ms","reason":"why"}`,
	} {
		p := p
		if mode == "slow-cleanup" {
			p = hasty
		}
		id := p.start(p.conversation(), "fixture", "x", `,"config":{"mode":"`+mode+`"}`)
		p.until(id, "run.started")
		x := p.must(200, "POST", "/v1/executions/"+id+":cancel", `{"reason":"why"}`)
		events := p.events(id)
		sound(t, events)
		if end := events[len(events)-1]; x.member("state") != "cancelled" || string(end.Data) != want {
			t.Errorf("%s: %s %s", mode, x.body, end.Data)
		}
	}
	// The hook does as its mode says where Run is never called, too.
	one := mocking(t, func(c *Config) { c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: time.Minute, Running: 1}) })
	c := one.conversation()
	one.until(one.start(c, "fixture", "x", `,"config":{"mode":"late-emit"}`), "run.started")
	id := one.start(c, "fixture", "x", `,"config":{"mode":"cleanup-error"}`)
	one.must(200, "POST", "/v1/executions/"+id+":cancel", "")
	if events := one.events(id); types(events) != "run.queued run.cancelled" || string(events[1].Data) != `{"providerCleanupError":"fixture cleanup failed"}` {
		t.Errorf("cancelled in line: %s", lines(events))
	}
}

// N11, N25: what waits for its lane when the process ends is started by the next one, what is too old is failed.
func TestAQueuedExecutionIsStartedOnceByTheNextProcess(t *testing.T) {
	backing := memory.NewBacking()
	asked := make(chan struct{})
	hang := func(ctx context.Context, yield func(session.Chunk, error) bool) {
		close(asked)
		<-ctx.Done()
		yield(session.Chunk{}, context.Cause(ctx))
	}
	m := &model{replies: replies{hang, saying("ok")}}
	p := serve(t, backing.Open("a"), m)
	c := p.conversation()
	running := p.start(c, "agent", "1", "")
	<-asked
	queued := p.start(c, "agent", "2", "")
	var open []portable.Event
	ended, told := make(chan error, 1), make(chan struct{})
	go func() {
		var err error
		open, err = p.read(queued, nil, func(portable.Event) { close(told) })
		ended <- err
	}()
	select {
	case <-told:
	case err := <-ended:
		t.Fatalf("the stream ended before it told anything: %v", err)
	}
	p.stop()
	if err := <-ended; err != nil || types(open) != "run.queued" {
		t.Errorf("the open stream told %s and ended with %v", types(open), err)
	}
	q := serve(t, backing.Open("b"), m)
	events := q.follow(queued, nil, nil)
	sound(t, events)
	if events[len(events)-1].Type != "run.completed" || m.requests() != 2 {
		t.Errorf("%s after %d requests", types(events), m.requests())
	}
	if end := q.events(running); !strings.Contains(string(end[len(end)-1].Data), "runtime shutting down") {
		t.Errorf("the running one: %s", end[len(end)-1].Data)
	}
}

func TestAnIdleStreamIsKeptAliveByComments(t *testing.T) {
	p := mocking(t, func(c *Config) { c.Ping = 5 * time.Millisecond })
	id := p.start(p.conversation(), "mock", "x", `,"config":{"requireApproval":true}`)
	var a portable.Action
	_ = json.Unmarshal(p.until(id, "action.required").Data, &a)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := p.request(ctx, "GET", "/v1/executions/"+id+"/events", "")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := p.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in, raw := bufio.NewReader(resp.Body), ""
	for !strings.HasSuffix(raw, "\n\n: ping\n\n") {
		line, err := in.ReadString('\n')
		if raw += line; err != nil {
			t.Fatalf("stream %q: %v", raw, err)
		}
	}
	p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"approved":true}`)
	rest, err := io.ReadAll(in)
	if raw += string(rest); err != nil || !strings.Contains(raw, "run.completed") || strings.Contains(raw, "\r") {
		t.Errorf("stream %q: %v", raw, err)
	}
}

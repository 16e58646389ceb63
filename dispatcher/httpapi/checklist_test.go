package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Rows of docs/protocol/portable-2026-09-02.md section 15 that no other test of this package holds.

// D02, D03, C02-C04, C07, C08, C11: what is made is told as it was made, by every route; what is no object is none.
func TestConversationsAndTheRuntimeAreToldAlikeByAllRoutes(t *testing.T) {
	p := mocking(t)
	var whole, part struct{ Providers []json.RawMessage }
	_ = json.Unmarshal(p.must(200, "GET", "/v1/runtime", "").body, &whole)
	_ = json.Unmarshal(p.must(200, "GET", "/v1/runtime/capabilities", "").body, &part)
	all := fmt.Sprintf("%s", whole.Providers)
	if all != fmt.Sprintf("%s", part.Providers) || !strings.Contains(all, `{"id":"mock","name":"Deterministic mock"`) {
		t.Errorf("the runtime has %s, its capabilities %s", all, part.Providers)
	}
	for body, metadata := range map[string]string{
		"":                `{}`,
		" \n":             `{}`,
		`{}`:              `{}`,
		`{"metadata":{}}`: `{}`,
		`{"metadata":{"nul":"\u0000","emoji":"😀","null":null,"":{"a":[1,{"b":[]}]},"n":1e21,"big":9007199254740993,"f":1.0},"other":1}`: `{"nul":"\u0000","emoji":"😀","null":null,"":{"a":[1,{"b":[]}]},"n":1e21,"big":9007199254740993,"f":1.0}`,
		`{"metadata":{"__proto__":{"x":1},"constructor":"<&>"}}`:                                                                        `{"__proto__":{"x":1},"constructor":"<&>"}`,
	} {
		made := p.must(201, "POST", "/v1/conversations", body)
		if want := regexp.MustCompile(`^\{"id":"conv_[0-9a-f]{32}","createdAt":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","metadata":` + regexp.QuoteMeta(metadata) + `\}$`); !want.Match(made.body) {
			t.Errorf("%q makes %s", body, made.body)
		}
		if read := p.must(200, "GET", "/v1/conversations/"+made.member("id"), ""); string(read.body) != string(made.body) {
			t.Errorf("made %s, read %s", made.body, read.body)
		}
	}
	before := count(t, p)
	for _, body := range []string{`null`, `[]`, `42`, `"x"`, `true`, `{"metadata":null}`, `{"metadata":[]}`, `{"metadata":"x"}`, `{"metadata":1}`} {
		if a := p.must(400, "POST", "/v1/conversations", body); a.member("message") != "Invalid conversation request" {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	if n := count(t, p); n != before {
		t.Errorf("%d conversations were made", n-before)
	}
}

// Section 14, S01: the exchange of the contract, byte for byte but for ids and times.
func TestTheExchangeOfTheContractIsSpokenAsWritten(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	start := `{"conversationId":"` + c + `","providerId":"mock","input":"two words","config":{"prefix":"","requireApproval":true},"idempotencyKey":"job-7"}`
	a := p.must(202, "POST", "/v1/executions", start)
	id := a.member("id")
	const stamp = `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`
	if want := regexp.MustCompile(`^\{"id":"exec_[0-9a-f]{32}","conversationId":"` + c + `","providerId":"mock","state":"queued","input":"two words","requiredCapabilities":\[\],` +
		`"effectiveConfig":\{"prefix":"","requireApproval":true\},"createdAt":` + stamp + `,"updatedAt":` + stamp + `\}$`); !want.Match(a.body) {
		t.Errorf("accepted %s", a.body)
	}
	asked := p.until(id, "action.required")
	var action portable.Action
	if err := json.Unmarshal(asked.Data, &action); err != nil {
		t.Fatal(err)
	}
	stream := make(chan *answered, 1)
	go func() {
		stream <- p.do("GET", "/v1/executions/"+id+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", "2")
	}()
	respond := "/v1/executions/" + id + "/actions/" + action.ID + ":respond"
	if x := p.must(200, "POST", respond, `{"approved":true}`); x.member("state") != "running" {
		t.Errorf("answered with %s", x.body)
	}
	if x := p.must(409, "POST", respond, `{"approved":true}`); string(x.body) != `{"code":"ACTION_ALREADY_RESOLVED","message":"Action already resolved: `+action.ID+`"}` {
		t.Errorf("the second answer is %s", x.body)
	}
	told := <-stream
	if told.status != 200 || told.header.Get("Content-Type") != "text/event-stream" || told.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("stream: %d %v", told.status, told.header)
	}
	var want strings.Builder
	for i, e := range []string{
		"action.required " + string(asked.Data), `action.responded {"actionId":"` + action.ID + `","approved":true}`, `output.text.delta {"text":"two "}`,
		`output.text.delta {"text":"words"}`, `output.text.done {"text":"two words"}`, `run.completed {"finalOutput":"two words"}`,
	} {
		kind, data, _ := strings.Cut(e, " ")
		n := i + 3
		fmt.Fprintf(&want, "event: %s\ndata: {\"id\":\"%s:%d\",\"executionId\":\"%s\",\"sequence\":%d,\"type\":\"%s\",\"time\":\"TIME\",\"data\":%s}\nid: %d\n\n", kind, id, n, id, n, kind, data, n)
	}
	if got := regexp.MustCompile(`"time":`+stamp).ReplaceAllString(string(told.body), `"time":"TIME"`); got != want.String() {
		t.Errorf("told\n%s\nwant\n%s", got, want.String())
	}
	var list struct{ Events []json.RawMessage } // each line of data is the entry of the list
	_ = json.Unmarshal(p.must(200, "GET", "/v1/executions/"+id+"/events?after=2", "").body, &list)
	for _, e := range list.Events {
		if !strings.Contains(string(told.body), "\ndata: "+string(e)+"\nid: ") {
			t.Errorf("the list has %s", e)
		}
	}
	// I07: the same start afterwards is the finished record, and nothing happens.
	x := p.must(202, "POST", "/v1/executions", start)
	if read := p.must(200, "GET", "/v1/executions/"+id, ""); string(x.body) != string(read.body) || x.member("state") != "succeeded" || len(p.events(id)) != 8 {
		t.Errorf("asked again: %s; read: %s", x.body, read.body)
	}
}

// E19, E20, S14, I09, V01: executions of one conversation at one time keep logs of their own; each event is told live once, and the state is
// that of the last one.
func TestManyExecutionsOfOneConversationAreToldLiveEachByItself(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	kinds := map[string]string{
		"run.queued": "queued", "run.started": "running", "output.text.delta": "running", "output.text.done": "succeeded", "run.completed": "succeeded",
	}
	seen := sync.Map{}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			id := p.start(c, "mock", fmt.Sprintf("%d a b", i%2), `,"config":{"prefix":"","delayMs":1}`)
			if _, again := seen.LoadOrStore(id, true); again {
				t.Errorf("%s was started twice", id)
			}
			updated := ""
			events := p.follow(id, nil, func(e portable.Event) {
				x := p.must(200, "GET", "/v1/executions/"+id, "") // no older than the event
				if up := x.member("updatedAt"); up < updated {
					t.Errorf("updatedAt falls from %s to %s", updated, up)
				} else {
					updated = up
				}
				if kinds[e.Type] == "" || e.ID != fmt.Sprintf("%s:%d", id, e.Sequence) || e.ExecutionID != id || kinds[e.Type] != "queued" && x.member("state") == "queued" {
					t.Errorf("told %+v while it is %s", e, x.member("state"))
				}
			})
			sound(t, events)
			if got := strings.Join(deltas(events), ""); got != fmt.Sprintf("%d a b", i%2) || lines(events) != lines(p.events(id)) {
				t.Errorf("told %s", lines(events))
			}
			var x portable.Execution
			_ = json.Unmarshal(p.must(200, "GET", "/v1/executions/"+id, "").body, &x)
			if x.State != "succeeded" || x.CreatedAt > x.StartedAt || x.StartedAt > x.EndedAt || x.UpdatedAt != x.EndedAt || x.EndedAt != events[len(events)-1].Time {
				t.Errorf("%+v", x)
			}
		})
	}
	wg.Wait()
}

// S08: what a provider says is told when it says it.
func TestAStreamTellsEachPieceWhenItIsSaid(t *testing.T) {
	heard := make(chan struct{}, 6)
	p := mocking(t, providing(session.ExecutionOptions{}, doing(func(ctx context.Context, x *session.Execution) (string, error) {
		for range cap(heard) {
			if err := x.Say("word "); err != nil {
				return "", err
			}
			select {
			case <-heard: // the next one is not said before
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return "", nil
	})))
	events := p.follow(p.start(p.conversation(), "own", "x", ""), nil, func(e portable.Event) {
		if e.Type == "output.text.delta" {
			heard <- struct{}{}
		}
	})
	sound(t, events)
	if n := len(deltas(events)); n != cap(heard) {
		t.Errorf("%d words were told", n)
	}
}

// X04, X13, X15, X02: whenever a cancel strikes, an execution has one end, the answer, the record and the log agree about it, and it stays.
func TestACancelAtAnyMomentAgreesWithTheLog(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	ends := map[string]int{}
	for i := range 60 {
		delay := 1
		if i == 0 { // this one is cancelled in time for certain
			delay = 60_000
		}
		id := p.start(c, "mock", "a b c", fmt.Sprintf(`,"config":{"prefix":"","delayMs":%d}`, delay))
		time.Sleep(time.Duration(i%20) * 300 * time.Microsecond)
		x := p.must(200, "POST", "/v1/executions/"+id+":cancel", "")
		events := p.events(id)
		sound(t, events)
		end := events[len(events)-1]
		ends[end.Type]++
		if want := map[string]string{"run.completed": "succeeded", "run.cancelled": "cancelled"}[end.Type]; x.member("state") != want {
			t.Errorf("%s, the log ends with %s", x.body, end.Type)
		}
		if end.Type == "run.cancelled" && (string(end.Data) != "{}" || strings.Contains(lines(events), "output.text.done")) {
			t.Errorf("cancelled without a reason: %s", lines(events))
		}
		again := p.must(200, "POST", "/v1/executions/"+id+":cancel", `{"reason":"too late"}`)
		if string(again.body) != string(x.body) || lines(p.events(id)) != lines(events) {
			t.Errorf("was %s, is %s", x.body, again.body)
		}
	}
	if ends["run.cancelled"] == 0 {
		t.Errorf("no cancel came in time: %v", ends)
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// tidy is a provider whose cleanup takes until it is let go.
type tidy struct {
	*held
	done chan struct{}
}

func (d *tidy) Cancel(ctx context.Context, _ *session.Execution, _ *string) error {
	select {
	case <-d.done:
	case <-ctx.Done():
	}
	return nil
}

// Sections 4 and 5: an execution has the members of its state and no other, tells of its events when it came to it, and how it ended, word for word; the key
// it was started with is told nowhere.
func TestAnExecutionHasTheMembersOfItsStateAndTheTimesOfItsEvents(t *testing.T) {
	h := newHeld()
	d := &tidy{newHeld(), make(chan struct{})}
	p := mocking(t, func(c *Config) {
		c.Sessions.SetExecutions(session.ExecutionOptions{Cleanup: time.Minute, Running: 2})
		c.Commands = commands(c.Sessions,
			executions.Provider{Runner: h, Manifest: portable.NewManifest("held", "Held", "1", "embedded", "parallel", nil)},
			executions.Provider{Runner: d, Manifest: portable.NewManifest("tidy", "Tidy", "1", "embedded", "parallel", nil)})
	})
	c := p.conversation()
	always := []string{"id", "conversationId", "providerId", "state", "input", "requiredCapabilities", "effectiveConfig", "createdAt", "updatedAt"}
	const key = "a-key-that-nobody-tells"
	begun := 0
	begin := func(provider, more string) string {
		t.Helper()
		begun++
		a := p.must(202, "POST", "/v1/executions", fmt.Sprintf(`{"conversationId":%q,"providerId":%q,"input":"in","idempotencyKey":"%s%d"%s}`, c, provider, key, begun, more))
		var x map[string]json.RawMessage
		if err := json.Unmarshal(a.body, &x); err != nil || !slices.Equal(slices.Sorted(maps.Keys(x)), slices.Sorted(slices.Values(always))) || a.member("state") != "queued" {
			t.Errorf("accepted as %s", a.body)
		}
		return a.member("id")
	}
	check := func(id, state string, more ...string) {
		t.Helper()
		a := p.must(200, "GET", "/v1/executions/"+id, "")
		told := string(a.body) + string(p.must(200, "GET", "/v1/executions/"+id+"/events", "").body)
		var x map[string]json.RawMessage
		if err := json.Unmarshal(a.body, &x); err != nil {
			t.Fatal(err)
		}
		if want := slices.Sorted(slices.Values(append(more, always...))); a.member("state") != state || !slices.Equal(slices.Sorted(maps.Keys(x)), want) {
			t.Errorf("%s has %v: %s", state, want, a.body)
		}
		if strings.Contains(told, key) {
			t.Errorf("%s: the key is told: %s", state, told)
		}
		at := map[string]string{}
		var artifacts []string
		for _, e := range p.events(id) {
			switch data := string(e.Data); e.Type {
			case "output.text.delta", "provider.event", "output.text.done":
			case "artifact.created":
				artifacts = append(artifacts, data)
			case "run.completed":
				if want := `{"finalOutput":` + string(x["finalOutput"]) + `}`; data != want {
					t.Errorf("it ends with %s, and is %s", data, a.body)
				}
				fallthrough
			default:
				if e.Type == "run.failed" && data != string(x["error"]) {
					t.Errorf("it ends with %s, and is %s", data, a.body)
				}
				at[e.Type], at["last"] = e.Time, e.Time
				if portable.Terminal(e.Type) {
					at["end"] = e.Time
				}
			}
		}
		if state == "cancelling" { // which no event tells
			if a.member("updatedAt") < at["last"] {
				t.Errorf("cancelling since %s, behind an event of %s", a.member("updatedAt"), at["last"])
			}
			at["last"] = a.member("updatedAt")
		}
		for name, kind := range map[string]string{"createdAt": "run.queued", "startedAt": "run.started", "updatedAt": "last", "endedAt": "end"} {
			if a.member(name) != at[kind] {
				t.Errorf("%s: %s is %q, the event's time %q", state, name, a.member(name), at[kind])
			}
		}
		if list := string(p.must(200, "GET", "/v1/executions/"+id+"/artifacts", "").body); list != `{"artifacts":[`+strings.Join(artifacts, ",")+"]}" {
			t.Errorf("artifacts %s, events %s", list, artifacts)
		}
	}
	ended := func(provider, more, state string, members ...string) {
		t.Helper()
		id := begin(provider, more)
		sound(t, p.follow(id, nil, nil))
		check(id, state, members...)
	}
	ended("mock", `,"config":{"artifactName":"n"}`, "succeeded", "startedAt", "endedAt", "finalOutput")
	ended("script", `,"config":{"steps":[{"artifact":{"id":"b","name":"B","mediaType":"m/m"}},{"delta":"x"},{"artifact":{"id":"a","name":"A","mediaType":"m/m","uri":"u:","metadata":{"n":1.0}}},{"final":""}]}`,
		"succeeded", "startedAt", "endedAt", "finalOutput")
	ended("script", `,"config":{"steps":[{"delta":"x"},{"artifact":{"id":"a","name":"A","mediaType":"m/m"}},{"fail":"no <luck>"}]}`, "failed", "startedAt", "endedAt", "error")

	asked := begin("mock", `,"config":{"requireApproval":true}`)
	p.until(asked, "action.required")
	check(asked, "awaiting_approval", "startedAt")
	p.must(200, "POST", "/v1/executions/"+asked+":cancel", "")
	check(asked, "cancelled", "startedAt", "endedAt")
	asked = begin("mock", `,"config":{"requestInput":true}`)
	p.until(asked, "action.required")
	check(asked, "awaiting_input", "startedAt")
	p.must(200, "POST", "/v1/executions/"+asked+":cancel", `{"reason":"why"}`)

	slow := begin("tidy", "")
	<-d.begun
	cancelled := make(chan int, 1)
	go func() { cancelled <- p.do("POST", "/v1/executions/"+slow+":cancel", "").status }()
	p.becomes(slow, "cancelling")
	check(slow, "cancelling", "startedAt")
	close(d.done)
	if status := <-cancelled; status != 200 {
		t.Errorf("the cancel is answered with %d", status)
	}
	check(slow, "cancelled", "startedAt", "endedAt")

	first, second := begin("held", ""), begin("held", `,"config":{"n":2}`)
	<-h.begun
	<-h.begun
	behind := begin("held", `,"config":{"n":3}`)
	check(first, "running", "startedAt")
	check(behind, "queued")
	p.must(200, "POST", "/v1/executions/"+behind+":cancel", "")
	check(behind, "cancelled", "endedAt")
	h.let <- struct{}{}
	h.let <- struct{}{}
	p.follow(first, nil, nil)
	p.follow(second, nil, nil)
}

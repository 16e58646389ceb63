package dispatcher_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// executing is launch with providers of executions.
func executing(t peers.T, w *peers.World, instance string) *process {
	t.Helper()
	return executingWith(t, w, instance, `[{"text":"hi"}]`)
}

// executingWith is executing with a script for the agent.
func executingWith(t peers.T, w *peers.World, instance, text string) *process {
	t.Helper()
	p := launch(t, w, instance, text, "")
	commands := executions.New(executions.Config{Sessions: p.All, Version: "0.0.0", Providers: []executions.Provider{
		executions.Agent("0.0.0", nil), executions.Mock("0.0.0"), executions.Script("0.0.0"), executions.Fixture("0.0.0"),
	}})
	commands.Adopt(time.Hour)
	p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Executions: commands})
	return p
}

// made makes a conversation and returns its id.
func made(c *client) string {
	c.T.Helper()
	var r struct{ Conversation portable.Conversation }
	l := c.call("rind/conversation/create", "")
	if err := json.Unmarshal(l.result, &r); err != nil {
		c.T.Fatal(err)
	}
	return r.Conversation.ID
}

// execute starts an execution and returns its id.
func execute(c *client, conversation, provider, config string) string {
	c.T.Helper()
	return c.call("rind/execution/start", fmt.Sprintf(`{"conversationId":%q,"providerId":%q,"input":"in","config":%s}`, conversation, provider, config)).text("id")
}

type eventPage struct {
	Events     []portable.Event
	NextCursor int64 `json:"nextCursor"`
	Following  bool
}

func part(t peers.T, l *line) eventPage {
	t.Helper()
	var p eventPage
	if l.err != nil || json.Unmarshal(l.result, &p) != nil {
		t.Fatalf("no page of events: %s", l.raw)
	}
	return p
}

// followed are the events that lines told of an execution.
func followed(t peers.T, lines []*line, id string) []portable.Event {
	t.Helper()
	var out []portable.Event
	for _, l := range lines {
		if l.method != "execution/event" || !strings.Contains(l.raw, `"execution_id":"`+id+`"`) {
			continue
		}
		var e portable.Event
		if err := json.Unmarshal(l.event, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func ends(id string) func(*line) bool {
	return func(l *line) bool {
		return l.method == "execution/event" && strings.Contains(l.raw, id) && strings.Contains(l.raw, `"type":"run.`) && !strings.Contains(l.raw, `"run.started"`) && !strings.Contains(l.raw, `"run.queued"`)
	}
}

// N18: a follow is the page, then each event behind it once, whatever the place it begins at.
func TestAFollowHasNoGapAndNoRepeatFromAnyPlace(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(env)
		c.hello()
		id := execute(c, made(c), "script", `{"steps":[{"delta":"a"},{"sleepMs":50},{"delta":"b"},{"sleepMs":50},{"approval":{"title":"Go on?"}},{"delta":"c"},{"artifact":{"id":"x","name":"n","mediaType":"text/plain"}},{"delta":"d"}]}`)
		others := map[string]*client{}
		for after := 0; after < 12; after++ {
			for _, limit := range []int{1, 3, 1000} {
				o := p.connect(env)
				o.hello()
				others[fmt.Sprint(after, " ", limit)] = o
				o.send("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":%d,"limit":%d,"follow":true}`, id, after, limit))
			}
			time.Sleep(10 * time.Millisecond) // so that they join at different moments of the run
		}
		var ask portable.Action
		all := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
		if err := json.Unmarshal(all[len(all)-1].Data, &ask); err != nil {
			t.Fatal(err)
		}
		c.call("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":{"approved":true}}`, id, ask.ID))
		synctest.Wait()
		all = part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
		if n := len(all); n < 10 || all[n-1].Type != "run.completed" {
			t.Fatalf("the run has %d events", len(all))
		}
		for name, o := range others {
			var after, limit int
			_, _ = fmt.Sscan(name, &after, &limit)
			lines := o.Got()
			at := place(lines, func(l *line) bool { return l.id == "2" })
			if got := followed(t, lines[:at], id); len(got) > 0 {
				t.Errorf("%s: %d events before the answer", name, len(got))
			}
			first := part(t, lines[at])
			told := append(first.Events, followed(t, lines[at:], id)...)
			want := all[min(after, len(all)):]
			if !reflect.DeepEqual(told, append([]portable.Event{}, want...)) && len(told)+len(want) > 0 {
				t.Errorf("after %s: %d events were told, want %d", name, len(told), len(want))
			}
			if first.Following == (len(first.Events) == len(want) && len(want) > 0 && first.Events[len(first.Events)-1].Type == "run.completed") {
				t.Errorf("after %s: following %v", name, first.Following)
			}
			gapFree(t, lines)
		}
		p.end()
	})
}

func TestAFollowIsEndedAndReplaced(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(env)
		c.hello()
		id := execute(c, made(c), "script", `{"steps":[{"delta":"a"},{"sleepMs":100},{"delta":"b"},{"sleepMs":100},{"delta":"c"}]}`)
		synctest.Wait() // what comes before the first pause is in the pages, not told live
		ask := func(more string) *line {
			return c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q%s}`, id, more))
		}
		ask(`,"follow":true`)
		ask(`,"after":1,"follow":true`) // replaces: one stream, from here
		ask(`,"after":3,"limit":1`)     // ends
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if got := followed(t, c.Got(), id); len(got) != 0 {
			t.Errorf("%d events were told after the end of the follow", len(got))
		}
		ask(`,"after":3,"limit":1,"follow":true`)
		c.await("end", ends(id))
		synctest.Wait()
		seen := map[int64]int{}
		for _, e := range followed(t, c.Got(), id) {
			seen[e.Sequence]++
		}
		for n, times := range seen {
			if times != 1 {
				t.Errorf("event %d was told %d times", n, times)
			}
		}
		if seen[5] != 1 || seen[7] != 1 {
			t.Errorf("told %v", seen)
		}
		// A request that fails ends the follow before it too, and leaves nothing behind.
		c.refused("rind/execution/events", `{"execution_id":"exec_00000000000000000000000000000000","follow":true}`, "NotFound", "Execution not found: exec_00000000000000000000000000000000")
		p.end()
	})
}

// A follower that does not read costs a cursor: the run ends, others are told, and it is told everything afterwards, piece by piece.
func TestAFollowerThatDoesNotReadHoldsUpNobodyAndMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		steps := strings.Repeat(fmt.Sprintf(`{"delta":%q},`, strings.Repeat("x", 1000)), 2000)
		id := execute(c, made(c), "script", `{"steps":[{"approval":{"title":"Begin?"}},`+steps+`{"final":"done"}]}`)
		deaf := p.connectDeaf(rindv2.Rind)
		deaf.ask("1", "initialize", "")
		deaf.ask("2", "rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		synctest.Wait()
		first := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":2,"limit":1,"follow":true}`, id)))
		var ask portable.Action
		if err := json.Unmarshal(first.Events[0].Data, &ask); err != nil {
			t.Fatal(err)
		}
		c.call("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":{"approved":true}}`, id, ask.ID))
		c.await("end", ends(id))
		deaf.Hear()
		deaf.await("end", ends(id))
		synctest.Wait()
		want, got := followed(t, c.Got(), id), followed(t, deaf.Got(), id)
		if n := len(got); n < 2000 || !reflect.DeepEqual(got[n-2000:], want[len(want)-2000:]) {
			t.Errorf("the one that did not read was told %d events, the other %d", len(got), len(want))
		}
		gapFree(t, deaf.Got())
		p.end()
	})
}

func TestAPageOfEventsEndsAtItsBytesAndIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		steps := strings.Repeat(fmt.Sprintf(`{"delta":%q},`, strings.Repeat("y", 1<<20)), 9)
		id := execute(c, made(c), "script", `{"steps":[`+steps+`{"final":"f"}]}`)
		synctest.Wait() // pages that are read while it runs end where it is
		var all []portable.Event
		pages := 0
		for {
			got := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":%d}`, id, len(all))))
			if len(got.Events) == 0 {
				break
			}
			pages++
			all = append(all, got.Events...)
			if got.NextCursor != int64(len(all)) || all[len(all)-1].Sequence != got.NextCursor {
				t.Fatalf("page %d ends at %d with %d events", pages, got.NextCursor, len(all))
			}
		}
		if len(all) != 13 || pages != 3 {
			t.Errorf("%d events in %d pages", len(all), pages)
		}
		if end := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":%d}`, id, len(all)))); end.NextCursor != int64(len(all)) || end.Following {
			t.Errorf("the empty page: %+v", end)
		}
		// The other way: what a short page leaves out is followed.
		first := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id)))
		if !first.Following || len(first.Events) >= len(all) {
			t.Fatalf("a page of %d events, following: %v", len(first.Events), first.Following)
		}
		c.await("end", ends(id))
		if told := append(first.Events, followed(t, c.Got(), id)...); !reflect.DeepEqual(told, all) {
			t.Errorf("%d events were told, %d there are", len(told), len(all))
		}
		p.end()
	})
}

// The bound is that of the line as it is written: many small events, events that grow as they are escaped, and a long id count in full.
func TestTheLineOfAPageIsWithinItsBound(t *testing.T) {
	for name, step := range map[string]string{
		"deltas": fmt.Sprintf(`{"delta":%q},`, strings.Repeat("y", 300)),
		"raw":    `{"event":{"method":"m","params":{"t":"` + strings.Repeat(" ", 90) + `"}}},`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most, steps = 4 << 20, 10_000
				p := executing(t, peers.NewWorld(), "a")
				c := p.connect(rindv2.Rind)
				c.hello()
				id := execute(c, made(c), "script", `{"steps":[`+strings.Repeat(step, steps)+`{"final":"f"}]}`)
				synctest.Wait()
				var all []portable.Event
				for pages := 1; ; pages++ {
					request := fmt.Sprintf(`"%d%s"`, pages, strings.Repeat("i", 100_000))
					c.ask(request, "rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":%d,"limit":10000}`, id, len(all)))
					l := c.response(request)
					if len(l.raw)+1 > most {
						t.Errorf("page %d is a line of %d bytes", pages, len(l.raw)+1)
					}
					got := part(t, l).Events
					if len(got) == 0 {
						break
					}
					if pages == 1 && len(l.raw) < most*9/10 {
						t.Errorf("the first page is a line of %d bytes only", len(l.raw))
					}
					all = append(all, got...)
				}
				sum := 0
				for i, e := range all {
					if e.Sequence != int64(i+1) {
						t.Fatalf("event %d has number %d", i+1, e.Sequence)
					}
					if e.Type == "output.text.delta" || e.Type == "provider.event" {
						sum++
					}
				}
				if sum != steps || all[len(all)-1].Type != "run.completed" {
					t.Errorf("%d events, of which the provider told %d", len(all), sum)
				}
				p.end()
			})
		})
	}
}

// Two answers on their way together: the one that was sent first counts. Starts stand in line as they were sent.
func TestExecutionsCancelsAndAnswersTakeEffectInReadingOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(env)
		c.hello()
		conv := made(c)
		for round := range 20 {
			id := execute(c, conv, "mock", `{"requireApproval":true,"delayMs":0}`)
			synctest.Wait()
			events := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
			var ask portable.Action
			if err := json.Unmarshal(events[len(events)-1].Data, &ask); err != nil {
				t.Fatal(err)
			}
			respond := func(approved bool) string {
				return c.send("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":{"approved":%v}}`, id, ask.ID, approved))
			}
			first, second := respond(round%2 == 0), respond(round%2 != 0)
			if l := c.response(first); l.err != nil {
				t.Errorf("first answer: %s", l.raw)
			}
			if l := c.response(second); l.err == nil || l.err.Type != "Conflict" {
				t.Errorf("second answer: %s", l.raw)
			}
			synctest.Wait()
			state := c.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).text("state")
			if want := map[bool]string{true: "succeeded", false: "failed"}[round%2 == 0]; state != want {
				t.Errorf("round %d: %s, want %s", round, state, want)
			}
		}
		var ids []string
		for i := range 8 {
			ids = append(ids, c.send("rind/execution/start", fmt.Sprintf(`{"conversationId":%q,"providerId":"agent","input":"%d"}`, conv, i)))
		}
		synctest.Wait()
		var order []string
		for _, e := range p.Entries(c.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, conv)).text("session_id")) {
			if e.Kind == protocol.KindTurnAccepted {
				order = append(order, string(e.Turn))
			}
		}
		order = order[len(order)-8:]
		for i, id := range ids {
			if got := c.response(id).text("id"); got != "exec_"+order[i] {
				t.Errorf("start %d stands in another place", i)
			}
		}
		p.end()
	})
}

// A prompt's answer comes after everything that a follower of its turn is told.
func TestNothingOfATurnThatIsFollowedComesBehindTheAnswerToItsPrompt(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(env)
		sid := c.hello()
		other := p.connect(env)
		other.hello()
		other.call("session/subscribe", fmt.Sprintf(`{"session_id":%q}`, sid))
		done := c.send("session/prompt", `{"input":"hello"}`)
		turn := other.event("turn_started").turn
		c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":"exec_%s","follow":true}`, turn))
		c.response(done)
		synctest.Wait()
		lines := c.Got()
		at := place(lines, func(l *line) bool { return l.id == done })
		if late := followed(t, lines[at:], "exec_"+turn); len(late) > 0 && place(lines, func(l *line) bool { return l.id == "3" }) < at {
			t.Errorf("%d events of the turn behind the answer to its prompt", len(late))
		}
		p.end()
	})
}

func TestAnExecutionMakesADraftASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		sid := c.hello()
		var r struct{ Conversation portable.Conversation }
		if err := json.Unmarshal(c.call("rind/conversation/read", fmt.Sprintf(`{"session_id":%q}`, sid)).result, &r); err != nil {
			t.Fatal(err)
		}
		if again := c.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, r.Conversation.ID)); again.text("session_id") != sid {
			t.Errorf("read by its conversation: %s", again.raw)
		}
		if _, err := p.Store.Session(t.Context(), "x"); err == nil {
			t.Error("an unknown session is there")
		}
		id := execute(c, r.Conversation.ID, "mock", `{"delayMs":0}`)
		synctest.Wait()
		if state := c.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).text("state"); state != "succeeded" {
			t.Errorf("the execution is %s", state)
		}
		p.Sound(sid)
		c.refused("rind/conversation/read", `{}`, "InvalidRequest", "conversation_id must be a non-empty string")
		c.refused("rind/conversation/read", `{"conversation_id":"a","session_id":"b"}`, "InvalidRequest", "conversation_id and session_id exclude each other")
		p.end()
	})
}

func TestASessionIsNotDeletedUnderARunningExecution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		conv := made(c)
		sid := c.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, conv)).text("session_id")
		id := execute(c, conv, "mock", `{"requireApproval":true}`)
		c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id))
		c.refused("session/delete", fmt.Sprintf(`{"session_id":%q}`, sid), "TurnActive", "Cannot delete a session while a turn is active.")
		c.call("rind/execution/cancel", fmt.Sprintf(`{"execution_id":%q}`, id))
		c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"after":100,"follow":true}`, id))
		c.call("session/delete", fmt.Sprintf(`{"session_id":%q}`, sid))
		synctest.Wait()
		c.refused("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id), "NotFound", "Execution not found: "+id)
		c.refused("rind/execution/start", fmt.Sprintf(`{"conversationId":%q,"providerId":"mock","input":""}`, conv), "NotFound", "Conversation not found: "+conv)
		p.end()
	})
}

func TestTheDescriptionOfTheRuntimeAndItsObjectsAreOfTheSchema(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		var v any
		if err := json.Unmarshal(c.call("rind/runtime/describe", "").result, &v); err != nil {
			t.Fatal(err)
		}
		check := newChecker(t)
		if err := check.validate(check.meth["rind/runtime/describe"].Result.Ref, v); err != nil {
			t.Error(err)
		}
		p.end()
	})
	for _, pair := range [][2]any{
		{portable.Manifest{}, rindv2.ProviderManifest{}},
		{portable.Description{}, rindv2.RuntimeDescription{}},
		{portable.Conversation{}, rindv2.Conversation{}},
		{portable.Execution{}, rindv2.Execution{}},
		{portable.Failure{}, rindv2.ExecutionError{}},
		{portable.Event{}, rindv2.ExecutionEvent{}},
		{portable.Artifact{}, rindv2.ExecutionArtifact{}},
	} {
		if a, b := tags(pair[0]), tags(pair[1]); !reflect.DeepEqual(a, b) {
			t.Errorf("%T has %v, its description %v", pair[0], a, b)
		}
	}
}

func tags(v any) (out []string) {
	for f := range reflect.TypeOf(v).Fields() {
		out = append(out, f.Tag.Get("json"))
	}
	return out
}

// A session another process works in is watched like one's own.
func TestAnExecutionOfAnotherProcessIsFollowedAnsweredAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		a, b := executing(t, w, "a"), executing(t, w, "b")
		c, d := a.connect(rindv2.Rind), b.connect(rindv2.JSONRPC)
		c.hello()
		d.hello()
		conv := made(c)
		id := execute(c, conv, "mock", `{"requireApproval":true,"delayMs":0}`)
		synctest.Wait()
		first := part(t, d.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,"follow":true}`, id)))
		var ask portable.Action
		if err := json.Unmarshal(first.Events[len(first.Events)-1].Data, &ask); err != nil {
			t.Fatal(err)
		}
		d.call("rind/action/respond", fmt.Sprintf(`{"execution_id":%q,"action_id":%q,"response":{"approved":true}}`, id, ask.ID))
		d.await("end", ends(id))
		second := execute(c, conv, "mock", `{"requestInput":true}`)
		if l := d.call("rind/execution/cancel", fmt.Sprintf(`{"execution_id":%q,"reason":"over there"}`, second)); l.text("state") != "cancelled" {
			t.Errorf("cancelled from the other process: %s", l.raw)
		}
		if l := d.response(d.send("rind/execution/start", fmt.Sprintf(`{"conversationId":%q,"providerId":"mock","input":"x"}`, conv))); l.err != nil && l.err.Type != "Unavailable" {
			t.Errorf("start in the other process: %s", l.raw)
		}
		time.Sleep(time.Second) // of the bubble: everything has ended
		if err := testkit.SoundLog(a.Entries(c.call("rind/conversation/read", fmt.Sprintf(`{"conversation_id":%q}`, conv)).text("session_id"))); err != nil {
			t.Error(err)
		}
		b.end()
		a.end()
	})
}

// A16, section 8: an action does not expire by itself.
func TestAnActionThatNobodyAnswersStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		conv := made(c)
		for provider, config := range map[string]string{"mock": `{"requireApproval":true}`, "script": `{"steps":[{"input":{"title":"Who?"}}]}`} {
			id := execute(c, conv, provider, config)
			synctest.Wait()
			asked := c.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).text("state")
			time.Sleep(48 * time.Hour) // of the bubble
			if state := c.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id)).text("state"); state != asked || !strings.HasPrefix(asked, "awaiting_") {
				t.Errorf("%s was %s, and is %s two days later", provider, asked, state)
			}
			c.call("rind/execution/cancel", fmt.Sprintf(`{"execution_id":%q}`, id))
		}
		p.end()
	})
}

// N24, section 10: a turn of an editor whose process died reads as it was, and reading writes nothing. A start on its lane or a cancel closes it,
// once; an editor may go on with it, which is told as that.
func TestAnInterruptedTurnOfAnEditorIsReadAsItWasAndSettledOnce(t *testing.T) {
	const script = `{"turns":[{"match":"stop here","steps":[{"text":"half"},{"call":{"id":"c1","name":"stay","arguments":{}}},{"finish":"tool_calls"},{"text":"rest"}]},{"steps":[{"text":"ok"}]}]}`
	for name, c := range map[string]struct{ settle, want, end string }{
		"start":  {"start", "failed", `run.failed {"code":"PROVIDER_ERROR","message":"The runtime stopped before this turn finished."}`},
		"cancel": {"cancel", "cancelled", `run.cancelled {"reason":"why"}`},
		"resume": {"resume", "succeeded", "run.completed "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := peers.NewWorld()
				dead := executingWith(t, w, "dead", script)
				o := dead.connect(rindv2.Rind)
				sid := o.hello()
				o.send("session/prompt", `{"input":"stop here"}`)
				id := "exec_" + o.event("tool_call_started").turn
				synctest.Wait()
				dead.kill()

				p := executingWith(t, w, "next", script)
				d := p.connect(rindv2.Rind)
				d.hello()
				conv := ""
				events := func() []portable.Event {
					return part(t, d.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q}`, id))).Events
				}
				state := func() string {
					x := d.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, id))
					conv = x.text("conversationId")
					return x.text("state")
				}
				stored := len(p.Entries(sid))
				before := events()
				if s := state(); s != "running" || len(p.Entries(sid)) != stored {
					t.Errorf("read, it is %s, and %d entries were written", s, len(p.Entries(sid))-stored)
				}
				switch c.settle {
				case "start":
					next := execute(d, conv, "agent", `{}`)
					synctest.Wait()
					if s := d.call("rind/execution/read", fmt.Sprintf(`{"execution_id":%q}`, next)).text("state"); s != "succeeded" {
						t.Errorf("what was started behind it is %s", s)
					}
				case "cancel":
					d.call("rind/execution/cancel", fmt.Sprintf(`{"execution_id":%q,"reason":"why"}`, id))
				case "resume":
					d.call("session/switch", fmt.Sprintf(`{"session_id":%q}`, sid))
					d.call("session/prompt", `{"resume":true}`)
				}
				synctest.Wait()
				all, told := events(), map[string]int{}
				for _, e := range all {
					kind := e.Type
					if kind == "provider.event" {
						var data struct{ Method string }
						_ = json.Unmarshal(e.Data, &data)
						kind = data.Method
					}
					told[kind]++
					if portable.Terminal(e.Type) {
						told["end"]++
					}
				}
				resumed := 0
				if c.settle == "resume" {
					resumed = 1
				}
				if last := all[len(all)-1]; !strings.HasPrefix(last.Type+" "+string(last.Data), c.end) || state() != c.want || !reflect.DeepEqual(all[:len(before)], before) ||
					told["end"] != 1 || told["run.started"] != 1 || told["rind.turn_resumed"] != resumed {
					t.Errorf("it is %s, told %v, and ends with %s %s", state(), told, last.Type, last.Data)
				}
				d.call("rind/execution/cancel", fmt.Sprintf(`{"execution_id":%q}`, id)) // of what has its end it changes nothing
				if again := events(); len(again) != len(all) {
					t.Errorf("%d events, then %d", len(all), len(again))
				}
				p.end()
			})
		})
	}
}

// Section 13: after and limit count by their value, null is absent in what is not of the portable protocol, and what the envelope refuses has no code.
func TestNumbersOnLinesCountByTheirValueAndTheEnvelopesErrorsHaveNoCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := executing(t, peers.NewWorld(), "a")
		c := p.connect(rindv2.Rind)
		c.hello()
		id := execute(c, made(c), "mock", `{"delayMs":0}`)
		synctest.Wait()
		for asked, want := range map[string][2]int64{ // first and last of the page
			`"after":1.0,"limit":2e0`: {2, 3}, `"after":0.2e1,"limit":1`: {3, 3}, `"after":null,"limit":null,"follow":null`: {1, 6}, `"after":-0,"limit":10.0`: {1, 6},
		} {
			got := part(t, c.call("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,%s}`, id, asked)))
			if n := len(got.Events); n == 0 || got.Events[0].Sequence != want[0] || got.Events[n-1].Sequence != want[1] || got.NextCursor != want[1] {
				t.Errorf("%s: a page of %d to %d", asked, n, got.NextCursor)
			}
		}
		for _, asked := range []string{`"after":1.5`, `"after":"1"`, `"after":-1`, `"after":1e16`, `"after":true`} {
			c.refused("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,%s}`, id, asked), "InvalidRequest", "after must be a non-negative integer")
		}
		for _, asked := range []string{`"limit":0`, `"limit":1.0000000000000000001`, `"limit":10001`, `"limit":[1]`} {
			c.refused("rind/execution/events", fmt.Sprintf(`{"execution_id":%q,%s}`, id, asked), "InvalidRequest", "limit must be an integer from 1 to 10000")
		}
		coded := c.response(c.send("rind/execution/read", `{"execution_id":"none"}`)).raw
		plain := c.response(c.send("rind/execution/nothing", `{}`)).raw
		if !strings.Contains(coded, `"code":"NOT_FOUND"`) || strings.Contains(plain, `"code"`) {
			t.Errorf("told %s and %s", coded, plain)
		}
		p.end()
	})
}

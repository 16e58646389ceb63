package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// session opens the session of a conversation, as an editor does.
func (p *place) session(conversation string) *session.Session {
	p.t.Helper()
	meta, err := p.store.Conversation(p.t.Context(), conversation)
	if err != nil {
		p.t.Fatal(err)
	}
	s, err := p.all.Open(p.t.Context(), meta.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
	return s
}

// ended waits for the end of a turn that ask asks for, and returns the id it would have as an execution.
func (p *place) ended(ask func(done func(session.Outcome, error)) *session.Prompt) string {
	p.t.Helper()
	var o session.Outcome
	over := make(chan error, 1)
	ask(func(got session.Outcome, err error) { o = got; over <- err })
	if err := <-over; err != nil || o.Outcome != session.OutcomeCompleted {
		p.t.Fatalf("it ended as %+v, %v", o, err)
	}
	return portable.ExecutionPrefix + string(o.Turn)
}

// typed is a prompt of an editor.
func (p *place) typed(s *session.Session, input string) string {
	p.t.Helper()
	return p.ended(func(done func(session.Outcome, error)) *session.Prompt {
		return s.Prompt(session.PromptRequest{Input: input}, done)
	})
}

// behind are the events behind a cursor.
func behind(events []portable.Event, after int64) (out []portable.Event) {
	for _, e := range events {
		if e.Sequence > after {
			out = append(out, e)
		}
	}
	return out
}

// N29
func TestAnEditorsTurnThatWasFoldedKeepsItsNumbersAndOneAcceptedHereAllOfIt(t *testing.T) {
	piecewise := func(_ context.Context, yield func(session.Chunk, error) bool) {
		for _, text := range []string{"one ", "two ", "three"} { // a thought between two words keeps them apart in the log
			_ = yield(session.Chunk{Kind: session.ChunkText, Text: text}, nil) && yield(session.Chunk{Kind: session.ChunkReasoning, Text: "hm"}, nil)
		}
		yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
	}
	backing := memory.NewBacking()
	p := serve(t, backing.Open("a"), &model{replies: replies{piecewise}})
	c := p.conversation()
	here := p.start(c, "agent", "x", "")
	whole := p.follow(here, nil, nil)
	sound(t, whole)
	editors := p.typed(p.session(c), "y")
	before := p.events(editors)
	sound(t, before)
	var want []portable.Event // without increments
	for _, e := range before {
		if e.Type != "output.text.delta" && types([]portable.Event{e}) != "rind.reasoning" {
			want = append(want, e)
		}
	}
	if len(before)-len(want) != 6 {
		t.Fatalf("the editor's turn is %s", types(before))
	}
	if n, err := p.store.Prune(t.Context(), time.Now().Add(time.Hour)); err != nil || n == 0 { // as a day later
		t.Fatalf("pruned %d, %v", n, err)
	}
	p.stop()
	p = serve(t, backing.Open("b"), &model{}) // which has none of it in memory
	if got := p.events(here); lines(got) != lines(whole) {
		t.Errorf("the execution is\n%swas\n%s", lines(got), lines(whole))
	}
	if got := p.events(editors); lines(got) != lines(want) {
		t.Errorf("the editor's turn is\n%swant\n%s", lines(got), lines(want))
	}
	done := want[len(want)-2]
	if done.Type != "output.text.done" || string(done.Data) != `{"text":"one two three"}` {
		t.Errorf("its text is %s %s", done.Type, done.Data)
	}
	if out := p.must(200, "GET", "/v1/executions/"+editors, "").member("finalOutput"); out != "one two three" {
		t.Errorf("its output is %q", out)
	}
	for after := range before[len(before)-1].Sequence + 2 { // in a gap as anywhere else
		var l portable.EventList
		if err := json.Unmarshal(p.must(200, "GET", fmt.Sprintf("/v1/executions/%s/events?after=%d", editors, after), "").body, &l); err != nil {
			t.Fatal(err)
		}
		rest, cursor := behind(want, after), after
		if n := len(rest); n > 0 {
			cursor = rest[n-1].Sequence
		}
		if lines(l.Events) != lines(rest) || l.NextCursor != cursor {
			t.Errorf("behind %d: %s, next %d, want %s, next %d", after, types(l.Events), l.NextCursor, types(rest), cursor)
		}
		if told := p.follow(editors, []string{"Last-Event-ID", fmt.Sprint(after)}, nil); lines(told) != lines(rest) {
			t.Errorf("a stream behind %d: %s, want %s", after, types(told), types(rest))
		}
	}
}

// Section 12: an artifact for the first change of a path in the turn, whichever processes work on that.
func TestAPathIsAnArtifactOnceInATurnAlsoAcrossARestart(t *testing.T) {
	backing, dir := memory.NewBacking(), t.TempDir()
	act, done := calling("", "act", "{}"), saying("done")
	m := &model{replies: replies{act, act, calling("", "which", "{}"), act, done, act, done}}
	p := serve(t, backing.Open("a"), m, changing(dir, "one.txt"))
	c := p.conversation()
	id := p.start(c, "agent", "x", `,"config":{"approvals":"auto"}`)
	var a portable.Action
	_ = json.Unmarshal(p.until(id, "action.required").Data, &a)
	p.stop()
	q := serve(t, backing.Open("b"), m, changing(dir, "one.txt", "two.txt", "two.txt"))
	q.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", `{"value":"the blue one"}`)
	events := q.follow(id, nil, nil)
	sound(t, events)
	var told []string
	for _, e := range events {
		switch word := types([]portable.Event{e}); word {
		case "rind.file_changed":
			var d struct{ Params struct{ Path string } }
			_ = json.Unmarshal(e.Data, &d)
			told = append(told, filepath.Base(d.Params.Path))
		case "artifact.created", "action.required":
			told = append(told, word)
		}
	}
	const want = "one.txt artifact.created one.txt action.required one.txt two.txt artifact.created two.txt"
	if got := strings.Join(told, " "); got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	var list struct{ Artifacts []portable.Artifact }
	if err := json.Unmarshal(q.must(200, "GET", "/v1/executions/"+id+"/artifacts", "").body, &list); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range list.Artifacts {
		ids = append(ids, a.ID)
	}
	var ours []string
	for _, name := range []string{"one.txt", "two.txt"} {
		sum := sha256.Sum256([]byte(filepath.ToSlash(filepath.Join(dir, name))))
		ours = append(ours, "file-"+hex.EncodeToString(sum[:])[:16])
	}
	if got, want := strings.Join(ids, " "), strings.Join(ours, " "); got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	again := lines(q.follow(q.start(c, "agent", "x", `,"config":{"approvals":"auto"}`), nil, nil))
	if n := strings.Count(again, `"artifact.created"`); n != 2 {
		t.Errorf("the next turn has %d artifacts, want 2\n%s", n, again)
	}
}

// Section 12: a turn that goes on by itself is an execution without input, one that only compacts is none.
func TestATurnOfAGoalIsAnExecutionWithoutInputAndACompactionIsNone(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	s := p.session(c)
	first := p.typed(s, "begin")
	set := make(chan error, 1)
	s.SetGoal("reach it", 1, false, func(_ *protocol.Goal, err error) { set <- err })
	if err := <-set; err != nil {
		t.Fatal(err)
	}
	var ids []string
	testkit.Eventually(t, "the goal's turn has ended", func() bool {
		ids, _ = p.list("/rind/v1/executions?conversationId=" + c)
		return len(ids) == 2 && p.state(ids[0]) == "succeeded"
	})
	if ids[1] != first {
		t.Errorf("listed %v, want %s last", ids, first)
	}
	var x portable.Execution
	if err := json.Unmarshal(p.must(200, "GET", "/v1/executions/"+ids[0], "").body, &x); err != nil {
		t.Fatal(err)
	}
	if x.Input != "" || x.ProviderID != "agent" || *x.FinalOutput != "ok" || string(x.EffectiveConfig) != "{}" {
		t.Errorf("the goal's turn is %+v", x)
	}
	sound(t, p.events(ids[0]))
	compaction := p.ended(s.Compact)
	for _, path := range []string{"", "/events", "/artifacts"} {
		p.must(404, "GET", "/v1/executions/"+compaction+path, "")
	}
	p.must(404, "GET", "/v1/executions/"+compaction+"/events", "", "Accept", "text/event-stream")
	p.must(404, "POST", "/v1/executions/"+compaction+":cancel", "{}")
	if again, _ := p.list("/rind/v1/executions?conversationId=" + c); strings.Join(again, " ") != strings.Join(ids, " ") {
		t.Errorf("behind the compaction %v are listed, want %v", again, ids)
	}
}

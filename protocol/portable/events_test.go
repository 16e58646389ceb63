package portable

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// samples are entries of one execution of every kind, in an order that could be; two of a kind where it is told in two ways.
func samples() []protocol.Body {
	accepted := &protocol.TurnAccepted{}
	accepted.More.Provider, accepted.More.Input = "agent", "hello"
	accepted.More.Config, accepted.More.Capabilities = json.RawMessage(`{"n":1.0}`), []string{"event.replay"}
	message := &protocol.UserMessage{}
	message.More.Origin, message.More.Parts = protocol.OriginUser, []protocol.Part{{Kind: "image", Name: "a.png"}}
	first := &protocol.AssistantDelta{Text: "one <b>"}
	second := &protocol.AssistantDelta{Text: "two"}
	second.More.Separator = true
	retry := &protocol.TurnStepRetry{Attempt: 1, Reason: "network"}
	retry.More.DiscardFrom = 7
	ask := &protocol.ApprovalRequested{ActionID: strings.Repeat("a", 32), ToolCallID: "call_1", ToolName: "bash", Title: "Run ls", Arguments: json.RawMessage(`{"command":"ls"}`), Options: []protocol.Option{{ID: "allow_once", Label: "Allow once", Kind: "allow_once"}}}
	beside := &protocol.ApprovalRequested{ActionID: strings.Repeat("b", 32), ToolCallID: strings.Repeat("b", 32), Title: "Approve", Arguments: json.RawMessage(`{}`)}
	question := &protocol.UserQuestionRequested{ToolCallID: "call_2", Question: "Which?"}
	question.More.ActionID = strings.Repeat("c", 32)
	answered := &protocol.UserQuestionAnswered{ToolCallID: "call_2", Answer: "secret"}
	answered.More.ActionID, answered.More.By = strings.Repeat("c", 32), protocol.ByClient
	change := &protocol.FileChange{ToolCallID: "call_1", FilePath: "src/a b.go", Lines: []protocol.DiffLine{{Kind: "added", Text: "x"}}}
	change.More.First = true
	artifact := &protocol.ArtifactCreated{}
	artifact.More.Artifact = json.RawMessage(`{"id":"x","name":"n","mediaType":"text/plain","uri":"artifact://x"}`)
	event := &protocol.ProviderEvent{}
	event.More.Data = json.RawMessage(`{"provider":"p","method":"m","params":{"deep":[1,{"two":null}]}}`)
	text := "one <b>\n\ntwo"
	done := &protocol.TurnCompleted{}
	done.More.FinalOutput = &text
	cancelled := &protocol.TurnCancelled{Reason: "why"}
	cancelled.More.Reason, cancelled.More.CleanupError = "why", "hook failed"
	resumed := &protocol.TurnStarted{Origin: protocol.OriginResume}
	resumed.More.Attempt = 1
	return []protocol.Body{
		accepted, message, &protocol.TurnStarted{Origin: protocol.OriginUser}, resumed, &protocol.ReasoningDelta{Text: "hm"}, first, second, retry,
		&protocol.TokenStatsUpdated{Stats: protocol.Stats{InputTokens: 3, OutputTokens: 2, TotalTokens: 5, ContextWindowTokens: 100}},
		&protocol.AssistantMessageCompleted{Content: "one <b>", ContentChars: 7, MessageID: "m"},
		&protocol.ToolRequested{ToolCallID: "call_1", ToolName: "bash", Arguments: json.RawMessage(`{"command":"ls"}`)},
		&protocol.PlanUpdated{Plan: []protocol.PlanStep{{Step: "s", Status: "pending"}}}, ask,
		&protocol.ApprovalResolved{ActionID: strings.Repeat("a", 32), Outcome: protocol.OutcomeAllowed, By: protocol.ByClient}, beside,
		&protocol.ToolCallStarted{ToolCallID: "call_1", ToolName: "bash"}, question, answered,
		&protocol.ToolProgress{ToolCallID: "call_1", Payload: protocol.Progress{Message: "still running"}}, change,
		&protocol.ToolResult{ToolCallID: "call_1", ToolName: "bash", Status: "completed", Result: `{"ok":true}`, DurationMS: 5}, artifact, event,
		&protocol.QueuedInputDelivered{InputID: "i", Mode: "steering", Input: "more"}, &protocol.ContextCompacted{Record: json.RawMessage(`{"reason":"manual"}`)},
		&protocol.TaskUpdated{Task: json.RawMessage(`{"task_id":"t","status":"running"}`)}, done,
		&protocol.TurnFailed{Error: "it failed"}, cancelled,
	}
}

// entries gives the samples places, as the session does.
func entries(t *testing.T, bodies []protocol.Body) []protocol.Entry {
	t.Helper()
	at := time.Date(2026, 3, 5, 8, 15, 30, 120_900_000, time.UTC)
	next := int64(1)
	var out []protocol.Entry
	for i, b := range bodies {
		e, err := protocol.Encode(protocol.Head{Time: at.Add(time.Duration(i) * time.Millisecond), Session: "s", Turn: "t"}, b)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = protocol.Seq(i + 1)
		e.PortableFirst, e.PortableCount = next, protocol.PortableCount(b, protocol.Numbering{Execution: true, Open: true})
		next += int64(e.PortableCount)
		out = append(out, e)
	}
	return out
}

const sampleExecution = "exec_0123456789abcdef0123456789abcdef"

func TestEveryKindIsToldAsTheCatalogueSays(t *testing.T) {
	seen := map[protocol.Kind]bool{}
	for _, b := range samples() {
		seen[b.Kind()] = true
	}
	for k, info := range protocol.Catalogue {
		kind := protocol.Kind(k)
		if !kind.Known() {
			continue
		}
		if (info.Portable != "") != (table[kind] != nil) {
			t.Errorf("%s: the catalogue says %q, the table has a row: %v", kind, info.Portable, table[kind] != nil)
		}
		if info.Portable != "" && !seen[kind] {
			t.Errorf("%s has no sample", kind)
		}
	}
	c := &Context{Execution: sampleExecution, Provider: "agent", Workspace: "/w"}
	for _, e := range entries(t, samples()) {
		b, err := protocol.Decode(&e)
		if err != nil {
			t.Fatal(err)
		}
		events, err := Events(c, &e, b)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.FieldsFunc(e.Kind.Info().Portable, func(r rune) bool { return strings.ContainsRune("|,+ ", r) })
		for _, ev := range events {
			var d struct {
				Method string `json:"method"`
			}
			_ = json.Unmarshal(ev.Data, &d)
			fits := e.Kind == protocol.KindFileChange && ev.Type == "artifact.created" // a file's first change is an artifact too
			for _, w := range words {
				fits = fits || w == ev.Type || w == d.Method
			}
			if !fits {
				t.Errorf("%s is told as %s %s, the catalogue says %q", e.Kind, ev.Type, d.Method, e.Kind.Info().Portable)
			}
		}
	}
}

func TestEventsAreWordForWordTheGoldenOnes(t *testing.T) {
	rec := NewRecord(sampleExecution, "conv_1", "/w")
	var got bytes.Buffer
	var last int64
	for _, e := range entries(t, samples()) {
		b, err := protocol.Decode(&e)
		if err != nil {
			t.Fatal(err)
		}
		rec.Apply(&e, b)
		events, err := Events(&Context{Execution: sampleExecution, Provider: "agent", Workspace: "/w"}, &e, b)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if ev.Sequence != last+1 {
				t.Errorf("event %d follows %d", ev.Sequence, last)
			}
			last = ev.Sequence
			got.Write(protocol.MustMarshal(ev))
			got.WriteByte('\n')
		}
	}
	got.Write(protocol.MustMarshal(map[string]any{"artifacts": rec.Artifacts()}))
	got.WriteByte('\n')
	path := filepath.Join("..", "..", "fixtures", "portable", "events.jsonl")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("events differ from %s; -update rewrites it:\n%s", path, got.Bytes())
	}
}

func TestARecordFollowsTheStateMachine(t *testing.T) {
	step := map[protocol.Kind]string{
		protocol.KindTurnAccepted: Queued, protocol.KindApprovalRequested: AwaitingApproval, protocol.KindUserQuestionRequested: AwaitingInput,
		protocol.KindApprovalResolved: Running, protocol.KindUserQuestionAnswered: Running, protocol.KindTurnCompleted: Succeeded,
	}
	rec := NewRecord(sampleExecution, "conv_1", "/w")
	last := ""
	for _, e := range entries(t, samples()) {
		b, _ := protocol.Decode(&e)
		rec.Apply(&e, b)
		if want := step[e.Kind]; want != "" && rec.Execution().State != want {
			t.Errorf("after %s: %s", e.Kind, rec.Execution().State)
		}
		if up := rec.Execution().UpdatedAt; up < last {
			t.Errorf("updatedAt goes back to %s", up)
		} else {
			last = up
		}
		if rec.Ended() {
			break
		}
	}
	x := rec.Execution()
	if x.FinalOutput == nil || *x.FinalOutput != "one <b>\n\ntwo" || x.StartedAt == "" || x.Input != "hello" || string(x.EffectiveConfig) != `{"n":1.0}` {
		t.Errorf("record %+v", x)
	}
}

// What is written piece by piece, by HTTP and by the lines of an editor, is the object word for word.
func TestALineIsItsEventAsAnObject(t *testing.T) {
	teller := &Teller{Context: Context{Execution: sampleExecution, Provider: "agent", Workspace: "/w"}}
	spaced := &protocol.ProviderEvent{}
	spaced.More.Data = json.RawMessage("{ \"a\" : [ 1,\n 2 ], \"b\":\"<\u2028>\" }")
	seen := 0
	for _, e := range entries(t, append(samples(), spaced)) {
		b, err := protocol.Decode(&e)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Events(&teller.Context, &e, b)
		if err != nil {
			t.Fatal(err)
		}
		if err := teller.Each(&e, 0, func(l *Line) {
			object := protocol.MustMarshal(want[0])
			if line := l.Append(nil); !bytes.Equal(line, object) || !bytes.Equal(protocol.MustMarshal(l.Event()), object) {
				t.Errorf("%s: %s, want %s", e.Kind, line, object)
			}
			want = want[1:]
			seen++
		}); err != nil || len(want) > 0 {
			t.Errorf("%s: %d events are missing, %v", e.Kind, len(want), err)
		}
	}
	if seen < len(samples()) {
		t.Errorf("%d events", seen)
	}
}

func TestEveryCodeHasAStatusAndUnknownErrorsTellNothing(t *testing.T) {
	for kind, row := range kinds {
		if statuses[row.code] == 0 {
			t.Errorf("%s is answered with %s, which has no status", kind, row.code)
		}
	}
	e := FromError(os.ErrPermission)
	if e.HTTPStatus() != 500 || e.Message != "Unexpected server error" {
		t.Errorf("told %+v", e)
	}
}

// What is read without decoding is word for word what decoding gives, whatever stands in the text.
func TestEachTellsWhatStandsInTheLogWordForWordAsEvents(t *testing.T) {
	teller := &Teller{Context: Context{Execution: sampleExecution, Provider: `an "agent"`, Workspace: "/w", Output: func() (string, error) { return "all <of> it", nil }}}
	told := func(b protocol.Body, stands bool) {
		t.Helper()
		for _, e := range entries(t, []protocol.Body{&protocol.TurnAccepted{}, b})[1:] {
			decoded, err := protocol.Decode(&e)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Events(&teller.Context, &e, decoded)
			if err != nil {
				t.Fatal(err)
			}
			if as := teller.asTheyStand(&e); (len(as) > 0) != stands {
				t.Errorf("%s %s: told as it stands: %v, want %v", e.Event, e.More, len(as) > 0, stands)
			}
			for after := int64(0); after <= want[len(want)-1].Sequence; after++ {
				var got, full []byte
				if err := teller.Each(&e, after, func(l *Line) {
					got = append(l.Append(got), '\n')
					if alone := l.Event(); !bytes.Equal(protocol.MustMarshal(alone), l.Append(nil)) {
						t.Errorf("the object is %+v, the line %s", alone, l.Append(nil))
					}
				}); err != nil {
					t.Fatal(err)
				}
				for _, ev := range want {
					if ev.Sequence > after {
						full = append(append(full, protocol.MustMarshal(ev)...), '\n')
					}
				}
				if !bytes.Equal(got, full) {
					t.Errorf("%s %s behind %d: %s, want %s", e.Event, e.More, after, got, full)
				}
			}
		}
	}
	for _, text := range []string{"", "plain", `a "quoted" \ text`, `","text":"b`, `\","text":"`, "\u0000\u2028<&>", "line\nend", "emoji 🙂", `}`, `"}`, `","origin":"resume"`} {
		for _, separator := range []bool{false, true} {
			d := &protocol.AssistantDelta{Text: text}
			d.More.Separator = separator
			told(d, true)
		}
		c := &protocol.TurnCompleted{}
		c.More.FinalOutput = &text
		told(c, true)
		for origin, stands := range map[string]bool{protocol.OriginUser: true, protocol.OriginTask: true, protocol.OriginResume: false} {
			started := &protocol.TurnStarted{Input: text, Origin: origin}
			started.More.Attempt = 2
			told(started, stands)
		}
	}
	told(&protocol.TurnCompleted{}, false) // its text is that of the whole turn
	told(&protocol.TurnAccepted{}, true)
}

func TestTimesAreWrittenAsTheLayoutSays(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.Unix(0, 0), time.UnixMicro(-1), time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2024, 2, 29, 1, 2, 3, 4_000_000, time.FixedZone("", 7200)),
		time.Date(9999, 1, 1, 0, 0, 0, 50_000_000, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, want := FormatTime(at), at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%v is written as %s, want %s", at, got, want)
		}
	}
}

// BenchmarkEach tells and writes pieces of an answer.
func BenchmarkEach(b *testing.B) {
	e, err := protocol.Encode(protocol.Head{Time: time.Now(), EventID: strings.Repeat("e", 32), Session: "20260102_101112_0000000a", Turn: protocol.TurnID(strings.Repeat("a", 32))}, &protocol.AssistantDelta{Text: "word "})
	if err != nil {
		b.Fatal(err)
	}
	e.PortableFirst, e.PortableCount = 9_000, 1
	teller := &Teller{Context: Context{Execution: sampleExecution, Provider: "agent"}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		if err := teller.Each(&e, 0, func(l *Line) { buf = l.Append(buf) }); err != nil {
			b.Fatal(err)
		}
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// answering follows an execution to its end and gives each action its answer, one after the other.
func (p *place) answering(id string, answers ...string) []portable.Event {
	p.t.Helper()
	return p.follow(id, nil, func(e portable.Event) {
		var a portable.Action
		if e.Type == "action.required" && len(answers) > 0 && json.Unmarshal(e.Data, &a) == nil {
			p.must(200, "POST", "/v1/executions/"+id+"/actions/"+a.ID+":respond", answers[0])
			answers = answers[1:]
		}
	})
}

// deltas are the pieces of text that events tell.
func deltas(events []portable.Event) []string {
	var out []string
	for _, e := range events {
		var d struct{ Text string }
		if e.Type == "output.text.delta" && json.Unmarshal(e.Data, &d) == nil {
			out = append(out, d.Text)
		}
	}
	return out
}

// Section 11: mock and script do what their config says, and nothing else; a value of another type counts as absent. N21, V03, A02-A04, A12.
func TestMockAndScriptDoWhatTheirConfigSays(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	long, wide := strings.Repeat("x", 8192), strings.Repeat("🙂", 3000) // 8 KiB are 2048 of the latter
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	steps := func(s string) string { return `{"steps":[` + s + `]}` }
	for _, r := range []struct {
		provider, input, config string
		answers                 []string
		text                    []string // the deltas
		end                     string   // finalOutput, or ! and the error
		told                    string   // part of the log; "" for anything
	}{
		{"mock", "hi", `{}`, nil, []string{"Echo: ", "hi"}, "Echo: hi", ""},
		{"mock", "hi", `{"prefix":7,"delayMs":"0","requireApproval":"true","requestInput":1,"artifactName":{}}`, nil, []string{"Echo: ", "hi"}, "Echo: hi", ""},
		{"mock", "hi", `{"prefix":null,"delayMs":-1,"artifactName":"","steps":[{"delta":"no"}]}`, nil, []string{"Echo: ", "hi"}, "Echo: hi", ""},
		{"mock", "", `{"prefix":""}`, nil, nil, "", ""},
		{"mock", "   ", `{"prefix":""}`, nil, []string{"   "}, "   ", ""},
		{"mock", " a", `{"prefix":""}`, nil, []string{"a"}, " a", ""},
		{"mock", "a\u00a0b\ufeff c\u3000", `{"prefix":""}`, nil, []string{"a\u00a0", "b\ufeff ", "c\u3000"}, "a\u00a0b\ufeff c\u3000", ""},
		{"mock", "a\u0085b\u200bc\x1cd", `{"prefix":""}`, nil, []string{"a\u0085b\u200bc\x1cd"}, "a\u0085b\u200bc\x1cd", ""},
		{"mock", "x", `{"prefix":"","requireApproval":true}`, []string{`{"approved":true}`}, []string{"x"}, "x", `"title":"Approve mock execution"`},
		{"mock", "x", `{"requireApproval":true}`, []string{`{"approved":false}`}, nil, "!Mock execution was not approved", `"approved":false`},
		{"mock", "x", `{"requireApproval":true}`, []string{`{"value":true}`}, nil, "!Mock execution was not approved", ""},
		{"mock", "x", `{"prefix":"","requestInput":true}`, []string{`{"value":"said so"}`}, []string{"x ", "said ", "so"}, "x said so", `"title":"Provide mock input"`},
		{"mock", "x", `{"prefix":"","requestInput":true}`, []string{`{"value":["no","string"]}`}, []string{"x"}, "x", ""},
		{"mock", "x", `{"prefix":"","requestInput":true}`, []string{`{"value":""}`}, []string{"x"}, "x", ""},
		{"mock", "x", `{"prefix":"","requireApproval":true,"requestInput":true}`, []string{`{"approved":true}`, `{"value":"y"}`}, []string{"x ", "y"}, "x y", ""},
		{"script", "hi", `{"steps":"no array"}`, nil, []string{"Echo: ", "hi"}, "Echo: hi", ""},
		{"script", "hi", steps(``), nil, nil, "", ""},
		{"script", "hi", steps(`{"delta":"a "},{"sleepMs":1},{"delta":""},{"delta":"b"}`), nil, []string{"a ", "", "b"}, "a b", ""},
		{"script", "hi", steps(`{"final":"no"},{"delta":"said"},{"final":"yes"}`), nil, []string{"said"}, "yes", ""},
		{"script", "hi", steps(`{"delta":"part"},{"fail":"out of paper"},{"delta":"never"}`), nil, []string{"part"}, "!out of paper", ""},
		{"script", "hi", steps(`{"delta":"part"},{"Delta":"x"}`), nil, []string{"part"}, "!Unknown script step", ""},
		{"script", "hi", steps(`{"delta":"x","final":"y"}`), nil, nil, "!Unknown script step", ""},
		{"script", "hi", steps(`{"delta":7}`), nil, nil, "!Unknown script step", ""},
		{"script", "hi", steps(`"delta"`), nil, nil, "!Unknown script step", ""},
		{"script", "hi", steps(`null`), nil, nil, "!Unknown script step", ""},
		{"script", "hi", steps(`{"delta":"part"},{"approval":{"TITLE":"Sure?"}}`), nil, []string{"part"}, "!Unknown script step", ""},
		{"script", "hi", steps(`{"event":{"METHOD":"m"}}`), nil, nil, "!Unknown script step", ""},
		{"script", "hi", steps(`{"event":{"method":"m"}}`), nil, nil, "", `"params":{}}`},
		{"script", "hi", steps(`{"approval":{"title":""}}`), nil, nil, "!Provider requested an invalid action", ""},
		{"script", "hi", steps(`{"approval":{"title":"Sure?","payload":null}}`), nil, nil, "!Provider requested an invalid action", ""},
		{"fixture", "hi", `{"MODE":"throw"}`, nil, nil, "fixture done", ""},
		{"script", "hi", steps(`{"approval":{"title":"Sure?","payload":{"n":1.0}}},{"delta":"done"}`), []string{`{"approved":true}`}, []string{"done"}, "done", `"title":"Sure?","payload":{"n":1.0}`},
		{"script", "hi", steps(`{"approval":{"title":"Sure?"}},{"delta":"done"}`), []string{`{}`}, nil, "!Script step was not approved", ""},
		{"script", "hi", steps(`{"input":{"title":"Who?"}},{"delta":"."}`), []string{`{"value":"me"}`}, []string{"me", "."}, "me.", `"kind":"input","title":"Who?"`},
		{"script", "hi", steps(`{"event":{"method":"m","params":{"deep":[1.0,{"two":null}]}}}`), nil, nil, "", `"data":{"provider":"script","method":"m","params":{"deep":[1.0,{"two":null}]}}`},
		{"script", "hi", steps(`{"tool":{"name":"look","arguments":{"at":1.0},"result":"seen"}}`), nil, nil, "", `"params":{"durationMs":0,"preview":"seen","status":"completed","toolCallId":"call_1","toolName":"look","truncated":false}`},
		{"script", "hi", steps(`{"tool":{"name":"look","arguments":{"at":1.0},"result":""}}`), nil, nil, "", `"method":"rind.tool_requested","params":{"arguments":{"at":1.0},"toolCallId":"call_1","toolName":"look"}`},
		{"script", "hi", steps(`{"tool":{"name":"look","status":"failed","result":"` + long + `y"}}`), nil, nil, "", `"preview":"` + long + `","status":"failed","toolCallId":"call_1","toolName":"look","truncated":true`},
		{"script", "hi", steps(`{"tool":{"name":"look","result":"` + wide + `"}}`), nil, nil, "", `"preview":"` + wide[:8192] + `",`},
	} {
		id := p.start(c, r.provider, r.input, `,"config":`+r.config)
		events := p.answering(id, r.answers...)
		sound(t, events)
		want, shown := fmt.Sprintf(`run.completed {"finalOutput":%s}`, quote(r.end)), `"finalOutput":`+quote(r.end)
		if text, failed := strings.CutPrefix(r.end, "!"); failed {
			shown = fmt.Sprintf(`{"code":"PROVIDER_ERROR","message":%s}`, quote(text))
			want = "run.failed " + shown
		}
		last := events[len(events)-1]
		if got := deltas(events); !slices.Equal(got, r.text) || last.Type+" "+string(last.Data) != want {
			t.Errorf("%s %q with %.80s: %q, %s %s", r.provider, r.input, r.config, got, last.Type, last.Data)
		}
		if log := lines(events); !strings.Contains(log, r.told) {
			t.Errorf("%s with %.80s told %.2000s", r.provider, r.config, log)
		}
		if x := p.must(200, "GET", "/v1/executions/"+id, ""); !strings.HasSuffix(string(x.body), shown+"}") || strings.Contains(lines(events), "output.text.done") != (last.Type == "run.completed") {
			t.Errorf("%s with %.80s: %s ends in %s", r.provider, r.config, x.body, types(events))
		}
	}
}

// Section 15 R01-R03, R05, R06, V10 (F): what a provider makes is listed as it was told, in the order it was made; what it must not make is not.
func TestArtifactsAreListedAsTheyWereToldInTheOrderTheyWereMade(t *testing.T) {
	p := mocking(t)
	c := p.conversation()
	for _, r := range []struct {
		provider, config string
		ids              []string
		first            string // beside execution and time
	}{
		{"mock", `{}`, nil, ""},
		{"mock", `{"artifactName":"a name"}`, []string{"artifact-"}, `"name":"a name","mediaType":"text/plain","metadata":{},`},
		{"fixture", `{"mode":"artifacts","count":6}`, []string{"a9", "a8", "a7", "a6", "a5", "a4"}, `{"id":"a9","name":"n0","mediaType":"text/plain","uri":"artifact://x/0","metadata":{"i":0},`},
		{"fixture", `{"mode":"invalid-artifact"}`, nil, ""},
		{"fixture", `{"mode":"duplicate-artifact"}`, []string{"dup"}, `"name":"first"`},
		{"script", `{"steps":[{"artifact":{"id":"x","name":"n","mediaType":"t","metadata":{"big":9007199254740993,"f":1.0},"extra":1}}]}`, []string{"x"}, `{"id":"x","name":"n","mediaType":"t","metadata":{"big":9007199254740993,"f":1.0},"executionId"`},
	} {
		id := p.start(c, r.provider, "x", `,"config":`+r.config)
		events := p.follow(id, nil, nil)
		var told []string
		for _, e := range events {
			if e.Type == "artifact.created" {
				told = append(told, string(e.Data))
			}
		}
		var list struct{ Artifacts []json.RawMessage }
		body := p.must(200, "GET", "/v1/executions/"+id+"/artifacts", "").body
		if err := json.Unmarshal(body, &list); err != nil || list.Artifacts == nil {
			t.Fatalf("%s: %v", body, err)
		}
		var listed, ids []string
		for _, raw := range list.Artifacts {
			var a portable.Artifact
			if err := json.Unmarshal(raw, &a); err != nil || a.ExecutionID != id || a.CreatedAt == "" {
				t.Errorf("%s: %v", raw, err)
			}
			listed, ids = append(listed, string(raw)), append(ids, strings.TrimSuffix(a.ID, id))
		}
		if !slices.Equal(listed, told) || !slices.Equal(ids, r.ids) || len(listed) > 0 && !strings.Contains(listed[0], r.first) {
			t.Errorf("%s with %s: listed %s, told %s", r.provider, r.config, listed, told)
		}
	}
	id := p.start(c, "fixture", "x", `,"config":{"mode":"provider-event"}`)
	if log := lines(p.follow(id, nil, nil)); !strings.Contains(log, `"data":{"provider":"fixture","method":"tick","params":{"deep":[1,{"two":null}]}}`) || !strings.Contains(log, `{"finalOutput":"fixture done"}`) {
		t.Errorf("told %s", log)
	}
}

// Section 12: a refusal is a rejected result and the turn goes on; several approvals of one step are asked one after the other; an answer that
// is no string, or that says no, declines a question.
func TestWhatThePersonAnswersTheAgentIsWhatItsCallsResultIn(t *testing.T) {
	calls := func(tools ...string) replies {
		return replies{func(_ context.Context, yield func(session.Chunk, error) bool) {
			for i, tool := range tools {
				id := fmt.Sprint("call_", i)
				_ = yield(session.Chunk{Kind: session.ChunkCallStart, CallID: id, Name: tool}, nil) &&
					yield(session.Chunk{Kind: session.ChunkCallEnd, CallID: id, Name: tool, Text: "{}"}, nil)
			}
			yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishCalls}, nil)
		}, saying("goes on")}
	}
	const once = "run.queued run.started rind.tool_requested action.required action.responded "
	for _, r := range []struct {
		name    string
		play    replies
		answers []string
		runs    int
		told    string // the log, without usage and messages
		results []string
	}{
		{"no", calls("act"), []string{`{"approved":false}`}, 0, once + "rind.tool_result", []string{`"errorType":"ApprovalRejected"`, `"status":"rejected"`}},
		{"nothing said", calls("act"), []string{`{}`}, 0, once + "rind.tool_result", []string{`"status":"rejected"`}},
		{"an option by its id", calls("act"), []string{`{"value":"reject_once"}`}, 0, once + "rind.tool_result", []string{`"status":"rejected"`}},
		{"an option in an object", calls("act"), []string{`{"approved":true,"value":{"optionId":"allow_once"}}`}, 1, once + "rind.tool_started rind.tool_result", []string{`"status":"completed"`}},
		{"an option that is no string", calls("act"), []string{`{"approved":true,"value":{"optionId":7}}`}, 1, once + "rind.tool_started rind.tool_result", []string{`"status":"completed"`}},
		{"an empty option", calls("act"), []string{`{"approved":true,"value":""}`}, 1, once + "rind.tool_started rind.tool_result", []string{`"status":"completed"`}},
		{"a value without approved", calls("act"), []string{`{"value":true}`}, 0, once + "rind.tool_result", []string{`"status":"rejected"`}},
		{
			"two of one step", calls("act", "act"),
			[]string{`{"approved":false}`, `{"approved":true}`},
			1,
			once + "rind.tool_result action.required action.responded rind.tool_started rind.tool_result",
			[]string{`"status":"rejected","toolCallId":"call_0"`, `"status":"completed","toolCallId":"call_1"`},
		},
		{"an answer", calls("which"), []string{`{"value":"the blue one"}`}, 0, "", []string{`the blue one`, `"status":"completed"`}},
		{"an answer between spaces", calls("which"), []string{`{"value":" \n the blue one\t"}`}, 0, "", []string{`\"answer\":\"the blue one\"`}},
		{"an answer of spaces", calls("which"), []string{`{"value":" \n "}`}, 0, "", []string{`\"answer\":\"\"`}},
		{"no string", calls("which"), []string{`{"value":{"optionId":"the blue one"}}`}, 0, "", []string{`\"answer\":\"\"`}},
		{"an answer that says no", calls("which"), []string{`{"approved":false,"value":"the blue one"}`}, 0, "", []string{`\"answer\":\"\"`}},
	} {
		t.Run(r.name, func(t *testing.T) {
			p := serve(t, store(), &model{replies: r.play})
			config := "" // a question is asked though nobody is asked for consent
			if strings.Contains(r.name, "answer") {
				config = `,"config":{"approvals":"never"}`
			}
			events := p.answering(p.start(p.conversation(), "agent", "x", config), r.answers...)
			sound(t, events)
			var kept []portable.Event
			log := ""
			for _, e := range events {
				switch word := types([]portable.Event{e}); word {
				case "rind.usage", "rind.message_completed", "output.text.delta", "output.text.done", "run.completed":
				case "rind.tool_result":
					log += string(e.Data)
					fallthrough
				default:
					kept = append(kept, e)
				}
			}
			if got := types(kept); r.told != "" && got != r.told {
				t.Errorf("told %s", got)
			}
			for _, want := range r.results {
				if !strings.Contains(log, want) {
					t.Errorf("%s is missing in %s", want, log)
				}
			}
			if end := events[len(events)-1]; p.tool.count() != r.runs || string(end.Data) != `{"finalOutput":"goes on"}` {
				t.Errorf("%d runs, ended with %s %s", p.tool.count(), end.Type, end.Data)
			}
		})
	}
}

package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/provider/providertest"
)

// asked is what a body says of thinking and length, as "max N, thinking TYPE BUDGET DISPLAY, effort E".
func asked(t testing.TB, body []byte) string {
	t.Helper()
	var r struct {
		Max      int `json:"max_tokens"`
		Thinking *struct {
			Type    string `json:"type"`
			Budget  int    `json:"budget_tokens"`
			Display string `json:"display"`
		} `json:"thinking"`
		Output *struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprintf("max %d", r.Max)
	if th := r.Thinking; th != nil {
		out += ", " + th.Type
		if th.Budget > 0 {
			out += fmt.Sprintf(" %d", th.Budget)
		}
		if th.Display != "" {
			out += " " + th.Display
		}
	}
	if r.Output != nil {
		out += ", effort " + r.Output.Effort
	}
	return out
}

func TestEffortMeansWhatTheModelCanDo(t *testing.T) {
	for _, test := range []struct {
		model, effort string
		max           int
		want          string
	}{
		{"claude-3-haiku-20240307", "", 0, "max 4096"},
		{"claude-3-5-haiku-latest", "high", 0, "max 8192"},
		{"claude-3-7-sonnet-20250219", "low", 0, "max 36096, enabled 4096"},
		{"claude-opus-4-20250514", "", 0, "max 32000"},
		{"claude-opus-4-20250514", "high", 0, "max 32000, enabled 24576"},
		{"claude-opus-4-1", "medium", 500, "max 12788, enabled 11764"}, // an answer has 1024 at least
		{"claude-sonnet-4-5-20250929", "high", 0, "max 56576, enabled 24576"},
		{"claude-sonnet-4-5", "high", 1, "max 24577, enabled 23553"},
		{"claude-opus-4-5", "medium", 0, "max 44288, enabled 12288"},
		{"claude-opus-4-6", "", 0, "max 32000"},
		{"claude-opus-4-6", "max", 0, "max 64000, adaptive summarized, effort max"},
		{"claude-sonnet-4-6", "max", 0, "max 64000, adaptive summarized, effort max"},
		{"claude-sonnet-4-6", "low", 100_000, "max 100000, adaptive summarized, effort low"}, // never less than asked for
		{"claude-of-tomorrow", "high", 0, "max 56576, adaptive summarized, effort high"},
		{"claude-of-tomorrow", "ultra", 0, "max 32000, adaptive summarized, effort ultra"},
		{"anthropic/claude-sonnet-4.5", "low", 0, "max 36096, enabled 4096"},
		{"eu.anthropic.claude-opus-4-1@20250805", "low", 0, "max 32000, enabled 4096"},
		{"another-makers", "", 0, "max 8192"},
		{"another-makers", "low", 0, "max 12288, enabled 4096"},
	} {
		r := providertest.Hello()
		r.Model, r.Effort, r.MaxOutput = test.model, test.effort, test.max
		body := sent(t, r).Body
		if got := asked(t, body); got != test.want {
			t.Errorf("%s at %q: %s, want %s", test.model, test.effort, got, test.want)
		}
		if err := strict(body); err != nil {
			t.Errorf("%s at %q: %v", test.model, test.effort, err)
		}
	}
}

func TestAnEffortAModelDoesNotKnowIsSaidBeforeAsking(t *testing.T) {
	server := providertest.NewServer(t)
	r := providertest.Hello()
	r.Model, r.Effort = "claude-sonnet-4-5", "ultra"
	e := providertest.ErrorOf(t, providertest.Collect(t.Context(), t, model(t, providertest.Endpoint{URL: server.URL()}), r))
	if e.Fault != session.FaultRejected || !strings.Contains(e.Message, `"ultra"`) || !strings.Contains(e.Message, "low, medium, high") || len(server.Requests()) != 0 {
		t.Errorf("%+v after %d requests", e, len(server.Requests()))
	}
}

func TestWhatIsRefusedIsLeftOutFromThenOn(t *testing.T) {
	refuse := func(message string) providertest.Reply {
		j, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		return providertest.JSON(400, `{"type":"error","error":{"type":"invalid_request_error","message":`+string(j)+`}}`)
	}
	step := requests()["step-with-thinking"]
	step.Effort = "low"
	free := step
	free.Model = "claude-opus-9"
	free.Messages = append([]session.Message(nil), step.Messages...)
	for i := range free.Messages {
		if len(free.Messages[i].Calls) > 0 {
			free.Messages[i].Reasoning = thought(free.Model, signed)
		}
	}
	const marks = `"cache_control"`
	for name, test := range map[string]struct {
		request  session.ModelRequest
		refusals []string
		want     string // what is asked in the end
		without  string // what the last body does not hold, and the first did
	}{
		"cache marks":        {step, []string{"system.1.cache_control: Extra inputs are not permitted"}, "max 36096, enabled 4096", marks},
		"too long an answer": {free, []string{"max_tokens: 36096 > 20000, which is the maximum allowed number of output tokens for claude-opus-9"}, "max 20000, adaptive summarized, effort low", `"max_tokens":36096`},
		"a budget":           {step, []string{`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`}, "max 36096, adaptive summarized, effort low", "budget_tokens"},
		"thinking freely":    {free, []string{"adaptive thinking is not supported on this model"}, "max 36096, enabled 4096", "adaptive"},
		"thinking at all":    {free, []string{"adaptive thinking is not supported on this model", "This model does not support thinking"}, "max 32000", `"thinking"`},
		"a display":          {free, []string{"thinking.adaptive.display: Extra inputs are not permitted"}, "max 36096, adaptive, effort low", "summarized"},
		"an effort":          {free, []string{"This model does not support the effort parameter."}, "max 36096, adaptive summarized", "output_config"},
		"a signature":        {free, []string{"messages.1.content.0: Invalid `signature` in `thinking` block"}, "max 36096, adaptive summarized, effort low", "signature"},
		"a signature, with a budget": {
			step, []string{"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."}, "max 36096, adaptive summarized, effort low", "budget_tokens",
		},
	} {
		script := []providertest.Reply{}
		for _, r := range test.refusals {
			script = append(script, refuse(r))
		}
		server := providertest.NewServer(t, append(script, good("x"), good("x"))...)
		m := model(t, providertest.Endpoint{URL: server.URL()})
		for range 2 {
			if a := providertest.Collect(t.Context(), t, m, test.request); a.Err != nil || a.Text != "x" {
				t.Errorf("%s: %q, %v", name, a.Text, a.Err)
			}
		}
		reqs := server.Requests()
		if len(reqs) != len(test.refusals)+2 {
			t.Errorf("%s: %d requests for two completions and %d refusals", name, len(reqs), len(test.refusals))
			continue
		}
		if !strings.Contains(string(reqs[0].Body), test.without) {
			t.Errorf("%s: the first request does not hold %s", name, test.without)
		}
		for _, r := range reqs[len(test.refusals):] {
			if got := asked(t, r.Body); got != test.want || strings.Contains(string(r.Body), test.without) {
				t.Errorf("%s: %s, want %s, without %s", name, got, test.want, test.without)
			}
			if err := strict(r.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		always := providertest.NewServer(t)
		always.Always(refuse(test.refusals[0]))
		a := providertest.Collect(t.Context(), t, model(t, providertest.Endpoint{URL: always.URL()}), test.request)
		if n := len(always.Requests()); a.Fault() != session.FaultRejected || n < 2 || n > 5 {
			t.Errorf("%s: refused for ever: %v after %d requests", name, a.Err, n)
		}
	}
}

func TestThinkingThatIsRefusedIsLeftOutOfItsConversationOnly(t *testing.T) {
	r := requests()["thinking-in-its-place"]
	server := providertest.NewServer(t, providertest.JSON(400, `{"error":{"message":"messages.1.content.0: Invalid signature in thinking block"}}`), good("x"), good("x"))
	m := model(t, providertest.Endpoint{URL: server.URL()})
	for _, id := range []session.SessionID{"one", "two"} {
		r.Session = id
		if a := providertest.Collect(t.Context(), t, m, r); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	var with []bool
	for _, req := range server.Requests() {
		with = append(with, strings.Contains(string(req.Body), "EqQB"))
	}
	if !cmp.Equal(with, []bool{true, false, true}) {
		t.Errorf("sent with the thinking of before: %v", with)
	}
}

func TestTheListOfModelsSaysWhatTheEndpointKnows(t *testing.T) {
	yes, no := true, false
	const able = `{"supported":true}`
	const unable = `{"supported":false}`
	types := func(adaptive, enabled string) string {
		return `"thinking":{"supported":true,"types":{"adaptive":` + adaptive + `,"enabled":` + enabled + `}}`
	}
	server := providertest.NewServer(t,
		providertest.JSON(200, `{"data":[
			{"type":"model","id":"claude-opus-9","display_name":"Claude Opus 9","max_input_tokens":1000000,"max_tokens":20000,"capabilities":{"image_input":`+able+`,
				"effort":{"supported":true,"low":`+able+`,"medium":`+able+`,"high":`+able+`,"xhigh":`+able+`,"max":`+unable+`},`+types(able, unable)+`}},
			{"id":"claude-plain-9","max_input_tokens":5,"capabilities":{"image_input":`+unable+`,`+types(unable, unable)+`}},7,{"id":""}
		],"has_more":true,"first_id":"claude-opus-9","last_id":"claude-plain-9"}`),
		providertest.JSON(200, `{"data":[{"id":"claude-sonnet-4-5-20250929","display_name":"Claude Sonnet 4.5"},{"id":"claude-budget-9","capabilities":{`+types(unable, able)+`}},
			{"id":"claude-opus-9"}],"has_more":false,"last_id":"claude-budget-9"}`), good("x"), good("x"))
	m := model(t, providertest.Endpoint{URL: server.URL(), Key: "sk-ant-1234"})
	got, err := m.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []session.ModelInfo{
		{ID: "claude-opus-9", Name: "Claude Opus 9", Window: 1_000_000, Efforts: []string{"low", "medium", "high", "xhigh"}, Images: &yes},
		{ID: "claude-plain-9", Name: "claude-plain-9", Window: 5, Images: &no},
		{ID: "claude-sonnet-4-5-20250929", Name: "Claude Sonnet 4.5", Window: 200_000, Efforts: []string{"low", "medium", "high"}},
		{ID: "claude-budget-9", Name: "claude-budget-9", Efforts: []string{"low", "medium", "high"}},
	}
	for i := range want {
		want[i].Provider, want[i].API = "test", "anthropic"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	pages := server.Requests()
	if len(pages) != 2 || pages[0].Path != "/v1/models?limit=1000" || pages[1].Path != "/v1/models?after_id=claude-plain-9&limit=1000" || pages[0].Method != http.MethodGet ||
		pages[1].Header.Get("X-Api-Key") != "sk-ant-1234" || pages[1].Header.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("asked %+v", pages)
	}
	// What was heard holds for requests and for what is said of a model.
	for id, want := range map[string]string{"claude-opus-9": "max 20000, adaptive summarized, effort high", "claude-plain-9": "max 32000"} {
		r := providertest.Hello()
		r.Model, r.Effort = id, "high"
		if a := providertest.Collect(t.Context(), t, m, r); a.Err != nil {
			t.Fatal(a.Err)
		}
		reqs := server.Requests()
		if got := asked(t, reqs[len(reqs)-1].Body); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if info := m.Info("claude-opus-9"); info.Window != 1_000_000 || info.Provider != "test" || len(info.Efforts) != 4 {
		t.Errorf("info %+v", info)
	}
	if info := m.Info("unheard-of"); info.Window != 0 || info.ID != "unheard-of" {
		t.Errorf("info %+v", info)
	}
}

func TestAListThatDoesNotEndOrCannotBeHadIsBounded(t *testing.T) {
	same := providertest.JSON(200, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`)
	server := providertest.NewServer(t)
	server.Always(same)
	if got, err := model(t, providertest.Endpoint{URL: server.URL()}).List(t.Context()); err != nil || len(got) != 1 || len(server.Requests()) != 2 {
		t.Errorf("got %+v, %v after %d requests", got, err, len(server.Requests()))
	}
	for name, test := range map[string]struct {
		reply providertest.Reply
		fault session.Fault
	}{
		"key":      {providertest.JSON(401, `{"error":{"type":"authentication_error","message":"no"}}`), session.FaultAuth},
		"no JSON":  {providertest.Body(200, "text/html", "<html>"), session.FaultBadReply},
		"endless":  {providertest.Reply{Steps: []providertest.Step{providertest.Send("["), providertest.Repeat(strings.Repeat(" ", 1<<20), 0)}}, session.FaultBadReply},
		"cut":      {providertest.Reply{Steps: []providertest.Step{providertest.Send(`{"data":[`), providertest.Cut()}}, session.FaultNetwork},
		"too much": {providertest.JSON(200, `{"data":[{"id":"a"}]}`+strings.Repeat(" ", 9<<20)), session.FaultBadReply},
	} {
		_, err := model(t, providertest.Endpoint{URL: providertest.NewServer(t, test.reply).URL()}).List(t.Context())
		if e, ok := err.(*session.ModelError); !ok || e.Fault != test.fault {
			t.Errorf("%s: %v, want %s", name, err, test.fault)
		}
	}
	if got, err := model(t, providertest.Endpoint{URL: providertest.NewServer(t, providertest.JSON(200, ` [{"id":"t"}]`)).URL()}).List(t.Context()); err != nil || len(got) != 1 {
		t.Errorf("a bare list: %+v, %v", got, err)
	}
}

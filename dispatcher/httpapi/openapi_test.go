package httpapi

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rind-dev/rind/protocol/portable"
)

// document is the part of OpenAPI that the test reads.
type document struct {
	OpenAPI string                          `json:"openapi"`
	Info    struct{ Version string }        `json:"info"`
	Paths   map[string]map[string]operation `json:"paths"`
	Parts   struct {
		Schemas   map[string]json.RawMessage `json:"schemas"`
		Responses map[string]response        `json:"responses"`
	} `json:"components"`
}

type operation struct {
	ID        string              `json:"operationId"`
	Security  *[]any              `json:"security"`
	Responses map[string]response `json:"responses"`
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"content"`
}

func readDocument(t *testing.T, text []byte) *document {
	t.Helper()
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" || d.Info.Version != portable.Version {
		t.Errorf("OpenAPI %s of version %s", d.OpenAPI, d.Info.Version)
	}
	return &d
}

// answer finds what the document says of an answer; nil when it says nothing.
func (d *document) answer(o operation, status int) *response {
	r, ok := o.Responses[strconv.Itoa(status)]
	if !ok {
		return nil
	}
	if name, isRef := strings.CutPrefix(r.Ref, "#/components/responses/"); isRef {
		if r, ok = d.Parts.Responses[name]; !ok {
			return nil
		}
	}
	return &r
}

// fits checks a body against the schema of an answer.
func (d *document) fits(schema json.RawMessage, body []byte) error {
	defs := map[string]json.RawMessage{}
	for name, s := range d.Parts.Schemas {
		defs[name] = local(s)
	}
	text, err := json.Marshal(map[string]any{"$defs": defs, "allOf": []json.RawMessage{local(schema)}})
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

func local(s json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(string(s), "#/components/schemas/", "#/$defs/"))
}

// N28: the document names exactly the routes there are, with their methods and their token.
func TestTheOpenAPIDocumentNamesExactlyTheRoutesThereAre(t *testing.T) {
	p := mocking(t)
	if a := p.do("GET", "/openapi.json", "", "Authorization", ""); a.status != 401 {
		t.Errorf("without a token: %d", a.status)
	}
	a := p.must(200, "GET", "/openapi.json", "")
	if a.header.Get("Content-Type") != "application/json" {
		t.Errorf("as %s", a.header.Get("Content-Type"))
	}
	d := readDocument(t, a.body)
	var said, are []string
	ids := map[string]bool{}
	for path, methods := range d.Paths {
		for method, o := range methods {
			said = append(said, strings.ToUpper(method)+" "+path)
			if ids[o.ID] || o.ID == "" {
				t.Errorf("operation %q is named twice, or not at all", o.ID)
			}
			ids[o.ID] = true
			for status := range o.Responses {
				n, _ := strconv.Atoi(status)
				if d.answer(o, n) == nil {
					t.Errorf("%s %s: answer %s leads nowhere", method, path, status)
				}
			}
		}
	}
	for _, r := range routes {
		are = append(are, r.name)
		method, path, _ := strings.Cut(r.name, " ")
		if o := d.Paths[path][strings.ToLower(method)]; r.open != (o.Security != nil && len(*o.Security) == 0) {
			t.Errorf("%s: asks for a token: %v", r.name, !r.open)
		}
	}
	slices.Sort(said)
	slices.Sort(are)
	if !slices.Equal(said, are) {
		t.Errorf("the document says\n%s\nthere are\n%s", strings.Join(said, "\n"), strings.Join(are, "\n"))
	}
}

// N28: what is really answered is what the document says, for each route and each status that it has.
func TestEveryAnswerIsAsTheOpenAPIDocumentSays(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, store(), &model{replies: replies{calling("x", "act", "{}"), saying("done")}}, changing(dir))
	d := readDocument(t, openAPI)
	seen := map[string]bool{}
	check := func(route string, a *answered) {
		t.Helper()
		method, path, _ := strings.Cut(route, " ")
		r := d.answer(d.Paths[path][strings.ToLower(method)], a.status)
		if r == nil {
			t.Errorf("%s: %d is not in the document: %.200s", route, a.status, a.body)
			return
		}
		seen[route+" "+strconv.Itoa(a.status)] = true
		kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
		said, ok := r.Content[kind]
		if _, any := r.Content["*/*"]; !ok && !any {
			t.Errorf("%s: %d is answered as %s", route, a.status, kind)
		}
		if kind == "application/json" && said.Schema != nil {
			if err := d.fits(said.Schema, a.body); err != nil {
				t.Errorf("%s: %d: %v: %.300s", route, a.status, err, a.body)
			}
		}
	}
	whole, some := p.must(200, "GET", "/v1/runtime", ""), p.must(200, "GET", "/v1/runtime/capabilities", "")
	if _, list, _ := strings.Cut(string(whole.body), `"providers":`); string(some.body) != `{"providers":`+list {
		t.Errorf("the runtime has %s, and can %s", whole.body, some.body)
	}
	conversation := p.conversation()
	if err := os.WriteFile(filepath.Join(dir, "made.txt"), []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := p.start(conversation, "agent", "x", `,"idempotencyKey":"k"`)
	var asked portable.Action
	if err := json.Unmarshal(p.until(agent, "action.required").Data, &asked); err != nil {
		t.Fatal(err)
	}
	respond := "/v1/executions/" + agent + "/actions/" + asked.ID + ":respond"
	check("GET /v1/executions/{id}", p.do("GET", "/v1/executions/"+agent, ""))
	for _, body := range []string{`{"approved":1}`, `{"approved":true}`, `{"approved":true}`} {
		check("POST /v1/executions/{id}/actions/{actionId}:respond", p.do("POST", respond, body))
	}
	p.follow(agent, nil, nil)
	var made struct{ Artifacts []portable.Artifact }
	artifacts := p.do("GET", "/v1/executions/"+agent+"/artifacts", "")
	check("GET /v1/executions/{id}/artifacts", artifacts)
	if json.Unmarshal(artifacts.body, &made) != nil || len(made.Artifacts) != 1 {
		t.Fatalf("artifacts %s", artifacts.body)
	}
	content := "/rind/v1/executions/" + agent + "/artifacts/" + made.Artifacts[0].ID + "/content"
	start := func(more string) string {
		return `{"conversationId":"` + conversation + `","providerId":"mock","input":"x"` + more + `}`
	}
	long := strings.Repeat("x", maxBody)
	for _, c := range []struct {
		route, path, body string
		headers           []string
	}{
		{"GET /healthz", "/healthz", "", nil},
		{"GET /readyz", "/readyz", "", nil},
		{"GET /openapi.json", "/openapi.json", "", nil},
		{"GET /v1/runtime", "/v1/runtime", "", nil},
		{"GET /v1/runtime/capabilities", "/v1/runtime/capabilities", "", nil},
		{"POST /v1/conversations", "/v1/conversations", `{"metadata":{"a":1}}`, nil},
		{"POST /v1/conversations", "/v1/conversations", `{"metadata":null}`, nil},
		{"POST /v1/conversations", "/v1/conversations", "{}", []string{"Rind-Workspace", "no-such"}},
		{"POST /v1/conversations", "/v1/conversations", "a=b", []string{"Content-Type", "", "Content-Type", "text/plain"}},
		{"POST /v1/conversations", "/v1/conversations", long + "x", nil},
		{"GET /v1/conversations/{id}", "/v1/conversations/" + conversation, "", nil},
		{"GET /v1/conversations/{id}", "/v1/conversations/x", "", nil},
		{"POST /v1/executions", "/v1/executions", start(""), nil},
		{"POST /v1/executions", "/v1/executions", start(`,"idempotencyKey":"k"`), nil},
		{"POST /v1/executions", "/v1/executions", start(`,"requiredCapabilities":["no.such"]`), nil},
		{"POST /v1/executions", "/v1/executions", `{}`, nil},
		{"POST /v1/executions", "/v1/executions", strings.Replace(start(""), "mock", "nobody", 1), nil},
		{"GET /v1/executions/{id}", "/v1/executions/x", "", nil},
		{"GET /v1/executions/{id}/artifacts", "/v1/executions/x/artifacts", "", nil},
		{"GET /v1/executions/{id}/events", "/v1/executions/x/events", "", nil},
		{"GET /v1/executions/{id}/events", "/v1/executions/" + agent + "/events", "", nil},
		{"GET /v1/executions/{id}/events", "/v1/executions/" + agent + "/events", "", []string{"Accept", "text/event-stream"}},
		{"GET /v1/executions/{id}/events", "/v1/executions/" + agent + "/events?after=x", "", nil},
		{"POST /v1/executions/{id}:cancel", "/v1/executions/" + agent + ":cancel", "", nil},
		{"POST /v1/executions/{id}:cancel", "/v1/executions/x:cancel", "", nil},
		{"POST /v1/executions/{id}/actions/{actionId}:respond", "/v1/executions/" + agent + "/actions/x:respond", "{}", nil},
		{"GET /rind/v1/conversations", "/rind/v1/conversations", "", nil},
		{"GET /rind/v1/conversations", "/rind/v1/conversations?limit=0", "", nil},
		{"GET /rind/v1/conversations", "/rind/v1/conversations?workspace=no-such", "", nil},
		{"GET /rind/v1/executions", "/rind/v1/executions?limit=1", "", nil},
		{"GET /rind/v1/executions", "/rind/v1/executions?state=asleep", "", nil},
		{"GET /rind/v1/executions/{id}/artifacts/{artifactId}/content", content, "", nil},
		{"GET /rind/v1/executions/{id}/artifacts/{artifactId}/content", content, "", []string{"Range", "bytes=2-4"}},
		{"GET /rind/v1/executions/{id}/artifacts/{artifactId}/content", content, "", []string{"Range", "bytes=10-"}},
		{"GET /rind/v1/executions/{id}/artifacts/{artifactId}/content", content + "x", "", nil},
		{"GET /rind/v1/executions/{id}/artifacts/{artifactId}/content", strings.Replace(content, "file-", "file_", 1), "", nil},
		{"GET /rind/v1/metrics", "/rind/v1/metrics", "", nil},
	} {
		method, _, _ := strings.Cut(c.route, " ")
		if strings.HasSuffix(c.path, "contentx") { // another route
			continue
		}
		check(c.route, p.do(method, c.path, c.body, c.headers...))
	}
	for _, r := range routes {
		path := strings.NewReplacer("{id}", agent, "{actionId}", "x", "{artifactId}", "x").Replace(strings.SplitN(r.name, " ", 2)[1])
		check(r.name, p.do(r.method, path, "", "Host", "evil.example"))
		if !r.open {
			check(r.name, p.do(r.method, path, "", "Authorization", ""))
		}
	}
	p.api.Drain()
	check("GET /readyz", p.do("GET", "/readyz", ""))
	check("POST /v1/conversations", p.do("POST", "/v1/conversations", ""))
	check("POST /v1/executions", p.do("POST", "/v1/executions", start("")))
	for route, methods := range d.Paths {
		for method, o := range methods {
			for status := range o.Responses {
				n, _ := strconv.Atoi(status)
				name := strings.ToUpper(method) + " " + route
				rare := n == http.StatusMethodNotAllowed || n == http.StatusInternalServerError || n >= 400 && n != 404 && n != 409 && n != 422 && n != 416 && n != 503
				if !seen[name+" "+status] && !rare && !(n == 503 && strings.Contains(name, "{id}")) && !(n == 409 && !strings.Contains(name, "respond")) {
					t.Errorf("%s: nothing was answered with %s", name, status)
				}
			}
		}
	}
}

package httpapi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/roots"
	"github.com/rind-dev/rind/session/store/memory"
)

func store() session.Store { return memory.New() }

// changing makes dir the workspace, and the tool tell that it changed files of it.
func changing(dir string, names ...string) option {
	if len(names) == 0 {
		names = []string{"made.txt"}
	}
	return func(c *Config) {
		c.Workspace = dir
		c.OpenFile = func(workspace, path string) (File, error) {
			r, err := roots.Open(workspace)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			f, _, err := r.OpenFile(path)
			if err != nil {
				return nil, err
			}
			return f, nil
		}
		changes.Store(c.Sessions, func() []protocol.FileChange {
			var out []protocol.FileChange
			for _, name := range names {
				path := name
				if !filepath.IsAbs(name) {
					path = filepath.Join(dir, name)
				}
				out = append(out, protocol.FileChange{FilePath: filepath.ToSlash(path)})
			}
			return out
		})
	}
}

func (p *place) list(path string) (ids []string, next string) {
	p.t.Helper()
	var l struct {
		Executions    []portable.Execution
		Conversations []struct {
			Conversation portable.Conversation
			Title        string
			SessionID    string
		}
		NextCursor string
	}
	if err := json.Unmarshal(p.must(200, "GET", path, "").body, &l); err != nil {
		p.t.Fatal(err)
	}
	for _, e := range l.Executions {
		ids = append(ids, e.ID)
	}
	for _, c := range l.Conversations {
		ids = append(ids, c.Conversation.ID)
	}
	return ids, l.NextCursor
}

// whole reads a list to its last page.
func (p *place) whole(path string, each func()) []string {
	p.t.Helper()
	var all []string
	cursor := ""
	for {
		ids, next := p.list(path + cursor)
		all = append(all, ids...)
		if next == "" {
			return all
		}
		if each != nil {
			each()
		}
		cursor = "&cursor=" + next
	}
}

// N26: pages of a list follow one another without repeats, whatever happens in between; filters hold.
func TestListsGiveEachOnceWhateverHappensBetweenTheirPages(t *testing.T) {
	h := newHeld()
	p := mocking(t, h.with(0))
	var conversations, executions []string
	for i := range 9 {
		headers := []string{}
		if i%3 == 0 {
			headers = []string{"Rind-Workspace", "other"}
		}
		c := p.must(201, "POST", "/v1/conversations", "{}", headers...).member("id")
		conversations = append(conversations, c)
		id := p.start(c, "mock", "x", "")
		p.follow(id, nil, nil)
		executions = append(executions, id)
	}
	open := p.start(conversations[0], "held", "x", "")
	<-h.begun
	executions = append(executions, open)
	slices.Reverse(executions)
	touch := func() {
		p.follow(p.start(conversations[len(conversations)-1], "mock", "x", ""), nil, nil)
		p.conversation()
	}
	if got := p.whole("/rind/v1/executions?limit=3", touch); !slices.Equal(got, executions) {
		t.Errorf("executions %v, want %v", got, executions)
	}
	seen := map[string]bool{}
	for _, c := range p.whole("/rind/v1/conversations?limit=2", touch) {
		if seen[c] {
			t.Errorf("%s twice", c)
		}
		seen[c] = true
	}
	for _, c := range conversations[:len(conversations)-1] { // the last one was touched
		if !seen[c] {
			t.Errorf("%s is missing", c)
		}
	}
	for path, want := range map[string]int{
		"/rind/v1/executions?conversationId=" + conversations[0] + "&limit=1": 2, "/rind/v1/executions?providerId=held&limit=200": 1,
		"/rind/v1/executions?state=running&state=queued&limit=2": 1, "/rind/v1/executions?state=failed&limit=2": 0,
		"/rind/v1/executions?conversationId=conv_none&limit=2": 0, "/rind/v1/conversations?workspace=other&limit=2": 3,
	} {
		if got := p.whole(path, nil); len(got) != want {
			t.Errorf("%s lists %d, want %d", path, len(got), want)
		}
	}
	for _, bad := range []string{
		"/rind/v1/executions?limit=0", "/rind/v1/executions?limit=201", "/rind/v1/executions?limit=1e1", "/rind/v1/executions?cursor=%21", "/rind/v1/executions?state=asleep",
		"/rind/v1/executions?cursor=", "/rind/v1/executions?limit=1&limit=2", "/rind/v1/conversations?cursor=nonsense", "/rind/v1/conversations?limit=x",
		"/rind/v1/conversations?workspace=UPPER", "/rind/v1/executions?%zz",
	} {
		if a := p.must(400, "GET", bad, ""); a.member("message") != "Invalid list query" {
			t.Errorf("%s: %s", bad, a.body)
		}
	}
	h.let <- struct{}{}
	p.follow(open, nil, nil)
}

// Section 2.1: a row of the conversations has what the conversation is, the session it is for an editor, and when something was done in it last; the last one that
// something was done in is first.
func TestConversationsAreListedByTheirLastActivity(t *testing.T) {
	p := mocking(t)
	first := p.must(201, "POST", "/v1/conversations", `{"metadata":{"n":1.0}}`, "Rind-Workspace", "other")
	second := p.must(201, "POST", "/v1/conversations", "")
	check := func(order ...*answered) {
		t.Helper()
		var l struct {
			Conversations []map[string]json.RawMessage
		}
		if err := json.Unmarshal(p.must(200, "GET", "/rind/v1/conversations", "").body, &l); err != nil || len(l.Conversations) != len(order) {
			t.Fatalf("%d conversations, %v", len(l.Conversations), err)
		}
		for i, c := range order {
			row := l.Conversations[i]
			one := p.must(200, "GET", "/v1/conversations/"+c.member("id"), "")
			meta, err := p.store.Conversation(t.Context(), c.member("id"))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"conversation": string(one.body), "sessionId": strconv.Quote(one.header.Get("Rind-Session-Id")), "title": strconv.Quote(meta.Title),
				"workspaceRoot": strconv.Quote(map[bool]string{true: "/other", false: "/w"}[c == first]), "updatedAt": strconv.Quote(portable.FormatTime(meta.Activity)),
			}
			if string(one.body) != string(c.body) {
				t.Errorf("it was made as %s and is %s", c.body, one.body)
			}
			for name, text := range want {
				if string(row[name]) != text {
					t.Errorf("%s of row %d is %s, want %s", name, i, row[name], text)
				}
			}
		}
	}
	for _, order := range [][]*answered{{first, second}, {second, first}} {
		p.follow(p.start(order[0].member("id"), "mock", "x", ""), nil, nil)
		check(order...)
	}
}

// N26: ranges, and files that are not there any more, are not ours, or are reached through a link.
func TestContentsAreThoseOfChangedFilesWithinTheWorkspaceOnly(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret.txt")
	for path, text := range map[string]string{secret: "secret", filepath.Join(dir, "made.txt"): "0123456789", filepath.Join(dir, "gone.txt"): "x"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.txt")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := &model{replies: replies{calling("x", "act", "{}"), saying("done")}}
	p := serve(t, store(), m, changing(dir, "made.txt", "gone.txt", "link.txt", "folder", secret))
	id := p.start(p.conversation(), "agent", "x", `,"config":{"approvals":"auto"}`)
	p.follow(id, nil, nil)
	if err := os.Remove(filepath.Join(dir, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	var made struct{ Artifacts []portable.Artifact }
	if err := json.Unmarshal(p.must(200, "GET", "/v1/executions/"+id+"/artifacts", "").body, &made); err != nil || len(made.Artifacts) != 5 {
		t.Fatalf("%d artifacts, %v", len(made.Artifacts), err)
	}
	path := func(i int) string {
		return "/rind/v1/executions/" + id + "/artifacts/" + made.Artifacts[i].ID + "/content"
	}
	whole := p.must(200, "GET", path(0), "")
	h := whole.header
	if string(whole.body) != "0123456789" || h.Get("Content-Type") != "text/plain" || h.Get("Accept-Ranges") != "bytes" || h.Get("Content-Disposition") != "attachment" || h.Get("Last-Modified") == "" {
		t.Errorf("%q with %v", whole.body, h)
	}
	changed := h.Get("Last-Modified")
	for _, c := range []struct {
		headers []string
		status  int
		body    string
		part    string
	}{
		{[]string{"Range", "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		{[]string{"Range", "bytes=7-"}, 206, "789", "bytes 7-9/10"},
		{[]string{"Range", "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		{[]string{"Range", "bytes=0-999"}, 206, "0123456789", "bytes 0-9/10"},
		{[]string{"Range", "bytes=-999"}, 206, "0123456789", "bytes 0-9/10"},
		{[]string{"Range", "bytes=3-9223372036854775807"}, 206, "3456789", "bytes 3-9/10"},
		{[]string{"Range", "bytes=-9223372036854775807"}, 206, "0123456789", "bytes 0-9/10"},
		{[]string{"Range", "bytes=1-2", "If-Range", changed}, 206, "12", "bytes 1-2/10"},
		{[]string{"Range", "bytes=1-2", "If-Range", "Mon, 01 Jan 2001 00:00:00 GMT"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=0-1,3-4"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=4-2"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=x-"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=+1-2"}, 200, "0123456789", ""},
		{[]string{"Range", "lines=1-2"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=0-1", "Range", "bytes=2-3"}, 200, "0123456789", ""},
	} {
		a := p.do("GET", path(0), "", c.headers...)
		if a.status != c.status || string(a.body) != c.body || a.header.Get("Content-Range") != c.part {
			t.Errorf("%v: %d %q, %s", c.headers, a.status, a.body, a.header.Get("Content-Range"))
		}
	}
	for _, bad := range []string{"bytes=10-", "bytes=-0"} {
		a := p.must(416, "GET", path(0), "", "Range", bad)
		if a.header.Get("Content-Range") != "bytes */10" || a.member("code") != "VALIDATION_ERROR" || a.member("message") != "Range not satisfiable" {
			t.Errorf("%s: %s, %v", bad, a.body, a.header)
		}
	}
	if a := p.do("HEAD", path(0), ""); a.status != 200 || len(a.body) != 0 || a.header.Get("Content-Length") != "10" {
		t.Errorf("HEAD: %d, %v", a.status, a.header)
	}
	for i := 1; i < 5; i++ {
		a := p.must(404, "GET", path(i), "")
		if a.member("message") != "Artifact content not found: "+made.Artifacts[i].ID {
			t.Errorf("%s: %s", made.Artifacts[i].Name, a.body)
		}
	}
	forged := p.start(p.conversation(), "script", "x", fmt.Sprintf(`,"config":{"steps":[{"artifact":{"id":%q,"name":"s","mediaType":"text/plain","metadata":{"path":%q}}}]}`, made.Artifacts[0].ID, secret))
	p.follow(forged, nil, nil)
	p.must(404, "GET", "/rind/v1/executions/"+forged+"/artifacts/"+made.Artifacts[0].ID+"/content", "")
	p.must(404, "GET", "/rind/v1/executions/exec_none/artifacts/x/content", "")
}

// N28: the figures count, and tell no id, path or text.
func TestMetricsCountAndTellNothingOfAConversation(t *testing.T) {
	m := &model{replies: replies{counting(7, saying("answer-text"))}}
	p := serve(t, store(), m, func(c *Config) {
		c.Sessions.SetExecutions(session.ExecutionOptions{Figures: true})
		c.StoreBytes = func() int64 { return 4096 }
	})
	if a := p.do("GET", "/rind/v1/metrics", "", "Authorization", ""); a.status != 401 {
		t.Errorf("without a token: %d", a.status)
	}
	c := p.conversation()
	p.follow(p.start(c, "agent", "input-text", ""), nil, nil)
	p.follow(p.start(c, "script", "x", `,"config":{"steps":[{"fail":"no"}]}`), nil, nil)
	waiting := p.start(c, "mock", "x", `,"config":{"requireApproval":true}`)
	p.until(waiting, "action.required")
	a := p.must(200, "GET", "/rind/v1/metrics", "")
	text := string(a.body)
	for _, want := range []string{
		`rind_executions_total{provider="agent",state="succeeded"} 1`, `rind_executions_total{provider="script",state="failed"} 1`,
		`rind_executions_open{state="awaiting"} 1`, `rind_executions_open{state="queued"} 0`, "rind_streams 0", `rind_tokens_total{kind="input"} 7`,
		`rind_tokens_total{kind="output"} 7`, "rind_store_bytes 4096", `rind_http_requests_total{route="POST /v1/executions",status="202"} 3`,
		`rind_append_seconds_bucket{le="+Inf"} `, "rind_append_seconds_count ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	for _, secret := range []string{c, waiting, "input-text", "answer-text", "/w", strings.TrimPrefix(waiting, "exec_")} {
		if strings.Contains(strings.ReplaceAll(text, "/v1", ""), secret) {
			t.Errorf("%q is told", secret)
		}
	}
	if a.header.Get("Content-Type") != "text/plain; version=0.0.4" {
		t.Errorf("as %s", a.header.Get("Content-Type"))
	}
	p.must(200, "POST", "/v1/executions/"+waiting+":cancel", "")
}

// N27: limits of section 11 that need a tool or tokens.
func TestApprovalsAutoAndNeverAndTheTokensOfAnExecutionHold(t *testing.T) {
	for _, c := range []struct {
		config, end, told string
		runs              int
	}{
		{`{"approvals":"auto"}`, `"finalOutput":"a\n\ndone"`, "rind.tool_started", 1},
		{`{"approvals":"never"}`, `"finalOutput":"a\n\ndone"`, `"errorType":"ApprovalUnavailable"`, 0},
		{`{"maxTokens":19}`, "Execution exceeded maxTokens 19", "", 0},
		{`{"maxTokens":100,"approvals":"auto"}`, `"finalOutput":"a\n\ndone"`, "", 1},
		{`{"tools":[],"approvals":"auto"}`, `"finalOutput":"a\n\ndone"`, `"errorType":"ToolNotFound"`, 0},
		{`{"tools":["nope"]}`, "Invalid agent config: tools", "", 0},
		{`{"approvals":"ask","timeout":4}`, "Execution exceeded its timeout of 4 s", "action.required", 0}, // long enough to have asked
	} {
		p := serve(t, store(), &model{replies: replies{counting(10, calling("a", "act", "{}")), counting(10, saying("done"))}})
		events := p.follow(p.start(p.conversation(), "agent", "x", `,"config":`+c.config), nil, nil)
		sound(t, events)
		text := lines(events)
		if end := string(events[len(events)-1].Data); !strings.Contains(end, c.end) || !strings.Contains(text, c.told) || p.tool.count() != c.runs {
			t.Errorf("%s: %d runs, ended %s\n%s", c.config, p.tool.count(), end, text)
		}
		if strings.Contains(c.config, "auto") && strings.Contains(text, "action.required") {
			t.Errorf("%s: somebody was asked", c.config)
		}
		p.stop()
	}
}

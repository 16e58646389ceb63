package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// soon is longer than anything here should take, on a busy machine.
const soon = 10 * time.Second

// logged is a log that can be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// house is a runtime with servers.
type house struct {
	*Servers
	children *proc.Children
	log      *logged
	dir      string
}

func program(mode string, more object) object {
	e := object{"command": os.Args[0], "env": object{"MCP_DOUBLE": mode}}
	for k, v := range more {
		if k == "env" {
			for n, v := range v.(object) {
				e["env"].(object)[n] = v
			}
			continue
		}
		e[k] = v
	}
	return e
}

func open(t *testing.T, entries object, set ...func(*Config)) *house {
	t.Helper()
	h := &house{children: proc.NewChildren(""), log: &logged{}, dir: t.TempDir()}
	cfg := Config{
		Servers: map[string]json.RawMessage{}, Children: h.children, Dir: h.dir, Version: "9",
		Log:    slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		second: 20 * time.Millisecond, message: testMessage, attached: 512 << 10, Wait: 3 * soon,
	}
	for name, e := range entries {
		cfg.Servers[name] = protocol.MustMarshal(e)
	}
	for _, f := range set {
		f(&cfg)
	}
	h.Servers = New(cfg)
	t.Cleanup(func() {
		h.Close()
		if err := h.children.KillAll(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(protocol.Prefix(h.log.String(), 4000))
		}
	})
	return h
}

func (h *house) find(t *testing.T, name string) session.Tool {
	t.Helper()
	for _, tool := range h.Tools(t.Context()) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("no tool %s; %+v", name, h.List())
	return nil
}

// said collects progress.
type said struct {
	mu    sync.Mutex
	lines []string
	first chan struct{}
	once  sync.Once
}

func (s *said) Say(m string) {
	s.mu.Lock()
	s.lines = append(s.lines, m)
	s.mu.Unlock()
	if s.first != nil {
		s.once.Do(func() { close(s.first) })
	}
}

func (*said) Ask(context.Context, string, []protocol.Choice) (string, error) {
	return "", errors.New("nobody is asked")
}

func run(ctx context.Context, t *testing.T, tool session.Tool, args string) session.ToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	r, err := tool.Run(ctx, session.ToolCall{ID: "c", Name: tool.Spec().Name, Arguments: json.RawMessage(args)}, &said{})
	if err != nil {
		t.Fatalf("%s: %v", tool.Spec().Name, err)
	}
	if strings.ContainsAny(r.Error, "\n\x00\x1b") {
		t.Errorf("error %q is not one line", r.Error)
	}
	return r
}

func text(r session.ToolResult) string {
	s, _ := r.Data.(string)
	return s
}

func TestToolsOfAProgramAreListedOverPagesAndCalled(t *testing.T) {
	h := open(t, object{"double": program("plain", nil)})
	tools := h.Tools(t.Context())
	if len(tools) != len(doubleTools) {
		t.Fatalf("%d tools, want %d: %+v", len(tools), len(doubleTools), h.List())
	}
	spec := tools[0].Spec()
	if spec.Name != "mcp__double__echo" || spec.Kind != "other" || spec.ReadOnly || !strings.Contains(spec.Description, "does echo") {
		t.Errorf("%+v", spec)
	}
	args := `{"big":9007199254740993,"n":null,"s":"\u00e4","f":1.50}`
	r := run(t.Context(), t, tools[0], args)
	if text(r) != args || r.ErrorType != "" {
		t.Errorf("arguments arrived as %v", r)
	}
	if got := h.List(); len(got) != 1 || got[0].State != StateReady || got[0].Server != "double 1" || got[0].Transport != "stdio" || len(got[0].Tools) != len(tools) {
		t.Errorf("%+v", got)
	}
}

func TestWhatAServerAnswersBecomesAResult(t *testing.T) {
	h := open(t, object{"d": program("plain", nil)})
	t.Run("structured content keeps its numbers", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__structured"), `{}`)
		if got := string(protocol.MustMarshal(r.Data)); got != `{"structured":{"n":9007199254740993,"t":"ab"},"text":"see data"}` {
			t.Error(got)
		}
	})
	t.Run("a failure is told with its text", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__fail"), `{}`)
		if r.Status != protocol.ToolFailed || r.ErrorType == "" || !strings.Contains(r.Error, "no such row") || text(r) != "no such\nrow" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("an error of the protocol too", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__error"), `{}`)
		if r.Status != protocol.ToolFailed || r.ErrorType != protocol.ErrInvalidArguments || !strings.Contains(r.Error, "city is needed") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("parts become attachments, within bounds", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__image"), `{}`)
		var kinds []string
		for _, p := range r.Attachments {
			kinds = append(kinds, p.Kind+" "+p.MIME+" "+p.Text)
		}
		if got := strings.Join(kinds, ","); got != "image image/png ,resource audio/wav ,resource text/plain hello,resource_link  " {
			t.Error(got)
		}
		for _, want := range []string{"svg", "at most 8 MiB", "base64"} {
			if !strings.Contains(text(r), want) {
				t.Errorf("%q does not say %q", text(r), want)
			}
		}
	})
	t.Run("parts nobody knows cost only themselves", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__unknown"), `{}`)
		if !strings.Contains(text(r), "hologram") || !strings.HasSuffix(text(r), "rest") || r.ErrorType != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("an answer that is too long fails its call and no other", func(t *testing.T) {
		r := run(t.Context(), t, h.find(t, "mcp__d__huge"), `{}`)
		if r.Status != protocol.ToolFailed || r.ErrorType != protocol.ErrTooLarge || !strings.Contains(r.Error, "16 MiB") {
			t.Errorf("%+v", r)
		}
		if r := run(t.Context(), t, h.find(t, "mcp__d__echo"), `{}`); text(r) != `{}` {
			t.Errorf("%+v", r)
		}
	})
	t.Run("what it asks is answered or declined", func(t *testing.T) {
		got := strings.Split(text(run(t.Context(), t, h.find(t, "mcp__d__ask"), `{}`)), "\n")
		if len(got) != 4 || !strings.Contains(got[0], `"result":{}`) || !strings.Contains(got[1], "file://"+filepath.ToSlash(h.dir)) ||
			!strings.Contains(got[2], "-32601") || !strings.Contains(got[3], "-32601") {
			t.Errorf("%q", got)
		}
	})
	t.Run("it runs in the workspace", func(t *testing.T) {
		want, _ := filepath.EvalSymlinks(h.dir)
		if got := text(run(t.Context(), t, h.find(t, "mcp__d__cwd"), `{}`)); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	})
}

func TestAChangedListIsTheNextTurns(t *testing.T) {
	h := open(t, object{"d": program("plain", nil)})
	run(t.Context(), t, h.find(t, "mcp__d__grow"), `{}`)
	testkit.Eventually(t, "the new tool is offered", func() bool { return len(h.Tools(t.Context())) == len(doubleTools)+1 })
	h.find(t, "mcp__d__grown")
}

func TestNoiseOnTheOutputIsPassedOver(t *testing.T) {
	h := open(t, object{"d": program("noise", nil)})
	if r := run(t.Context(), t, h.find(t, "mcp__d__echo"), `{}`); text(r) != `{}` {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(h.log.String(), "Server listening on stdio") {
		t.Error("the log does not tell of it")
	}
}

func TestAFloodOfErrorOutputHoldsNothingUpAndFillsNoLog(t *testing.T) {
	h := open(t, object{"d": program("flood", nil)})
	if r := run(t.Context(), t, h.find(t, "mcp__d__echo"), `{}`); text(r) != `{}` {
		t.Errorf("%+v", r)
	}
	if n := len(h.log.String()); n > 100<<10 {
		t.Errorf("the log has %d bytes", n)
	}
}

func TestCancelComesBackAtOnceAndTellsTheServer(t *testing.T) {
	h := open(t, object{"d": program("plain", nil)})
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("cancelled by the test")
	out := &said{first: make(chan struct{})}
	go func() { <-out.first; cancel(mine) }()
	began := time.Now()
	_, err := h.find(t, "mcp__d__forever").Run(ctx, session.ToolCall{Arguments: json.RawMessage(`{}`)}, out)
	if !errors.Is(err, mine) || time.Since(began) > soon {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	seen := h.find(t, "mcp__d__cancelled")
	testkit.Eventually(t, "the server hears of it", func() bool { return strings.Contains(text(run(t.Context(), t, seen, `{}`)), "notifications/cancelled") })
}

func TestAServerGetsNoKeyUnlessItIsNamed(t *testing.T) {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "LC_ALL=C", "OPENAI_API_KEY=sk-canary-1", "RIND_HOME=/canary", "GITHUB_TOKEN=ghp-canary-22222",
		"AWS_SECRET_ACCESS_KEY=canary", "SSH_AUTH_SOCK=/canary", "LD_PRELOAD=", "NODE_OPTIONS=--canary",
	}
	var secrets []string
	h := open(t, object{"d": program("plain", object{"env": object{"MY_TOKEN": "$GITHUB_TOKEN", "URL": "x${env:HOME}y${NOPE:-z}", "PLAIN": "visible"}})}, func(c *Config) {
		c.Env, c.Secrets = env, func(values ...string) { secrets = append(secrets, values...) }
	})
	got := text(run(t.Context(), t, h.find(t, "mcp__d__env"), `{}`))
	if strings.Contains(got, "canary") {
		t.Errorf("a key arrived, or came back:\n%s", got)
	}
	for _, want := range []string{"MY_TOKEN=[hidden]", "URL=x/home/xyz", "PLAIN=visible", "LC_ALL=C", "HOME=/home/x"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if len(secrets) == 0 || secrets[0] != "ghp-canary-22222" {
		t.Errorf("secrets %q", secrets)
	}
}

func TestAListThatIsRefusedLeavesTheOlderOne(t *testing.T) {
	h := open(t, object{"d": program("sulky", nil)})
	run(t.Context(), t, h.find(t, "mcp__d__grow"), `{}`)
	testkit.Eventually(t, "the list is asked for", func() bool { return strings.Contains(h.log.String(), "not again") })
	if r := run(t.Context(), t, h.find(t, "mcp__d__echo"), `{}`); text(r) != `{}` || strings.Contains(h.log.String(), "is not connected") {
		t.Errorf("%+v", r)
	}
}

func TestWhereAProgramIsAndWhatItIsGiven(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	for _, tt := range []struct {
		entry, command, dir, value string
		literal                    bool
	}{
		{`{"command":"npx"}`, "npx", "/w", "", false},
		{`{"command":"./bin/x","cwd":"sub"}`, "/w/sub/bin/x", "/w/sub", "", false},
		{`{"command":"~/x","cwd":"~/y"}`, "/home/x", "/home/y", "", false},
		{`{"command":"/x","cwd":"/y","env":{"A":"$B"}}`, "/x", "/y", "b", false},
		{`{"command":"/x","env":{"A":"$B"}}`, "/x", "/w", "$B", true},
		{`{"command":"/x","env":{"A":"1${B}2${C:-c}$B"}}`, "/x", "/w", "1b2c$B", false},
	} {
		e, err := readEntry(json.RawMessage(tt.entry), &Config{Dir: "/w", Env: []string{"HOME=/home", "B=b"}, Literal: tt.literal})
		if err != nil || filepath.ToSlash(e.command) != tt.command || filepath.ToSlash(e.dir) != tt.dir || e.env["A"] != tt.value {
			t.Errorf("%s: %v %q %q %q", tt.entry, err, e.command, e.dir, e.env["A"])
		}
	}
}

func TestDescriptionsAndSchemasAreBoundedAndClean(t *testing.T) {
	h := open(t, object{"d": program("odd", nil)})
	byName := map[string]session.ToolSpec{}
	for _, tool := range h.Tools(t.Context()) {
		s := tool.Spec()
		byName[s.Name] = s
		if protocol.CharLen(s.Description) > maxDescription || strings.ContainsAny(s.Description, "\x1b\u202e\U000E0041") {
			t.Errorf("%q", s.Description)
		}
		if len(s.Name) > 64 || sanitised(s.Name) != s.Name {
			t.Errorf("name %q", s.Name)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Errorf("%s: %v", s.Schema, err)
		} else if _, err := schema.Resolve(nil); err != nil {
			t.Errorf("%s: %v", s.Schema, err)
		}
		if schema.Type != "object" || schema.OneOf != nil {
			t.Errorf("%s", s.Schema)
		}
	}
	if len(byName) != 4 {
		t.Errorf("%d tools", len(byName))
	}
	if s, ok := byName["mcp__d__git_status"]; !ok || string(s.Schema) != `{"properties":{"q":{"description":"xy","type":"string"}},"type":"object"}` {
		t.Errorf("%+v", s)
	}
	for name, s := range byName {
		if strings.HasPrefix(name, "mcp__d__git_status_") && !strings.Contains(s.Description, "only reads") {
			t.Errorf("%+v", s)
		}
	}
}

func TestTooManyToolsAndEndlessPagesAreCut(t *testing.T) {
	h := open(t, object{"many": program("many", nil), "endless": program("endless", nil), "few": program("many", object{"tools": []any{"echo", "n299", "gone"}})})
	count := map[string]int{}
	for _, tool := range h.Tools(t.Context()) {
		count[strings.Split(tool.Spec().Name, "__")[1]]++
	}
	if count["many"] != maxTools-len(doubleTools)-2 || count["endless"] != len(doubleTools) || count["few"] != 2 {
		t.Errorf("%v", count)
	}
}

func TestNamesAreTheirOwnAndSayWhatTheyAre(t *testing.T) {
	mk := func(of, name string) *tool { return &tool{server: &server{name: of}, original: name} }
	tools := []*tool{
		mk("a", "b"), mk("a.b", "c"), mk("a_b", "c"), mk("a__b", "c"), mk("a", "b__c"), mk("a", "b_"), mk("ü", "x"), mk("a", strings.Repeat("t", 70)), mk("a", strings.Repeat("t", 71)),
	}
	seen := map[string]bool{}
	for i, one := range named(tools) {
		name := one.(*namedTool).name
		if seen[name] || len(name) > 64 || sanitised(name) != name || !strings.HasPrefix(name, "mcp__") {
			t.Errorf("%v: %q", tools[i].original, name)
		}
		seen[name] = true
	}
	if !seen["mcp__a__b"] || !seen["mcp__a_b__c"] || seen["mcp__a__b__c"] {
		t.Errorf("%v", seen)
	}
}

func TestALongLineTellsWhichCallItAnswers(t *testing.T) {
	for line, want := range map[string]int64{
		`{"jsonrpc":"2.0","id":12,"result":{"x`:       12,
		`{"id":"12","jsonrpc":"2.0","result":`:        12,
		`…"}]},"jsonrpc":"2.0","id":7}`:               7,
		`…"}]},"id":7,"jsonrpc":"2.0"}`:               7,
		`…"}]},"id":7}`:                               7,
		`{"jsonrpc":"2.0","result":{"content":[]`:     0,
		`{"method":"notifications/message","params":`: 0,
	} {
		if got := answered([]byte(line), []byte(line)); got != want {
			t.Errorf("%s: %d", line, got)
		}
	}
}

func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}`, `[{"id":1,"error":{"code":1,"message":"x"}}]`, `{"id":null}`,
		`{"method":"notifications/progress","params":{"progressToken":1,"progress":2}}`, `{"id":"a","method":"ping"}`, `{"id":1}`, "\xff", `[`, `{"id":1,"result":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p := newPeer(slog.New(slog.DiscardHandler), 1000)
		l := &sunk{}
		p.link = l
		p.request = func(string) (any, *remoteError) { return struct{}{}, nil }
		p.notice = func(string, json.RawMessage) {}
		own := &pending{answer: make(chan answer, 1), progress: func(progress) {}}
		p.calls[1] = own
		m := &messages{peer: p}
		for i := range line { // in pieces
			_, _ = m.Write(line[i : i+1])
		}
		_, _ = m.Write([]byte("\n"))
		select {
		case a := <-own.answer:
			if a.err == nil {
				r := (&namedTool{tool: &tool{server: &server{name: "s", cfg: &Config{attached: 1000}, entry: entry{hide: strings.NewReplacer()}}}}).result(a.result)
				if _, err := json.Marshal(r.Data); err != nil {
					t.Error(err)
				}
			}
			if p.waits(1) {
				t.Error("answered and still waiting")
			}
		default:
		}
		for _, out := range l.sent {
			if !json.Valid(out) {
				t.Errorf("sent %q", out)
			}
		}
	})
}

// sunk is a link that keeps what it is given.
type sunk struct{ sent [][]byte }

func (s *sunk) start() error                                 { return nil }
func (s *sunk) send(m []byte, _ int64) error                 { s.sent = append(s.sent, m); return nil }
func (s *sunk) opened(context.Context, string, []byte) error { return nil }
func (s *sunk) withdraw(int64)                               {}
func (s *sunk) close()                                       {}

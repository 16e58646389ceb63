package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// office is a runtime with a roster, whose settings a test may change.
type office struct {
	*Roster
	log *logged
	dir string

	mu       sync.Mutex
	settings object
}

func (o *office) write(settings object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settings = settings
}

func encoded(entries object) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, e := range entries {
		out[name] = protocol.MustMarshal(e)
	}
	return out
}

func employ(t *testing.T, settings object, set ...func(*Config)) *office {
	t.Helper()
	o := &office{log: &logged{}, dir: t.TempDir(), settings: settings}
	children := proc.NewChildren("")
	cfg := Config{
		Children: children, Version: "9", Log: slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		second: 20 * time.Millisecond, message: testMessage, Wait: 3 * soon,
	}
	for _, f := range set {
		f(&cfg)
	}
	o.Roster = NewRoster(cfg, func(string) (map[string]json.RawMessage, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return encoded(o.settings), nil
	})
	t.Cleanup(func() {
		o.Close()
		if err := children.KillAll(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(protocol.Prefix(o.log.String(), 4000))
		}
	})
	return o
}

// turn is one that runs until end.
type turn struct {
	t     *testing.T
	tools []session.Tool
	end   context.CancelFunc

	mu   sync.Mutex
	told []string
}

func (o *office) begin(t *testing.T, id session.SessionID) *turn {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	w := &turn{t: t, end: end}
	w.tools = o.tools(ctx, id, o.dir, func(severity, title string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, severity+": "+title)
	})
	t.Cleanup(end)
	return w
}

func (w *turn) names() string {
	var all []string
	for _, tool := range w.tools {
		if name := tool.Spec().Name; strings.HasSuffix(name, "__pid") {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

func (w *turn) call(name, args string) session.ToolResult {
	w.t.Helper()
	i := slices.IndexFunc(w.tools, func(tool session.Tool) bool { return tool.Spec().Name == name })
	if i < 0 {
		w.t.Fatalf("no tool %s among %s", name, w.names())
	}
	return run(w.t.Context(), w.t, w.tools[i], args)
}

func (w *turn) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func (w *turn) hears(part string) {
	w.t.Helper()
	testkit.Eventually(w.t, part, func() bool { return strings.Contains(strings.Join(w.heard(), "\n"), part) })
}

func TestServersOfAClientBelongToTheirSessionAndGoBeforeThoseOfTheSettings(t *testing.T) {
	o := employ(t, object{"a": program("plain", nil), "both": program("plain", object{"env": object{"WHO": "settings"}})})
	o.Name("s1", o.dir, encoded(object{"both": program("plain", object{"env": object{"WHO": "client $HOME"}}), "z": program("plain", nil)}))
	one, two := o.begin(t, "s1"), o.begin(t, "s2")
	if one.names() != "mcp__a__pid mcp__both__pid mcp__z__pid" || two.names() != "mcp__a__pid mcp__both__pid" {
		t.Errorf("%s; %s", one.names(), two.names())
	}
	if got := text(one.call("mcp__both__env", `{}`)); !strings.Contains(got, "WHO=client $HOME") {
		t.Error("not the client's, or not as it was given")
	}
	if got := text(two.call("mcp__both__env", `{}`)); !strings.Contains(got, "WHO=settings") {
		t.Error("not that of the settings")
	}
	if one.call("mcp__a__pid", `{}`).Data != two.call("mcp__a__pid", `{}`).Data {
		t.Error("a server of the settings runs twice")
	}
	o.Forget("s1")
	if r := one.call("mcp__z__pid", `{}`); r.Status != protocol.ToolUnavailable {
		t.Errorf("%+v", r)
	}
	if got := o.begin(t, "s1").names(); got != two.names() {
		t.Errorf("after its end: %s", got)
	}
	o.Forget("s1") // again
	o.Close()
	o.Name("s3", o.dir, encoded(object{"late": program("plain", nil)})) // starts nothing
	if got := o.begin(t, "s3").tools; len(got) != 0 {
		t.Errorf("%d tools after the end", len(got))
	}
}

func TestServersNamedAnewReplaceThoseOfBefore(t *testing.T) {
	o := employ(t, nil)
	stays, goes := program("plain", nil), program("plain", nil)
	o.Name("s", o.dir, encoded(object{"stays": stays, "goes": goes}))
	pid := text(o.begin(t, "s").call("mcp__stays__pid", `{}`))
	o.Name("s", o.dir, encoded(object{"stays": stays, "comes": program("plain", nil)}))
	w := o.begin(t, "s")
	if w.names() != "mcp__comes__pid mcp__stays__pid" || text(w.call("mcp__stays__pid", `{}`)) != pid {
		t.Errorf("%s", w.names())
	}
}

func TestTheNextTurnHasTheServersOfChangedSettings(t *testing.T) {
	o := employ(t, object{"a": program("plain", nil), "b": program("plain", nil)})
	before := o.begin(t, "s")
	a, b := text(before.call("mcp__a__pid", `{}`)), text(before.call("mcp__b__pid", `{}`))
	o.write(object{"b": program("plain", object{"env": object{"NEW": "1"}}), "c": program("plain", nil)})
	after := o.begin(t, "s")
	if after.names() != "mcp__b__pid mcp__c__pid" {
		t.Errorf("%s", after.names())
	}
	if got := text(after.call("mcp__b__pid", `{}`)); got == b || got == "" {
		t.Errorf("a changed entry goes on with the old program %s", got)
	}
	if text(before.call("mcp__a__pid", `{}`)) != a || text(before.call("mcp__b__pid", `{}`)) != b {
		t.Error("a turn lost its servers while it ran")
	}
	before.end()
	testkit.Eventually(t, "they end with the turn", func() bool { return before.call("mcp__a__pid", `{}`).Status == protocol.ToolUnavailable })
	if r := after.call("mcp__c__pid", `{}`); r.ErrorType != "" {
		t.Errorf("%+v", r)
	}
}

func TestAServerRestsWhileNobodyHasItsToolsAndStartsWhenOneIsCalled(t *testing.T) {
	s := newSite(t)
	o := employ(t, object{"p": program("plain", nil), "w": web(s, nil)}, withKey, func(c *Config) { c.rest = 150 * time.Millisecond })
	states := func() string {
		var all []string
		for _, st := range o.Workspace(o.dir).List() {
			all = append(all, st.State)
		}
		return strings.Join(all, " ")
	}
	first := o.begin(t, "s")
	pid := text(first.call("mcp__p__pid", `{}`))
	time.Sleep(400 * time.Millisecond)
	if states() != "ready ready" {
		t.Errorf("while a turn has their tools: %s", states())
	}
	first.end()
	testkit.Eventually(t, "they rest", func() bool { return states() == "resting resting" })
	testkit.Eventually(t, "the site is told", func() bool { return s.has("DELETE s1") })
	second := o.begin(t, "s")
	if len(second.tools) != len(first.tools) || states() != "resting resting" {
		t.Errorf("%d tools, %s: a turn that calls none starts none", len(second.tools), states())
	}
	if got := text(second.call("mcp__p__pid", `{}`)); got == pid || got == "" {
		t.Errorf("pid %q again", got)
	}
	if got := text(second.call("mcp__w__json", `{"a":1}`)); got != `{"a":1}` {
		t.Errorf("%s", got)
	}
	if told := second.heard(); len(told) > 0 {
		t.Errorf("told %q", told)
	}
}

func TestATurnIsToldHowItsServersFareOnce(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	o := employ(t, object{
		"dead": program("exit", nil), "late": program("late", object{"env": object{"DOUBLE_GATE": gate}}), "well": program("plain", nil),
		"off": program("plain", object{"disabled": true}),
	}, func(c *Config) { c.Wait = 10 * time.Millisecond })
	o.Workspace(o.dir).Start()
	testkit.Eventually(t, "one is down, one there", func() bool {
		list := o.Workspace(o.dir).List()
		return list[0].State == StateFailed && list[3].State == StateReady
	})
	w := o.begin(t, "s")
	if got := w.heard(); len(got) != 2 || !strings.HasPrefix(got[0], "warning: The MCP server dead is down, its tools are missing: the server ended with exit code 3: cannot find") ||
		got[1] != "info: The MCP server late is still starting: this turn goes without its tools." {
		t.Fatalf("%q", got)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.hears("The MCP server late is connected: the next turn has its tools.")
	w.call("mcp__well__crash", `{}`)
	w.hears("warning: The MCP server well was lost, and is started again: the server ended with exit code 7: out of memory.")
	w.hears("info: The MCP server well is back.")
	again := o.begin(t, "s")
	if got := again.heard(); len(got) != 0 || again.names() != "mcp__late__pid mcp__well__pid" {
		t.Errorf("told again: %q; %s", got, again.names())
	}
	if got := o.begin(t, "other").heard(); len(got) != 1 {
		t.Errorf("another session: %q", got)
	}
	w.end()
	again.end()
	n := len(w.heard())
	third := o.begin(t, "third")
	third.call("mcp__well__crash", `{}`)
	third.hears("The MCP server well is back.")
	if len(w.heard()) != n {
		t.Error("a turn that is over is told more")
	}
}

func TestAServerThatWasGivenUpIsTriedAgainWhenATurnBegins(t *testing.T) {
	bin := t.TempDir()
	at := filepath.Join(bin, "server")
	o := employ(t, object{"d": program("plain", object{"command": at})}, func(c *Config) { c.again = time.Millisecond })
	if w := o.begin(t, "s"); len(w.tools) != 0 || !strings.Contains(strings.Join(w.heard(), ""), "there is no program") {
		t.Fatalf("%d tools, %q", len(w.tools), w.heard())
	}
	if err := os.Symlink(os.Args[0], at); err != nil {
		t.Skip(err)
	}
	testkit.Eventually(t, "it is there", func() bool {
		w := o.begin(t, "s")
		defer w.end()
		return len(w.tools) == len(doubleTools)
	})
}

func TestWhatAClientPutsIntoEnvAndHeadersReachesNoLog(t *testing.T) {
	s := newSite(t)
	o := employ(t, nil)
	o.Name("s", o.dir, encoded(object{
		"exit":  program("exit", object{"env": object{"DOUBLE_KEY": "plain-canary-1"}}),
		"noise": program("echoes", object{"env": object{"DOUBLE_SAYS": "plain-canary-2"}}),
		"web":   object{"type": "http", "url": s.URL + "/mcp?key=url-canary-4", "headers": object{"X-Thing": "plain-canary-3", "Authorization": "Bearer sk-canary-77777"}},
	}))
	w := o.begin(t, "s")
	w.call("mcp__web__status", `{}`) // the server's answer quotes its key
	w.call("mcp__noise__echo", `{}`)
	all := o.log.String() + strings.Join(w.heard(), "\n")
	for i := range strings.SplitSeq(all, "\n") {
		if strings.Contains(i, "canary") {
			t.Errorf("%s", i)
		}
	}
	if !strings.Contains(all, "[hidden]") {
		t.Error("nothing was hidden: the servers said nothing")
	}
	if got := text(w.call("mcp__noise__env", `{}`)); !strings.Contains(got, "DOUBLE_SAYS=plain-canary-2") {
		t.Error("a value that is no secret is taken out of a result")
	}
}

func TestToolsBeyondWhatATurnMayHaveAreSharedOutAndSaid(t *testing.T) {
	o := employ(t, object{"a": program("many", nil), "b": program("many", nil), "c": program("plain", nil)})
	w := o.begin(t, "s")
	count := map[string]int{}
	for _, tool := range w.tools {
		count[strings.Split(tool.Spec().Name, "__")[1]]++
	}
	if len(w.tools) != maxTools || count["c"] != len(doubleTools) || count["a"]-count["b"] > 1 || count["b"]-count["a"] > 1 {
		t.Errorf("%d tools: %v", len(w.tools), count)
	}
	if told := w.heard(); len(told) != 1 || !strings.Contains(told[0], "some are left out of a, b. Name those you use in its entry") {
		t.Errorf("%q", told)
	}
	if told := o.begin(t, "s").heard(); len(told) != 0 {
		t.Errorf("told again: %q", told)
	}
}

package acpagent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

func TestWhatTheAgentSaysBecomesFactsInOrder(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	o := h.prompt(s, "think hello tool plan unknown stranger say=done")
	if o.Outcome != session.OutcomeCompleted || o.Stop != "end_turn" || o.Answer != "done" {
		t.Fatalf("%+v", o)
	}
	want := "session_created turn_accepted user_message turn_started provider_session reasoning_delta assistant_delta reasoning_completed assistant_message_completed " +
		"tool_requested tool_call_started file_change tool_result plan_updated provider.event provider.event assistant_delta assistant_message_completed turn_completed"
	if got := h.kinds(s.ID); got != want {
		t.Errorf("log\n%s\nwant\n%s", got, want)
	}
	r := find[*protocol.ToolRequested](h, s.ID)[0]
	if r.ToolName != "edit" || r.More.Title != "Edit a.txt" || string(r.Arguments) != `{"path":"a.txt"}` {
		t.Errorf("%+v", r)
	}
	if ch := find[*protocol.FileChange](h, s.ID)[0]; ch.More.Added != 1 || ch.More.Removed != 1 || ch.FilePath != "/w/a.txt" {
		t.Errorf("%+v", ch)
	}
	if e := find[*protocol.ProviderEvent](h, s.ID)[0]; !strings.Contains(string(e.More.Data), `"sessionUpdate":"from_the_future"`) {
		t.Errorf("%s", e.More.Data)
	}
}

func TestACallNobodyAnnouncedIsMadeAndClosedWithTheTurn(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	h.prompt(s, "orphan hello")
	r := find[*protocol.ToolResult](h, s.ID)
	if len(r) != 1 || r[0].Status != protocol.ToolFailed {
		t.Fatalf("%+v", r)
	}
}

func TestStopReasonsPassThrough(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	for words, want := range map[string]string{"hello": "end_turn", "refuse": "content_filter", "odd": "end_turn"} {
		if o := h.prompt(s, words); o.Stop != want || o.Outcome != session.OutcomeCompleted {
			t.Errorf("%s: %+v", words, o)
		}
	}
	if o := h.prompt(s, "fail"); o.Fault == nil || o.Fault.Message != "The agent failed: It cannot be done (-32603)" {
		t.Errorf("%+v %+v", o, o.Fault)
	}
	if o := h.prompt(s, "hello"); o.Outcome != session.OutcomeCompleted {
		t.Errorf("after a failure: %+v", o)
	}
}

func TestACancelKeepsTheChildWhichIsKilledOnlyWhenItDoesNotAnswer(t *testing.T) {
	for _, modes := range []string{"plain", "deaf", "deaf,stubborn"} {
		t.Run(modes, func(t *testing.T) {
			h := open(t, memory.New(), modes, func(c *Config) {
				if modes != "plain" { // which answers, and is waited for
					c.times.cancel = 300 * time.Millisecond
				}
			})
			s := h.draft("ask")
			pid := h.prompt(s, "pid").Answer
			ch := h.ask(s, "say=partial hang")
			h.until(s, "text", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
			began := time.Now()
			s.Cancel(session.CancelRequest{}, func(error) {})
			o := h.await(ch)
			if o.Outcome != session.OutcomeCancelled || o.Stop != "cancelled" || time.Since(began) > 20*time.Second {
				t.Errorf("%+v after %s", o, time.Since(began))
			}
			if m := find[*protocol.AssistantMessageCompleted](h, s.ID); m[len(m)-1].Content != "partial" {
				t.Errorf("the text is lost: %+v", m[len(m)-1])
			}
			again := h.prompt(s, "pid").Answer
			if same := again == pid; same != (modes == "plain") {
				t.Errorf("pid %s, then %s", pid, again)
			}
		})
	}
}

func TestAnEndInMidTurnFailsItWithTheReasonAndTheNextPromptStartsAnew(t *testing.T) {
	h := open(t, memory.New(), "plain", func(c *Config) { c.Environ = func() []string { return []string{"DOUBLE_SECRET=s3cr3t-value"} } })
	h.spec.PassEnv = []string{"DOUBLE_SECRET"}
	s := h.draft("ask")
	o := h.prompt(s, "say=begun tool crash")
	if o.Fault == nil || o.Fault.Type != protocol.FailCrashed || !strings.HasPrefix(o.Fault.Message, "The agent ended with exit code 3: panic: it broke with [hidden]") {
		t.Fatalf("%+v", o.Fault)
	}
	if o := h.prompt(s, "hello"); o.Outcome != session.OutcomeCompleted {
		t.Errorf("%+v", o)
	}
	if k := find[*protocol.ProviderContinuity](h, s.ID); len(k) != 1 || k[0].More.Way != waySummary {
		t.Errorf("%+v", k)
	}
}

func TestThreeCrashesInAMinuteStopTheStarting(t *testing.T) {
	h := open(t, memory.New(), "plain", func(c *Config) { c.times.blocked = time.Hour })
	s := h.draft("ask")
	for range 3 {
		h.prompt(s, "crash")
	}
	o := h.prompt(s, "hello") // waits for nothing
	if o.Fault == nil || !strings.Contains(o.Fault.Message, "ended three times within a minute") {
		t.Errorf("%+v", o.Fault)
	}
}

// TestWhateverAnAgentDoesTheTurnEndsAndNothingIsLost is the table of bad agents (docs/protocol/acp.md check 70).
func TestWhateverAnAgentDoesTheTurnEndsAndNothingIsLost(t *testing.T) {
	cases := []struct {
		name, modes, words string
		change             func(*Config)
		want               string // of the failure; "" for none
		answer             string
		kind               string // error_type of the failure; "" for any
	}{
		{name: "noise before and between", modes: "noise", words: "hello", answer: "Hello there."},
		{name: "not an agent", modes: "chatter", words: "hello", want: "it is not an ACP agent"},
		{name: "dies at once", modes: "dies", words: "hello", want: "ended with exit code 7", kind: protocol.FailCrashed},
		{name: "says nothing at the start", modes: "mute", words: "hello", want: "did not answer initialize", change: func(c *Config) { c.times.initialize = 200 * time.Millisecond }},
		{name: "another version", modes: "v9", words: "hello", want: "speaks version 9"},
		{name: "no credentials", modes: "poor", words: "hello", want: "lacks credentials: Authentication required; it offers key"},
		{name: "update before new's answer", modes: "early", words: "hello", answer: "early Hello there."},
		{name: "updates before new's answer and before the prompt", modes: "early,options,eager", words: "hello", answer: "early set Hello there."},
		{name: "floods standard error", modes: "plain", words: "flood hello", answer: "Hello there."},
		{name: "a line of 20 MiB", modes: "plain", words: "hello long", want: "it wrote a line of more than 16 MiB"},
		{name: "a line without end", modes: "plain", words: "endless", want: "it wrote a line of more than 16 MiB"},
		{name: "hangs", modes: "plain", words: "say=begun hang", want: "said nothing for", kind: protocol.FailStalled, change: func(c *Config) { c.times.stall = 300 * time.Millisecond }},
		{name: "answers twice", modes: "plain", words: "hello twice", answer: "Hello there."},
		{name: "many pieces", modes: "plain", words: "many", answer: strings.Repeat("0123456789", 2000)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*Config) {}
			}
			h := open(t, memory.New(), c.modes, change)
			s := h.draft("ask")
			o := h.prompt(s, c.words)
			switch {
			case c.want == "" && (o.Outcome != session.OutcomeCompleted || o.Answer != c.answer):
				t.Errorf("%+v %+v", o, o.Fault)
			case c.want != "" && (o.Fault == nil || !strings.Contains(o.Fault.Message, c.want)):
				t.Errorf("%+v %+v", o, o.Fault)
			case c.kind != "" && o.Fault.Type != c.kind:
				t.Errorf("it failed as %s, want %s", o.Fault.Type, c.kind)
			}
			if strings.HasPrefix(c.words, "hello") && c.modes == "plain" {
				if m := find[*protocol.AssistantMessageCompleted](h, s.ID); len(m) == 0 || m[0].Content != "Hello there." {
					t.Error("what was said is lost")
				}
			}
			h.close() // checks that the log is sound and nothing is left
		})
	}
}

func TestWhatComesAfterTheAnswerOpensATurnOfItsOwn(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	h.prompt(s, "hello late")
	put(t, filepath.Join(h.dir, "over"), "")
	h.until(s, "background turn", func(v *session.View) bool { return v.Serial == nil && v.Preview == "Later on." })
	starts := find[*protocol.TurnStarted](h, s.ID)
	if len(starts) != 2 || starts[1].Origin != protocol.OriginBackground {
		t.Fatalf("%s", h.kinds(s.ID))
	}
	if o := h.prompt(s, "hello"); o.Outcome != session.OutcomeCompleted {
		t.Errorf("%+v", o)
	}
}

// What an agent goes on to say is not told once the person stopped hearing it.
func TestACancelOfWhatAnAgentSaysAfterItsAnswerOpensNoFurtherTurn(t *testing.T) {
	h := open(t, memory.New(), "plain", func(c *Config) { c.times.late = time.Minute }) // an agent that is held up is not quiet
	s := h.draft("ask")
	h.prompt(s, "babble")
	h.until(s, "background turn", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
	cancelled := make(chan error, 1)
	s.Cancel(session.CancelRequest{}, func(err error) { cancelled <- err })
	if err := <-cancelled; err != nil {
		t.Fatal(err)
	}
	h.until(s, "end of it", func(v *session.View) bool { return v.Serial == nil })
	put(t, filepath.Join(h.dir, "enough"), "")
	h.until(s, "silence", func(*session.View) bool { _, err := os.Stat(filepath.Join(h.dir, "silent")); return err == nil })
	if o := h.prompt(s, "hello"); !strings.HasSuffix(o.Answer, "Hello there.") { // all of it was read by now, the last of it maybe in this turn
		t.Errorf("%+v", o)
	}
	if starts := find[*protocol.TurnStarted](h, s.ID); len(starts) != 3 {
		t.Errorf("%d turns: %s", len(starts), h.kinds(s.ID))
	}
}

func TestAFollowUpReachesTheAgentWhenItsAnswerEndsAndSteeringIsRefused(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	ch := h.ask(s, "say=one await=go")
	h.until(s, "text", func(v *session.View) bool { return v.Serial != nil && len(v.Serial.Text) > 0 })
	done := make(chan error, 2)
	s.Enqueue(protocol.ModeSteering, "say=no", "", func(_ session.InputResult, err error) { done <- err })
	s.Enqueue(protocol.ModeFollowUp, "say=two", "", func(_ session.InputResult, err error) { done <- err })
	if err := <-done; protocol.KindOf(err) != protocol.UnsupportedOperation {
		t.Errorf("steering: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	put(t, filepath.Join(h.dir, "go"), "")
	if o := h.await(ch); o.Answer != "two" {
		t.Errorf("%+v", o)
	}
}

func TestARestartResumesLoadsOrTellsTheAgentWhatWasSaid(t *testing.T) {
	for modes, want := range map[string][2]string{
		"resume": {wayResume, "resume"}, "load": {wayLoad, "load"}, "plain": {waySummary, "new"}, "resume,load,forgetful": {waySummary, "new"},
	} {
		t.Run(modes, func(t *testing.T) {
			store := memory.New()
			h := open(t, store, modes)
			s := h.draft("ask")
			h.prompt(s, "say=remember-this")
			id := s.ID
			h.close()
			h2 := open(t, store, modes, func(c *Config) { c.times.quiet = 2 * time.Second }) // of a load only; what is replayed late comes right behind
			s2, err := h2.all.Open(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if o := h2.prompt(s2, "opened"); o.Answer != want[1] {
				t.Errorf("%+v", o)
			}
			k := find[*protocol.ProviderContinuity](h2, id)
			if len(k) != 1 || k[0].More.Way != want[0] {
				t.Errorf("%+v", k)
			}
			for _, m := range find[*protocol.AssistantMessageCompleted](h2, id) {
				if strings.Contains(m.Content, "REPLAYED") {
					t.Error("a replay was told again")
				}
			}
			if o := h2.prompt(s2, "first"); want[0] == waySummary && strings.Contains(o.Answer, "remember-this") {
				t.Error("the summary is said more than once")
			}
		})
	}
}

func TestTheSummaryTellsANewChildWhatWasSaid(t *testing.T) {
	store := memory.New()
	h := open(t, store, "plain")
	s := h.draft("ask")
	h.prompt(s, "say=remember-this")
	h.prompt(s, "crash")
	if o := h.prompt(s, "first"); !strings.Contains(o.Answer, "Assistant: remember-this") || len(o.Answer) > recapBytes {
		t.Errorf("%q", o.Answer)
	}
}

func TestTheChildGetsTheEnvironmentOfTheContractAndNothingElse(t *testing.T) {
	ours := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LANG=C", "LC_ALL=C", "XDG_RUNTIME_DIR=/x", "TERM=xterm", "HTTPS_PROXY=p", "OPENAI_API_KEY=canary-1",
		"RIND_HOME=/r", "GIT_DIR=/g", "MINE=1", "AWS_SECRET=canary-2", "SSH_AUTH_SOCK=/s",
	}
	h := open(t, memory.New(), "plain", func(c *Config) { c.Environ = func() []string { return ours } })
	h.spec.PassEnv = []string{"MINE"}
	s := h.draft("ask")
	got := strings.Split(h.prompt(s, "env").Answer, "\n")
	got = slices.DeleteFunc(got, func(kv string) bool { return strings.HasPrefix(kv, "RIND_CHILD=") }) // marks what a runtime started
	slices.Sort(got)
	want := []string{
		"ACP_DOUBLE=plain", "HOME=/h", "HTTPS_PROXY=p", "LANG=C", "LC_ALL=C", "MINE=1", "PATH=/bin", "SSH_AUTH_SOCK=/s", "TERM=dumb", "USER=u", "XDG_RUNTIME_DIR=/x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAMissingCredentialNamesTheVariableThatWasNotPassedAndNeverItsValue(t *testing.T) {
	for _, modes := range []string{"poor", "dies"} {
		h := open(t, memory.New(), modes, func(c *Config) {
			c.Environ = func() []string { return []string{"DOUBLE_API_KEY=canary-3", "DOUBLE_SECRET=canary-4", "OTHER=x"} }
		})
		h.spec.PassEnv = []string{"DOUBLE_SECRET"}
		s := h.draft("ask")
		o := h.prompt(s, "hello")
		if o.Fault == nil || !strings.Contains(o.Fault.Message, "DOUBLE_API_KEY is set here but not passed: use passEnv or --pass-env DOUBLE_API_KEY") {
			t.Errorf("%+v", o.Fault)
		}
		for _, e := range h.entries(s.ID) {
			if strings.Contains(string(e.Event)+string(e.More), "canary") {
				t.Errorf("a secret is in the log: %s", e.Event)
			}
		}
	}
}

func TestCommandLinesAreSplitWithoutExpansion(t *testing.T) {
	for line, want := range map[string][]string{
		`npx -y "@scope/agent acp" --flag`: {"npx", "-y", "@scope/agent acp", "--flag"}, `a '$HOME "x"' b\ c ""`: {"a", `$HOME "x"`, "b c", ""}, "  one\ttwo ": {"one", "two"},
	} {
		if got, err := Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q %v", line, got, err)
		}
	}
	for _, line := range []string{"", "   ", `a "b`} {
		if got, err := Split(line); err == nil {
			t.Errorf("%q: %q", line, got)
		}
	}
}

func TestTheManifestSaysWhatTheAgentWasSeenToDo(t *testing.T) {
	h := open(t, memory.New(), "resume")
	s := h.draft("ask")
	h.prompt(s, "think plan hello")
	m := h.hosts.About(s.ID, h.spec).Manifest
	for k, want := range map[string]string{
		"continuity": native, "plan": native, "thoughts": native, "usage": degraded, "image": unsupported, "approval": degraded, "steer": unsupported, "follow_up": emulated,
	} {
		if m[k] != want {
			t.Errorf("%s: %s, want %s", k, m[k], want)
		}
	}
}

func TestFilesAreServedInsideTheRootsAndNowhereElse(t *testing.T) {
	h := open(t, memory.New(), "plain")
	outside := t.TempDir()
	for _, f := range []struct{ path, text string }{{filepath.Join(h.dir, "a.txt"), "one\ntwo\n"}, {filepath.Join(outside, "b.txt"), "secret"}} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(h.dir, "link")); err != nil {
		t.Skip("no links here")
	}
	s := h.draft("full")
	for path, want := range map[string]string{
		filepath.Join(h.dir, "a.txt"):                  `"content":"one\ntwo\n"`,
		filepath.Join(h.dir, "none.txt"):               `-32002`,
		filepath.Join(outside, "b.txt"):                `"reason":"outside_workspace"`,
		filepath.Join(h.dir, "link", "b.txt"):          `"reason":"outside_workspace"`,
		h.dir + "/../" + filepath.Base(outside) + "/x": `-32602`,
		"a.txt": `must be absolute`,
	} {
		if o := h.prompt(s, "read="+path); !strings.Contains(o.Answer, want) || strings.Contains(o.Answer, "secret") {
			t.Errorf("read %s: %s", path, o.Answer)
		}
		if strings.Contains(path, filepath.Base(outside)) || strings.Contains(path, "link") {
			if o := h.prompt(s, "write="+path); !strings.Contains(o.Answer, `"code":-32602`) {
				t.Errorf("write %s: %s", path, o.Answer)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "x")); err == nil {
		t.Error("a file was written outside")
	}
}

// notebook is what a process remembers of agents.
type notebook struct {
	mu   sync.Mutex
	kept map[string]Known
	n    int
}

func (n *notebook) Recall(spec Spec) (Known, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, ok := n.kept[spec.id()]
	return k, ok
}

func (n *notebook) Keep(spec Spec, k Known) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept[spec.id()] = k
	n.n++
}

func TestWhatIsKnownOfAnAgentIsKnownToTheNextProcess(t *testing.T) {
	book := &notebook{kept: map[string]Known{}}
	remembers := func(c *Config) { c.Memory = book }
	h := open(t, memory.New(), "options,steer", remembers)
	if a := h.hosts.About("", h.spec); !a.Seen.IsZero() || a.Manifest["steer"] != unsupported {
		t.Errorf("%+v", a)
	}
	s := h.draft("ask")
	for range 3 {
		h.prompt(s, `update={"sessionUpdate":"available_commands_update","availableCommands":[{"name":"compact","description":""}]}`)
	}
	if book.n > 2 { // once when it is there, once when its commands are
		t.Errorf("it was written %d times", book.n)
	}
	h.close()
	h2 := open(t, memory.New(), "options,steer", remembers)
	a := h2.hosts.About("", h2.spec)
	if a.Name != "double 1" || a.Seen.IsZero() || a.Manifest["steer"] != native || !slices.Equal(a.Commands, []string{"compact"}) {
		t.Errorf("%+v", a)
	}
	k, _ := h2.hosts.Known(h2.spec)
	if len(k.Models) != 2 || k.Models[1].ID != "large" || !slices.Equal(k.Efforts, []string{"low", "high"}) {
		t.Errorf("%+v", k)
	}
	other := h2.spec
	other.Args = []string{"another"}
	if _, ok := h2.hosts.Known(other); ok {
		t.Error("another agent is known")
	}
}

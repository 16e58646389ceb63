package acpagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// Where an agent wants to be logged in to, its first way that needs no person is used, once; a way that is configured comes before its first session.
func TestAnAgentIsLoggedInToOnceByItsOwnWayOrTheOneThatIsConfigured(t *testing.T) {
	for _, c := range []struct{ modes, method, want, fault string }{
		{"login", "", "own", ""},
		{"login", "other", "other", ""},
		{"plain", "", "", ""},
		{"plain", "other", "other", ""},
		{"login,locked", "", "", "lacks credentials: Authentication required; it offers key, own, other"},
	} {
		h := open(t, memory.New(), c.modes)
		h.spec.AuthMethod = c.method
		o := h.prompt(h.draft("ask"), "logins say=.")
		switch {
		case c.fault != "":
			if o.Fault == nil || !strings.Contains(o.Fault.Message, c.fault) {
				t.Errorf("%+v: %+v", c, o.Fault)
			}
		case o.Outcome != session.OutcomeCompleted || o.Answer != c.want+".":
			t.Errorf("%+v: %q %+v", c, o.Answer, o.Fault)
		}
		h.close()
	}
}

// An agent that rests is closed as it wants to be, ends, and comes back with its session when it is needed.
func TestAnAgentThatRestsIsClosedAndComesBackWithItsSession(t *testing.T) {
	h := open(t, memory.New(), "closes", func(c *Config) { c.times.idle, c.times.closing = 100*time.Millisecond, 20*time.Second })
	s := h.draft("ask")
	first := h.prompt(s, "pid").Answer
	closed := filepath.Join(h.dir, "closed")
	h.until(s, "close", func(*session.View) bool { _, err := os.Stat(closed); return err == nil })
	if id, _ := os.ReadFile(closed); string(id) != "child-"+first {
		t.Errorf("closed was %q", id)
	}
	if o := h.prompt(s, "pid say=: opened"); o.Answer == first+":resume" || !strings.HasSuffix(o.Answer, ":resume") {
		t.Errorf("%s, then %s", first, o.Answer)
	}
}

// Further folders are told to an agent that knows what they are, and to no other.
func TestFurtherFoldersAreToldToAnAgentThatTakesThem(t *testing.T) {
	for modes, told := range map[string]bool{"plain": false, "roots": true} {
		h := open(t, memory.New(), modes)
		dir := t.TempDir()
		s, err := h.all.Draft(t.Context(), session.DraftOptions{Workspace: h.dir, Roots: []string{dir}, Selection: session.Selection{Mode: "ask"}})
		if err != nil {
			t.Fatal(err)
		}
		want := "further:"
		if told {
			want = `further:["` + dir + `"]`
		}
		if o := h.prompt(s, "further"); o.Answer != want {
			t.Errorf("%s: %s", modes, o.Answer)
		}
	}
}

// Of a file an agent is given the lines it asks for, counted from 1; what is no text, or too long, it is not given.
func TestAnAgentReadsTheLinesItAsksForOfTextOnly(t *testing.T) {
	h := open(t, memory.New(), "plain")
	s := h.draft("ask")
	for _, c := range []struct{ word, text, want string }{
		{"part", "one\r\ntwo\nthree\n", `{"content":"two\n"}`},
		{"part", "one", `{"content":""}`},
		{"part", "one\ntwo", `{"content":"two"}`},
		{"read", "one\xff\n", `not UTF-8 text`},
		{"read", strings.Repeat("x", maxFile+1), `larger than 8388608 bytes`},
	} {
		at := filepath.Join(h.dir, "f")
		put(t, at, c.text)
		if o := h.prompt(s, c.word+"="+at); !strings.Contains(o.Answer, c.want) || len(o.Answer) > 300 {
			t.Errorf("%s of %.20q: %.300s", c.word, c.text, o.Answer)
		}
	}
	if n := len(find[*protocol.FileChange](h, s.ID)); n > 0 {
		t.Errorf("%d changes", n)
	}
}

// What an agent says that could not be opened is no word of the one that answers in its place.
func TestWhatAnAgentSaidThatCouldNotBeOpenedIsNotTold(t *testing.T) {
	h := open(t, memory.New(), "poor,early")
	s := h.draft("ask")
	if o := h.prompt(s, "hello"); o.Fault == nil {
		t.Fatalf("%+v", o)
	}
	h.spec.Env = map[string]string{"ACP_DOUBLE": "plain"}
	if o := h.prompt(s, "hello"); o.Answer != "Hello there." {
		t.Errorf("%+v", o)
	}
	if e := find[*protocol.ProviderEvent](h, s.ID); len(e) > 0 {
		t.Errorf("%s", e[0].More.Data)
	}
}

package acpagent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/store/memory"
)

// ruling is a policy that says the same of every call, or panics.
type ruling struct {
	session.Policy // nothing else of it is asked

	verdict session.Verdict
	panics  bool
}

func (r ruling) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	if r.panics {
		panic("it cannot be judged")
	}
	return r.verdict, nil
}

func ruled(r ruling) func(*Config) { return func(c *Config) { c.Policy = r } }

func TestAPanicWhileARequestIsServedCostsItsAnswerOnly(t *testing.T) {
	h := open(t, memory.New(), "plain", ruled(ruling{panics: true}))
	s := h.draft("ask")
	if o := h.prompt(s, "read="+h.dir+" read="+h.dir); o.Outcome != session.OutcomeCompleted {
		t.Errorf("%+v", o)
	}
	if said := saidIn(h, s.ID); strings.Count(said, `"code":-32603`) != 2 || strings.Contains(said, "judged") {
		t.Errorf("%s", said)
	}
}

// The agent and the command it had us run end together; what the command said is in the result of its call.
func TestTheOutputOfACommandOutlivesTheAgentThatHadItRun(t *testing.T) {
	h := open(t, memory.New(), "plain", ruled(ruling{verdict: session.Verdict{Effect: "allow"}}))
	s := h.draft("ask")
	if o := h.prompt(s, "running=precious crash"); o.Fault == nil || o.Fault.Type != protocol.FailCrashed {
		t.Fatalf("%+v", o)
	}
	r := find[*protocol.ToolResult](h, s.ID)
	if len(r) != 1 || r[0].Status != protocol.ToolFailed || !strings.Contains(r[0].Result, "precious") {
		t.Errorf("%+v", r)
	}
}

// A command is judged with the variables that are set for it and the folder it runs in: both decide what it does.
func TestACommandIsJudgedAndShownWithItsVariablesAndItsFolder(t *testing.T) {
	h := open(t, memory.New(), "plain")
	sub := filepath.Join(h.dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	s := h.draft("ask")
	ch := h.ask(s, "furnished="+sub+" furnished="+h.dir)
	for _, want := range []string{sub, ""} { // consent to it in one folder is none to it in another
		a := h.action(s)
		var args struct{ Command, CWD string }
		if err := json.Unmarshal(a.Approval.Arguments, &args); err != nil || args.Command != `PAGER='rm it' 'a b=c' sh -c 'echo $PAGER $PWD'` || args.CWD != want {
			t.Errorf("%s, %v", a.Approval.Arguments, err)
		}
		h.resolve(s, a.ID, "allow_once")
	}
	h.await(ch)
	if said := saidIn(h, s.ID); !strings.Contains(said, "rm it "+sub+`\n`) || !strings.Contains(said, "rm it "+h.dir+`\n`) {
		t.Errorf("%s", said)
	}
}

func TestACommandThatDoesNotStartLeavesNoFolderBehind(t *testing.T) {
	if proc.Landlock() == 0 {
		t.Skip("no Landlock here")
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	h := open(t, memory.New(), "plain", ruled(ruling{verdict: session.Verdict{Effect: "allow", Reads: true}}))
	s := h.draft("ask")
	if o := h.prompt(s, "absent=no-such-program"); !strings.Contains(o.Answer, "There is no program no-such-program.") {
		t.Errorf("%s", o.Answer)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

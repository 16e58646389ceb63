package acpagent

import (
	"context"
	"os"
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

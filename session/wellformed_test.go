package session_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// H011: half a surrogate pair in what a model calls is gone before anything is stored, told or sent back, in this process and the next.
func TestHalfASurrogatePairInACallReachesNobody(t *testing.T) {
	for _, c := range []struct {
		name, args, want string
		half             bool
	}{
		{"a first half alone", `{"path":"x\ud99cy"}`, `{"path":"x` + "\ufffd" + `y"}`, true},
		{"a second half alone", `{"path":"\udd11"}`, `{"path":"` + "\ufffd" + `"}`, true},
		{"in a name, which no tool knows", `{"\ud800":"x"}`, `{"` + "\ufffd" + `":"x"}`, true},
		{"two first halves", `{"path":"\ud83d\ud83d"}`, `{"path":"` + "\ufffd\ufffd" + `"}`, true},
		{"a whole pair", `{"path":"\ud83c\udf0d"}`, `{"path":"` + "\U0001f30d" + `"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backing := memory.NewBacking()
				look := readTool("look", func() string { return "seen" })
				m := say(append(callChunks("c1", "look", c.args), finish(session.FinishCalls)), []session.Chunk{text("done"), finish(session.FinishStop)})
				sent := func(m *model) {
					t.Helper()
					found := false
					for _, r := range m.requests {
						if err := session.CheckMessages(r.Messages); err != nil {
							t.Error(err)
						}
						for _, msg := range r.Messages {
							for _, call := range msg.Calls {
								if found = true; string(call.Arguments) != c.want {
									t.Errorf("the model is told %s, want %s", call.Arguments, c.want)
								}
							}
						}
					}
					if !found {
						t.Error("the model is told of no call")
					}
				}
				a := newHouse(t, backing.Open("a"), m, look)
				s := a.draft()
				a.prompt(s, "x")
				a.prompt(s, "go on")
				sent(m)
				for _, e := range a.entries(s.ID) {
					if e.Kind != protocol.KindToolRequested {
						continue
					}
					b, err := protocol.Decode(&e)
					if err != nil {
						t.Fatal(err)
					}
					if got := string(b.(*protocol.ToolRequested).Arguments); got != c.want || c.half && strings.Contains(string(e.Event), `\ud`) {
						t.Errorf("stored %s, told %s", got, e.Event)
					}
				}
				a.store.Kill()
				m = say([]session.Chunk{text("done"), finish(session.FinishStop)})
				b := newHouse(t, backing.Open("b"), m, look)
				b.prompt(b.open(s.ID), "again")
				sent(m)
				b.close()
				a.close()
			})
		})
	}
}

package acpagent

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

var someServers = []Server{
	{Name: "files", Command: "npx", Args: []string{"-y", "files"}, Env: map[string]string{"B": "2", "A": "secret-of-files"}},
	{Name: "issues", URL: "https://example.com/mcp", Headers: map[string][]string{"Authorization": {"Bearer secret-of-issues"}}},
	{Name: "mine", Command: "mine", Kept: "tools"},
}

func TestTheAgentIsToldOfTheServersOfItsSession(t *testing.T) {
	const files = `{"args":["-y","files"],"command":"npx","env":[{"name":"A","value":"secret-of-files"},{"name":"B","value":"2"}],"name":"files"}`
	const issues = `{"headers":[{"name":"Authorization","value":"Bearer secret-of-issues"}],"name":"issues","type":"http","url":"https://example.com/mcp"}`
	for _, test := range []struct{ modes, want, left string }{
		{"plain", "[" + files + "]", "issues (HTTP), mine (tools)"},
		{"http", "[" + files + "," + issues + "]", "mine (tools)"},
	} {
		h := open(t, memory.New(), test.modes, func(c *Config) {
			c.Servers = func(session.SessionID, string) []Server { return someServers }
		})
		s := h.draft("ask")
		if o := h.prompt(s, "servers"); o.Answer != test.want {
			t.Errorf("%s: %s", test.modes, o.Answer)
		}
		n := find[*protocol.Notice](h, s.ID)
		if len(n) != 1 || n[0].Title != "The agent is not given these MCP servers: "+test.left+"." {
			t.Errorf("%s: %+v", test.modes, n)
		}
	}
}

func TestServersThatChangeAreToldWithTheNextPromptInTheSameSession(t *testing.T) {
	now := someServers[:1]
	h := open(t, memory.New(), "resume", func(c *Config) { c.Servers = func(session.SessionID, string) []Server { return now } })
	s := h.draft("ask")
	pid := h.prompt(s, "pid").Answer
	if again := h.prompt(s, "pid").Answer; again != pid {
		t.Errorf("it was started anew for nothing: %s, %s", pid, again)
	}
	now = nil
	if o := h.prompt(s, "opened servers"); o.Answer != "resume[]" {
		t.Errorf("%s", o.Answer)
	}
}

func TestWhatServersAreGivenIsInNoWordAboutTheAgent(t *testing.T) {
	h := open(t, memory.New(), "http", func(c *Config) { c.Servers = func(session.SessionID, string) []Server { return someServers } })
	s := h.draft("ask")
	o := h.prompt(s, "leak")
	if o.Outcome != session.OutcomeFailed || strings.Contains(o.Fault.Message, "secret-of") || !strings.Contains(o.Fault.Message, "[hidden]") {
		t.Errorf("%+v", o)
	}
}

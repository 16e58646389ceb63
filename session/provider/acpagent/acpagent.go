// Package acpagent hosts agents that speak the Agent Client Protocol as children of ours (docs/protocol/acp.md section 5): a child has its own
// loop and tools, so it answers whole turns, and what it says becomes facts of our log. It serves the child files and terminals inside the
// workspace, and puts its requests for consent to the person.
//
// It promises: a child never gets a variable of our environment that section 5.1 does not name; what it says is in the log before anybody is told;
// every turn ends within a bound, whatever the child does; nothing it writes brings us down; no process is left when a session or the runtime
// ends; a session that comes back goes on with the child's own session where it can, else with a summary of the log.
//
// Its words, from the outside in. Hosts are the hosted agents of one process. A host is the agent of one session over the restarts of its child.
// A child is one process and the connection to it; its outbox is what waits for it to read, its backlog what it said while no turn could take
// it. A talk is one turn with a child, and turns what it says into facts: messages, and calls. A deed is something the child has us do, a file
// or a command in a terminal: it is granted within a call, by the policy or by the person, whom all who want to ask stand in one line for.
//
// Goroutines of a child: one reads what it says and turns it into facts, one writes its outbox, one awaits its end, one per request of the child
// that takes time, at most 64, one per command that it has us run, and while it answers one that gives it steering, where it takes that. All end
// with the child. A host owns none but timers; Hosts.Close and Hosts.Forget end the children. A turn runs on its caller's goroutine.
//
// Locks: that of a talk is held while facts are recorded, so that they keep their order; those of a host, a child, its terminals and its outbox
// guard memory only, and no other is taken under them.
package acpagent

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// Spec says which agent to host.
type Spec struct {
	Provider   string // the name sessions are set to
	Command    string // in PATH, or absolute
	Args       []string
	Env        map[string]string // set for the child
	PassEnv    []string          // names of our variables it gets too
	AuthMethod string            // id of the way to authenticate before the first session; "" for none
	FS         bool              // it may read and write files through us
	Terminal   bool              // it may run commands through us
}

// id tells specs apart: a child that was started with another one is not used again.
func (s *Spec) id() string {
	var b strings.Builder
	for _, w := range append([]string{s.Provider, s.Command, s.AuthMethod}, s.Args...) {
		b.WriteString(w + "\x00")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		b.WriteString(k + "=" + s.Env[k] + "\x00")
	}
	b.WriteString(strings.Join(s.PassEnv, ","))
	if s.FS {
		b.WriteString("\x00fs")
	}
	if s.Terminal {
		b.WriteString("\x00terminal")
	}
	return b.String()
}

// Config is what hosts stand on. Children is required.
type Config struct {
	Children *proc.Children
	Environ  func() []string // our environment; nil is os.Environ
	Policy   session.Policy  // judges writes and commands; nil asks for all of them
	Images   session.Images  // keeps what files held before; may be nil
	Redact   func(string) string
	Log      *slog.Logger
	Version  string
	Roots    func(workspace string) []string // nil: the workspace alone
	// Servers are the tool servers of a session, told to its child; nil for none. It must not block for long.
	Servers func(id session.SessionID, workspace string) []Server
	Private []string // folders commands that only read may not see
	// Unattended: nobody can be asked.
	Unattended bool
	// Memory keeps what is known of agents over the end of the process; nil for none.
	Memory Memory

	times times // of tests
}

// times are the bounds of section 5.
type times struct {
	initialize, open, quiet, cancel, shutdown, idle, stall, late, window, blocked, progress, closing time.Duration
}

var usual = times{
	initialize: time.Minute, open: 2 * time.Minute, quiet: 250 * time.Millisecond, cancel: 5 * time.Second, shutdown: 300 * time.Millisecond,
	idle: 10 * time.Minute, stall: 10 * time.Minute, late: 2 * time.Second, window: time.Minute, blocked: 30 * time.Second,
	progress: 250 * time.Millisecond, closing: time.Second,
}

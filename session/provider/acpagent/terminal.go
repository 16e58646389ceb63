package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session/proc"
)

// Bounds of terminals (docs/protocol/acp.md section 5.4).
const (
	maxTerminals = 16
	maxOutput    = 1 << 20
)

// terminal is one command the child runs through us.
type terminal struct {
	id      string
	process *proc.Process
	temp    string // a folder of its own, removed with it; "" for none

	mu    sync.Mutex // guards what follows
	limit int
	out   []byte
	cut   bool // out lost its beginning
}

// Write implements io.Writer: the newest output stays, cut at its start between characters.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out = append(t.out, b...)
	if len(t.out) > 2*t.limit+4096 { // cut seldom
		t.trim()
	}
	return len(b), nil
}

func (t *terminal) trim() {
	over := len(t.out) - t.limit
	if over <= 0 {
		return
	}
	t.cut = true
	rest := t.out[over:]
	for len(rest) > 0 && !utf8.RuneStart(rest[0]) {
		rest = rest[1:]
	}
	t.out = append(t.out[:0], rest...)
}

func (t *terminal) output() (text string, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	return strings.ToValidUTF8(string(t.out), "\uFFFD"), t.cut
}

// exitStatus is how the command ended; nil while it runs.
func (t *terminal) exitStatus() any {
	select {
	case <-t.process.Done():
	default:
		return nil
	}
	return t.exit()
}

func (t *terminal) exit() any {
	exit, _ := t.process.Wait(context.Background())
	s := struct {
		Code   *int    `json:"exitCode"`
		Signal *string `json:"signal"`
	}{}
	if exit.Signal != "" {
		s.Signal = &exit.Signal
	} else {
		s.Code = &exit.Code
	}
	return s
}

func (t *terminal) release() {
	_ = t.process.End(0)
	if t.temp != "" {
		_ = os.RemoveAll(t.temp)
	}
}

// terminals are those of a child.
type terminals struct {
	mu     sync.Mutex // guards what follows
	list   map[string]*terminal
	making int
	closed bool
}

// reserve takes a place; false when all are taken.
func (s *terminals) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.list)+s.making >= maxTerminals {
		return false
	}
	s.making++
	return true
}

// add puts a terminal in the place that was reserved; nil gives the place back. false when the child has ended meanwhile.
func (s *terminals) add(t *terminal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if t == nil || s.closed {
		return false
	}
	if s.list == nil {
		s.list = map[string]*terminal{}
	}
	s.list[t.id] = t
	return true
}

func (s *terminals) find(id string) *terminal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[id]
}

func (s *terminals) take(id string) *terminal {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.list[id]
	delete(s.list, id)
	return t
}

// close ends all of them.
func (s *terminals) close() {
	s.mu.Lock()
	s.closed = true
	list := s.list
	s.list = nil
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, t := range list {
		wg.Go(t.release)
	}
	wg.Wait()
}

// terminalText is the output of a terminal of the child, for the call that shows it.
func (c *child) terminalText(id string) string {
	t := c.terminals.find(id)
	if t == nil {
		return ""
	}
	text, _ := t.output()
	return text
}

func noTerminal() error {
	return &protocol.Error{Kind: acp.NoResource, Message: "There is no such terminal."}
}

// terminalOf finds the terminal a request is about.
func (c *child) terminalOf(params json.RawMessage) (*terminal, error) {
	var p struct {
		Session string `json:"sessionId"`
		ID      string `json:"terminalId"`
	}
	if err := readParams(params, &p); err != nil {
		return nil, err
	}
	if err := c.mine(p.Session); err != nil {
		return nil, err
	}
	t := c.terminals.find(p.ID)
	if t == nil {
		return nil, noTerminal()
	}
	return t, nil
}

// terminalCreate serves terminal/create.
func terminalCreate(ctx context.Context, c *child, k *talk, params json.RawMessage) (any, error) {
	var p struct {
		Session string     `json:"sessionId"`
		Command string     `json:"command"`
		Args    []string   `json:"args"`
		Env     []acp.Pair `json:"env"`
		CWD     *string    `json:"cwd"`
		Limit   *int       `json:"outputByteLimit"`
	}
	if err := readParams(params, &p); err != nil {
		return nil, err
	}
	switch {
	case !c.spec.Terminal:
		return nil, protocol.Errorf(protocol.MethodNotFound, "Terminals are not served.")
	case p.Command == "":
		return nil, badParams("command must not be empty.")
	}
	if err := c.mine(p.Session); err != nil {
		return nil, err
	}
	c.seenTo("shell")
	dir := c.dir
	if p.CWD != nil && *p.CWD != "" {
		r, at, err := c.place(*p.CWD)
		if err != nil {
			return nil, err
		}
		info, err := r.Stat(*p.CWD)
		r.Close()
		if err != nil {
			return nil, pathFault(err)
		}
		if !info.IsDir() {
			return nil, badParams("cwd is no folder.")
		}
		dir = at
	}
	if !c.terminals.reserve() {
		return nil, protocol.Errorf(protocol.Overloaded, "There are %d terminals already; release one.", maxTerminals)
	}
	line := commandLine(p.Command, p.Args)
	g, err := c.grant(ctx, k, &deed{shellSpec, oneLine(line, 200), object{"command": line}, "", line})
	if err != nil {
		c.terminals.add(nil)
		return nil, err
	}
	t := &terminal{id: "term_" + k.t.NewID()[:12], limit: maxOutput}
	if p.Limit != nil && *p.Limit >= 0 && *p.Limit < maxOutput {
		t.limit = *p.Limit
	}
	spec := proc.Spec{Path: p.Command, Args: p.Args, Dir: dir, Env: commandEnv(c.env, p.Env), Stdout: t, Stderr: t}
	if len(p.Args) == 0 { // a whole command line
		spec.Path, spec.Args = shell(p.Command)
	}
	if g.verdict.Reads && proc.Landlock() > 0 { // it was allowed because it only reads: it is held to that
		if t.temp, err = os.MkdirTemp("", "rind-command-"); err == nil {
			spec.Bounds = &proc.Bounds{Write: []string{t.temp}, Deny: c.host.hosts.cfg.Private}
			spec.Env = commandEnv(spec.Env, []acp.Pair{{Name: "TMPDIR", Value: t.temp}})
		}
	}
	if err == nil {
		t.process, err = c.host.hosts.cfg.Children.Start(spec)
	}
	if err != nil {
		c.terminals.add(nil)
		text := "The command could not be started: " + oneLine(err.Error(), 300)
		if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "executable file not found") {
			text = "There is no program " + oneLine(p.Command, 200) + "."
		}
		k.fault(&g, text)
		return nil, badParams(text)
	}
	if !c.terminals.add(t) {
		t.release()
		return nil, noTurn()
	}
	if g.own {
		k.mu.Lock()
		g.call.shown = []acp.HostContent{{Terminal: t.id}}
		k.mu.Unlock()
		c.wg.Go(func() {
			<-t.process.Done()
			status := protocol.ToolCompleted
			if exit, err := t.process.Wait(context.Background()); err != nil || exit.Code != 0 {
				status = protocol.ToolFailed
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if !k.closed && !g.call.done {
				k.end(g.call, status, "")
			}
		})
	}
	return object{"terminalId": t.id}, nil
}

// shell is how a whole command line is run.
func shell(line string) (string, []string) {
	if runtime.GOOS == "windows" {
		return "cmd.exe", []string{"/C", line}
	}
	return "/bin/sh", []string{"-c", line}
}

// commandLine is a command as a shell would read it, so that it can be judged.
func commandLine(command string, args []string) string {
	if len(args) == 0 {
		return command
	}
	words := make([]string, 0, len(args)+1)
	for _, w := range append([]string{command}, args...) {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@%", r)
}

// commandEnv is an environment with changes.
func commandEnv(env []string, changes []acp.Pair) []string {
	out := slices.Clone(env)
	for _, p := range changes {
		out = slices.DeleteFunc(out, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return sameName(name, p.Name)
		})
		if p.Name != "" && !strings.ContainsAny(p.Name, "=\x00") && !strings.Contains(p.Value, "\x00") {
			out = append(out, p.Name+"="+p.Value)
		}
	}
	return out
}

func terminalOutput(_ context.Context, c *child, _ *talk, params json.RawMessage) (any, error) {
	t, err := c.terminalOf(params)
	if err != nil {
		return nil, err
	}
	text, cut := t.output()
	r := object{"output": text, "truncated": cut}
	if exit := t.exitStatus(); exit != nil {
		r["exitStatus"] = exit
	}
	return r, nil
}

func terminalWait(ctx context.Context, c *child, _ *talk, params json.RawMessage) (any, error) {
	t, err := c.terminalOf(params)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.process.Done():
		return t.exit(), nil
	case <-ctx.Done():
		return nil, errWithdrawn
	}
}

func terminalKill(_ context.Context, c *child, _ *talk, params json.RawMessage) (any, error) {
	t, err := c.terminalOf(params)
	if err != nil {
		return nil, err
	}
	if err := t.process.End(proc.Grace); err != nil {
		return nil, err
	}
	return object{}, nil
}

func terminalRelease(_ context.Context, c *child, k *talk, params json.RawMessage) (any, error) {
	t, err := c.terminalOf(params)
	if err != nil {
		return nil, err
	}
	if k != nil {
		k.keepOutput(t)
	}
	if t = c.terminals.take(t.id); t != nil {
		t.release()
	}
	return object{}, nil
}

// keepOutput puts the output of a terminal that goes into the calls that show it.
func (k *talk) keepOutput(t *terminal) {
	text, _ := t.output()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.order {
		for i := range c.shown {
			if c.shown[i].Terminal == t.id {
				c.shown[i] = acp.HostContent{Text: text}
			}
		}
	}
}

package acpagent

import (
	"context"
	"os"
	"runtime"

	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session/proc"
)

// This file serves terminals to a child (docs/protocol/acp.md section 5.4).

// command is what a child asks with terminal/create.
type command struct {
	Session string     `json:"sessionId"`
	Command string     `json:"command"`
	Args    []string   `json:"args"` // without any, the command is a whole command line
	Env     []acp.Pair `json:"env"`
	CWD     *string    `json:"cwd"`
	Limit   *int       `json:"outputByteLimit"`
}

// terminalCreate serves terminal/create.
func terminalCreate(ctx context.Context, c *child, k *talk, p *command) (any, error) {
	if err := c.serves("shell", p.Session); err != nil {
		return nil, err
	}
	if p.Command == "" {
		return nil, acp.Bad("command must not be empty.")
	}
	dir, err := c.workDir(p.CWD)
	if err != nil {
		return nil, err
	}
	if err := c.terminals.reserve(); err != nil {
		return nil, err
	}
	p.Env = changed(c.env, p.Env)
	g, err := c.grant(ctx, k, p.deed(c.dir, dir))
	if err != nil {
		c.terminals.giveBack()
		return nil, err
	}
	t, err := c.run(p, dir, g)
	if err != nil {
		c.terminals.giveBack()
		g.failed(messageOf(err))
		return nil, err
	}
	if !c.terminals.add(t) {
		t.release()
		return nil, errNoTurn
	}
	if g.own {
		c.follow(t, g)
	}
	return object{"terminalId": t.id}, nil
}

// deed is what is judged of a command, and shown to the person: also the folder, where it is not the usual one, and the variables it sets.
func (p *command) deed(usual, dir string) *deed {
	line := commandLine(p.Env, p.Command, p.Args)
	d := &deed{spec: shellSpec, title: oneLine(line, 200), args: object{"command": line}, what: line}
	if dir != usual {
		d.args, d.what = object{"command": line, "cwd": dir}, dir+"\n"+line
	}
	return d
}

// workDir is the folder a command runs in. The error is for the child.
func (c *child) workDir(asked *string) (string, error) {
	if asked == nil || *asked == "" {
		return c.dir, nil
	}
	f, err := c.file(nil, *asked)
	if err != nil {
		return "", err
	}
	defer f.close()
	info, err := f.roots.Stat(f.path)
	switch {
	case err != nil:
		return "", pathFault(err)
	case !info.IsDir():
		return "", acp.Bad("cwd is no folder.")
	}
	return f.at, nil
}

// run starts a command that was granted. The error is for the child.
func (c *child) run(p *command, dir string, g *granted) (*terminal, error) {
	t := &terminal{id: "term_" + g.k.t.NewID()[:12], out: &ring{max: maxOutput}}
	if p.Limit != nil && *p.Limit >= 0 && *p.Limit < maxOutput {
		t.out.max = *p.Limit
	}
	spec := proc.Spec{Path: p.Command, Args: p.Args, Dir: dir, Env: with(c.env, p.Env), Stdout: t.out, Stderr: t.out}
	if len(p.Args) == 0 {
		spec.Path, spec.Args = shell(p.Command)
	}
	var err error
	if g.reads && proc.Landlock() > 0 { // it was allowed because it only reads: it is held to that
		err = t.bound(&spec, c.host.cfg.Private)
	}
	if err == nil {
		t.process, err = c.host.cfg.Children.Start(spec)
	}
	switch {
	case err == nil:
		return t, nil
	case noProgram(err):
		err = acp.Bad("There is no program %s.", oneLine(p.Command, 200))
	default:
		err = acp.Bad("The command could not be started: %s", oneLine(err.Error(), 300))
	}
	t.release()
	return nil, err
}

// bound holds a command to reading: it writes nowhere but in a folder of its own, and does not see what is private.
func (t *terminal) bound(spec *proc.Spec, private []string) (err error) {
	if t.temp, err = os.MkdirTemp("", "rind-command-"); err != nil {
		return err
	}
	spec.Bounds = &proc.Bounds{Write: []string{t.temp}, Deny: private}
	spec.Env = with(spec.Env, []acp.Pair{{Name: "TMPDIR", Value: t.temp}})
	return nil
}

// shell is how a whole command line is run.
func shell(line string) (string, []string) {
	if runtime.GOOS == "windows" {
		return "cmd.exe", []string{"/C", line}
	}
	return "/bin/sh", []string{"-c", line}
}

// follow shows the output of a command in the call that was made for it, and ends that call with it.
func (c *child) follow(t *terminal, g *granted) {
	g.k.mu.Lock()
	g.call.shown = []acp.HostContent{{Terminal: t.id}}
	g.k.mu.Unlock()
	c.wg.Go(func() { // ends with the command, at the latest with the child
		<-t.process.Done()
		g.end(t.status(), "")
	})
}

// terminalRef is what a child asks about a terminal with.
type terminalRef struct {
	Session string `json:"sessionId"`
	ID      string `json:"terminalId"`
}

// terminal finds the terminal a request is about.
func (c *child) terminal(p *terminalRef) (*terminal, error) {
	if err := c.mine(p.Session); err != nil {
		return nil, err
	}
	return c.terminals.find(p.ID)
}

// terminalOutput serves terminal/output.
func terminalOutput(_ context.Context, c *child, _ *talk, p *terminalRef) (any, error) {
	t, err := c.terminal(p)
	if err != nil {
		return nil, err
	}
	text, cut, over := t.output()
	r := object{"output": text, "truncated": cut}
	if over {
		r["exitStatus"] = t.exit()
	}
	return r, nil
}

// terminalWait serves terminal/wait_for_exit.
func terminalWait(ctx context.Context, c *child, _ *talk, p *terminalRef) (any, error) {
	t, err := c.terminal(p)
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

// terminalKill serves terminal/kill: the output stays.
func terminalKill(_ context.Context, c *child, _ *talk, p *terminalRef) (any, error) {
	t, err := c.terminal(p)
	if err != nil {
		return nil, err
	}
	if err := t.process.End(proc.Grace); err != nil {
		return nil, err
	}
	return object{}, nil
}

// terminalRelease serves terminal/release.
func terminalRelease(_ context.Context, c *child, k *talk, p *terminalRef) (any, error) {
	t, err := c.terminal(p)
	if err != nil {
		return nil, err
	}
	if k != nil {
		k.keepOutput(t)
	}
	c.terminals.remove(t)
	return object{}, nil
}

// keepOutput puts the output of a terminal that goes into the calls that show it.
func (k *talk) keepOutput(t *terminal) {
	text, _, _ := t.output()
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

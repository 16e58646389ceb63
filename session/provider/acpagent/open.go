package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Ways a session came back (provider_continuity).
const (
	wayResume  = "resume"
	wayLoad    = "load"
	waySummary = "summary"
)

const recapBytes = 32 << 10

type object = map[string]any

// open makes the child ready for prompts: initialize, authenticate where that is needed, and a session: its own from before where it can, else
// a new one, which recap then tells about the past. An error is the cause of ctx or a *session.Failure.
func (c *child) open(ctx context.Context, t *session.Turn, said *session.Said) (recap string, err error) {
	front := !c.host.hosts.cfg.Unattended
	raw, err := c.within(ctx, c.host.hosts.cfg.times.initialize, acp.MethodInitialize,
		acp.HostOffer{Version: c.host.hosts.cfg.Version, FS: c.spec.FS, Terminal: c.spec.Terminal, Form: front}.Initialize())
	if err != nil {
		return "", c.startFault(ctx, err)
	}
	about, err := acp.ReadHosted(raw)
	if err != nil {
		return "", fail(protocol.FailUnavailable, "The agent cannot be used: "+err.Error()+".")
	}
	c.mu.Lock()
	c.about = about
	c.mu.Unlock()
	if c.spec.AuthMethod != "" {
		if err := c.authenticate(ctx, c.spec.AuthMethod); err != nil {
			return "", c.startFault(ctx, err)
		}
	}
	way := ""
	if before := said.Child; before != nil && before.Provider == c.spec.Provider && before.ID != "" {
		if way = c.comeBack(ctx, before.ID); way != "" {
			c.spent = spent{amount: said.Cost, guessed: true}
		}
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
	}
	if way == "" {
		if err = c.newSession(ctx); err != nil {
			return "", err
		}
		if said.Messages > 0 {
			way = waySummary
			if recap, err = t.Recap(recapBytes - 512); err != nil {
				return "", err
			}
		}
	}
	if !c.usable() {
		return "", c.startFault(ctx, c.why())
	}
	b := &protocol.ProviderSession{}
	b.More.ID, b.More.Provider, b.More.AgentInfo, b.More.Capabilities = c.session().ID, c.spec.Provider, about.Info, about.Capabilities
	bodies := []protocol.Body{b}
	if way != "" {
		k := &protocol.ProviderContinuity{}
		k.More.Way = way
		bodies = append(bodies, k)
	}
	if err := t.Record(bodies...); err != nil {
		return "", err
	}
	if b := c.untold(); b != nil {
		t.Note(b)
	}
	c.ready()
	return recap, nil
}

// ready ends the opening. What the child said of its settings meanwhile holds.
func (c *child) ready() {
	c.mu.Lock()
	c.opened = true
	early := c.early.kept
	c.mu.Unlock()
	for _, params := range early {
		if id, u, ok := acp.ReadHostUpdate(params); ok && id == c.session().ID && sets(u.Kind) {
			c.changed(&u)
		}
	}
	c.host.learn(c)
}

// isOpen reports whether its session was opened.
func (c *child) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// within is call with a bound.
func (c *child) within(ctx context.Context, most time.Duration, method string, params any) (json.RawMessage, error) {
	late := fmt.Errorf("it did not answer %s within %s", method, most)
	bound, stop := context.WithTimeoutCause(ctx, most, late)
	defer stop()
	return c.call(bound, method, params)
}

// startFault turns what went wrong before the first prompt into the failure of the turn.
func (c *child) startFault(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if f, ok := errors.AsType[*session.Failure](err); ok {
		return f
	}
	if isAuth(err) {
		return c.noCredentials(err)
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fail(protocol.FailUnavailable, "The agent refused to start: "+c.errorText(e))
	}
	return c.crashed(err, true)
}

// errorText is what an agent's error says, with its code.
func (c *child) errorText(e *protocol.Error) string {
	text := oneLine(c.mask(e.Message), 1000)
	if code, ok := e.Details["code"]; ok {
		text = fmt.Sprintf("%s (%v)", text, code)
	}
	return text
}

func isAuth(err error) bool {
	e, ok := errors.AsType[*protocol.Error](err)
	return ok && e.Details["code"] == acp.CodeAuthRequired
}

// noCredentials is the failure of an agent that lacks credentials.
func (c *child) noCredentials(err error) error {
	text := "The agent lacks credentials"
	if e, ok := errors.AsType[*protocol.Error](err); ok && e.Message != "" {
		text += ": " + strings.TrimRight(oneLine(c.mask(e.Message), 500), ".")
	}
	var names []string
	for _, m := range c.about.Auth {
		names = append(names, oneLine(m.ID, 60))
	}
	if len(names) > 0 {
		text += "; it offers " + strings.Join(names, ", ") + " (authMethod)"
	}
	return fail(protocol.FailConfiguration, c.hinted(text+"."))
}

// hinted adds which credentials the child was not given.
func (c *child) hinted(text string) string {
	if h := hint(c.host.hosts.cfg.Environ(), c.env); h != "" {
		return text + " " + h
	}
	return text
}

// authenticate uses one of the agent's ways.
func (c *child) authenticate(ctx context.Context, method string) error {
	_, err := c.within(ctx, c.host.hosts.cfg.times.open, acp.MethodAuthenticate, object{"methodId": method})
	return err
}

// agentMethod is the first way to authenticate that needs no terminal; "" for none.
func (c *child) agentMethod() string {
	for _, m := range c.about.Auth {
		if m.Type == "" || m.Type == "agent" {
			return m.ID
		}
	}
	return ""
}

// sessionParams are those of session/new, load and resume.
func (c *child) sessionParams(id string) object {
	servers, _ := c.tools()
	p := object{"cwd": c.dir, "mcpServers": servers}
	if c.about.Roots && len(c.further) > 0 {
		p["additionalDirectories"] = c.further
	}
	if id != "" {
		p["sessionId"] = id
	}
	return p
}

// newSession makes a session, authenticating once where the agent asks for that.
func (c *child) newSession(ctx context.Context) error {
	c.buffers(true)
	defer c.buffers(false)
	most := c.host.hosts.cfg.times.open
	raw, err := c.within(ctx, most, acp.MethodNew, c.sessionParams(""))
	if method := c.agentMethod(); isAuth(err) && c.spec.AuthMethod == "" && method != "" && context.Cause(ctx) == nil {
		if c.authenticate(ctx, method) == nil {
			raw, err = c.within(ctx, most, acp.MethodNew, c.sessionParams(""))
		}
	}
	if err != nil {
		return c.startFault(ctx, err)
	}
	s, err := acp.ReadHostSession(raw, "")
	if err != nil {
		return fail(protocol.FailUnavailable, "The agent cannot be used: "+err.Error()+".")
	}
	c.change(func(self *acp.HostSession) { *self = s })
	return nil
}

// session is the child's session as it stands.
func (c *child) session() acp.HostSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

func (c *child) change(f func(self *acp.HostSession)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.self)
}

// comeBack opens the child's session from before; "" when it cannot. What it replays is not told again.
func (c *child) comeBack(ctx context.Context, id string) (way string) {
	most := c.host.hosts.cfg.times.open
	try := func(way, method string) bool {
		c.mute(true)
		raw, err := c.within(ctx, most, method, c.sessionParams(id))
		if way == wayLoad && err == nil {
			c.untilQuiet(ctx)
		}
		c.mute(false)
		if err != nil {
			c.host.hosts.cfg.Log.Info("a hosted agent's session did not come back", "session", c.host.id, "way", way, "err", c.mask(err.Error()))
			return false
		}
		s, err := acp.ReadHostSession(raw, id)
		if err == nil {
			c.change(func(self *acp.HostSession) { *self = s })
		}
		return err == nil
	}
	c.buffers(true)
	defer c.buffers(false)
	if c.about.Resume && try(wayResume, acp.MethodResume) {
		return wayResume
	}
	if c.about.Load && c.usable() && context.Cause(ctx) == nil && try(wayLoad, acp.MethodLoad) {
		return wayLoad
	}
	return ""
}

// untilQuiet waits until the child has said nothing for a while: some replay after the answer.
func (c *child) untilQuiet(ctx context.Context) {
	quiet := c.host.hosts.cfg.times.quiet
	for end := time.Now().Add(c.host.hosts.cfg.times.open); time.Now().Before(end); {
		c.mu.Lock()
		wait := quiet - time.Since(c.heard)
		c.mu.Unlock()
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-c.broken:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// settle sets the child to what the session is set to, as far as it offers that.
func (c *child) settle(ctx context.Context, t *session.Turn) {
	mode, err := t.Mode()
	if err != nil {
		return
	}
	want := map[string]string{"mode": mode, "model": t.Selection.Model, "thought_level": t.Selection.Effort}
	for _, category := range []string{"mode", "model", "thought_level"} {
		value := want[category]
		o := c.session().Option(category)
		if value == "" || value == OwnModel && category == "model" || o == nil || !o.Has(value) || o.Current == value {
			continue
		}
		raw, err := c.within(ctx, c.host.hosts.cfg.times.open, acp.MethodSetOption, object{"sessionId": c.session().ID, "configId": o.ID, "value": value})
		if err != nil {
			c.host.hosts.cfg.Log.Info("a hosted agent did not take a setting", "session", c.host.id, "category", category, "err", c.mask(err.Error()))
			continue
		}
		if list := acp.ReadHostOptions(acp.ReadParams(raw)["configOptions"]); len(list) > 0 {
			c.change(func(self *acp.HostSession) { self.Options = list })
		}
	}
	self := c.session()
	if self.Option("mode") != nil || self.Mode == mode || !slices.Contains(self.Modes, mode) {
		return
	}
	if _, err := c.within(ctx, c.host.hosts.cfg.times.open, acp.MethodSetMode, object{"sessionId": self.ID, "modeId": mode}); err == nil {
		c.change(func(self *acp.HostSession) { self.Mode = mode })
	}
}

// OwnModel is the model of a session that leaves the choice to its agent.
const OwnModel = "default"

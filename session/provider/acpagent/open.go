package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Ways a session came back (provider_continuity); "" for one that is new.
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
	if err := c.initialize(ctx); err != nil {
		return "", c.startFault(ctx, err)
	}
	way, err := c.enterSession(ctx, said)
	if err != nil {
		return "", err
	}
	if way == waySummary {
		if recap, err = t.Recap(recapBytes - 512); err != nil {
			return "", err
		}
	}
	if !c.usable() {
		return "", c.startFault(ctx, c.why())
	}
	if err := t.Record(c.opened(way)...); err != nil {
		return "", err
	}
	if b := c.untold(); b != nil {
		t.Note(b)
	}
	c.ready()
	return recap, nil
}

// initialize says what we offer, learns what the child does, and authenticates where that is configured.
func (c *child) initialize(ctx context.Context) error {
	cfg := c.host.cfg
	offer := acp.HostOffer{Version: cfg.Version, FS: c.spec.FS, Terminal: c.spec.Terminal, Form: !cfg.Unattended}
	raw, err := c.within(ctx, cfg.times.initialize, acp.MethodInitialize, offer.Initialize())
	if err != nil {
		return err
	}
	about, err := acp.ReadHosted(raw)
	if err != nil {
		return unfit(err)
	}
	c.mu.Lock()
	c.about = about
	c.mu.Unlock()
	if c.spec.AuthMethod != "" {
		return c.authenticate(ctx, c.spec.AuthMethod)
	}
	return nil
}

// enterSession opens the child's session, and says how what was said before is known to it.
func (c *child) enterSession(ctx context.Context, said *session.Said) (way string, err error) {
	if before := said.Child; before != nil && before.Provider == c.spec.Provider && before.ID != "" {
		if way = c.comeBack(ctx, before.ID); way != "" {
			c.spent = spent{amount: said.Cost, guessed: true}
		}
		if cause := context.Cause(ctx); way != "" || cause != nil {
			return way, cause
		}
	}
	if err := c.newSession(ctx); err != nil {
		return "", c.startFault(ctx, err)
	}
	if said.Messages > 0 {
		return waySummary, nil
	}
	return "", nil
}

// comeBack opens the child's session from before; "" when it cannot. What it replays is not told again.
func (c *child) comeBack(ctx context.Context, id string) (way string) {
	for _, by := range []struct {
		way, method string
		offered     bool
	}{{wayResume, acp.MethodResume, c.about.Resume}, {wayLoad, acp.MethodLoad, c.about.Load}} {
		if !by.offered || !c.usable() || context.Cause(ctx) != nil {
			continue
		}
		s, err := c.reopen(ctx, by.way, by.method, id)
		if err == nil {
			c.change(func(self *acp.HostSession) { *self = s })
			return by.way
		}
		c.host.cfg.Log.Info("a hosted agent's session did not come back", "session", c.host.id, "way", by.way, "err", c.mask(err.Error()))
	}
	return ""
}

// reopen is one way to come back. Some replay after the answer.
func (c *child) reopen(ctx context.Context, way, method, id string) (acp.HostSession, error) {
	times := &c.host.cfg.times
	c.reach(phaseReplaying)
	defer c.reach(phaseOpening)
	raw, err := c.within(ctx, times.open, method, c.sessionParams(id))
	if err != nil {
		return acp.HostSession{}, err
	}
	if way == wayLoad {
		bound, stop := context.WithTimeout(ctx, times.open)
		defer stop()
		c.untilQuiet(bound, times.quiet, nil)
	}
	return acp.ReadHostSession(raw, id)
}

// newSession makes a session, authenticating once where the agent asks for that.
func (c *child) newSession(ctx context.Context) error {
	most := c.host.cfg.times.open
	raw, err := c.within(ctx, most, acp.MethodNew, c.sessionParams(""))
	if method := c.agentMethod(); isAuth(err) && c.spec.AuthMethod == "" && method != "" && context.Cause(ctx) == nil {
		if c.authenticate(ctx, method) == nil {
			raw, err = c.within(ctx, most, acp.MethodNew, c.sessionParams(""))
		}
	}
	if err != nil {
		return err
	}
	s, err := acp.ReadHostSession(raw, "")
	if err != nil {
		return unfit(err)
	}
	c.change(func(self *acp.HostSession) { *self = s })
	return nil
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

// opened is what the log keeps of the opening.
func (c *child) opened(way string) []protocol.Body {
	b := &protocol.ProviderSession{}
	b.More.ID, b.More.Provider, b.More.AgentInfo, b.More.Capabilities = c.session().ID, c.spec.Provider, c.about.Info, c.about.Capabilities
	if way == "" {
		return []protocol.Body{b}
	}
	k := &protocol.ProviderContinuity{}
	k.More.Way = way
	return []protocol.Body{b, k}
}

// ready ends the opening. What the child said of its settings meanwhile holds.
func (c *child) ready() {
	c.reach(phaseOpen)
	for _, h := range c.host.waiting() {
		if id, u, ok := acp.ReadHostUpdate(h.params); h.early && ok && id == c.session().ID && sets(u.Kind) {
			c.changed(&u)
		}
	}
	c.host.learn(c)
}

// within is call with a bound.
func (c *child) within(ctx context.Context, most time.Duration, method string, params any) (json.RawMessage, error) {
	late := fmt.Errorf("it did not answer %s within %s", method, most)
	bound, stop := context.WithTimeoutCause(ctx, most, late)
	defer stop()
	return c.call(bound, method, params)
}

// authenticate uses one of the agent's ways.
func (c *child) authenticate(ctx context.Context, method string) error {
	_, err := c.within(ctx, c.host.cfg.times.open, acp.MethodAuthenticate, object{"methodId": method})
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

package acp

import (
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
)

// method is one row of the method table.
type method struct {
	run    func(k *call) // on the reading goroutine: must not wait for a session
	notice bool          // may be sent without an id, and is never refused as too much
	long   bool          // answered when a turn ends
}

// methods is everything served. Filled in init, because a refusal of one looks it up.
var methods map[string]method

func init() {
	methods = map[string]method{
		acp.MethodInitialize:    {run: initialize},
		acp.MethodAuthenticate:  {run: authenticate},
		acp.MethodNew:           {run: sessionNew},
		acp.MethodFork:          {run: sessionFork},
		acp.MethodLoad:          {run: sessionLoad},
		acp.MethodResume:        {run: sessionResume},
		acp.MethodList:          {run: sessionList},
		acp.MethodClose:         {run: sessionClose},
		acp.MethodDelete:        {run: sessionDelete},
		acp.MethodPrompt:        {run: prompt, long: true},
		acp.MethodCancel:        {run: sessionCancel, notice: true},
		acp.MethodSetMode:       {run: setMode},
		acp.MethodSetOption:     {run: setOption},
		acp.MethodSteer:         {run: enqueue(protocol.ModeSteering)},
		acp.MethodFollowUp:      {run: enqueue(protocol.ModeFollowUp)},
		acp.MethodContinue:      {run: goOn, long: true},
		acp.MethodReplay:        {run: replay},
		acp.MethodCancelRequest: {run: cancelRequest, notice: true},
	}
}

// serves reports whether a method of the table is one of what was agreed on with this client.
func (c *Conn) serves(method string) bool {
	switch method {
	case acp.MethodFork:
		return c.d.cfg.Unstable
	case acp.MethodSetMode:
		return !c.draft() // the draft has options only
	}
	return true
}

// draft reports whether the draft of version 2 was agreed on.
func (c *Conn) draft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version == acp.DraftVersion
}

// extensions are ours (docs/protocol/acp.md section 4).
var extensions = map[string]acp.AnyExtensions{acp.MetaExtensions: {
	Version: 1,
	Methods: []string{acp.MethodReplay, acp.MethodContinue, acp.MethodSteer, acp.MethodFollowUp},
	Meta:    []string{acp.MetaCursor, acp.MetaAfter, acp.MetaKey, acp.MetaTurn},
}}

const localLogin = "local"

// initialize is answered on the reading goroutine, without looking at store, models or network: a request right behind it finds it done.
func initialize(k *call) {
	in, err := acp.ReadInitialize(k.params)
	if err != nil {
		k.Fail(err)
		return
	}
	c := k.c
	c.mu.Lock()
	busy := c.ready && len(c.open) > 0
	version := int64(acp.Version)
	if c.d.cfg.Draft && in.Version == acp.DraftVersion {
		version = acp.DraftVersion
		in.Capabilities.ReadFile, in.Capabilities.WriteFile, in.Capabilities.Terminal = false, false, false // the draft has none of them
	}
	if !busy {
		c.caps, c.ready, c.version = in.Capabilities, true, version
	}
	c.mu.Unlock()
	if busy {
		k.Fail(&protocol.Error{Kind: acp.BadMessage, Message: "Sessions are open: what the client offers cannot change any more."})
		return
	}
	c.d.cfg.Log.Info("client", "dialect", "acp", "client", in.Client)
	go c.d.models.refresh() // so that session/new finds them; bounded by itself
	methods := []acp.AuthMethod{{ID: localLogin, Name: "Use configured providers", Description: "Keys from the environment, the settings, or rind login"}}
	if in.Capabilities.TerminalLogin {
		methods = append(methods, acp.AuthMethod{Type: "terminal", ID: "login", Name: "Log in", Args: []string{"login"}})
	}
	offered := acp.SessionCapabilities{List: &acp.Empty{}, Resume: &acp.Empty{}, Close: &acp.Empty{}, Delete: &acp.Empty{}, Roots: &acp.Empty{}}
	if c.d.cfg.Unstable {
		offered.Fork = &acp.Empty{}
	}
	k.OK(acp.Initialized{
		Version: version, Agent: acp.Implementation{Name: "rind", Title: "Rind", Version: c.d.cfg.Version}, AuthMethods: methods,
		Capabilities: acp.AgentCapabilities{
			Load: true, Prompt: acp.PromptCapabilities{Image: c.d.cfg.Images(), Embedded: true},
			MCP:     acp.MCPCapabilities{HTTP: c.d.cfg.Servers != nil},
			Session: offered, Meta: extensions,
		},
	})
}

// authenticate has nothing to do: keys are read anew whenever a turn begins.
func authenticate(k *call) {
	id, err := k.params.Text("methodId")
	if err == nil && id != localLogin {
		err = acp.Bad("There is no login %q here; keys are read from the environment and the settings.", protocol.Prefix(id, 40))
	}
	k.Settle(acp.Empty{}, err)
}

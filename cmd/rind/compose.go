package main

// This is the only file that names concrete stores, providers, tools and dialects. To add one, write its package and one line here.

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/consent"
	"github.com/rind-dev/rind/session/guide"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/modelhttp"
	"github.com/rind-dev/rind/session/provider/acpagent"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/demo"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/settings"
	"github.com/rind-dev/rind/session/store/sqlite"
	"github.com/rind-dev/rind/session/tool/ask"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/mcp"
	"github.com/rind-dev/rind/session/tool/plan"
	"github.com/rind-dev/rind/session/tool/search"
	"github.com/rind-dev/rind/session/tool/shell"
	"github.com/rind-dev/rind/session/tool/skill"
	"github.com/rind-dev/rind/session/tool/web"
)

// composition says how a process is put together.
type composition struct {
	typed      bool       // a person typed the command: say on stderr what was chosen for them
	temporary  bool       // without a usable data folder, use one that goes with the process
	unattended bool       // nobody can be asked
	modelFlag  bool       // --model or --provider was given
	trace      bool       // log model requests
	agent      *agentSpec // answers every session, whatever it is set to; nil for none
}

// compose builds the process. Nothing it does waits for the store or a network.
func compose(std *streams, c *common, o composition) (*process, error) {
	rt := &process{}
	if err := rt.build(std, c, o); err != nil {
		rt.close()
		return nil, err
	}
	return rt, nil
}

// build puts the parts together from the bottom up: where the process lives and what its settings say, the store, the models, what guards
// tools, the tools, the agents, the sessions.
func (rt *process) build(std *streams, c *common, o composition) error {
	set, err := rt.begin(std, c, o)
	if err != nil {
		return err
	}
	if rt.storeFile, err = rt.placeOfStore(c.sessionDir); err != nil {
		return err
	}
	if rt.store, err = sqlite.Open(rt.storeFile, sqlite.Options{Locks: rt.locks(), Log: rt.log, Kill: killPoint(rt.env)}); err != nil {
		return exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	rt.models = &models{configuration: rt.configuration, redact: rt.record, agent: o.agent, demo: o.typed && !o.modelFlag && settings.DemoAllowed(set, rt.env, "")}
	if o.typed {
		rt.models.announce(std.err, set, rt.log)
	}

	home, _ := rt.env("HOME")
	rt.kept = images.New(rt.outputs, images.Options{})
	rt.guide = guide.New(guide.Config{DataRoot: rt.root, Home: home, Trusted: rt.trusts, Unattended: o.unattended})
	path, _ := rt.env("PATH")
	policy := consent.New(consent.Config{Rules: rt.store, Home: home, DataRoot: rt.root, Temp: os.TempDir(), Path: path})
	rt.policy, rt.secret = policy, policy.Secret
	rt.keepChildren()

	if err := rt.connect(); err != nil {
		return exitf(exitConfig, "Configuration error: %s", messageOf(err))
	}
	tools := rt.tools(set, o)
	loop, err := session.NewLoop(session.Loop{
		Models: rt.models, Tools: tools, More: rt.servers.Tools, Log: rt.log, Unattended: o.unattended, Guide: rt.guide, Policy: rt.policy,
		Sandbox: rt.sandbox, Outputs: rt.outputs, Pause: pause(rt.env),
	})
	if err != nil {
		return err
	}
	rt.hosts = acpagent.New(acpagent.Config{
		Children: rt.children, Policy: rt.policy, Images: rt.kept, Redact: rt.record.Redact, Log: rt.log, Version: version(), Private: rt.private(),
		Unattended: o.unattended, Servers: rt.serversOf, Memory: agentMemory{rt.root},
	})
	rt.models.hosts = rt.hosts

	rt.all = session.NewSessions(session.Config{
		Store: rt.store, Agent: &agents{loop, rt.hosts, rt.models}, Models: rt.models, Log: rt.log, Guide: rt.guide, Policy: rt.policy, Outputs: rt.outputs,
		OnEnd: rt.children.Refuse, Forgot: rt.hosts.Forget, ErrorID: rt.errorID,
	})
	rt.hosts.Attach(rt.all)
	rt.all.SetExecutions(session.ExecutionOptions{Mask: rt.record.Redact})
	return nil
}

// openStore opens a store file that is not this process's own.
func openStore(path string) (session.Store, error) { return sqlite.Open(path, sqlite.Options{}) }

// remoteModel makes a model that is asked over the network.
func remoteModel(p settings.Provider, key string) (remote, error) {
	at := modelhttp.Config{Name: p.Name, BaseURL: p.BaseURL, Key: key, Headers: p.Headers, CAFile: p.CAFile}
	if p.Type == settings.Anthropic {
		return anthropic.New(at)
	}
	return openai.New(at, p.Type)
}

// demoModel is the built-in one, which is no AI.
func demoModel() session.Model { return demo.New() }

// scriptModel makes a model that plays the provider's script.
func scriptModel(p settings.Provider) (session.Model, error) {
	data, err := os.ReadFile(p.Script)
	if err == nil {
		var model session.Model
		if model, err = script.New(data); err == nil {
			return model, nil
		}
	}
	return nil, fmt.Errorf("script of provider %s: %w", p.Name, err)
}

// What cmd says of hosted agents (hosted.go).
type (
	agentSpec  = acpagent.Spec
	agentHosts = acpagent.Hosts
	agentKnown = acpagent.Known
	// agentServer is a tool server an agent is told of.
	agentServer = acpagent.Server
)

// toolRoster are the tool servers of all workspaces (mcp.go).
type toolRoster = mcp.Roster

const ownModel = acpagent.OwnModel // of a session that leaves the choice to its agent

func splitWords(line string) ([]string, error) { return acpagent.Split(line) }

// tools are what a model may call. It is known from here on what their commands run in, and what they are called.
func (rt *process) tools(set settings.Settings, o composition) []session.Tool {
	commands := shell.Config{
		Children: rt.children, Images: rt.kept, Outputs: rt.outputs, Private: rt.private(), Mode: set.Sandbox(),
		Secrets: func(_, value string) bool { return rt.record.Redact(value) != value },
	}
	rt.sandbox, rt.sandboxed = shell.Describe(commands), shell.Sandboxed(commands)
	all := []session.Tool{
		files.ReadFile(), files.WriteFile(rt.kept), files.EditFile(rt.kept), search.Glob(), search.Grep(rt.secret), shell.Bash(commands), plan.UpdatePlan(),
		skill.Load(rt.guide), skill.Create(skill.Config{DataRoot: rt.root, Trusted: rt.trusts, Images: rt.kept}),
	}
	w := set.Web(rt.env)
	rt.record.Add(w.SearchKey)
	pages := web.Config{AllowPrivate: w.Private, SearchURL: w.SearchURL, SearchKey: w.SearchKey, SearchHeader: w.SearchHeader, UserAgent: "rind/" + version()}
	all = append(all, web.FetchPage(pages))
	if found, ok := web.Search(pages); ok {
		all = append(all, found)
	}
	if !o.unattended {
		all = append(all, ask.UserQuestion())
	}
	for _, t := range all {
		rt.offered = append(rt.offered, t.Spec().Name)
	}
	return all
}

// executionProviders are the providers of the portable protocol, whatever carries it, beside the agents the settings host. What the agent's
// extensions are depends on this system and on the settings this process began with.
func (rt *process) executionProviders() []executions.Provider {
	extensions := map[string]string{
		"extension.mcp": portable.Native, "extension.sandbox": portable.Absent, "extension.skills": portable.Native, "extension.subagents": portable.Absent,
	}
	if rt.sandboxed {
		extensions["extension.sandbox"] = portable.Native
	}
	all := []executions.Provider{
		executions.Mock(version()), executions.Script(version()), executions.Agent(version(), extensions),
	}
	if os.Getenv("RIND_TEST_FIXTURE") == "1" {
		all = append(all, executions.Fixture(version()))
	}
	return all
}

// hostedProviders are the agents the settings host now, as providers of the portable protocol.
func (rt *process) hostedProviders() []executions.Provider {
	var all []executions.Provider
	for _, spec := range rt.models.hostedSpecs() {
		all = append(all, executions.Hosted(version(), spec.Provider, ownModel, func() map[string]string { return rt.hosts.About("", spec).Manifest }))
	}
	return all
}

// checkSearch says what is wrong with the endpoint of search_web.
func (rt *process) checkSearch(set settings.Settings) error {
	w := set.Web(rt.env)
	return web.Config{SearchURL: w.SearchURL, SearchKey: w.SearchKey, SearchHeader: w.SearchHeader}.CheckSearch()
}

// connect knows the servers of the Model Context Protocol. They start with the first turn, or when something calls Start.
func (rt *process) connect() error {
	if _, problems, err := serverEntries(rt.path, rt.workspace); err != nil {
		return err
	} else if len(problems) > 0 {
		rt.log.Warn("mcp servers", "problems", problems)
	}
	rt.servers = mcp.NewRoster(mcp.Config{Children: rt.children, Log: rt.log, Version: version(), Secrets: rt.record.Add, Lazy: rt.models.agent != nil}, func(workspace string) (map[string]json.RawMessage, error) {
		entries, _, err := serverEntries(rt.path, workspace)
		return entries, err
	})
	return nil
}

// toolServers shows the servers of the process's workspace to the command that lists them.
func (rt *process) toolServers() toolServers { return serverSet{rt.servers.Workspace(rt.workspace)} }

type serverSet struct{ *mcp.Servers }

// States implements toolServers.
func (s serverSet) States() []serverState {
	list := s.List()
	all := make([]serverState, len(list))
	for i := range list {
		all[i] = serverState(list[i])
	}
	return all
}

// envelope is the dialect --envelope forces; nil leaves it to the first line.
func envelope(name string) *rindv2.Envelope {
	switch name {
	case "rind":
		e := rindv2.Rind
		return &e
	case "jsonrpc":
		e := rindv2.JSONRPC
		return &e
	}
	return nil
}

// schemas are the protocols that can be described.
var schemas = map[string]struct {
	json       func() ([]byte, error)
	typeScript func() []byte
}{
	"rind-v2": {rindv2.Schema, rindv2.TypeScript},
}

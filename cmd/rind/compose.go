package main

// This is the only file that names concrete stores, providers and tools. To add one, write its package and one line here.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/consent"
	"github.com/rind-dev/rind/session/guide"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/modelhttp"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/provider/acpagent"
	"github.com/rind-dev/rind/session/provider/anthropic"
	"github.com/rind-dev/rind/session/provider/demo"
	"github.com/rind-dev/rind/session/provider/openai"
	"github.com/rind-dev/rind/session/provider/script"
	"github.com/rind-dev/rind/session/record"
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
	"github.com/rind-dev/rind/session/undo"
)

// pauses waits between the tries of a model request; nil is the loop's own, and tests have no time.
var pauses func(ctx context.Context, d time.Duration) error

// composition says how a process is put together.
type composition struct {
	typed      bool       // a person typed the command: say on stderr what was chosen for them
	temporary  bool       // without a usable data folder, use one that goes with the process
	unattended bool       // nobody can be asked
	modelFlag  bool       // --model or --provider was given
	trace      bool       // log model requests
	agent      *agentSpec // answers every session, whatever it is set to; nil for none
}

// What cmd says of hosted agents (hosted.go).
type (
	agentSpec  = acpagent.Spec
	agentHosts = acpagent.Hosts
	// agentServer is a tool server an agent is told of.
	agentServer = acpagent.Server
)

const ownModel = acpagent.OwnModel // of a session that leaves the choice to its agent

func splitWords(line string) ([]string, error) { return acpagent.Split(line) }

// process is one running program: settings, store, log file, sessions.
type process struct {
	root      string
	workspace string
	path      string // of the settings file
	env       settings.Env
	log       *slog.Logger
	record    *record.Log
	store     session.Store
	storeFile string
	all       *session.Sessions
	models    *models
	guide     session.Guide
	policy    session.Policy
	kept      session.Images // contents from before tools changed files
	children  *proc.Children
	servers   *mcp.Roster // servers of the Model Context Protocol
	hosts     *agentHosts
	sandbox   string   // what commands run in, in words
	sandboxed bool     // whether they run in one
	offered   []string // names of the tools that models are given
	cleanup   []func()
}

// compose builds the process. Nothing it does waits for the store or a network.
func compose(std *streams, c *common, o composition) (*process, error) {
	rt := &process{env: os.LookupEnv}
	if err := rt.build(std, c, o); err != nil {
		rt.close()
		return nil, err
	}
	return rt, nil
}

func (rt *process) build(std *streams, c *common, o composition) (err error) {
	if rt.workspace, err = workspace(c.cwd, rt.env); err != nil {
		return err
	}
	if err := rt.dataRoot(std.err, o.temporary); err != nil {
		return err
	}
	var echo io.Writer
	if c.debug {
		echo = std.err
	}
	level := slog.LevelInfo
	if o.trace {
		level = slog.LevelDebug
	}
	rt.record = record.New(record.Options{Path: filepath.Join(rt.root, "logs", "rind.log"), Level: level, Debug: echo})
	rt.log = rt.record.Logger()
	rt.cleanup = append(rt.cleanup, rt.record.Close)
	rt.path = filepath.Join(rt.root, settings.FileName)
	set, err := rt.settings()
	if err != nil {
		return exitf(exitConfig, "Configuration error: %s", messageOf(err))
	}
	dir := filepath.Join(rt.root, "sessions")
	locks := filepath.Join(rt.root, "locks")
	if c.sessionDir != "" {
		if dir, err = settings.Expand(c.sessionDir, rt.env); err != nil {
			return exitf(exitFailed, "Startup error: %s", messageOf(err))
		}
	}
	rt.storeFile = filepath.Join(dir, "rind.db")
	if rt.store, err = sqlite.Open(rt.storeFile, sqlite.Options{Locks: locks, Log: rt.log, Kill: killPoint(rt.env)}); err != nil {
		return exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	rt.models = &models{path: rt.path, workspace: rt.workspace, env: rt.env, redact: rt.record, demo: o.typed && !o.modelFlag && settings.DemoAllowed(set, rt.env, "")}
	rt.models.agent = o.agent
	rt.hide(set)
	if o.typed {
		rt.models.announce(std.err, set, rt.log)
	}
	outputs := func(id session.SessionID) string { return filepath.Join(rt.root, "outputs", string(id)) }
	home, _ := rt.env("HOME")
	rt.kept = images.New(outputs, images.Options{})
	rt.guide = guide.New(guide.Config{DataRoot: rt.root, Home: home, Trusted: rt.trusts, Unattended: o.unattended})
	rt.policy = consent.New(consent.Config{Rules: rt.store, Home: home, DataRoot: rt.root, Temp: os.TempDir()})
	journal := filepath.Join(locks, "children")
	rt.children = proc.NewChildren(journal)
	go func() { // what runtimes that were killed left running; nothing waits for it
		if dead, err := proc.Sweep(journal); err != nil || dead > 0 {
			rt.log.Info("sweep of children", "dead_instances", dead, "err", err)
		}
	}()
	commands := shell.Config{
		Children: rt.children, Images: rt.kept, Outputs: outputs, Private: []string{rt.root, dir}, Mode: set.Sandbox(), Secrets: func(_, value string) bool { return rt.record.Redact(value) != value },
	}
	rt.sandbox, rt.sandboxed = shell.Describe(commands), shell.Sandboxed(commands)
	if err := rt.connect(); err != nil {
		return exitf(exitConfig, "Configuration error: %s", messageOf(err))
	}
	loop, err := session.NewLoop(session.Loop{
		Models: rt.models, Tools: rt.tools(set, commands, o), More: rt.servers.Tools, Log: rt.log, Unattended: o.unattended, Guide: rt.guide, Policy: rt.policy, Sandbox: rt.sandbox,
		Outputs: outputs, Pause: pauses,
	})
	if err != nil {
		return err
	}
	rt.hosts = acpagent.New(acpagent.Config{
		Children: rt.children, Policy: rt.policy, Images: rt.kept, Redact: rt.record.Redact, Log: rt.log, Version: version(), Private: []string{rt.root, dir},
		Unattended: o.unattended, Servers: rt.serversOf,
	})
	rt.models.hosts = rt.hosts
	rt.all = session.NewSessions(session.Config{
		Store: rt.store, Agent: &agents{loop, rt.hosts, rt.models}, Models: rt.models, Log: rt.log, Guide: rt.guide, Policy: rt.policy, Outputs: outputs,
		OnEnd: rt.children.Refuse, Forgot: rt.hosts.Forget, ErrorID: func(err error) string { return rt.record.ErrorID(err) },
	})
	rt.hosts.Attach(rt.all)
	rt.all.SetExecutions(session.ExecutionOptions{Mask: rt.record.Redact})
	return nil
}

// tools are what a model may call.
func (rt *process) tools(set settings.Settings, commands shell.Config, o composition) []session.Tool {
	all := []session.Tool{
		files.ReadFile(), files.WriteFile(rt.kept), files.EditFile(rt.kept), search.Glob(), search.Grep(consent.Secret), shell.Bash(commands), plan.UpdatePlan(),
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

// executions are the commands of the portable protocol. keep: sessions stay open between requests.
func (rt *process) executions(keep bool) *executions.Commands {
	return executions.New(executions.Config{Sessions: rt.all, Providers: rt.executionProviders(), Version: version(), Tools: rt.offered, Keep: keep})
}

// executionProviders are the providers of the portable protocol, whatever carries it: ours, and the agents the settings host. What the
// agent's extensions are depends on this system and on the settings this process began with.
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
	for _, spec := range rt.models.hostedSpecs() {
		all = append(all, executions.Hosted(version(), spec.Provider, ownModel, func() map[string]string { return rt.hosts.Manifest(spec) }))
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

// undo puts back what tools wrote. alone: this process has the session not open itself.
func (rt *process) undo(alone bool) *undo.Undo {
	return undo.New(undo.Config{Store: rt.store, Images: rt.kept, Keep: true, Lease: alone})
}

// close ends the process's work: within 3 s, or what is left is left to the next process.
func (rt *process) close() {
	if rt.children != nil {
		rt.children.Refuse()
	}
	if rt.all != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		if err := rt.all.Shutdown(ctx); err != nil {
			rt.log.Warn("shutdown", "err", err)
		}
		cancel()
	}
	if rt.hosts != nil {
		rt.hosts.Close()
	}
	if rt.servers != nil {
		rt.servers.Close()
	}
	if rt.children != nil {
		if err := rt.children.KillAll(); err != nil {
			rt.log.Warn("end of children", "err", err)
		}
	}
	if rt.store != nil {
		if err := rt.store.Close(); err != nil {
			rt.log.Warn("close store", "err", err)
		}
	}
	for i := len(rt.cleanup) - 1; i >= 0; i-- {
		rt.cleanup[i]()
	}
	rt.cleanup = nil
}

// models finds models by the settings, which it reads anew each time, so that a key that was just added works.
type models struct {
	path      string
	workspace string
	env       settings.Env
	redact    *record.Log
	demo      bool // nothing is configured and a person typed the command
	agent     *agentSpec
	hosts     *agentHosts

	mu    sync.Mutex        // guards known; never held over I/O
	known map[string]remote // by all of their settings, so that connections outlive a turn
}

// remote is a model that is asked over the network.
type remote interface {
	session.Model
	List(ctx context.Context) ([]session.ModelInfo, error)
}

var _ session.Models = (*models)(nil)

// provider returns the provider named, or the selected one for "".
func (m *models) provider(name string) (settings.Provider, settings.Settings, error) {
	set, err := loadSettings(m.path, m.workspace)
	if err != nil {
		return settings.Provider{}, set, err
	}
	if m.agent != nil && (name == "" || name == flagAgent) {
		return settings.Provider{Name: flagAgent, Type: settings.ACP, Model: ownModel, Command: m.agent.Command, Args: m.agent.Args, PassEnv: m.agent.PassEnv}, set, nil
	}
	if name == "demo" && m.demo {
		return settings.Provider{Name: "demo", Type: settings.Demo, Model: "demo"}, set, nil
	}
	var p settings.Provider
	if name == "" {
		p, _, err = set.Selected(m.env)
	} else if sel, _, serr := set.Selected(m.env); serr == nil && sel.Name == name {
		p = sel
	} else {
		p, err = set.Named(name)
	}
	if err == nil {
		m.redact.Add(p.Secrets(m.env)...)
		if p.Type == settings.ACP && p.Model == "" {
			p.Model = ownModel
		}
	}
	return p, set, err
}

// Default implements session.Models.
func (m *models) Default() session.Selection {
	if m.demo {
		return session.Selection{Provider: "demo", Model: "demo", Mode: "ask"}
	}
	p, set, err := m.provider("")
	if err != nil {
		return session.Selection{Provider: settings.DefaultProvider, Model: settings.DefaultModel, Mode: "ask"}
	}
	return session.Selection{Provider: p.Name, Model: p.Model, Effort: p.ReasoningEffort, Mode: set.ApprovalMode()}
}

// Select implements session.Models.
func (m *models) Select(_ context.Context, sel session.Selection) (session.Selected, error) {
	if m.agent != nil {
		return session.Selected{Info: m.hostedInfo(flagAgent, sel.Model), Scripted: true}, nil
	}
	p, _, err := m.provider(sel.Provider)
	if err != nil {
		return session.Selected{}, configFault(err)
	}
	if p.Type == settings.ACP {
		return session.Selected{Info: m.hostedInfo(p.Name, sel.Model), Scripted: true}, nil
	}
	info := session.ModelInfo{Provider: p.Name, ID: sel.Model, Name: sel.Model, API: p.Type, Window: p.ContextWindow, Images: p.Images}
	switch p.Type {
	case settings.Demo:
		return session.Selected{Model: demo.New(), Info: info, Scripted: true}, nil
	case settings.Script:
		data, err := os.ReadFile(p.Script)
		if err != nil {
			return session.Selected{}, configFault(fmt.Errorf("script of provider %s: %w", p.Name, err))
		}
		model, err := script.New(data)
		if err != nil {
			return session.Selected{}, configFault(fmt.Errorf("script of provider %s: %w", p.Name, err))
		}
		return session.Selected{Model: model, Info: info, Scripted: true}, nil
	case settings.OpenAIChat, settings.OpenAIResponses, settings.Anthropic:
		model, err := m.remote(p)
		if err != nil {
			return session.Selected{}, configFault(err)
		}
		info = m.describe(p, sel.Model)
		return session.Selected{Model: model, Info: info, BaseURL: p.BaseURL}, nil
	}
	return session.Selected{}, configFault(fmt.Errorf("provider %s is of type %s, which this version cannot use for turns", p.Name, p.Type))
}

func (m *models) remote(p settings.Provider) (remote, error) {
	key, err := p.Key(m.env)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%q %q %q %q %q %q", p.Name, p.BaseURL, key.Value, p.Type, p.Headers, p.CAFile)
	m.mu.Lock()
	defer m.mu.Unlock()
	if model := m.known[id]; model != nil {
		return model, nil
	}
	var model remote
	at := modelhttp.Config{Name: p.Name, BaseURL: p.BaseURL, Key: key.Value, Headers: p.Headers, CAFile: p.CAFile}
	if p.Type == settings.Anthropic {
		model, err = anthropic.New(at)
	} else {
		model, err = openai.New(at, p.Type)
	}
	if err != nil {
		return nil, err
	}
	if m.known == nil || len(m.known) > 16 { // keys and addresses that changed while we ran
		m.known = map[string]remote{}
	}
	m.known[id] = model
	return model, nil
}

func configFault(err error) error {
	return &session.ModelError{Fault: session.FaultConfig, Message: oneLine(messageOf(err)), Cause: err}
}

// List implements session.Models.
func (m *models) List(ctx context.Context, refresh bool) ([]session.ModelInfo, string, error) {
	if m.agent != nil {
		return m.hostedModels(flagAgent), "", nil
	}
	set, err := loadSettings(m.path, m.workspace)
	if err != nil {
		return nil, "", err
	}
	found, warnings := m.listAll(ctx, set.Names(m.env), refresh)
	return found, strings.Join(warnings, " "), nil
}

// announce says on stderr what was chosen for a person who configured nothing.
func (m *models) announce(stderr io.Writer, set settings.Settings, log *slog.Logger) {
	if m.demo {
		fmt.Fprintln(stderr, "rind: no model is configured: the built-in demo answers, which is no AI. Set OPENAI_API_KEY, or run 'rind login'.")
		return
	}
	if p, variable, err := set.Selected(m.env); err == nil && variable != "" {
		fmt.Fprintf(stderr, "rind: using %s (%s), because %s is set\n", p.Name, p.Model, variable)
		log.Info("provider selected by environment", "provider", p.Name, "variable", variable)
	}
}

// openStore opens a store file that is not this process's own.
func openStore(path string) (session.Store, error) { return sqlite.Open(path, sqlite.Options{}) }

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

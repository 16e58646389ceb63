package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/settings"
)

// flagAgent is the provider that --agent stands for.
const flagAgent = "agent"

// agents answer turns: our own loop, or the agent a session's provider hosts.
type agents struct {
	loop   session.Agent
	hosts  *agentHosts
	models *models
}

var _ session.Hosting = (*agents)(nil)

// Turn implements session.Agent.
func (a *agents) Turn(ctx context.Context, t *session.Turn) (string, error) {
	spec, hosted, err := a.models.hosted(t.Selection.Provider)
	switch {
	case err != nil && hosted:
		return "", &session.Failure{Type: protocol.FailConfiguration, Status: "rejected", Source: "runtime", Message: oneLine(messageOf(err)), Cause: err}
	case hosted:
		return a.hosts.Turn(ctx, spec, t)
	}
	return a.loop.Turn(ctx, t)
}

// Hosts implements session.Hosting.
func (a *agents) Hosts(sel session.Selection) (provider string, ok bool) {
	spec, hosted, _ := a.models.hosted(sel.Provider)
	return spec.Provider, hosted
}

// Hosted implements session.Hosting.
func (a *agents) Hosted(id session.SessionID, sel session.Selection) (session.HostedAgent, bool) {
	spec, hosted, err := a.models.hosted(sel.Provider)
	if err != nil || !hosted {
		return session.HostedAgent{}, false
	}
	return a.hosts.About(id, spec), true
}

// hosted tells which agent answers turns of a provider; false when that is our own loop. With --agent it is that one, whatever a session is set
// to.
func (m *models) hosted(provider string) (agentSpec, bool, error) {
	if m.agent != nil {
		return *m.agent, true, nil
	}
	p, _, err := m.provider(provider)
	if err != nil || p.Type != settings.ACP {
		return agentSpec{}, false, err
	}
	return specOf(p), true, nil
}

// hostedSpecs lists the agents that the settings host, sorted by name. A provider whose description is wrong is left out: who selects it is told.
func (m *models) hostedSpecs() []agentSpec {
	set, err := m.settings()
	if err != nil {
		return nil
	}
	var all []agentSpec
	for _, name := range set.Names(m.env) {
		if p, _, err := m.provider(name); err == nil && p.Type == settings.ACP {
			all = append(all, specOf(p))
		}
	}
	return all
}

func specOf(p settings.Provider) agentSpec {
	return agentSpec{
		Provider: p.Name, Command: p.Command, Args: p.Args, Env: p.Env, PassEnv: p.PassEnv, AuthMethod: p.AuthMethod, FS: p.ClientFS, Terminal: p.ClientTerminal,
	}
}

// serversOf are the tool servers of a session, as its hosted agent is told of them.
func (rt *process) serversOf(id session.SessionID, workspace string) []agentServer {
	var all []agentServer
	for _, d := range rt.servers.Describe(id, workspace) {
		all = append(all, agentServer{Name: d.Name, Command: d.Command, Args: d.Args, Env: d.Env, URL: d.URL, Headers: d.Headers, Kept: d.Own})
	}
	return all
}

// hostedModels lists what the agent of a provider can be set to: its own choice, and what it offered when it ran.
func (m *models) hostedModels(spec agentSpec) []session.ModelInfo {
	known := m.seen(spec)
	may := true
	own := session.ModelInfo{Provider: spec.Provider, ID: ownModel, Name: spec.Provider, API: settings.ACP, Images: known.Images, Efforts: known.Efforts}
	if own.Images == nil { // it is asked when it runs
		own.Images = &may
	}
	out := []session.ModelInfo{own}
	for _, info := range known.Models {
		if info.ID != ownModel {
			info.Provider = spec.Provider
			out = append(out, info)
		}
	}
	return out
}

// hostedInfo tells what is known of a model of the agent of a provider.
func (m *models) hostedInfo(spec agentSpec, model string) session.ModelInfo {
	all := m.hostedModels(spec)
	for _, info := range all {
		if info.ID == model {
			return info
		}
	}
	all[0].ID, all[0].Name = model, model
	return all[0]
}

// seen is what is known of an agent; nothing where none can run here.
func (m *models) seen(spec agentSpec) (k agentKnown) {
	if m.hosts != nil {
		k, _ = m.hosts.Known(spec)
	}
	return k
}

// agentOf reads --agent and --pass-env.
func agentOf(line string, pass []string) (*agentSpec, error) {
	words, err := splitWords(line)
	if err != nil {
		return nil, fmt.Errorf("--agent: %w", err)
	}
	spec := &agentSpec{Provider: flagAgent, Command: words[0], Args: words[1:], FS: true, Terminal: true}
	for _, names := range pass {
		for _, name := range strings.Split(names, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(spec.PassEnv, name) {
				if strings.ContainsAny(name, "= ") {
					return nil, fmt.Errorf("--pass-env takes names of variables, not %q", name)
				}
				spec.PassEnv = append(spec.PassEnv, name)
			}
		}
	}
	return spec, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/record"
	"github.com/rind-dev/rind/session/settings"
)

// models finds models by the settings, which it reads anew each time, so that a key that was just added works.
type models struct {
	*configuration
	redact *record.Log
	demo   bool // nothing is configured and a person typed the command
	agent  *agentSpec
	hosts  *agentHosts

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
	set, err := m.settings()
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
		return session.Selected{Info: m.hostedInfo(*m.agent, sel.Model), Scripted: true}, nil
	}
	p, _, err := m.provider(sel.Provider)
	if err != nil {
		return session.Selected{}, configFault(err)
	}
	if p.Type == settings.ACP {
		return session.Selected{Info: m.hostedInfo(specOf(p), sel.Model), Scripted: true}, nil
	}
	info := session.ModelInfo{Provider: p.Name, ID: sel.Model, Name: sel.Model, API: p.Type, Window: p.ContextWindow, Images: p.Images}
	switch p.Type {
	case settings.Demo:
		return session.Selected{Model: demoModel(), Info: info, Scripted: true}, nil
	case settings.Script:
		model, err := scriptModel(p)
		if err != nil {
			return session.Selected{}, configFault(err)
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
	model, err := remoteModel(p, key.Value)
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
		return m.hostedModels(*m.agent), "", nil
	}
	set, err := m.settings()
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

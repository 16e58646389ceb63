package settings

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

// Names and addresses of what is built in.
const (
	DefaultProvider = "openai-compatible"
	DefaultBaseURL  = "https://api.openai.com/v1"
	DefaultModel    = "gpt-4o-mini"
)

// Env looks an environment variable up, as os.LookupEnv does. A variable that is set to "" counts as not set.
type Env func(name string) (string, bool)

func (e Env) value(name string) string {
	if e == nil {
		return ""
	}
	v, _ := e(name)
	return v
}

// Provider is who answers, ready to be connected to.
type Provider struct {
	Name            string
	Type            string            // OpenAIChat … Demo
	BaseURL         string            // "" for acp, script and demo
	APIKey          *string           // as the file has it: nil for not set, "" for none needed, "$NAME" for a variable
	Keyring         bool              // its key is in the system's keyring
	Model           string            // "" for acp: the agent's own
	Headers         map[string]string // of each request
	CAFile          string
	ReasoningEffort string
	ContextWindow   int // tokens; 0 for what is known of the model
	Images          *bool
	Command         string // acp
	Args            []string
	Env             map[string]string
	PassEnv         []string
	AuthMethod      string
	ClientFS        bool
	ClientTerminal  bool
	Script          string // path, of script
	Variable        string // environment variable that holds its key where APIKey is nil; "" for none

	settings string // path of the file, for texts
	stored   Stored
}

// builtin are the providers that need no entry: the names one may write as `provider`, in the order in which their variables are
// looked for.
var builtin = []Provider{
	{Name: "openai", Type: OpenAIResponses, BaseURL: DefaultBaseURL, Model: DefaultModel, Variable: "OPENAI_API_KEY"},
	{
		Name: "anthropic", Type: Anthropic, BaseURL: "https://api.anthropic.com", Model: "claude-sonnet-5-5", Variable: "ANTHROPIC_API_KEY",
	},
	{
		Name: "openrouter", Type: OpenAIChat, BaseURL: "https://openrouter.ai/api/v1", Model: "openai/gpt-4o-mini",
		Variable: "OPENROUTER_API_KEY",
	},
}

// KeyVariables are the environment variables that select a provider when the settings name none, first one first.
func KeyVariables() []string {
	var names []string
	for _, b := range builtin {
		names = append(names, b.Variable)
	}
	return names
}

// Configured tells whether the file says who answers: it has a provider, a baseUrl, an apiKey, be it "", or a key
// in the keyring.
func (s Settings) Configured() bool {
	return s.doc.Provider != nil || s.doc.BaseURL != nil || s.doc.APIKey != nil || or(s.doc.Keyring, false)
}

// Selected gives the provider in use. variable is the environment variable that selected it, "" where the settings or their defaults
// did: to be logged, and told on stderr where a person typed the command. The error is a ConfigurationError, of a provider
// that is named but not described; a missing key is none (see Key).
func (s Settings) Selected(env Env) (p Provider, variable string, err error) {
	if !s.Configured() {
		for _, b := range builtin {
			if env.value(b.Variable) != "" {
				if s.doc.API != nil && b.Type != Anthropic {
					b.Type = *s.doc.API
				}
				return s.finish(b, s.doc.entry, true), b.Variable, nil
			}
		}
	}
	p, err = s.Named(or(s.doc.Provider, DefaultProvider))
	return p, "", err
}

// Named gives a provider by name: an entry of `providers`, one that is built in, or the one the top level describes. The error is a
// ConfigurationError.
func (s Settings) Named(name string) (Provider, error) {
	selected := name == or(s.doc.Provider, DefaultProvider)
	if n, ok := s.doc.Providers[name]; ok {
		return s.entry(name, n, selected)
	}
	// The members beside `provider` describe the provider it names, and no other.
	var flat entry
	if selected {
		flat = s.doc.entry
	}
	for _, b := range builtin {
		if b.Name == name {
			if s.doc.API != nil && selected {
				b.Type = *s.doc.API
			}
			return s.finish(b, flat, selected), nil
		}
	}
	if name == Demo {
		return s.finish(Provider{Name: name, Type: Demo, Model: Demo}, entry{Model: flat.Model}, selected), nil
	}
	if name != DefaultProvider && (!selected || flat.BaseURL == nil && flat.APIKey == nil && !or(flat.Keyring, false)) {
		return Provider{}, protocol.Errorf(protocol.ConfigurationError,
			"Provider %s is not described in %s: add it under providers, or set baseUrl.", quote(name), s.where())
	}
	base := Provider{
		Name: name, Type: or(s.doc.API, OpenAIChat), BaseURL: DefaultBaseURL, Model: DefaultModel, Variable: "OPENAI_API_KEY",
	}
	if base.Type == Anthropic {
		base.BaseURL, base.Model, base.Variable = builtin[1].BaseURL, builtin[1].Model, builtin[1].Variable
	}
	return s.finish(base, flat, selected), nil
}

// entry makes a provider of an entry of `providers`.
func (s Settings) entry(name string, n named, selected bool) (Provider, error) {
	p := Provider{Name: name, Type: or(n.Type, OpenAIChat)}
	switch p.Type {
	case OpenAIChat, OpenAIResponses:
		p.BaseURL, p.Model, p.Variable = DefaultBaseURL, DefaultModel, "OPENAI_API_KEY"
	case Anthropic:
		p.BaseURL, p.Model, p.Variable = builtin[1].BaseURL, builtin[1].Model, builtin[1].Variable
	case ACP:
		if n.Command == nil {
			return Provider{}, s.lacks(name, "command")
		}
	case Script:
		if n.Script == nil {
			return Provider{}, s.lacks(name, "script")
		}
		p.Model = Script
	case Demo:
		p.Model = Demo
	}
	for _, b := range builtin {
		if b.Name == name && n.Type == nil {
			p = b
		}
	}
	p.Command, p.Args, p.Env, p.PassEnv = or(n.Command, ""), slices.Clone(n.Args), maps.Clone(n.Env), slices.Clone(n.PassEnv)
	p.AuthMethod, p.ClientFS, p.ClientTerminal = or(n.AuthMethod, ""), or(n.ClientFS, true), or(n.ClientTerminal, true)
	p.Script = s.beside(or(n.Script, ""))
	return s.finish(p, n.entry, selected), nil
}

func (s Settings) lacks(name, key string) error {
	return protocol.Errorf(protocol.ConfigurationError,
		"Provider %s in %s has no %s: run rind config set providers.%s.%s VALUE.", quote(name), s.where(), key, name, key)
}

// finish lays e over a provider's defaults. The model and effort beside `provider` are the selection a person made: they win over
// those of the entry, but only for the provider that is selected.
func (s Settings) finish(p Provider, e entry, selected bool) Provider {
	p.settings, p.stored = s.where(), s.stored
	if e.BaseURL != nil && *e.BaseURL != p.BaseURL {
		// A key from the environment goes to the address it was made for, and to no other.
		p.BaseURL, p.Variable = *e.BaseURL, ""
	}
	p.APIKey, p.Keyring = e.APIKey, or(e.Keyring, false)
	p.Model = or(e.Model, p.Model)
	p.ReasoningEffort = or(e.ReasoningEffort, p.ReasoningEffort)
	p.Headers = maps.Clone(e.Headers)
	p.CAFile = s.beside(or(e.CAFile, ""))
	p.ContextWindow = or(e.ContextWindow, 0)
	p.Images = e.Images
	if selected {
		p.Model = or(s.doc.Model, p.Model)
		p.ReasoningEffort = or(s.doc.ReasoningEffort, p.ReasoningEffort)
	}
	return p
}

// beside makes a path of the file absolute: it counts from the file's folder.
func (s Settings) beside(path string) string {
	if path == "" || s.Path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.Path), path)
}

func (s Settings) where() string {
	if s.Path == "" {
		return FileName
	}
	return s.Path
}

// Names lists the providers one can select, sorted: the entries of `providers`, those built in whose key is in the environment, and
// the selected one.
func (s Settings) Names(env Env) []string {
	names := map[string]bool{}
	for n := range s.doc.Providers {
		names[n] = true
	}
	for _, b := range builtin {
		if env.value(b.Variable) != "" {
			names[b.Name] = true
		}
	}
	if p, _, err := s.Selected(env); err == nil {
		names[p.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// DemoAllowed tells whether the demo model may answer a person who typed `rind prompt` or `rind chat`: nothing says who else should.
// modelFlag is the value of --model. Surfaces that programs talk to never ask.
func DemoAllowed(s Settings, env Env, modelFlag string) bool {
	if s.Configured() || modelFlag != "" {
		return false
	}
	return !slices.ContainsFunc(KeyVariables(), func(v string) bool { return env.value(v) != "" })
}

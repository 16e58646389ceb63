package settings

import (
	"errors"
	"maps"
	"net/url"
	"slices"

	"github.com/rind-dev/rind/protocol"
)

// Where a key came from.
const (
	FromSettings = "settings"
	FromKeyring  = "keyring"
	FromNowhere  = "none" // no key is needed, and none is to be sent; or there is none
)

// Key is a provider's key and where it came from: FromSettings, FromKeyring, "$NAME" for a variable, or FromNowhere.
type Key struct{ Value, Source string }

// Stored looks up a key that rind login put into the system's keyring, for a provider and the address it is sent to. It may take as long
// as the keyring does, and is asked only for what has `keyring` set and no variable.
type Stored func(provider, baseURL string) (string, error)

// WithKeyring gives the settings a keyring to look keys up in. Without one, a key that is there is missing.
func (s Settings) WithKeyring(f Stored) Settings {
	s.stored = f
	return s
}

// Key finds the provider's key: an apiKey that names a variable, or says that none is needed, is followed; else the variable of a built-in
// provider wins over the keyring, and that over the settings. Where there is none the error is a ConfigurationError that names the
// variable and rind login; it fails the turn, not the start.
func (p Provider) Key(env Env) (Key, error) {
	source, err := p.Source(env)
	if err != nil {
		return Key{}, err
	}
	switch source {
	case FromNowhere:
		return Key{Source: source}, nil
	case FromSettings:
		return Key{*p.APIKey, source}, nil
	case FromKeyring:
		err := errors.New("it cannot be asked here")
		var value string
		if p.stored != nil {
			value, err = p.stored(p.Name, p.BaseURL)
		}
		if err != nil || value == "" {
			return Key{}, &protocol.Error{
				Kind: protocol.ConfigurationError, Cause: err,
				Message: "No API key for provider " + p.Name + ": the system's keyring did not give it out. Unlock the keyring, or run rind login " + p.Name + ".",
			}
		}
		return Key{value, source}, nil
	}
	return Key{env.value(source[1:]), source}, nil
}

// Source tells where Key would find the key, without asking the keyring: for what only shows it. Errors are those of Key.
func (p Provider) Source(env Env) (string, error) {
	if !p.NeedsKey() {
		return FromNowhere, nil
	}
	if p.APIKey != nil {
		switch {
		case *p.APIKey == "":
			return FromNowhere, nil
		case variable().MatchString(*p.APIKey):
			return p.fromEnv((*p.APIKey)[1:], env)
		}
	}
	switch {
	case p.Variable != "" && env.value(p.Variable) != "":
		return "$" + p.Variable, nil
	case p.Keyring:
		return FromKeyring, nil
	case p.APIKey != nil:
		return FromSettings, nil
	case p.Variable != "":
		return p.fromEnv(p.Variable, env)
	}
	return "", protocol.Errorf(protocol.ConfigurationError,
		`No API key for provider %s: %s has no apiKey for it. Set it to "$NAME" (a variable such as OPENAI_API_KEY), to "" if none is needed, or run rind login %s.`,
		p.Name, p.settings, p.Name)
}

// NeedsKey tells whether the provider's type is one that is asked with a key at all.
func (p Provider) NeedsKey() bool { return p.Type != ACP && p.Type != Script && p.Type != Demo }

func (p Provider) fromEnv(name string, env Env) (string, error) {
	if env.value(name) != "" {
		return "$" + name, nil
	}
	return "", protocol.Errorf(protocol.ConfigurationError,
		"No API key for provider %s: %s is not set in the environment of this process. Set it, or run rind login %s.", p.Name, name, p.Name)
}

// Secrets lists what must never be shown of a provider, but for what is in the keyring, which is not asked: its keys, the values of its
// headers and variables, and the password in its address.
func (p Provider) Secrets(env Env) []string {
	var out []string
	add := func(v string) {
		if v != "" {
			out = append(out, v)
		}
	}
	if p.APIKey != nil && !variable().MatchString(*p.APIKey) {
		add(*p.APIKey)
	}
	if source, err := p.Source(env); err == nil && source[0] == '$' {
		add(env.value(source[1:]))
	}
	for _, m := range []map[string]string{p.Headers, p.Env} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			add(m[k])
		}
	}
	if u, err := url.Parse(p.BaseURL); err == nil && u.User != nil {
		pw, _ := u.User.Password()
		add(pw)
	}
	return out
}

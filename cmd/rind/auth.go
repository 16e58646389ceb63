package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/keyring"
	"github.com/rind-dev/rind/session/settings"
)

const (
	tryWait  = 30 * time.Second // for the provider, to say whether it takes a key
	ringWait = time.Minute      // for the keyring while a person logs in, who may have to unlock it
)

// logins logs in to providers and out, for rind login and for clients. It always concerns the user's own settings: a workspace's are not
// written to, and its providers get no key.
type logins struct{ rt *process }

var _ dispatcher.Auth = (*logins)(nil)

func (rt *process) logins() *logins { return &logins{rt} }

// Places of a key, as --store names them.
const (
	storeKeyring = "keyring"
	storeFile    = "file"
)

// attempt is a key that is to be kept.
type attempt struct {
	provider settings.Provider
	key      string
	untried  bool
	store    string // storeKeyring, storeFile; "" for the keyring where there is one
	progress func(string)
}

// kept is where a key went.
type kept struct {
	models int
	source string   // settings.FromKeyring, settings.FromSettings
	notes  []string // what a person should know besides
}

// provider finds one that takes a key, in the user's settings.
func (l *logins) provider(name string) (settings.Provider, error) {
	set, err := settings.Load(l.rt.path)
	if err != nil {
		return settings.Provider{}, err
	}
	p, err := set.WithKeyring(l.rt.keys.key).Named(name)
	if err == nil && !p.NeedsKey() {
		err = protocol.Errorf(protocol.InvalidRequest, "Provider %s is of type %s, which takes no key.", p.Name, p.Type)
	}
	return p, err
}

// Providers implements dispatcher.Auth.
func (l *logins) Providers() []dispatcher.Provider {
	set, err := l.rt.settings()
	if err != nil {
		return []dispatcher.Provider{}
	}
	names := append(set.Names(l.rt.env), set.Login(l.rt.env)...)
	slices.Sort(names)
	return l.rt.rows(slices.Compact(names))
}

// Login implements dispatcher.Auth.
func (l *logins) Login(ctx context.Context, in dispatcher.Login) (dispatcher.LoggedIn, error) {
	p, err := l.provider(in.Provider)
	if err != nil {
		return dispatcher.LoggedIn{}, err
	}
	key, err := in.Ask("secret", "API key for "+p.Name+" ("+hostOf(p.BaseURL)+")", nil)
	if err != nil {
		return dispatcher.LoggedIn{}, err
	}
	k, err := l.keep(ctx, attempt{provider: p, key: key, progress: in.Progress})
	if err != nil {
		return dispatcher.LoggedIn{}, err
	}
	for _, n := range k.notes {
		in.Progress(n)
	}
	return dispatcher.LoggedIn{Models: k.models, Selection: l.rt.all.Default(in.Workspace)}, nil
}

// keep tries a key and keeps it. Errors are told: they hold no key.
func (l *logins) keep(ctx context.Context, a attempt) (kept, error) {
	a.key = strings.TrimSpace(a.key)
	l.rt.record.Add(a.key)
	switch {
	case a.key == "":
		return kept{}, protocol.Errorf(protocol.InvalidRequest, "No key was given.")
	case strings.HasPrefix(a.key, "$") || strings.ContainsFunc(a.key, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return kept{}, protocol.Errorf(protocol.InvalidRequest, "That is no key: it has spaces or control characters in it, or begins with $.")
	}
	var k kept
	if !a.untried {
		a.progress("Trying the key with " + hostOf(a.provider.BaseURL) + ".")
		var err error
		if k.models, err = l.try(ctx, a.provider, a.key); err != nil {
			return kept{}, err
		}
	}
	if err := l.rt.change(ctx, func() error { return l.put(ctx, a, &k) }); err != nil {
		return kept{}, err
	}
	if source, err := a.provider.Source(l.rt.env); err == nil && strings.HasPrefix(source, "$") && a.provider.APIKey == nil {
		k.notes = append(k.notes, source+" is set in this environment and wins over the key that was kept.")
	}
	return k, nil
}

// try asks the provider, through the code that turns use: for its list of models, or where that says nothing of a key for one word.
func (l *logins) try(ctx context.Context, p settings.Provider, key string) (models int, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryWait)
	defer cancel()
	p.APIKey, p.Variable, p.Keyring = &key, "", false
	listed, err := l.rt.models.listRemote(ctx, p)
	fault := session.Fault("")
	if e, ok := errors.AsType[*session.ModelError](err); ok {
		fault = e.Fault
	}
	public := strings.HasSuffix(hostOf(p.BaseURL), "openrouter.ai") // whose list is open to all
	if err == nil && public || fault == session.FaultModel || fault == session.FaultBadReply {
		err = l.word(ctx, p)
	}
	switch {
	case err == nil:
		return len(listed), nil
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return 0, context.Cause(ctx)
	}
	if e, ok := errors.AsType[*session.ModelError](err); ok {
		fault = e.Fault
	}
	if fault == session.FaultAuth {
		return 0, protocol.Errorf(protocol.ProviderError, "Provider %s does not take this key: %s", p.Name, oneLine(messageOf(err)))
	}
	return 0, protocol.Errorf(protocol.ProviderError, "The key could not be tried with provider %s: %s 'rind login --no-test' keeps a key untried.", p.Name, ended(oneLine(messageOf(err))))
}

// ended is a text with a full stop.
func ended(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// word asks for one word; the first piece of an answer is enough.
func (l *logins) word(ctx context.Context, p settings.Provider) error {
	model, err := l.rt.models.remote(p)
	if err != nil {
		return err
	}
	for _, err := range model.Generate(ctx, session.ModelRequest{
		Model: p.Model, MaxOutput: 16, Messages: []session.Message{{Role: session.RoleUser, Text: "Say ok."}},
	}) {
		return err
	}
	return nil
}

// put writes the key to its place.
func (l *logins) put(ctx context.Context, a attempt, k *kept) error {
	account := keyring.Account(a.provider.Name, a.provider.BaseURL)
	defer l.rt.keys.forget(account)
	ring, err := keyring.System(l.rt.env)
	if a.store == storeKeyring && err != nil {
		return protocol.Errorf(protocol.ConfigurationError, "There is no keyring here to keep the key in. Leave out --store, and it goes into %s.", l.rt.path)
	}
	if err == nil && a.store != storeFile {
		switch err = setAndSee(ctx, ring, account, a.key); {
		case err == nil:
			k.source = settings.FromKeyring
			return settings.SetKey(l.rt.path, a.provider.Name, "")
		case a.store == storeKeyring || ctx.Err() != nil:
			return protocol.Errorf(protocol.ConfigurationError, "The keyring did not keep the key: %s", oneLine(err.Error()))
		}
		k.notes = append(k.notes, "The keyring did not keep the key, so it is in "+l.rt.path+": "+oneLine(err.Error()))
	}
	if err := settings.SetKey(l.rt.path, a.provider.Name, a.key); err != nil {
		return err
	}
	k.source = settings.FromSettings
	if a.provider.Keyring && ring != nil { // an older one there is of no use any more
		ctx, cancel := context.WithTimeout(ctx, ringWait)
		defer cancel()
		_, _ = ring.Delete(ctx, account)
	}
	return nil
}

// setAndSee puts a key into a keyring and looks whether it comes out again.
func setAndSee(ctx context.Context, ring keyring.Ring, account, key string) error {
	ctx, cancel := context.WithTimeout(ctx, ringWait)
	defer cancel()
	if err := ring.Set(ctx, account, key); err != nil {
		return err
	}
	back, err := ring.Get(ctx, account)
	if err == nil && back != key {
		err = errors.New("what comes out is not what was put in")
	}
	if err != nil {
		_, _ = ring.Delete(ctx, account)
	}
	return err
}

// Logout implements dispatcher.Auth.
func (l *logins) Logout(ctx context.Context, name string) (deleted bool, source string, err error) {
	p, err := l.provider(name)
	if err != nil {
		return false, "", err
	}
	err = l.rt.change(ctx, func() (err error) {
		deleted, err = l.drop(ctx, p)
		return err
	})
	if err != nil {
		return false, "", err
	}
	source = settings.FromNowhere
	if p, err = l.provider(name); err == nil {
		if from, err := p.Source(l.rt.env); err == nil {
			source = from
		}
	}
	return deleted, source, nil
}

// drop removes the key from where it is.
func (l *logins) drop(ctx context.Context, p settings.Provider) (deleted bool, err error) {
	account := keyring.Account(p.Name, p.BaseURL)
	if p.Keyring {
		ring, err := keyring.System(l.rt.env)
		if err == nil {
			ctx, cancel := context.WithTimeout(ctx, ringWait)
			defer cancel()
			_, err = ring.Delete(ctx, account)
		}
		if err != nil && !errors.Is(err, keyring.ErrNone) { // without a keyring there is no key in it
			return false, protocol.Errorf(protocol.ConfigurationError, "The key of %s is still in the keyring: %s", p.Name, oneLine(err.Error()))
		}
	}
	l.rt.keys.forget(account)
	inFile, inRing, err := settings.DropKey(l.rt.path, p.Name)
	return inFile || inRing, err
}

// hostOf is the host of an address, for texts.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "its address"
	}
	return u.Host
}

// placeOf names where a key is, for texts.
func (l *logins) placeOf(source string) string {
	switch source {
	case settings.FromKeyring:
		return "the system's keyring"
	case settings.FromSettings:
		return l.rt.path
	case settings.FromNowhere:
		return "nowhere"
	}
	return fmt.Sprintf("the environment (%s)", source)
}

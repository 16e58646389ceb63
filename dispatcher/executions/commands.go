// Package executions is what the portable execution protocol (docs/protocol/portable-2026-09-02.md) asks of the sessions, whatever carries it:
// HTTP, or the lines of an editor. It knows the providers, finds conversations and executions by their ids, and answers with the objects of
// that protocol, each folded from the log; it keeps nothing itself.
//
// What is asked of an execution takes its place in the order of asking; only the answer is waited for. Errors are those of protocol/portable,
// or such as its table knows. It owns no goroutine.
package executions

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// Provider answers executions. Runner nil is the agent of the sessions, on the serial lane.
type Provider struct {
	Manifest portable.Manifest
	Runner   session.Runner
	// Hosted is what the agent of the sessions is set to for it: an agent that is hosted. nil leaves that to the session.
	Hosted *session.Selection
	// Now returns the manifest as it is now, where that changes; nil where it does not. It must not block.
	Now func() portable.Manifest
}

// manifest is what the provider is known to do.
func (p *Provider) manifest() portable.Manifest {
	if p.Now != nil {
		return p.Now()
	}
	return p.Manifest
}

// Config is what Commands are made of. Sessions is required.
type Config struct {
	Sessions  *session.Sessions
	Providers []Provider
	// Hosted are further providers as the settings have them now; nil for none. It must not block for long.
	Hosted  func() []Provider
	Version string // of the runtime
	Keep    bool   // keep sessions open after their use, for the next request; Close lets go of them
}

// Commands are those of the protocol. Safe for concurrent use.
type Commands struct {
	cfg   Config
	kept  kept
	found found
}

// New makes the commands.
func New(cfg Config) *Commands { return &Commands{cfg: cfg} }

// providers are all there are now.
func (c *Commands) providers() []Provider {
	if c.cfg.Hosted == nil {
		return c.cfg.Providers
	}
	return slices.Concat(c.cfg.Providers, c.cfg.Hosted())
}

func (c *Commands) provider(id string) *Provider {
	for _, list := range []func() []Provider{func() []Provider { return c.cfg.Providers }, c.providers} { // the settings are read where they are needed
		all := list()
		for i := range all {
			if all[i].Manifest.ID == id {
				return &all[i]
			}
		}
	}
	return nil
}

// Describe describes the runtime and its providers.
func (c *Commands) Describe() portable.Description {
	d := portable.Description{Name: "rind", Version: c.cfg.Version, ProtocolVersion: portable.Version, Providers: []portable.Manifest{}}
	for _, p := range c.providers() {
		d.Providers = append(d.Providers, p.manifest())
	}
	return d
}

// Create makes a conversation, which is a session for good, in a workspace.
func (c *Commands) Create(ctx context.Context, metadata json.RawMessage, workspace string) (session.Meta, error) {
	s, err := c.cfg.Sessions.Draft(ctx, session.DraftOptions{Workspace: workspace})
	if err != nil {
		return session.Meta{}, err
	}
	defer s.Close()
	if err := s.Keep(ctx, metadata); err != nil {
		return session.Meta{}, err
	}
	meta, err := c.cfg.Sessions.Store().Session(ctx, s.ID)
	return meta, Stored(err)
}

// Conversation finds the session of a conversation, also one that is a draft yet.
func (c *Commands) Conversation(ctx context.Context, id string) (session.Meta, error) {
	meta, err := c.cfg.Sessions.Conversation(ctx, id)
	if missing(err) {
		return meta, portable.ConversationNotFound(id)
	}
	return meta, Stored(err)
}

// ConversationOf finds the conversation of a session, also of a draft that is open here.
func (c *Commands) ConversationOf(ctx context.Context, id session.SessionID) (session.Meta, error) {
	meta, err := c.cfg.Sessions.Described(ctx, id)
	if missing(err) {
		return meta, portable.ConversationNotFound(string(id))
	}
	return meta, Stored(err)
}

// Show is a conversation as clients see it.
func Show(meta *session.Meta) portable.Conversation {
	return portable.NewConversation(meta.ConversationID, meta.Created, meta.Metadata)
}

// missing reports whether an error of the sessions or the store says that something is not there.
func missing(err error) bool {
	return errors.Is(err, session.ErrNotFound) || protocol.KindOf(err) == protocol.SessionNotFound
}

// Stored turns an error of the store into what is told.
func Stored(err error) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok || err == nil {
		return err
	}
	for _, known := range []error{session.ErrLocked, session.ErrFull, session.ErrReadOnly, session.ErrCorrupt, session.ErrNewer, session.ErrClosed} {
		if errors.Is(err, known) {
			return &protocol.Error{Kind: protocol.PersistenceError, Message: "Storage is unavailable", Cause: err}
		}
	}
	return err
}

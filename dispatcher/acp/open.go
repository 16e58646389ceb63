package acp

import (
	"context"
	"slices"
	"time"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// modelsWithin is how long session/new waits for the list of models; what comes later is told as an update.
const modelsWithin = 300 * time.Millisecond

// greetingAfter is how long after the answer to session/load its commands are told, unless something live comes before: clients that take in
// what they read together with the answer as history must not take these for a part of it.
const greetingAfter = 250 * time.Millisecond

// openParams reads the params of the methods that open a session, and finds its folder.
func (k *call) openParams(existing bool) (p acp.OpenParams, workspace string, err error) {
	if p, err = acp.ReadOpen(k.params, existing); err != nil {
		return p, "", err
	}
	if err := checkServers(p.Servers); err != nil {
		return p, "", err
	}
	if workspace, err = k.c.d.cfg.Resolve(p.CWD); err != nil {
		err = acp.Bad("cwd is no folder that exists: %s", protocol.Prefix(p.CWD, 300))
	}
	return p, workspace, err
}

// maxRoots bounds the further folders of a session: each costs a handle in every call of a file tool.
const maxRoots = 32

// further are the folders that additionalDirectories name, links resolved. Of a session that is there already those that are gone are left
// out: it must not become unusable with them.
func (k *call) further(p acp.OpenParams, workspace string, existing bool) ([]string, error) {
	if len(p.Roots) > maxRoots {
		return nil, acp.Bad("additionalDirectories has more than %d folders.", maxRoots)
	}
	out := []string{}
	for _, named := range p.Roots {
		abs, err := k.c.d.cfg.Resolve(named)
		switch {
		case err != nil && !existing:
			return nil, acp.Bad("additionalDirectories: no folder that exists: %s", protocol.Prefix(named, 300))
		case err != nil:
			k.c.d.cfg.Log.Warn("additional directory is gone", "dir", named)
		case abs != workspace && !slices.Contains(out, abs):
			out = append(out, abs)
		}
	}
	return out, nil
}

func sessionNew(k *call) {
	p, workspace, err := k.openParams(false)
	var roots []string
	if err == nil {
		roots, err = k.further(p, workspace, false)
	}
	if err != nil {
		k.Fail(err)
		return
	}
	k.Background(func() {
		all := k.c.d.cfg.Sessions
		sel := all.Default(workspace)
		if _, err := all.Models().Select(context.Background(), sel); err != nil {
			k.Fail(err)
			return
		}
		k.c.d.models.wait(modelsWithin)
		s, err := all.Draft(context.Background(), session.DraftOptions{Workspace: workspace, Roots: roots, Surface: surface})
		if err == nil {
			if err = s.Keep(context.Background(), nil); err != nil {
				s.Close()
			}
		}
		if err != nil {
			k.Fail(err)
			return
		}
		k.opensNew(s, p)
	})
}

// opensNew answers with a session that was just made, taking over the caller's reference.
func (k *call) opensNew(s *session.Session, p acp.OpenParams) {
	k.opens(s, p, func(v *session.View) {
		f := k.c.newFollow(v, v.Head)
		if f == nil {
			k.Fail(notOpen(s.ID))
			return
		}
		res := k.c.state(v)
		res.Session = s.ID
		k.answerThenFollow(res, p, f)
	})
}

// sessionFork copies a session up to its head into a new one (docs/protocol/acp.md section 2.2).
func sessionFork(k *call) {
	s, p, roots, err := k.stored()
	if err != nil {
		k.Fail(err)
		return
	}
	k.Background(func() {
		defer s.Close()
		f, err := s.ForkWith(context.Background(), "", &roots)
		if err != nil {
			k.Fail(err)
			return
		}
		k.opensNew(f, p)
	})
}

// opens enters a session as open here, taking over the caller's reference, and answers on its goroutine.
func (k *call) opens(s *session.Session, p acp.OpenParams, f func(v *session.View)) {
	c := k.c
	names := map[string]string{s.Workspace(): p.CWD}
	for _, named := range p.Roots {
		if abs, err := c.d.cfg.Resolve(named); err == nil {
			names[abs] = named
		}
	}
	c.mu.Lock()
	before := c.open[s.ID]
	c.open[s.ID] = &opened{s: s, cwd: p.CWD, roots: p.Roots, names: names}
	c.mu.Unlock()
	if before != nil {
		before.s.Close()
	}
	c.d.sweepOnce()
	if !s.Inspect(f) {
		k.Fail(notOpen(s.ID))
	}
}

// stored opens a session of the store, whose folder must be the one that is named.
func (k *call) stored() (*session.Session, acp.OpenParams, []string, error) {
	p, workspace, err := k.openParams(true)
	var roots []string
	if err == nil {
		roots, err = k.further(p, workspace, true)
	}
	if err != nil {
		return nil, p, nil, err
	}
	s, err := k.c.d.cfg.Sessions.Open(context.Background(), p.Session)
	if err != nil {
		return nil, p, nil, err
	}
	if s.Workspace() != workspace {
		s.Close()
		return nil, p, nil, acp.Bad("cwd is not the folder of this session: %s", s.Workspace())
	}
	return s, p, roots, nil
}

// usable refuses to open a session where no model can be asked: neither its own nor the one new sessions get.
func (k *call) usable(s *session.Session) error {
	ctx, all := context.Background(), k.c.d.cfg.Sessions
	var sel session.Selection
	if err := s.InspectNow(ctx, func(v *session.View) { sel = v.Sel }); err != nil {
		return notOpen(s.ID)
	}
	_, err := all.Models().Select(ctx, sel)
	if err != nil {
		if _, other := all.Models().Select(ctx, all.Default(s.Workspace())); other == nil {
			return nil // the model can be changed
		}
	}
	return err
}

// reopened is stored for the methods that go on with the session, in the folders they name.
func (k *call) reopened() (*session.Session, acp.OpenParams, error) {
	s, p, roots, err := k.stored()
	if err != nil {
		return nil, p, err
	}
	if err := k.usable(s); err != nil {
		s.Close()
		return nil, p, err
	}
	s.SetRoots(roots)
	return s, p, nil
}

// sessionLoad tells the whole log up to where it stands, then answers, then goes live.
func sessionLoad(k *call) {
	s, p, err := k.reopened()
	if err != nil {
		k.Fail(err)
		return
	}
	k.opens(s, p, func(v *session.View) {
		f := k.replayed(v, p)
		if f == nil {
			return
		}
		res := k.c.state(v)
		if !k.Answer(func() {
			k.c.serve(s, p)
			k.c.out.Follow(string(s.ID), f, &outlet.Hold{
				Stream: string(s.ID), Seq: v.Head, Exact: true, Until: replaying, ID: k.ID,
				Reply: func(outlet.Stream) (any, error) { return res, nil },
				Written: func() {
					f.askAll()
					lines := f.commands()
					f.greeting.Store(&lines)
					time.AfterFunc(greetingAfter, f.greeted)
				},
			})
		}) {
			f.Close() // it was taken back meanwhile
			return
		}
		k.c.lateOptions(s)
	})
}

// sessionResume answers without history; with a cursor, what is missing follows the answer.
func sessionResume(k *call) {
	s, p, err := k.reopened()
	if err == nil && k.c.draft() {
		var after *session.Seq
		if after, err = acp.ReadReplayFrom(k.params); after != nil {
			p.After = after
		}
		if err != nil {
			s.Close()
		}
	}
	if err != nil {
		k.Fail(err)
		return
	}
	k.opens(s, p, func(v *session.View) {
		if p.After != nil {
			f := k.replayed(v, p)
			if f == nil {
				return
			}
			f.late = true
			if f.head == 0 || f.At == f.head && v.Serial == nil && len(f.open.Asks) == 0 { // nothing is missing
				f.head = 0
				f.teller.EndReplay(nil, f.open)
			}
			k.answerThenFollow(k.c.state(v), p, f)
			return
		}
		f := k.c.newFollow(v, v.Head)
		if f == nil {
			k.Fail(notOpen(s.ID))
			return
		}
		if t := v.Serial; t != nil {
			message, text := v.OpenMessage()
			f.teller.Resume(t.ID, message, text)
			for _, c := range t.Calls {
				if !c.Done {
					f.teller.Known(t.ID, c.ID, c.Name, c.Arguments)
				}
			}
		}
		f.join = openAsks(v)
		if note := openTurn(v); note != nil && note.Status != session.OutcomeWaiting {
			f.join = nil // nobody would go on with it
		}
		k.answerThenFollow(k.c.state(v), p, f)
	})
}

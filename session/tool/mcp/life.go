package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/rind-dev/rind/session"
)

// lasting marks an error that trying again at once does not cure.
type lasting struct{ error }

func (e *lasting) Unwrap() error { return e.error }

var errResting = errors.New("nobody has had its tools for a while")

// live connects, and again whenever the connection is lost, until the server's ctx ends.
func (s *server) live() {
	defer s.timer.Stop()
	s.mu.Lock()
	usable := s.state == StateStarting // it is not disabled, and its entry can be used
	s.begun = time.Now()
	s.mu.Unlock()
	if !usable {
		return
	}
	var starts []time.Time // those that count against restarts, oldest first
	fails := 0
	for s.ctx.Err() == nil {
		began := time.Now()
		starts = append(starts, began)
		err := s.connected(s.ctx)
		if s.ctx.Err() != nil {
			break
		}
		if s.rests() {
			s.log.Info("mcp server rests")
			starts, fails = nil, 0
			s.park()
			continue
		}
		s.log.Warn("mcp server is not connected", "err", s.quiet(err.Error(), 250))
		if _, ok := errors.AsType[*lasting](err); ok {
			s.give(err.Error())
			starts, fails = nil, 0
			continue
		}
		if fails++; time.Since(began) > time.Minute {
			fails = 1
		}
		wait := time.Duration(min(1<<min(fails-1, 10), longestPause)) * s.cfg.second
		state := StateRestarting
		for len(starts) > 0 && time.Since(starts[0]) > restartWindow/time.Second*s.cfg.second {
			starts = starts[1:]
		}
		if len(starts) > restarts { // too often: not before the oldest start is out of sight
			wait, state = time.Until(starts[0].Add(restartWindow/time.Second*s.cfg.second)), StateFailed
			s.log.Warn("mcp server fails again and again", "restarts", restarts, "next_in", wait.Round(time.Second))
		} else if !s.wasReady() {
			state = StateFailed
		}
		s.set(state, err.Error())
		_ = session.Pause(s.ctx, wait)
		if s.unused() && s.ctx.Err() == nil { // nobody waits for it
			starts, fails = nil, 0
			if s.wasReady() {
				s.set(StateResting, "")
				s.park()
			} else {
				s.give(err.Error())
			}
		}
	}
	s.set(StateFailed, "it is not among the servers any more")
}

// rests reports whether the connection was ended to let the server rest.
func (s *server) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.resting
	s.resting = false
	return was
}

// give gives the server up until somebody asks again.
func (s *server) give(reason string) {
	s.mu.Lock()
	s.parked = time.Now()
	s.mu.Unlock()
	s.set(StateFailed, reason)
	s.park()
}

// park waits until the server is needed.
func (s *server) park() {
	select {
	case <-s.need:
	case <-s.ctx.Done():
	}
}

func (s *server) wasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.self != ""
}

// connected is one connection, from its start to its end; the error says why it is none any more.
func (s *server) connected(ctx context.Context) error {
	p := newPeer(s.log, s.cfg.message)
	p.request, p.notice, p.quiet = s.answer, s.notice, s.quiet
	if s.entry.url != nil {
		p.link = newRemote(p, &s.entry, s.cfg.Version)
	} else {
		p.link = newChild(p, &s.entry, s.cfg)
	}
	defer func() {
		s.mu.Lock()
		s.peer = nil
		s.mu.Unlock()
		p.end(errors.New("the connection was closed"))
		p.link.close()
	}()
	select { // of an earlier connection
	case <-s.doze:
	default:
	}
	began, before := time.Now(), -1
	if err := p.link.start(); err != nil {
		return err
	}
	if err := s.bounded(ctx, func(ctx context.Context) error { return s.shake(ctx, p) }); err != nil {
		return err
	}
	for {
		select { // what was told before the list is in it
		case <-s.stale:
		default:
		}
		err := s.bounded(ctx, func(ctx context.Context) error { return s.list(ctx, p) })
		if e, ok := errors.AsType[*remoteError](err); ok && before >= 0 {
			p.said("mcp server does not tell its tools again", "err", s.quiet(e.Error(), 250)) // those it told before stay
		} else if err != nil {
			return err
		}
		count, rests := s.ready(p)
		if rests {
			return errResting
		}
		switch before {
		case -1:
			s.log.Info("mcp server is connected", "tools", count, "ms", time.Since(began).Milliseconds())
		case count:
		default:
			p.said("mcp server has other tools", "tools", count)
		}
		before = count
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.ended:
			return p.why()
		case <-s.doze:
			return errResting
		case <-s.stale:
		}
		timer := time.NewTimer(s.cfg.second) // a server that changes again and again is asked once a second
		select {
		case <-timer.C:
		case <-p.ended:
			timer.Stop()
			return p.why()
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// ready says that the connection can be used, unless the server was told to rest while its list was asked for.
func (s *server) ready(p *peer) (tools int, rests bool) {
	s.mu.Lock()
	if s.resting {
		s.mu.Unlock()
		return 0, true
	}
	s.peer = p
	tools = len(s.tools)
	s.put(StateReady, "")
	s.mu.Unlock()
	s.cfg.changed(s)
	return tools, false
}

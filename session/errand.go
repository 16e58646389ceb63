package session

import (
	"context"
	"errors"

	"github.com/rind-dev/rind/protocol"
)

// Errand is work that a client asks for under an idempotency key and that is no turn: a slash command.
type Errand struct {
	Surface, Key, Digest string
	// Run does it, once the key is taken: on the session's goroutine, so it must not block. ended is to be called exactly once, with whether all
	// of it was done; answer runs when that is on disk, or cannot be. Where a prompt does the work, that is what Run returns.
	Run func(ended func(completed bool, answer func())) *Prompt

	claiming, started bool
	work              *Prompt
	withdrawn         *string // the reason, where there was no prompt to be withdrawn yet
}

// endOf is the surface of the keys that say which errands of another were done.
func endOf(surface string) string { return surface + " ended" }

// Errand does the work once for its key, also across a restart. Where it is not done for this call, again is called, once, on the session's
// goroutine: with the outcome of the first time, which is FailTurn when its process ended in the midst of it, or with an error.
func (s *Session) Errand(e Errand, again func(Outcome, error)) *Prompt {
	p := &Prompt{s: s, req: PromptRequest{Surface: e.Surface, Key: e.Key, Digest: e.Digest, errand: &e}}
	p.done = []func(Outcome, error){func(o Outcome, err error) {
		if !e.started {
			again(o, err)
		}
	}}
	if !s.post(func() { s.prompt(p) }) {
		again(Outcome{}, errGone(s.ID))
	}
	return p
}

// claim takes the key of an errand that is new, and runs it.
func (s *Session) claim(p *Prompt) {
	e := p.req.errand
	s.withLease(func(err error) {
		switch {
		case p.ended: // withdrawn
			return
		case err != nil:
			p.finish(Outcome{}, err)
			return
		}
		e.claiming = true
		s.appendKeyed(s.opening(), []Key{{Surface: e.Surface, Key: e.Key, Digest: e.Digest}}, func(_ Seq, err error) {
			switch {
			case errors.Is(err, ErrKeyUsed): // another process was asked the same, and was first
				s.lookUp(p, func(k Key, err error) {
					if err != nil {
						p.finish(Outcome{}, err)
						return
					}
					s.again(p, k.Turn)
				})
			case err != nil:
				p.finish(Outcome{}, err)
			default:
				s.run(p)
			}
		})
	})
}

func (s *Session) run(p *Prompt) {
	e := p.req.errand
	e.started = true
	s.errands++
	e.work = e.Run(func(completed bool, answer func()) {
		if !s.post(func() { s.errandEnded(p, completed, answer) }) {
			answer()
		}
	})
	if e.withdrawn != nil && e.work != nil {
		e.work.Withdraw(*e.withdrawn, func(error) {})
	}
}

// errandEnded notes that an errand was done, and answers those who asked for it meanwhile.
func (s *Session) errandEnded(p *Prompt, completed bool, answer func()) {
	e := p.req.errand
	end := func(o Outcome) {
		s.errands--
		answer()
		p.finish(o, nil)
		s.settleDown()
	}
	if !completed {
		end(Outcome{Outcome: OutcomeCancelled, Stop: stopCancelled})
		return
	}
	noted := func(err error) {
		if err != nil { // it was done all the same; who asks in another process will be told that it is not known
			s.log().Warn("note the end of a command", "session", s.ID, "err", err)
		}
		end(errandDone)
	}
	s.withLease(func(err error) {
		if err != nil {
			noted(err)
			return
		}
		s.appendKeyed(nil, []Key{{Surface: endOf(e.Surface), Key: e.Key, Digest: e.Digest}}, func(_ Seq, err error) { noted(err) })
	})
}

var errandDone = Outcome{Outcome: OutcomeCompleted, Stop: stopEndTurn}

// errandAgain answers a prompt whose key an errand took that does not run here.
func (s *Session) errandAgain(p *Prompt) {
	fetch(s, func(ctx context.Context, store Store) (Key, error) {
		return store.Key(ctx, s.ID, endOf(p.req.Surface), p.req.Key)
	}, func(_ Key, err error) {
		switch {
		case err == nil:
			p.finish(errandDone, nil)
		case errors.Is(err, ErrNotFound):
			p.finish(Outcome{Outcome: OutcomeFailed, Stop: stopRuntime, Fault: &TurnFault{Type: protocol.FailTurn, Message: "The runtime stopped before this was done."}}, nil)
		default:
			p.finish(Outcome{}, err)
		}
	})
}

// withdraw takes an errand back that was not begun, or cancels the prompt that does it. done gets TurnNotActive where neither can be.
func (e *Errand) withdraw(p *Prompt, reason string, done func(error)) {
	switch {
	case e.work != nil:
		e.work.Withdraw(reason, done)
	case !e.claiming:
		p.withdraw(stopCancelled)
		done(nil)
	case !e.started:
		e.withdrawn = &reason
		done(nil)
	default:
		done(errNoTurn())
	}
}

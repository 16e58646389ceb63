package session

import "context"

// submit hands f to the session's goroutine: what is asked of the session next comes behind it. The returned function waits for its outcome; it
// may be left uncalled, and ends with ctx, which undoes nothing; ServerStopping where the runtime ends before there is an outcome.
func (s *Session) submit(f func(done func(error))) (wait func(ctx context.Context) error) {
	ch := make(chan error, 1)
	if !s.post(func() { f(func(err error) { ch <- err }) }) {
		ch <- errGone(s.ID)
	}
	return func(ctx context.Context) error {
		select {
		case err := <-ch:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.end: // the runtime ended, and what was waited for could not be stored
			select {
			case err := <-ch:
				return err
			default:
				return errStopping()
			}
		}
	}
}

// call waits for what it hands in.
func (s *Session) call(ctx context.Context, f func(done func(error))) error { return s.submit(f)(ctx) }

// SubmitExecution asks for an execution; it is accepted once it is on disk, and run in its turn. A key that is known gives the execution it was
// first used for, or IdempotencyConflict. Overloaded when too many stand in line, SessionBusy while another process works in the session.
func (s *Session) SubmitExecution(req ExecutionRequest) (wait func(ctx context.Context) (Accepted, error)) {
	var got Accepted
	over := s.submit(func(done func(error)) {
		s.execute(&req, func(a Accepted, err error) {
			got = a
			done(err)
		})
	})
	return func(ctx context.Context) (Accepted, error) {
		if err := over(ctx); err != nil {
			return Accepted{}, err
		}
		return got, nil
	}
}

// SubmitCancel ends an execution; the wait is over once its end is on disk. One that has ended stays as it is. reason nil gives none; the first
// reason stands. An execution another process runs is ended there; SessionBusy when that does not answer.
func (s *Session) SubmitCancel(turn TurnID, reason *string) (wait func(ctx context.Context) error) {
	return s.submit(func(done func(error)) { s.cancelExecution(turn, reason, done) })
}

// SubmitAnswer answers an action; the wait is over once that is on disk, and of two answers the one handed in first counts. ActionNotFound,
// ActionAlreadyResolved, ErrReplyUnfit. reply is asked for only when the action can be answered; an error of it is returned and leaves the
// action open.
func (s *Session) SubmitAnswer(turn TurnID, action string, reply func() (ActionReply, error)) (wait func(ctx context.Context) error) {
	return s.submit(func(done func(error)) { s.respond(turn, action, reply, done) })
}

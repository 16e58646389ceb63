package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// attempts counts the requests of one step that failed, by what is done about them (docs/protocol/rind-v2.md section 7.3).
type attempts struct {
	connects, cuts int
	rescue         rescue
}

// tryAgain prepares the next request after one that failed with m, having said c, and waits until it is due. An error ends the turn.
func (w *work) tryAgain(ctx context.Context, a *attempts, req *ModelRequest, c *completion, m *ModelError) error {
	switch retry := retryOf(m, c.shown); {
	case m.Fault == FaultContext && a.rescue.again():
		if c.shown { // what was told of this step is told anew
			a.cuts++
			if err := w.retry(a.cuts, 0, c, m); err != nil {
				return err
			}
		}
		var err error
		req.Messages, err = w.shorten(ctx, &a.rescue, req.Messages)
		return err
	case retry == retryConnect && a.connects+1 < connectTries:
		delay := connectDelay(a.connects, m.RetryAfter)
		a.connects++
		w.Log.Info("retry", "session", w.t.Session(), "turn", w.t.ID, "fault", m.Fault, "status", m.Status, "delay_ms", delay.Milliseconds(), "behind", m.Cause)
		title := fmt.Sprintf("%s Asking again in %s (%d of %d).", m.Message, delay.Round(time.Second), a.connects+1, connectTries)
		w.t.Note(&protocol.Notice{Severity: "warning", Title: title})
		return w.Pause(ctx, delay)
	case retry == retryCut && a.cuts < cutRetries:
		a.cuts++
		delay := time.Duration(1<<a.cuts) * time.Second
		if err := w.retry(a.cuts, delay, c, m); err != nil {
			return err
		}
		return w.Pause(ctx, delay)
	case retry == retryCut:
		m = &ModelError{Fault: FaultCut, Message: m.Message, Status: m.Status, Cause: m}
	case retry == retryConnect:
		m = &ModelError{Fault: m.Fault, Message: fmt.Sprintf("%s Asked %d times; try again later.", m.Message, a.connects+1), Status: m.Status, Cause: m.Cause}
	}
	return providerFailure(m)
}

// rescue is what was tried for a step that is too long for the model (docs/protocol/rind-v2.md section 7.3).
type rescue struct {
	requests  int // that were refused, or compacted
	compacted bool
	share     float64 // of the content that is left out
	whole     []Message
}

// again counts a refused request, and reports whether another may be made.
func (r *rescue) again() bool {
	r.requests++
	return r.requests < contextTries
}

// shorten makes the next request of such a step: compacted once, then without its oldest content, a fifth more each time.
func (w *work) shorten(ctx context.Context, r *rescue, msgs []Message) ([]Message, error) {
	if !r.compacted {
		r.compacted = true
		some := false
		if err := w.t.View(func(_ *State, _ *OpenTurn, past *History) { some = past.compactable() }); err != nil {
			return nil, err
		}
		if some {
			n, err := w.compact(ctx, protocol.CompactTooLong, protocol.CompactMidTurn)
			if err != nil {
				return nil, err
			}
			r.requests += n
			if msgs, err = w.messages(); err != nil {
				return nil, err
			}
			w.noteContext(msgs, false)
			return msgs, nil
		}
	}
	if r.whole == nil {
		r.whole = msgs
	}
	r.share += 0.2
	return shed(r.whole, int(float64(estimate(r.whole))*(1-r.share))), nil
}

type retryKind uint8

const (
	retryNever retryKind = iota
	retryConnect
	retryCut
)

// retryOf says whether a failed attempt may be made again: nothing was told yet (connecting), or the stream broke.
func retryOf(m *ModelError, shown bool) retryKind {
	switch m.Fault {
	case FaultCut:
		return retryCut
	case FaultRate, FaultServer, FaultNetwork, FaultTimeout, FaultBadReply:
		if shown {
			return retryCut
		}
		return retryConnect
	}
	return retryNever
}

// connectDelay is 2 to 10 s, or what the provider asked for.
func connectDelay(tries int, after time.Duration) time.Duration {
	if after > 0 {
		return min(after, retryCap)
	}
	return min(time.Duration(2+2*tries)*time.Second, 10*time.Second)
}

// retry tells that the text of this step is discarded.
func (w *work) retry(attempt int, delay time.Duration, c *completion, m *ModelError) error {
	b := &protocol.TurnStepRetry{Attempt: attempt, Reason: "stream_interrupted"}
	b.More.MessageID, b.More.DelayMS, b.More.Message = c.messageID, delay.Milliseconds(), m.Message
	err := w.t.View(func(_ *State, open *OpenTurn, _ *History) {
		if b.More.DiscardFrom = open.TextFirst; len(open.Text) == 0 { // nothing of the text told so far is of this step
			b.More.DiscardFrom = open.NextPortable
		}
	})
	if err == nil {
		w.t.Note(b)
	}
	return err
}

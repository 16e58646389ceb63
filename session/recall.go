package session

import (
	"context"

	"github.com/rind-dev/rind/protocol"
)

// recall runs f with the fold of messages up to what is shown. The log is read for it the first time, beside the session's goroutine.
func (s *Session) recall(f func(*History, error)) {
	if s.past == nil && s.draft.Load() {
		s.past = newHistory()
	}
	if s.past != nil {
		f(s.past, nil)
		return
	}
	if s.recalls = append(s.recalls, f); len(s.recalls) == 1 {
		s.readPast(newHistory())
	}
}

// recallWhile is recall for a caller that does not wait for the log beyond the end of ctx: f gets its cause then.
func (s *Session) recallWhile(ctx context.Context, f func(*History, error)) {
	if s.past != nil || s.draft.Load() {
		s.recall(f)
		return
	}
	over := false
	stop := context.AfterFunc(ctx, func() {
		s.post(func() {
			if !over {
				over = true
				f(nil, context.Cause(ctx))
			}
		})
	})
	s.recall(func(h *History, err error) {
		stop()
		if !over {
			over = true
			f(h, err)
		}
	})
}

// readPast brings h level with what is shown: from the store, and from memory what is told while that is read.
func (s *Session) readPast(h *History) {
	through := s.shown.Head
	fetch(s, func(ctx context.Context, store Store) (struct{}, error) {
		return struct{}{}, h.read(ctx, store, s.ID, through)
	}, func(_ struct{}, err error) {
		if err == nil {
			rest, _, recent := s.tail.after(h.head, tailBytes)
			if !recent {
				s.readPast(h) // more was told meanwhile than memory holds
				return
			}
			for i := range rest {
				if err = h.take(&rest[i]); err != nil {
					err = damaged(s.ID, rest[i].Seq, err)
					break
				}
			}
		}
		if err == nil {
			s.past = h
		}
		waiting := s.recalls
		s.recalls = nil
		for _, f := range waiting {
			f(s.past, err)
		}
	})
}

// read folds the entries in (head, through] in.
func (h *History) read(ctx context.Context, store Log, id SessionID, through Seq) error {
	for e, err := range readLog(ctx, store, id, h.head, protocol.ViewFacts) {
		if err != nil {
			return err
		}
		if e.Seq > through {
			break
		}
		if err := h.take(e); err != nil {
			return damaged(id, e.Seq, err)
		}
	}
	h.head = through
	return nil
}

// take decodes an entry, where that is needed, and folds it in.
func (h *History) take(e *Entry) (err error) {
	var b protocol.Body
	if remembers(e.Kind) {
		if b, err = protocol.Decode(e); err != nil {
			return err
		}
	}
	h.Apply(e, b)
	return nil
}

// Recalled is a View that holds the messages of the session as well.
type Recalled struct {
	*View
	past *History
}

// Recall is Inspect with the messages; where they cannot be read, f gets the error.
func (s *Session) Recall(f func(r *Recalled, err error)) bool {
	return s.post(func() {
		s.recall(func(past *History, err error) {
			if err != nil {
				f(nil, err)
				return
			}
			f(&Recalled{s.view(), past}, nil)
		})
	})
}

// RecallNow is InspectNow with the messages.
func (s *Session) RecallNow(ctx context.Context, f func(r *Recalled)) error {
	return s.lookNow(ctx, func(look func(err error, f func())) bool {
		return s.Recall(func(r *Recalled, err error) { look(err, func() { f(r) }) })
	})
}

// Wire lists the messages of message mode; message 0 is the system prompt.
func (r *Recalled) Wire() []Wire {
	return r.past.wire(guideText(r.Session.all.cfg.Guide.Parts(r.Workspace)), r.Created)
}

// ResumePreview is resume_preview of docs/protocol/rind-v2.md section 4.1.
func (r *Recalled) ResumePreview() string {
	if r.Messages == 0 {
		return ""
	}
	return r.past.preview(r.Session.ID, 6)
}

package undo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// page is how many entries are read at once; some are large.
const page = 64

// state is what a file was at some moment. The zero state is not known.
type state struct {
	gone   bool
	digest string
}

func (s state) known() bool { return s.gone || s.digest != "" }

// change is what the tools of one turn made of one file.
type change struct {
	path        string // absolute
	first, last state  // before the turn, and after it
	firstSeq    session.Seq
	lastSeq     session.Seq
	rank        int  // among the files of the entry firstSeq
	broken      bool // somebody else changed the file between two changes of the turn
	tool        bool // a file tool wrote it: where it lies outside the roots, consent was given for exactly this path
}

// turn is one turn of a log, and what its tools did to files.
type turn struct {
	id    session.TurnID
	open  bool // without a terminal
	blind bool // commands may have changed files that are not listed
	files map[string]*change
}

// list are the turn's files in the order of their first change.
func (t *turn) list() []*change {
	all := make([]*change, 0, len(t.files))
	for _, c := range t.files {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.firstSeq, b.firstSeq), cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path))
	})
	return all
}

// add takes in a change that happened before all that was added so far.
func (t *turn) add(path string, seq session.Seq, rank int, before, after state, tool bool) {
	path = filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsAbs(path) {
		return // no entry of ours
	}
	c := t.files[path]
	if c == nil {
		c = &change{path: path, last: after, lastSeq: seq}
		t.files[path] = c
	} else if c.first.known() && after.known() && c.first != after {
		c.broken = true
	}
	c.first, c.firstSeq, c.rank = before, seq, rank
	c.tool = c.tool || tool
}

// turns reads the log of a session backwards and gives each turn to visit once all of it is read, newest first. visit returns false to end.
func (u *Undo) turns(ctx context.Context, id session.SessionID, visit func(*turn) (bool, error)) error {
	ended := map[session.TurnID]bool{}
	reading := map[session.TurnID]*turn{}
	for before := session.Seq(0); ; {
		entries, err := u.cfg.Store.ReadBack(ctx, id, before, page, protocol.ViewFacts)
		if err != nil {
			return storeError(err)
		}
		for i := range entries {
			e := &entries[i]
			before = e.Seq
			if e.Kind.Info().Terminal {
				ended[e.Turn] = true
			}
			if !telling(e) {
				continue
			}
			t := reading[e.Turn]
			if t == nil {
				t = &turn{id: e.Turn, files: map[string]*change{}}
				reading[e.Turn] = t
			}
			start, err := t.take(e)
			if err != nil {
				return storeError(fmt.Errorf("%w: %w", session.ErrCorrupt, err))
			}
			if !start {
				continue
			}
			t.open = !ended[t.id]
			if more, err := visit(t); err != nil || !more {
				return err
			}
			delete(ended, t.id)
			delete(reading, t.id)
		}
		if len(entries) < page {
			return nil
		}
	}
}

// telling reports whether an entry tells of files, or of the start of a turn. Results can be large: most need not be decoded.
func telling(e *session.Entry) bool {
	switch e.Kind {
	case protocol.KindTurnStarted, protocol.KindFileChange:
		return true
	case protocol.KindToolResult:
		return bytes.Contains(e.More, []byte(`"touched"`))
	}
	return false
}

// take reads one telling entry of t, older than all before it, and reports whether it is where the turn started.
func (t *turn) take(e *session.Entry) (start bool, err error) {
	if e.Kind == protocol.KindToolResult {
		var more struct {
			Touched protocol.Touched `json:"touched"`
		}
		if err := json.Unmarshal(e.More, &more); err != nil {
			return false, fmt.Errorf("entry %d (%s): more: %w", e.Seq, e.Kind, err)
		}
		t.touched(e.Seq, &more.Touched)
		return false, nil
	}
	b, err := protocol.Decode(e)
	if err != nil {
		return false, err
	}
	switch b := b.(type) {
	case *protocol.TurnStarted:
		return b.Origin != protocol.OriginResume, nil
	case *protocol.FileChange:
		before := state{digest: b.More.Before}
		if b.More.Created {
			before = state{gone: true}
		}
		t.add(b.FilePath, e.Seq, 0, before, state{digest: b.More.After}, true)
	}
	return false, nil
}

func (t *turn) touched(seq session.Seq, touched *protocol.Touched) {
	t.blind = t.blind || touched.Unknown || touched.More > 0
	for i := len(touched.Files) - 1; i >= 0; i-- {
		f := &touched.Files[i]
		before, after := state{digest: f.Before}, state{digest: f.After}
		switch f.Kind {
		case "created":
			before = state{gone: true}
		case "removed":
			after = state{gone: true}
		}
		t.add(f.Path, seq, i+1, before, after, false)
	}
}

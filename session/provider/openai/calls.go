package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// callPiece is a piece of a tool call. Servers differ in all of it: the index may be missing or always 0, the id may be missing, repeated
// in every piece, made up anew for every piece, or used for two calls.
type callPiece struct {
	Index    *int            `json:"index"`
	ID       modelhttp.Loose `json:"id"`
	Function function        `json:"function"`
}

type function struct {
	Name      modelhttp.Loose `json:"name"`
	Arguments modelhttp.Loose `json:"arguments"`
}

// call is a call that is being written.
type call struct {
	id      string // what we call it: the provider's id, or one made from it where that is no name for one call alone
	given   string // the provider's id
	index   int
	indexed bool
	name    string
	args    strings.Builder
	started bool
}

// calls puts pieces together. Raw arguments are kept to the letter.
type calls struct{ all []*call }

// add takes a piece and says what it brings: the start of a call once its name is known, and its arguments.
func (c *calls) add(p callPiece, say func(session.Chunk) error) error {
	to := c.find(p)
	if to == nil {
		to = &call{given: string(p.ID), index: len(c.all)}
		if p.Index != nil {
			to.index, to.indexed = *p.Index, true
		}
		to.id = c.name(string(p.ID))
		c.all = append(c.all, to)
	}
	if to.name == "" {
		to.name = string(p.Function.Name)
	}
	waiting := !to.started
	if waiting && to.name != "" {
		to.started = true
		if err := say(session.Chunk{Kind: session.ChunkCallStart, CallID: to.id, Name: to.name}); err != nil {
			return err
		}
	}
	piece := string(p.Function.Arguments)
	to.args.WriteString(piece)
	if waiting {
		piece = to.args.String() // with what came before the name
	}
	if !to.started || piece == "" {
		return nil
	}
	return say(session.Chunk{Kind: session.ChunkCallDelta, CallID: to.id, Text: piece})
}

// find returns the call p goes on with, nil when it begins one.
func (c *calls) find(p callPiece) *call {
	for i := len(c.all) - 1; i >= 0; i-- {
		old := c.all[i]
		switch {
		case p.ID != "" && string(p.ID) == old.given:
			// the same id: the same call, unless the index says otherwise or a second whole call follows a whole one
			if p.Index != nil && old.indexed && *p.Index != old.index || old.followed(p) {
				continue
			}
			return old
		case p.ID != "" && (p.Function.Name != "" || p.Index == nil):
			continue // a new id with a name, or without an index, begins a call
		case p.Index != nil:
			// no id, or one made up for this piece: the newest call of this index
			if old.index != *p.Index {
				continue
			}
			if old.followed(p) {
				return nil
			}
			return old
		case old.followed(p):
			return nil
		default:
			return old // neither id nor index: the newest call
		}
	}
	return nil
}

// followed tells whether p, by its looks a call from its beginning, stands behind c, whole already.
func (c *call) followed(p callPiece) bool {
	if p.Function.Name == "" || c.name == "" {
		return false
	}
	if string(p.Function.Name) != c.name {
		return true
	}
	return strings.HasPrefix(strings.TrimSpace(string(p.Function.Arguments)), "{") && json.Valid([]byte(c.args.String()))
}

// name makes the id of a new call. One that names an older call too, in this answer, gets a number behind it.
func (c *calls) name(id string) string {
	if !c.taken(id) {
		return id
	}
	stem := id
	if stem == "" {
		stem = "call"
	}
	for n := len(c.all) + 1; ; n++ {
		if id := stem + "_" + strconv.Itoa(n); !c.taken(id) {
			return id
		}
	}
}

func (c *calls) taken(id string) bool {
	for _, old := range c.all {
		if old.id == id {
			return true
		}
	}
	return false
}

// end says the calls in full, in the order they began.
func (c *calls) end(say func(session.Chunk) error) error {
	for _, done := range c.all {
		if !done.started {
			if err := say(session.Chunk{Kind: session.ChunkCallStart, CallID: done.id}); err != nil {
				return err
			}
		}
		if err := say(session.Chunk{Kind: session.ChunkCallEnd, CallID: done.id, Name: done.name, Text: done.args.String()}); err != nil {
			return err
		}
	}
	return nil
}

// Package demo is a session.Model that needs no key and no network, for the first minute with rind: it is no AI and its first words say
// so. Asked about the folder, it looks with the tools it is offered, through the same loop and the same consent as any model, tells
// what they found and nothing else, and ends with how to get a real model.
//
// It keeps nothing: what it does next is read from the request, so the same request gets the same answer, and a turn that was
// interrupted goes on where it was. It owns no goroutine.
package demo

import (
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"sync"

	"github.com/rind-dev/rind/session"
)

// Model is the demo model. Safe for concurrent use.
type Model struct{}

var _ session.Model = Model{}

// New makes one.
func New() Model { return Model{} }

// The label opens a session, the mark later turns. A message that holds mark has told the user already.
const (
	mark  = "no AI"
	label = "This is rind's built-in demo: " + mark + ", only fixed rules and the real tools."
	again = "Still the demo, " + mark + "."
)

// Generate implements session.Model: first a list of the files, then a look into the telling ones, then the answer.
func (Model) Generate(ctx context.Context, r session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		w := &writer{ctx: ctx, yield: yield, calls: countCalls(r.Messages)}
		k := gather(r)
		switch {
		case !k.labelled:
			w.text(label)
		case !k.spoke:
			w.text(again)
		}
		if intro, wanted := k.next(); len(wanted) > 0 {
			if !k.spoke {
				intro = " " + intro
			}
			w.text(intro)
			for _, c := range wanted {
				w.call(c)
			}
			w.finish(session.FinishCalls)
			return
		}
		w.text(k.answer())
		w.finish(session.FinishStop)
	}
}

// wish is a call worth making.
type wish struct {
	tool string
	args any
}

// key tells two wishes apart; equal ones are the same call.
func (c wish) key() string { return c.tool + " " + string(c.json()) }

func (c wish) json() []byte {
	raw, err := json.Marshal(c.args)
	if err != nil {
		panic("demo: arguments: " + err.Error()) // structs of strings and numbers
	}
	return raw
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Max     int    `json:"max_results"`
}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Max     int    `json:"max_results"`
}

type readArgs struct {
	Path  string `json:"path"`
	Limit int    `json:"limit"`
}

// What the list of files is made of: everything, and the top of the folder for when everything is too much to be listed.
var (
	everything = wish{"glob", globArgs{"**/*", 1000}}
	top        = wish{"glob", globArgs{"*", 200}}
	todo       = wish{"grep", grepArgs{`\b(TODO|FIXME)\b`, 200}}
)

// Bounds of what one prompt makes it look into.
const (
	mostManifests = 4
	mostAsked     = 3
	readLines     = 120
)

// next returns the calls to be made before the answer, and what to say before them; none when everything is known. Each step's calls
// are made in one turn once: a tool that failed is not tried again.
func (k *knowledge) next() (intro string, wanted []wish) {
	if k.greeting() {
		return "", nil
	}
	if k.needsOverview() {
		if wanted = k.open(everything, top); len(wanted) > 0 {
			return "Looking at the folder first.", wanted
		}
	}
	if k.needsOverview() && !k.empty() {
		for _, p := range k.telling() {
			wanted = append(wanted, wish{"read_file", readArgs{p, readLines}})
		}
		wanted = append(wanted, todo)
	}
	for _, p := range k.askedFiles() {
		wanted = append(wanted, wish{"read_file", readArgs{p, readLines}})
	}
	wanted = append(wanted, k.askedTerms()...)
	if k.needsOverview() {
		intro = "Now the files that tell most."
	} else {
		intro = "Looking for that."
	}
	return intro, k.open(wanted...)
}

// open keeps the wishes whose tool is offered and that were not made in this turn.
func (k *knowledge) open(wanted ...wish) []wish {
	var out []wish
	for _, c := range wanted {
		if k.offered[c.tool] && !k.made[c.key()] && !slices.ContainsFunc(out, func(o wish) bool { return o.key() == c.key() }) {
			out = append(out, c)
		}
	}
	return out
}

// later compiles an expression when it is first used: every start of the program would pay for it otherwise.
func later(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

package dispatcher_test

import (
	"regexp"
	"testing"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

var internal = regexp.MustCompile(`"message":"Internal error \(id ([0-9a-f]{32})\)\."`)

func TestAMethodThatPanicsIsAnsweredAndTheConnectionGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		broken := false
		p.d = dispatcher.New(dispatcher.Config{Sessions: p.All, Workspace: "/w", Version: "0.0.0", Providers: func() []dispatcher.Provider {
			if broken {
				panic("no providers today")
			}
			return []dispatcher.Provider{}
		}})
		c := p.connect(env)
		c.hello()
		broken = true
		l := c.response(c.send("rind/auth/list", ""))
		if l.err == nil || l.err.Type != "InternalError" || !internal.MatchString(l.raw) {
			t.Errorf("got %s", l.raw)
		}
		broken = false
		c.call("rind/auth/list", "")
		c.call("session/prompt", `{"input":"go on"}`)
	})
}

func TestOnlyMethodsOfTheProtocolAreServedAndListed(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		c := p.connect(env)
		known := map[string]bool{}
		for _, m := range rindv2.Methods() {
			known[m.Name] = true
		}
		listed := listOf(t, c.call("initialize", `{}`), "methods")
		for _, name := range listed {
			if !known[name] {
				t.Errorf("%s is listed, and no method of the protocol", name)
			}
			delete(known, name)
		}
		if len(listed) < 30 {
			t.Errorf("only %d methods are listed", len(listed))
		}
		for name := range known { // what is not listed is not there
			c.refused(name, `{}`, "MethodNotFound", "Unknown method: "+name)
		}
	})
}

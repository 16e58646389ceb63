package acpagent

import (
	"reflect"
	"time"

	"github.com/rind-dev/rind/session"
)

// Known is what is known of an agent from its newest child.
type Known struct {
	Name     string              `json:"name"` // with its version
	At       time.Time           `json:"at"`
	Manifest map[string]string   `json:"manifest"` // capability -> native, emulated, degraded, unsupported
	Images   *bool               `json:"images"`   // whether it takes images; nil until it ran
	Models   []session.ModelInfo `json:"models"`
	Efforts  []string            `json:"efforts"` // of whatever model it chooses
	Commands []string            `json:"commands"`
}

// Memory keeps what is known of agents, by what starts them. Safe for concurrent use; what cannot be kept is lost.
type Memory interface {
	Recall(spec Spec) (Known, bool)
	Keep(spec Spec, k Known)
}

// Known returns what is known of the agent of a spec, in this process or from before; false when it never ran.
func (h *Hosts) Known(spec Spec) (Known, bool) {
	h.mu.Lock()
	k, ok := h.seen[spec.id()]
	h.mu.Unlock()
	if ok || h.cfg.Memory == nil {
		return k, ok && !k.At.IsZero()
	}
	k, _ = h.cfg.Memory.Recall(spec)
	h.mu.Lock()
	defer h.mu.Unlock()
	if newer, ok := h.seen[spec.id()]; ok {
		k = newer
	} else {
		h.seen[spec.id()] = k
	}
	return k, !k.At.IsZero()
}

// About tells what is known of the agent of a spec, and of its commands in a session.
func (h *Hosts) About(id session.SessionID, spec Spec) session.HostedAgent {
	a := session.HostedAgent{Provider: spec.Provider, Manifest: unseen(&spec)}
	if k, ok := h.Known(spec); ok {
		a.Name, a.Seen, a.Manifest, a.Commands = k.Name, k.At, k.Manifest, k.Commands
	}
	h.mu.Lock()
	ho := h.of[id]
	h.mu.Unlock()
	if ho != nil {
		ho.mu.Lock()
		defer ho.mu.Unlock()
		if ho.commands != nil {
			a.Commands = ho.commands
		}
	}
	return a
}

// keepFor is how long what is known is not written again where it did not change.
const keepFor = time.Hour

func (h *Hosts) learn(spec Spec, k Known) {
	k.At = time.Now().UTC().Truncate(time.Second)
	h.mu.Lock()
	before := h.seen[spec.id()]
	h.seen[spec.id()] = k
	h.mu.Unlock()
	fresh := k.At.Sub(before.At) < keepFor
	before.At = k.At
	if h.cfg.Memory != nil && !(fresh && reflect.DeepEqual(before, k)) {
		h.cfg.Memory.Keep(spec, k)
	}
}

// learn keeps what a child is known to do.
func (ho *host) learn(c *child) {
	k := c.known()
	ho.mu.Lock()
	k.Commands = ho.commands
	ho.mu.Unlock()
	ho.hosts.learn(c.spec, k)
}

// known is what the child was seen to be and to do.
func (c *child) known() Known {
	c.mu.Lock()
	about, self := c.about, c.self
	m := manifest(&about, self, &c.spec, c.seen, !c.host.cfg.Unattended)
	c.mu.Unlock()
	k := Known{Name: about.Name(), Manifest: m, Images: &about.Image}
	if o := self.Option("thought_level"); o != nil {
		for _, v := range o.Values {
			k.Efforts = append(k.Efforts, v.Value)
		}
	}
	if o := self.Option("model"); o != nil {
		for _, v := range o.Values {
			k.Models = append(k.Models, session.ModelInfo{Provider: c.spec.Provider, ID: v.Value, Name: v.Name, API: "acp", Images: k.Images, Efforts: k.Efforts})
		}
	}
	return k
}

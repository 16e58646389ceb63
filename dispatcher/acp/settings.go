package acp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// Ids of the options.
const (
	optionMode   = "mode"
	optionModel  = "model"
	optionEffort = "effort"
)

// modes are the approval modes (docs/protocol/acp.md section 2.6).
var modes = []acp.Mode{
	{ID: "ask", Name: "Ask", Description: "Edits and commands ask first"},
	{ID: "edit", Name: "Edit", Description: "Edits in the workspace are free, commands ask"},
	{ID: "read", Name: "Read", Description: "Nothing is written; commands run only where they are known to only read"},
	{ID: "full", Name: "Full", Description: "Nothing asks; what is never done stays refused"},
}

func modesOf(sel session.Selection) *acp.Modes {
	return &acp.Modes{Current: modeOf(sel), Available: modes}
}

func modeOf(sel session.Selection) string {
	if sel.Mode == "" {
		return modes[0].ID
	}
	return sel.Mode
}

// options are the settings of a session, in their order, with the current value always among the choices.
func (d *Dispatcher) options(sel session.Selection) []acp.Option {
	mode := acp.Option{ID: optionMode, Name: "Mode", Category: "mode", Type: "select", Current: modeOf(sel)}
	for _, m := range modes {
		mode.Values = append(mode.Values, acp.Value{Value: m.ID, Name: m.Name, Description: m.Description})
	}
	known := d.models.known()
	model := acp.Option{ID: optionModel, Name: "Model", Category: "model", Type: "select", Current: sel.Provider + "/" + sel.Model}
	var efforts []string
	for _, m := range known {
		v := acp.Value{Value: m.Provider + "/" + m.ID, Name: m.Name}
		if v.Name == "" {
			v.Name = m.ID
		}
		model.Values = append(model.Values, v)
		if v.Value == model.Current {
			efforts = m.Efforts
		}
	}
	if !slices.ContainsFunc(model.Values, func(v acp.Value) bool { return v.Value == model.Current }) {
		model.Values = append([]acp.Value{{Value: model.Current, Name: sel.Model}}, model.Values...)
	}
	out := []acp.Option{mode, model}
	if len(efforts) == 0 {
		return out
	}
	effort := acp.Option{ID: optionEffort, Name: "Effort", Category: "thought_level", Type: "select", Current: sel.Effort}
	if !slices.Contains(efforts, sel.Effort) {
		name := sel.Effort
		if name == "" {
			name, effort.Current = "Default", "default"
		}
		effort.Values = append(effort.Values, acp.Value{Value: effort.Current, Name: name})
	}
	for _, e := range efforts {
		effort.Values = append(effort.Values, acp.Value{Value: e, Name: e})
	}
	return append(out, effort)
}

// appendSettings tells changed settings; a change this connection asked for over one surface is told over the other only.
func (c *Conn) appendSettings(buf []byte, id session.SessionID, b *protocol.SessionSettingsChanged) []byte {
	c.mu.Lock()
	via := ""
	if o := c.open[id]; o != nil {
		via, o.via = o.via, ""
	}
	c.mu.Unlock()
	sel := session.Selection{Provider: b.Provider, Model: b.Model, Effort: b.ReasoningEffort, Mode: b.ApprovalMode}
	if via == "" || via == optionMode {
		buf = append(acp.AppendUpdate(buf, id, acp.ModeChanged(modeOf(sel)), 0), '\n')
	}
	if via == "" || via == acp.MethodSetMode {
		buf = append(acp.AppendUpdate(buf, id, acp.OptionsChanged(c.d.options(sel)), 0), '\n')
	}
	return buf
}

func setMode(k *call) {
	mode, err := k.params.Text("modeId")
	if err == nil && !slices.ContainsFunc(modes, func(m acp.Mode) bool { return m.ID == mode }) {
		err = acp.Bad("There is no mode %q: ask, edit, read, full.", protocol.Prefix(mode, 40))
	}
	if err != nil {
		k.Fail(err)
		return
	}
	k.with(func(o *opened) {
		k.change(o, acp.MethodSetMode, session.Change{Mode: &mode}, func(session.Selection) any { return acp.Empty{} })
	})
}

// change changes settings and answers once the change was told.
func (k *call) change(o *opened, via string, ch session.Change, result func(session.Selection) any) {
	set := func(v string) {
		k.c.mu.Lock()
		o.via = v
		k.c.mu.Unlock()
	}
	set(via)
	o.s.Change(ch, func(sel session.Selection, _ string, err error) {
		if err != nil {
			set("")
			k.Fail(err)
			return
		}
		if !o.s.Inspect(func(v *session.View) {
			k.at(o.s.ID, v.Head, func(*follow) (any, error) { return result(sel), nil })
		}) {
			k.Fail(notOpen(o.s.ID))
		}
	})
}

func setOption(k *call) {
	p, err := acp.ReadSetOption(k.params)
	if err != nil {
		k.Fail(err)
		return
	}
	k.with(func(o *opened) {
		var ch session.Change
		answer := func(sel session.Selection) any { return acp.Options{Options: k.c.d.options(sel)} }
		switch p.ID {
		case optionMode:
			if !slices.ContainsFunc(modes, func(m acp.Mode) bool { return m.ID == p.Value }) {
				k.Fail(noValue(p))
				return
			}
			ch.Mode = &p.Value
			k.change(o, optionMode, ch, answer)
			return
		case optionModel, optionEffort:
		default:
			k.Fail(acp.Bad("There is no option %q: mode, model, effort.", protocol.Prefix(p.ID, 40)))
			return
		}
		o.s.Inspect(func(v *session.View) {
			for _, row := range k.c.d.options(v.Sel) {
				if row.ID != p.ID || !slices.ContainsFunc(row.Values, func(c acp.Value) bool { return c.Value == p.Value }) {
					continue
				}
				if p.ID == optionEffort {
					value := p.Value
					if value == "default" {
						value = ""
					}
					ch.Effort = &value
				} else {
					provider, model, _ := strings.Cut(p.Value, "/")
					ch.Provider, ch.Model = &provider, &model
				}
				k.change(o, p.ID, ch, answer)
				return
			}
			k.Fail(noValue(p))
		})
	})
}

func noValue(p acp.SetOption) error {
	return acp.Bad("The option %s has no value %q.", p.ID, protocol.Prefix(p.Value, 100))
}

// lateOptions tells the options of a session again once the list of models is there, where the answer went without it.
func (c *Conn) lateOptions(s *session.Session) {
	done := c.d.models.pending()
	if done == nil {
		return
	}
	go func() { // ends with the list, which is bounded, or with the connection
		select {
		case <-done:
		case <-c.out.Done():
			return
		}
		s.Inspect(func(v *session.View) {
			c.out.update(s.ID, acp.OptionsChanged(c.d.options(v.Sel)))
		})
	}()
}

// models keeps the list of models that can be chosen: providers are asked over the network, which no answer waits for. Safe for concurrent use.
type models struct {
	from session.Models

	mu     sync.Mutex // guards what follows; never held over I/O
	list   []session.ModelInfo
	at     time.Time
	asking chan struct{} // closed when the list that is asked for is there; nil while none is
}

const (
	modelsFresh = time.Minute
	modelsAsked = 15 * time.Second
)

// refresh asks for the list, unless it is fresh or being asked for.
func (m *models) refresh() {
	m.mu.Lock()
	if m.asking != nil || !m.at.IsZero() && time.Since(m.at) < modelsFresh {
		m.mu.Unlock()
		return
	}
	done := make(chan struct{})
	m.asking = done
	m.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), modelsAsked)
	defer stop()
	list, _, err := m.from.List(ctx, false)
	m.mu.Lock()
	if err == nil {
		m.list, m.at = list, time.Now()
	}
	m.asking = nil
	m.mu.Unlock()
	close(done)
}

// wait waits for a list that is being asked for.
func (m *models) wait(most time.Duration) {
	done := m.pending()
	if done == nil {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

func (m *models) pending() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asking
}

func (m *models) known() []session.ModelInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list
}

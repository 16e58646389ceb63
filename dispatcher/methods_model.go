package dispatcher

import (
	"context"
	"sort"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// modelListTimeout bounds how long a provider may take to list its models.
const modelListTimeout = 15 * time.Second

func modelList(k *call) {
	refresh := k.params.Bool("refresh")
	k.inspect(func(v *session.View) {
		sel := v.Sel
		k.background(func() {
			ctx, stop := context.WithTimeout(context.Background(), modelListTimeout)
			defer stop()
			models, warning, err := k.c.d.cfg.Sessions.Models().List(ctx, refresh)
			if err != nil {
				k.fail(err)
				return
			}
			k.models(sel, models, warning)
		})
	})
}

func (k *call) models(sel session.Selection, models []session.ModelInfo, warning string) {
	res := rindv2.Models{
		Current: rindv2.ModelRef{ProviderID: sel.Provider, ModelID: sel.Model}, CurrentModel: sel.Model,
		DefaultModel: k.c.d.cfg.Sessions.Models().Default().Model,
	}
	if warning != "" {
		res.Warning = &warning
	}
	if k.c.legacy() {
		if len(models) == 0 && warning != "" {
			k.fail(protocol.Errorf(protocol.ProviderError, "%s", warning))
			return
		}
		res.Models = modelIDs(models, sel.Model)
		k.ok(res)
		return
	}
	list := make([]rindv2.Model, 0, len(models))
	for _, m := range models {
		it := rindv2.Model{ProviderID: m.Provider, ID: m.ID, Name: m.Name, API: m.API, ReasoningEfforts: m.Efforts, ImageInput: m.Images}
		if it.ReasoningEfforts == nil {
			it.ReasoningEfforts = []string{}
		}
		if m.Window > 0 {
			w := m.Window
			it.ContextWindow = &w
		}
		list = append(list, it)
	}
	res.Models = list
	k.ok(res)
}

// modelIDs is the older form: sorted ids, the current model first when it is missing.
func modelIDs(models []session.ModelInfo, current string) []string {
	seen := map[string]bool{}
	ids := []string{}
	for _, m := range models {
		if !seen[m.ID] {
			seen[m.ID] = true
			ids = append(ids, m.ID)
		}
	}
	sort.Strings(ids)
	if current != "" && !seen[current] {
		ids = append([]string{current}, ids...)
	}
	return ids
}

func modelSet(k *call) {
	model, ok := k.params.Name("model")
	if !ok {
		model, ok = k.params.Name("model_id")
	}
	provider, okp := k.params.Text("provider_id")
	switch {
	case !ok:
		k.fail(rindv2.Bad("model/set requires model."))
		return
	case protocol.CharLen(model) > 128 || strings.ContainsAny(model, " \t\r\n\v\f\u00a0"):
		k.fail(rindv2.Bad("Model name must be 1 to 128 characters without spaces."))
		return
	case !okp:
		k.fail(rindv2.Bad("provider_id must be a string."))
		return
	}
	c := session.Change{Model: &model}
	if provider != "" {
		c.Provider = &provider
	}
	k.with(func(s *session.Session) {
		s.Change(c, func(sel session.Selection, applies string, err error) {
			def := k.c.d.cfg.Sessions.Models().Default().Model
			k.settle(rindv2.ModelSet{
				ModelRef: rindv2.ModelRef{ProviderID: sel.Provider, ModelID: sel.Model}, Model: sel.Model, Session: true, Applies: applies,
				SessionModel: sel.Model, DefaultModel: def, PreviousDefault: def, NewDefault: def, ActiveUpdated: true,
			}, err)
		})
	})
}

// efforts are the reasoning efforts models know.
var efforts = map[string]bool{"none": true, "minimal": true, "low": true, "medium": true, "high": true, "xhigh": true, "max": true}

func modelEffort(k *call) {
	effort, ok := k.params.Name("reasoning_effort")
	switch {
	case !ok:
		k.fail(rindv2.Bad("model/effort requires reasoning_effort."))
		return
	case !efforts[effort]:
		k.fail(rindv2.Bad("Unsupported reasoning effort: %s", protocol.Prefix(effort, 100)))
		return
	}
	k.with(func(s *session.Session) {
		s.Change(session.Change{Effort: &effort}, func(sel session.Selection, applies string, err error) {
			k.settle(struct {
				Effort  string `json:"reasoning_effort"`
				Session bool   `json:"session"`
				Applies string `json:"applies"`
			}{sel.Effort, true, applies}, err)
		})
	})
}

func setMode(k *call) {
	mode, ok := k.params.Name("mode")
	switch {
	case !ok:
		k.fail(rindv2.Bad("rind/session/set_mode requires mode."))
		return
	case mode != "ask" && mode != "edit" && mode != "read" && mode != "full":
		k.fail(rindv2.Bad("mode must be ask, edit, read or full."))
		return
	}
	k.with(func(s *session.Session) {
		s.Change(session.Change{Mode: &mode}, func(sel session.Selection, _ string, err error) {
			k.settle(struct {
				Mode string `json:"mode"`
			}{sel.Mode}, err)
		})
	})
}

func contextInspect(k *call) {
	type breakdown struct {
		CapturedAt string             `json:"captured_at"`
		TurnID     session.TurnID     `json:"turn_id"`
		Total      int                `json:"estimated_total"`
		Window     int                `json:"context_window_tokens"`
		Sections   []protocol.Section `json:"sections"`
	}
	k.inspect(func(v *session.View) {
		res := struct {
			SessionID session.SessionID `json:"session_id"`
			Breakdown *breakdown        `json:"breakdown"`
			Latest    *protocol.Stats   `json:"latest_usage"`
		}{SessionID: v.Session.ID, Latest: v.Stats}
		if n := v.Context; n != nil {
			res.Breakdown = &breakdown{protocol.FormatTime(n.Time), n.Turn, n.Total, n.Window, n.Sections}
		}
		k.ok(res)
	})
}

func usageSummary(k *call) {
	days, ok := k.params.Int("days", 7)
	if !ok || days < 1 || days > 365 {
		k.fail(rindv2.Bad("days must be an integer from 1 to 365."))
		return
	}
	k.background(func() {
		now := k.c.d.cfg.Now().UTC()
		since := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -int(days)+1)
		rep, err := k.c.d.cfg.Sessions.Store().Usage(context.Background(), since)
		if err != nil {
			k.fail(protocol.Errorf(protocol.PersistenceError, "%v", err))
			return
		}
		k.ok(usageResult(int(days), rep))
	})
}

func usageResult(days int, rep session.UsageReport) any {
	type day struct {
		Day    string `json:"day"`
		Tokens int64  `json:"tokens"`
	}
	type model struct {
		Model   string `json:"model"`
		Tokens  int64  `json:"tokens"`
		Samples int64  `json:"samples"`
	}
	type recent struct {
		ID      string `json:"session_id"`
		Updated string `json:"updated_at"`
		Tokens  int64  `json:"tokens"`
		Samples int64  `json:"samples"`
	}
	res := struct {
		Days     int              `json:"days"`
		Totals   map[string]int64 `json:"totals"`
		ByDay    []day            `json:"by_day"`
		ByModel  []model          `json:"by_model"`
		Sessions []recent         `json:"recent_sessions"`
	}{Days: days, Totals: map[string]int64{}, ByDay: []day{}, ByModel: []model{}, Sessions: []recent{}}
	for _, name := range []string{"input", "cached", "output", "reasoning", "total", "samples", "compactions"} {
		res.Totals[name] = 0
	}
	for _, d := range rep.Days {
		for name, n := range map[string]int64{
			"input": d.Input, "cached": d.Cached, "output": d.Output, "reasoning": d.Reasoning, "total": d.Input + d.Output, "samples": d.Samples,
			"compactions": d.Compactions,
		} {
			res.Totals[name] += n
		}
		res.ByDay = append(res.ByDay, day{d.Name, d.Input + d.Output})
	}
	for _, m := range rep.Models[:min(5, len(rep.Models))] {
		res.ByModel = append(res.ByModel, model{m.Name, m.Input + m.Output, m.Samples})
	}
	for _, s := range rep.Sessions[:min(5, len(rep.Sessions))] {
		res.Sessions = append(res.Sessions, recent{s.Name, protocol.FormatTime(s.Last), s.Input + s.Output, s.Samples})
	}
	return res
}

func authList(k *call) {
	k.ok(struct {
		Providers []Provider `json:"providers"`
	}{k.c.d.cfg.Providers()})
}

package dispatcher

import (
	"context"
	"sort"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// modelListTimeout bounds how long a provider may take to list its models.
const modelListTimeout = 15 * time.Second

func modelList(k *call, p *rindv2.ModelListParams) {
	ws := ""
	if p.WorkspaceRoot != "" {
		var err error
		if ws, err = k.c.workspace(p.WorkspaceRoot); err != nil {
			k.Fail(err)
			return
		}
	}
	k.inspect(func(v *session.View) {
		sel := v.Sel
		if ws == "" {
			ws = v.Workspace
		}
		k.Background(func() {
			ctx, stop := context.WithTimeout(context.Background(), modelListTimeout)
			defer stop()
			models, warning, err := k.c.d.cfg.Sessions.Models().List(ctx, p.Refresh)
			if err != nil {
				k.Fail(err)
				return
			}
			k.models(sel, ws, models, warning)
		})
	})
}

func (k *call) models(sel session.Selection, workspace string, models []session.ModelInfo, warning string) {
	res := rindv2.Models{
		Current: rindv2.ModelRef{ProviderID: sel.Provider, ModelID: sel.Model}, CurrentModel: sel.Model,
		DefaultModel: k.c.d.cfg.Sessions.Default(workspace).Model, // what a new session there begins with, under the folder's defaults
	}
	if warning != "" {
		res.Warning = &warning
	}
	if k.c.legacy() {
		if len(models) == 0 && warning != "" {
			k.Fail(protocol.Errorf(protocol.ProviderError, "%s", warning))
			return
		}
		res.Models = modelIDs(models, sel.Model)
		k.OK(res)
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
	k.OK(res)
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

func modelSet(k *call, p *rindv2.ModelSetParams) {
	c := session.Change{Model: &p.Model}
	if p.ProviderID != "" {
		c.Provider = &p.ProviderID
	}
	k.with(func(s *session.Session) {
		s.Change(c, func(sel session.Selection, applies string, err error) {
			def := k.c.d.cfg.Sessions.Default(s.Workspace()).Model
			k.Settle(rindv2.ModelSet{
				ModelRef: rindv2.ModelRef{ProviderID: sel.Provider, ModelID: sel.Model}, Model: sel.Model, Session: true, Applies: applies,
				SessionModel: sel.Model, DefaultModel: def, PreviousDefault: def, NewDefault: def, ActiveUpdated: true,
			}, err)
		})
	})
}

func modelEffort(k *call, p *rindv2.EffortParams) {
	k.with(func(s *session.Session) {
		s.Change(session.Change{Effort: &p.ReasoningEffort}, func(sel session.Selection, applies string, err error) {
			k.Settle(rindv2.Effort{ReasoningEffort: sel.Effort, Session: true, Applies: applies}, err)
		})
	})
}

func setMode(k *call, p *rindv2.ModeParams) {
	k.with(func(s *session.Session) {
		s.Change(session.Change{Mode: &p.Mode}, func(sel session.Selection, _ string, err error) { k.Settle(rindv2.Mode{Mode: sel.Mode}, err) })
	})
}

func contextInspect(k *call, _ *rindv2.Target) {
	k.inspect(func(v *session.View) {
		res := rindv2.ContextInspect{SessionID: v.Session.ID, LatestUsage: v.Stats}
		if n := v.Context; n != nil {
			res.Breakdown = &rindv2.Breakdown{
				CapturedAt: protocol.FormatTime(n.Time), TurnID: n.Turn, EstimatedTotal: n.Total, ContextWindowTokens: n.Window, Sections: n.Sections,
			}
		}
		k.OK(res)
	})
}

func usageSummary(k *call, p *rindv2.UsageParams) {
	k.Background(func() {
		now := k.c.d.cfg.Now().UTC()
		since := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -p.Days+1)
		rep, err := k.c.d.cfg.Sessions.Store().Usage(context.Background(), since)
		if err != nil {
			k.Fail(protocol.Errorf(protocol.PersistenceError, "%v", err))
			return
		}
		k.OK(usageResult(p.Days, rep))
	})
}

func usageResult(days int, rep session.UsageReport) rindv2.Usage {
	res := rindv2.Usage{Days: days, ByDay: []rindv2.DayUsage{}, ByModel: []rindv2.ModelUsage{}, RecentSessions: []rindv2.SessionUsage{}}
	for _, d := range rep.Days {
		t := &res.Totals
		t.Input += d.Input
		t.Cached += d.Cached
		t.Output += d.Output
		t.Reasoning += d.Reasoning
		t.Total += d.Input + d.Output
		t.Samples += d.Samples
		t.Compactions += d.Compactions
		res.ByDay = append(res.ByDay, rindv2.DayUsage{Day: d.Name, Tokens: d.Input + d.Output})
	}
	for _, m := range rep.Models[:min(5, len(rep.Models))] {
		res.ByModel = append(res.ByModel, rindv2.ModelUsage{Model: m.Name, Tokens: m.Input + m.Output, Samples: m.Samples})
	}
	for _, s := range rep.Sessions[:min(5, len(rep.Sessions))] {
		res.RecentSessions = append(res.RecentSessions, rindv2.SessionUsage{
			SessionID: session.SessionID(s.Name), UpdatedAt: protocol.FormatTime(s.Last), Tokens: s.Input + s.Output, Samples: s.Samples,
		})
	}
	return res
}

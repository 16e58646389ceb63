package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Retries of one step (docs/protocol/rind-v2.md section 7.3).
const (
	connectTries = 5
	cutRetries   = 3
	contextTries = 4 // requests of a step that is too long for the model, the one that compacts it among them
	retryCap     = 60 * time.Second
)

// completion is one answer of a model as it came in.
type completion struct {
	messageID string
	text      strings.Builder
	thought   strings.Builder
	opaque    []json.RawMessage
	calls     []*madeCall
	usage     *Usage
	finish    Finish
	shown     bool // something of it was told
}

// madeCall is a call the model wrote.
type madeCall struct {
	id         string // ours
	providerID string
	name       string
	raw        string
	ended      bool
}

// sample makes one completion and records it; the result is the step it made (stepFinal or stepCalls).
func (w *work) sample(ctx context.Context) (string, error) {
	msgs, err := w.messages()
	if err != nil {
		return "", err
	}
	full, err := w.crowded(msgs)
	if err != nil {
		return "", err
	}
	w.noteContext(msgs, full)
	if full {
		if _, err := w.compact(ctx, protocol.CompactAuto, protocol.CompactMidTurn); err != nil {
			return "", err
		}
		if msgs, err = w.messages(); err != nil {
			return "", err
		}
		w.noteContext(msgs, false)
	}
	req := ModelRequest{Model: w.t.Selection.Model, Effort: w.t.Selection.Effort, Messages: msgs, Tools: w.offered, Session: w.t.Session()}
	a := attempts{rescue: rescue{compacted: full}}
	for {
		c := &completion{messageID: w.t.NewID()}
		began := time.Now()
		err := w.stream(ctx, req, c)
		w.Log.Debug("model request", "session", w.t.Session(), "turn", w.t.ID, "model", req.Model, "messages", len(req.Messages), "finish", c.finish,
			"ms", time.Since(began).Milliseconds(), "chars", c.text.Len())
		if err == nil {
			return w.record(c)
		}
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		m, ok := errors.AsType[*ModelError](err)
		if !ok {
			return "", err
		}
		if err := w.tryAgain(ctx, &a, &req, c, m); err != nil {
			return "", err
		}
	}
}

// stream reads one completion, telling its text as it comes.
func (w *work) stream(ctx context.Context, req ModelRequest, c *completion) error {
	t := w.t
	for chunk, err := range w.model.Model.Generate(ctx, req) {
		if err != nil {
			return err
		}
		switch chunk.Kind {
		case ChunkText:
			c.shown = true
			c.text.WriteString(chunk.Text)
			t.Say(c.messageID, chunk.Text)
		case ChunkReasoning:
			c.shown = true
			c.thought.WriteString(chunk.Text)
			t.Think(c.messageID, chunk.Text)
		case ChunkOpaque:
			c.opaque = append(c.opaque, bytes.Clone(chunk.Opaque))
		case ChunkCallStart:
			c.shown = true
			mc := &madeCall{providerID: chunk.CallID, name: strings.ToValidUTF8(chunk.Name, "\uFFFD")}
			if mc.name == "" {
				mc.name = unnamedTool
			}
			if mc.id, err = w.callID(c, chunk.CallID); err != nil {
				return err
			}
			c.calls = append(c.calls, mc)
			t.Note(&protocol.ToolInputStarted{ToolCallID: mc.id, ToolName: mc.name})
		case ChunkCallDelta:
			if mc := c.call(chunk.CallID); mc != nil {
				t.Type(mc.id, mc.name, strings.ToValidUTF8(chunk.Text, "\uFFFD"))
			}
		case ChunkCallEnd:
			mc := c.call(chunk.CallID)
			if mc == nil {
				continue
			}
			mc.raw, mc.ended = strings.ToValidUTF8(chunk.Text, "\uFFFD"), true
			t.Note(&protocol.ToolInputEnded{ToolCallID: mc.id, ToolName: mc.name})
		case ChunkUsage:
			u := chunk.Usage
			c.usage = &u
		case ChunkFinish:
			c.finish = chunk.Finish
		}
	}
	if cause := context.Cause(ctx); cause != nil && c.finish == "" {
		return cause
	}
	if c.finish == "" {
		return &ModelError{Fault: FaultCut, Message: "The model's answer ended before it was complete."}
	}
	return nil
}

// unnamedTool is the name of a call that names no tool: without one no provider would take it back.
const unnamedTool = "unnamed"

// call finds the newest open call the provider names so.
func (c *completion) call(providerID string) *madeCall {
	for i := len(c.calls) - 1; i >= 0; i-- {
		if mc := c.calls[i]; mc.providerID == providerID && !mc.ended {
			return mc
		}
	}
	return nil
}

// callID keeps the provider's id unless it is empty, odd, or was used in this session before: then nobody sees it.
func (w *work) callID(c *completion, id string) (string, error) {
	used := id == "" || len(id) > 128 || strings.ToValidUTF8(id, "") != id || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' })
	for _, mc := range c.calls {
		used = used || mc.id == id
	}
	if !used {
		if err := w.t.View(func(_ *State, _ *OpenTurn, past *History) { used = past.usedCallID(id) }); err != nil {
			return "", err
		}
	}
	if used {
		return "call_" + w.t.s.all.cfg.IDs.Hex32()[:24], nil
	}
	return id, nil
}

// record stores what a completion said, in one transaction and in the order of docs/protocol/rind-v2.md section 5.1.
func (w *work) record(c *completion) (string, error) {
	bodies := []protocol.Body{w.stats(c)}
	thought := c.thought.String()
	if thought != "" || len(c.opaque) > 0 {
		r := &protocol.ReasoningCompleted{Content: thought, ContentChars: protocol.CharLen(thought)}
		r.More.MessageID, r.More.Provider, r.More.Model = c.messageID, w.model.Info.Provider, w.t.Selection.Model
		r.More.Hidden = thought == ""
		if len(c.opaque) > 0 {
			r.More.Opaque = protocol.MustMarshal(c.opaque)
		}
		bodies = append(bodies, r)
	}
	if c.finish == FinishLength || c.finish == FinishFilter {
		if err := w.t.Record(bodies...); err != nil {
			return "", err
		}
		if c.finish == FinishLength {
			return "", &Failure{Type: protocol.FailTruncated, Status: "failed", Source: "provider", Message: "The model's answer was cut off at its length limit."}
		}
		return "", &Failure{Type: protocol.FailFiltered, Status: "rejected", Source: "provider", Message: "The provider's content filter stopped the answer."}
	}
	if text := strings.ToValidUTF8(c.text.String(), "\uFFFD"); text != "" {
		bodies = append(bodies, &protocol.AssistantMessageCompleted{Content: text, ContentChars: protocol.CharLen(text), MessageID: c.messageID})
	}
	step, polls := stepFinal, true
	var batch strings.Builder
	for _, mc := range c.calls {
		if !mc.ended {
			return "", &Failure{Type: protocol.FailInterrupted, Status: "failed", Source: "provider", Message: "The model began a tool call and did not finish it."}
		}
		step = stepCalls
		r := requested(mc, c.messageID)
		bodies = append(bodies, r)
		if mc.name == "update_plan" {
			if plan := planOf(r.Arguments); plan != nil {
				bodies = append(bodies, &protocol.PlanUpdated{ToolCallID: mc.id, Plan: plan})
			}
		}
		batch.WriteString(mc.name + " " + mc.raw + "\n")
		polls = polls && waits(mc.name, r.Arguments)
	}
	if err := w.t.Record(bodies...); err != nil {
		return "", err
	}
	if polls && len(c.calls) > 0 { // waiting for a long task again and again is what the tool is for
		return step, nil
	}
	return step, w.repeated(batch.String())
}

// repeated fails a turn that asks for the same calls over and over.
func (w *work) repeated(batch string) error {
	if batch == "" || batch != w.lastBatch {
		w.lastBatch, w.repeats = batch, 0
		return nil
	}
	if w.repeats++; w.repeats < maxRepeats {
		return nil
	}
	return limitReached("The model asked for the same tool calls again and again; the turn was stopped.")
}

// requested makes the fact of one call. Arguments that are no JSON object are kept as text and shown as {}.
func requested(mc *madeCall, messageID string) *protocol.ToolRequested {
	r := &protocol.ToolRequested{ToolCallID: mc.id, ToolName: mc.name, ArgsPreview: protocol.Prefix(mc.raw, 500)}
	r.More.MessageID = messageID
	if mc.providerID != mc.id {
		r.More.ProviderID = mc.providerID
	}
	args, same, ok := objectOf(mc.raw)
	r.Arguments = args
	if ok && loneSurrogate([]byte(mc.raw)) >= 0 { // clients read the preview as JSON, some of them strictly
		r.ArgsPreview = protocol.Prefix(string(args), 500)
	}
	if !ok {
		r.More.Bad = true
	}
	if !same {
		r.More.Raw = mc.raw
	}
	return r
}

// objectOf reads raw as a JSON object; empty text is {}. Lone surrogates become U+FFFD, nesting over 256 is refused.
func objectOf(raw string) (args json.RawMessage, same, ok bool) {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return json.RawMessage(`{}`), true, true
	}
	if trimmed[0] != '{' || !json.Valid([]byte(trimmed)) || protocol.Deeper(trimmed, 256) {
		return json.RawMessage(`{}`), false, false
	}
	if !strings.Contains(trimmed, `\u`) && !strings.Contains(trimmed, "\u2028") && !strings.Contains(trimmed, "\u2029") {
		var out bytes.Buffer
		if json.Compact(&out, []byte(trimmed)) == nil {
			return out.Bytes(), true, true
		}
	}
	dec := json.NewDecoder(strings.NewReader(trimmed))
	dec.UseNumber()
	var v map[string]any
	if dec.Decode(&v) != nil {
		return json.RawMessage(`{}`), false, false
	}
	return protocol.MustMarshal(v), true, true
}

// planOf reads the arguments of update_plan; nil when they are no plan.
func planOf(args json.RawMessage) []protocol.PlanStep {
	var a struct {
		Plan []protocol.PlanStep `json:"plan"`
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields() // the tool refuses these, and what it refuses is not told as a plan
	if dec.Decode(&a) != nil || a.Plan == nil {
		return nil
	}
	busy := 0
	for _, s := range a.Plan {
		switch s.Status {
		case "in_progress":
			busy++
		case "pending", "completed", "cancelled":
		default:
			return nil
		}
		if strings.TrimSpace(s.Step) == "" {
			return nil
		}
	}
	if busy > 1 {
		return nil
	}
	return a.Plan
}

// stats makes the note of what a sampling used.
func (w *work) stats(c *completion) *protocol.TokenStatsUpdated {
	window := w.window()
	st := protocol.Stats{SamplingKind: "assistant", ContextWindowTokens: window, Anchor: anchorProvider}
	u := c.usage
	if u == nil {
		st.Anchor = anchorEstimate
		u = &Usage{Input: w.estimate, Output: tokens(c.text.Len() + c.thought.Len())}
	}
	st.InputTokens, st.CachedInputTokens, st.OutputTokens, st.ReasoningOutputTokens = u.Input, u.Cached, u.Output, u.Reasoning
	st.TotalTokens = u.Input + u.Output
	if u.Input > 0 {
		st.CacheHitRate = float64(u.Cached) / float64(u.Input)
	}
	st.ContextUsagePercent = float64(st.TotalTokens) / float64(window)
	b := &protocol.TokenStatsUpdated{Stats: st}
	b.More.Model, b.More.Provider, b.More.Estimate = w.t.Selection.Model, w.model.Info.Provider, w.estimate
	if p := w.model.Info.Price; p != nil && st.Anchor == anchorProvider { // the list price: what a cache saves is the provider's to say
		cost := (float64(u.Input)*p.Input + float64(u.Output)*p.Output) / 1e6
		b.More.Cost = &cost
	}
	return b
}

// Where the numbers of a sampling come from.
const (
	anchorProvider = "provider"
	anchorEstimate = "estimate"
)

// tokens estimates the tokens of a text of n bytes.
func tokens(n int) int { return (n + 3) / 4 }

// noteContext tells what the next request is made of; full says that it is compacted first.
func (w *work) noteContext(msgs []Message, full bool) {
	sections := []protocol.Section{
		{Key: "system", Label: "System prompt"},
		{Key: "tools", Label: "Tools"},
		{Key: "user", Label: "User messages"},
		{Key: "assistant", Label: "Assistant messages"},
		{Key: "results", Label: "Tool results"},
	}
	sections[1].Tokens = w.toolTokens()
	place := map[Role]int{RoleSystem: 0, RoleUser: 2, RoleAssistant: 3, RoleTool: 4}
	for i := range msgs {
		m := &msgs[i]
		if i == 0 && m.Role == RoleSystem && len(w.guide) > 0 {
			continue // counted by its parts, below
		}
		s := &sections[place[m.Role]]
		s.Messages++
		s.Tokens += m.tokens()
	}
	for _, p := range w.guide {
		i := slices.IndexFunc(sections, func(s protocol.Section) bool { return s.Key == p.Key })
		if i < 0 {
			i = len(sections)
			sections = append(sections, protocol.Section{Key: p.Key, Label: p.Label})
		}
		sections[i].Tokens += tokens(len(p.Text))
	}
	if len(w.guide) > 0 {
		sections[0].Messages++
	}
	b := &protocol.ContextBuilt{MessageCount: len(msgs), Stats: map[string]int{}, Decisions: protocol.ContextDecisions{RindDocsTruncatedScopes: truncatedScopes(w.guide)}}
	b.Decisions.RindDocsTruncated = len(b.Decisions.RindDocsTruncatedScopes) > 0
	b.Decisions.AutoCompactTokenLimitReached, b.Decisions.CompactRequired = full, full
	for _, s := range sections {
		b.More.EstimatedTotal += s.Tokens
		b.Stats[s.Key+"_tokens"] = s.Tokens
	}
	b.More.Sections, b.More.Window = sections, w.model.Info.Window
	w.estimate = b.More.EstimatedTotal
	w.t.Note(b)
}

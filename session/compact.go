package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of a compaction (docs/decisions.md).
const (
	compactAt        = 0.9     // of the window: the next request is compacted for
	compactTries     = 3       // attempts to have the model write the summary while it cannot be reached
	keepUserChars    = 8_000   // of the person's last message, kept as it was said
	keepSummaryChars = 60_000  // of the summary
	shedResultBytes  = 2 << 10 // of an old tool result, when the history is too long for the request that summarises it
)

// compactPrompt asks for the summary. It stands at the end of the whole conversation, so that a provider's prompt cache serves the rest.
const compactPrompt = "The conversation is about to be replaced by a summary that you write now; afterwards you will know nothing else of it. " +
	"Write it for yourself, to go on without a gap: what the person wants and has decided, what was done (files with paths, commands and their outcome), " +
	"what was found out, what is left to do and the very next step, and anything that must not be forgotten or done again. " +
	"Facts only, no greeting. Do not call tools."

// compact replaces the model's view of the conversation by a summary. Log and history stay complete. The returned number counts model
// requests made.
func (w *work) compact(ctx context.Context, reason, phase string) (requests int, err error) {
	msgs, err := w.messages()
	if err != nil {
		return 0, err
	}
	kept, given, through := 0, 0, Seq(0)
	if err := w.t.View(func(_ *State, _ *OpenTurn, past *History) { kept, given, through = past.unheard() }); err != nil {
		return 0, err
	}
	msgs = msgs[:len(msgs)-given] // what was not looked at yet stays as it was said
	rec := protocol.Compaction{Reason: reason, Phase: phase, PolicyVersion: protocol.CompactPolicy, Strategy: protocol.CompactByModel}
	summary, usage, requests, failure := w.summarise(ctx, msgs)
	if cause := context.Cause(ctx); cause != nil {
		return requests, cause
	}
	if failure != nil {
		w.Log.Info("compaction without a model", "session", w.t.Session(), "turn", w.t.ID, "err", failure)
		rec.Strategy, rec.FallbackError = protocol.CompactWithout, messageOf(shownError(failure))
	}
	var bodies []protocol.Body
	if usage != nil {
		bodies = append(bodies, usage)
		rec.Usage = &usage.Stats
	}
	if err := w.t.View(func(st *State, open *OpenTurn, past *History) {
		rec.Source = past.source(guideText(w.guide), st.Created, kept)
		if failure != nil {
			summary = past.digest()
		}
		rec.ContinuationUserMessage = protocol.CompactionMessage{Role: string(RoleUser), Content: continuation(st, open, past, kept)}
	}); err != nil {
		return requests, err
	}
	rec.ID, rec.CreatedAt = w.t.s.all.cfg.IDs.Hex32(), protocol.FormatTime(w.Now())
	rec.HandoffMessage = protocol.CompactionMessage{Role: string(RoleAssistant), Content: cutMiddle(summary, keepSummaryChars)}
	b := &protocol.ContextCompacted{Record: protocol.MustMarshal(rec)}
	b.More.Through = through
	if err := w.t.Record(append(bodies, b)...); err != nil {
		return requests, err
	}
	w.t.compacted = b.Record
	return requests, nil
}

// shownError is what a user may be told of a failed model request.
func shownError(err error) error {
	if m, ok := errors.AsType[*ModelError](err); ok {
		return errors.New(m.Message)
	}
	return err
}

// summarise has the model write the summary. Nothing of it is told as it comes.
func (w *work) summarise(ctx context.Context, msgs []Message) (string, *protocol.TokenStatsUpdated, int, error) {
	ask := Message{Role: RoleUser, Text: compactPrompt}
	if limit := int(float64(w.window()) * compactAt); estimate(msgs) > limit {
		msgs = shed(msgs, limit)
	}
	req := ModelRequest{
		Model: w.t.Selection.Model, Effort: w.t.Selection.Effort, Messages: append(slices.Clip(msgs), ask), Tools: w.offered, Session: w.t.Session(),
	}
	for tries := 1; ; tries++ {
		c := &completion{}
		err := w.listen(ctx, req, c)
		if err == nil {
			text := strings.TrimSpace(strings.ToValidUTF8(c.text.String(), "\uFFFD"))
			stats := w.stats(c)
			stats.Stats.SamplingKind = protocol.SamplingCompact
			if text == "" {
				return "", stats, tries, errors.New("the model wrote no summary")
			}
			return text, stats, tries, nil
		}
		m, ok := errors.AsType[*ModelError](err)
		if !ok || retryOf(m, false) == retryNever || tries >= compactTries {
			return "", nil, tries, err
		}
		if err := w.Pause(ctx, connectDelay(tries-1, m.RetryAfter)); err != nil {
			return "", nil, tries, err
		}
	}
}

// listen reads a completion's text without telling it; calls are not looked at.
func (w *work) listen(ctx context.Context, req ModelRequest, c *completion) error {
	for chunk, err := range w.model.Model.Generate(ctx, req) {
		if err != nil {
			return err
		}
		switch chunk.Kind {
		case ChunkText:
			if c.text.Len() < 4*keepSummaryChars {
				c.text.WriteString(chunk.Text)
			}
		case ChunkUsage:
			u := chunk.Usage
			c.usage = &u
		case ChunkFinish:
			c.finish = chunk.Finish
		}
	}
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case c.finish == "":
		return &ModelError{Fault: FaultCut, Message: "The model's answer ended before it was complete."}
	case c.finish == FinishFilter:
		return errors.New("the provider's content filter stopped the summary")
	}
	return nil
}

// window is the model's context window in tokens.
func (w *work) window() int {
	if n := w.model.Info.Window; n > 0 {
		return n
	}
	return windowTokens
}

// crowded reports whether the next request would come too close to the window, and there is something to compact.
func (w *work) crowded(msgs []Message) (bool, error) {
	ratio, fresh := 1.0, false
	if err := w.t.View(func(st *State, _ *OpenTurn, past *History) {
		if st.TokenRatio > 0 {
			ratio = st.TokenRatio
		}
		fresh = !past.compactable()
	}); err != nil {
		return false, err
	}
	return !fresh && float64(estimate(msgs)+w.toolTokens())*ratio > compactAt*float64(w.window()), nil
}

// estimate counts the tokens of messages without a tokenizer.
func estimate(msgs []Message) int {
	n := 0
	for i := range msgs {
		n += msgs[i].tokens()
	}
	return n
}

func (m *Message) tokens() int {
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	for _, p := range m.Parts {
		n += len(p.Text)
		if len(p.Data) > 0 {
			n += 6_000 // an image costs about as much whatever its bytes are
		}
	}
	return tokens(n) + 4
}

// toolTokens counts what the offered tools add to each request.
func (w *work) toolTokens() int {
	n := 0
	for _, s := range w.offered {
		n += tokens(len(s.Description) + len(s.Schema) + len(s.Name))
	}
	return n
}

// shed makes messages fit into limit tokens: old tool results lose their middle, then the oldest exchanges are left out, then the longest
// texts are cut. What is left is valid: a call keeps its result.
func shed(msgs []Message, limit int) []Message {
	out := slices.Clone(msgs)
	total := estimate(out)
	head := 0
	for head < len(out) && out[head].Role == RoleSystem {
		head++
	}
	last := len(out) - 1
	for last > head && out[last].Role != RoleUser {
		last--
	}
	for i := head; i < last && total > limit; i++ {
		if m := out[i]; m.Role == RoleTool && len(m.Text) > shedResultBytes {
			total -= m.tokens()
			m.Text, m.Parts = cutMiddle(m.Text, shedResultBytes), nil
			out[i] = m
			total += m.tokens()
		}
	}
	from := head
	for from < last && total > limit {
		total -= out[from].tokens()
		from++
		for from < last && out[from].Role == RoleTool { // results go with their calls
			total -= out[from].tokens()
			from++
		}
	}
	if from > head {
		note := Message{Role: RoleUser, Text: "[Older messages were left out: the conversation is too long for the model.]"}
		out = append(append(slices.Clone(out[:head]), note), out[from:]...)
	}
	for most := 64 << 10; total > limit && most >= 256; most /= 2 {
		for i := range out {
			if m := out[i]; len(m.Text) > most {
				m.Text = cutMiddle(m.Text, most)
				out[i] = m
			}
		}
		total = estimate(out)
	}
	return out
}

// boundary is a compaction as the history knows it.
type boundary struct {
	at     int // items before it are replaced in the model's view
	shown  int // messages of message mode before it, the system prompt included
	record protocol.Compaction
}

// compactable reports whether anything was said since the last compaction.
func (h *History) compactable() bool {
	for _, it := range h.items[h.compacted.at:] {
		if it.Role == RoleAssistant && (it.Text != "" || len(it.Calls) > 0) {
			return true
		}
	}
	return false
}

// unheard counts the user messages at the end that no answer followed yet, and those of them the model is given, and names the entry before
// them; all are 0 where everything is replaced.
func (h *History) unheard() (kept, given int, through Seq) {
	i := len(h.items)
	for i > h.compacted.at && (h.items[i-1].Role == RoleUser || h.items[i-1].Role == RoleSystem) {
		i--
	}
	if i == len(h.items) || i == h.compacted.at || h.items[i].Seq == h.items[i-1].Seq {
		return 0, 0, 0
	}
	for _, it := range h.items[i:] {
		if !h.refused[it.Turn] {
			given++
		}
	}
	return len(h.items) - i, given, h.items[i].Seq - 1
}

// source names what a compaction made now stands for; the last kept items are not in it.
func (h *History) source(system string, created time.Time, kept int) protocol.CompactionSource {
	all := h.wire(system, created)
	for _, it := range h.items[len(h.items)-kept:] {
		if !it.Hidden && it.Role != RoleSystem {
			all = all[:len(all)-1]
		}
	}
	src := protocol.CompactionSource{MessageStartIndex: max(1, h.compacted.shown), MessageEndIndexExclusive: len(all), ToolCallIDs: []string{}}
	src.MessageStartIndex = min(src.MessageStartIndex, len(all))
	sum := sha256.New()
	for _, m := range all[src.MessageStartIndex:] {
		sum.Write(protocol.MustMarshal(m))
		sum.Write([]byte{'\n'})
		for _, c := range m.ToolCalls {
			src.ToolCallIDs = append(src.ToolCallIDs, c.ID)
		}
	}
	src.HistoryDigest = hex.EncodeToString(sum.Sum(nil))
	return src
}

// compact folds a compaction in.
func (h *History) compact(b *protocol.ContextCompacted) {
	var rec protocol.Compaction
	if b.More.Provider != "" || json.Unmarshal(b.Record, &rec) != nil || rec.HandoffMessage.Content == "" {
		return // a hosted agent's own, or made by a version that words it differently: the model's view stays whole
	}
	at := len(h.items)
	for b.More.Through > 0 && at > h.compacted.at && h.items[at-1].Seq > b.More.Through {
		at--
	}
	h.compacted = boundary{at: at, shown: rec.Source.MessageEndIndexExclusive, record: rec}
}

// summary are the messages that stand for everything before the boundary.
func (h *History) summary() []Message {
	if h.compacted.at == 0 {
		return nil
	}
	rec := &h.compacted.record
	return []Message{
		{ID: "continuation_" + rec.ID, Role: RoleUser, Text: rec.ContinuationUserMessage.Content},
		{ID: "handoff_" + rec.ID, Role: RoleAssistant, Text: rec.HandoffMessage.Content},
	}
}

// Compact asks for a turn that only compacts (docs/protocol/rind-v2.md section 7.8). done is called exactly once: with the outcome, whose
// Record is the compaction's, or with an error when there was no turn: TurnActive, InvalidRequest when nothing was said since the last one, or
// UnsupportedOperation (ErrAgentCompacts where its own command does it) when a hosted agent answers the session.
func (s *Session) Compact(done func(Outcome, error)) *Prompt {
	p := &Prompt{s: s, req: PromptRequest{compact: true}, done: []func(Outcome, error){done}}
	if !s.post(func() {
		s.door.enter(func() {
			switch {
			case s.lane.busy():
				p.finish(Outcome{}, protocol.Errorf(protocol.TurnActive, "Cannot compact context while a turn is active."))
			case s.draft.Load() || s.next.FreshCompaction || s.next.Messages == 0:
				p.finish(Outcome{}, protocol.Errorf(protocol.InvalidRequest, "Not enough messages to compact. Send a message first."))
			case s.agentCompacts() != nil:
				p.finish(Outcome{}, s.agentCompacts())
			default:
				s.admit(p)
			}
		})
	}) {
		done(Outcome{}, errGone(s.ID))
	}
	return p
}

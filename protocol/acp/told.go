package acp

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// telling is one row of the table below.
type telling struct {
	// update names what is told, in the words of the catalogue; "" for nothing: the cursor moves on.
	update string
	tell   func(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told
}

// told is the one table of what is told of each kind of entry (docs/protocol/acp.md section 3, docs/protocol/catalogue.md). A row without
// tell is of a kind that tells by itself nothing: turn_completed and its like are the prompt's answer, commands_changed comes from hosted
// agents only.
var told [256]telling

func init() { // a table that refers to functions which read it
	told = [256]telling{
		protocol.KindSessionForked:             {"load", forked},
		protocol.KindUserMessage:               {UserChunk, userMessage},
		protocol.KindAssistantDelta:            {AgentChunk, assistantDelta},
		protocol.KindReasoningDelta:            {ThoughtChunk, reasoningDelta},
		protocol.KindReasoningCompleted:        {ThoughtChunk, reasoningCompleted},
		protocol.KindTurnStepRetry:             {NoticeUpdate, stepRetry},
		protocol.KindTokenStatsUpdated:         {UsageUpdate, tokenStats},
		protocol.KindAssistantMessageCompleted: {AgentChunk, messageCompleted},
		protocol.KindToolRequested:             {ToolCall, toolRequested},
		protocol.KindPlanUpdated:               {PlanUpdate, planUpdated},
		protocol.KindApprovalRequested:         {"request_permission", approvalRequested},
		protocol.KindApprovalResolved:          {"$/cancel_request", approvalResolved},
		protocol.KindToolCallStarted:           {ToolCallUpdate, toolStarted},
		protocol.KindUserQuestionRequested:     {"elicitation", questionRequested},
		protocol.KindUserQuestionAnswered:      {"$/cancel_request", questionAnswered},
		protocol.KindToolProgress:              {ToolCallUpdate, toolProgress},
		protocol.KindFileChange:                {"", fileChange}, // its diff goes with the result
		protocol.KindToolResult:                {ToolCallUpdate, toolResult},
		protocol.KindNotice:                    {NoticeUpdate, notice},
		protocol.KindCommandsChanged:           {CommandsUpdate, commandsChanged},
		protocol.KindQueuedInputDelivered:      {UserChunk, inputDelivered},
		protocol.KindQueuedInputReturned:       {"", inputReturned}, // the answer names it
		protocol.KindContextCompacted:          {CompactionUpdate, compacted},
		protocol.KindTurnCompleted:             {"answer", turnEnded},
		protocol.KindTurnFailed:                {"answer", turnFailed},
		protocol.KindTurnCancelled:             {"answer", turnEnded},
		protocol.KindTaskUpdated:               {NoticeUpdate, taskUpdated},
		protocol.KindSessionSettingsChanged:    {OptionsUpdate + "," + ModeUpdate, settingsChanged},
		protocol.KindSessionRenamed:            {InfoUpdate, renamed},
	}
}

func update(dst []Told, v any) []Told { return append(dst, Told{Update: protocol.MustMarshal(v)}) }

// forked tells what a fork copied, as history in any case.
func forked(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	was := t.replay
	t.replay = true
	defer func() { t.replay = was }()
	for _, raw := range b.(*protocol.SessionForked).More.Entries {
		var f protocol.ForkedEntry
		if json.Unmarshal(raw, &f) != nil {
			continue
		}
		e := protocol.Entry{Turn: f.Turn, Kind: f.Kind, Event: f.Event, More: f.More}
		if row := &told[f.Kind]; row.tell != nil && f.Kind != protocol.KindSessionForked {
			if b, err := protocol.Decode(&e); err == nil && b != nil {
				dst = row.tell(t, dst, &e, b)
			}
		}
	}
	return dst
}

func (t *Teller) own(turn protocol.TurnID) bool { return !t.replay && t.Own != nil && t.Own(turn) }

// said tells a message in full, in pieces that fit a line.
func said(dst []Told, kind, id, text string) []Told {
	for text != "" {
		piece := cut(text, maxPiece)
		dst = append(dst, Told{Chunk: &Chunk{kind, id, piece}})
		text = text[len(piece):]
	}
	return dst
}

func user(dst []Told, id, text string, parts []protocol.Part) []Told {
	dst = said(dst, UserChunk, id, text)
	for _, p := range parts {
		dst = update(dst, chunkUpdate{UserChunk, id, partContent(p)})
	}
	return dst
}

func userMessage(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	m := &b.(*protocol.UserMessage).More
	if m.Origin != protocol.OriginUser || t.own(e.Turn) {
		return dst
	}
	return user(dst, m.ID, m.Text, m.Parts)
}

func inputDelivered(_ *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	q := b.(*protocol.QueuedInputDelivered)
	return user(dst, q.InputID, q.Input, q.More.Parts)
}

// inputReturned keeps the id of an input that never reached the model, for the answer.
func inputReturned(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	if t.own(e.Turn) {
		t.dropped[e.Turn] = append(t.dropped[e.Turn], b.(*protocol.QueuedInputReturned).InputID)
	}
	return dst
}

// piece tells what a piece of a message holds beyond what was told. Its place is in characters; -1 says that it follows on what came before.
func (t *Teller) piece(dst []Told, of map[protocol.TurnID]*heard, turn protocol.TurnID, kind, id, shown string, at int, text string) []Told {
	h := of[turn]
	if h == nil || h.id != id {
		h = &heard{id: id, sum: sum0}
		of[turn] = h
	}
	if t.replay {
		h.sofar = append(h.sofar, text...)
		return dst
	}
	if at < 0 {
		at = h.chars
	}
	n := protocol.CharLen(text)
	if at > h.chars || at+n <= h.chars { // something before it is gone, the fact tells both; or it is known
		return dst
	}
	text = text[len(protocol.Prefix(text, h.chars-at)):]
	h.chars = at + n
	h.sum = more(h.sum, text)
	if last := len(dst) - 1; t.merge && last >= t.base && dst[last].Chunk != nil && dst[last].Chunk.Kind == kind && dst[last].Chunk.MessageID == shown &&
		len(dst[last].Chunk.Text)+len(text) <= maxPiece {
		dst[last].Chunk.Text += text
		return dst
	}
	return said(dst, kind, shown, text)
}

// rest tells what a finished message holds beyond what was told of it.
func (t *Teller) rest(dst []Told, of map[protocol.TurnID]*heard, turn protocol.TurnID, kind, id, shown, text string) []Told {
	h := of[turn]
	delete(of, turn)
	if h == nil || h.id != id && h.id != "" || h.chars == 0 {
		return said(dst, kind, shown, text)
	}
	known := protocol.Prefix(text, h.chars)
	if more(sum0, known) != h.sum { // what was told is not how it begins
		return said(dst, kind, shown+"-whole", text)
	}
	if h.id == "" { // its pieces had no id
		shown = ""
	}
	return said(dst, kind, shown, text[len(known):])
}

func assistantDelta(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	d := b.(*protocol.AssistantDelta)
	at := d.More.Offset
	if d.More.MessageID == "" {
		at = -1
	}
	return t.piece(dst, t.text, e.Turn, AgentChunk, d.More.MessageID, d.More.MessageID, at, d.Text)
}

func messageCompleted(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	m := b.(*protocol.AssistantMessageCompleted)
	return t.rest(dst, t.text, e.Turn, AgentChunk, m.MessageID, m.MessageID, m.Content)
}

// thoughtID is the id of the thoughts before a message: the chunks of an id add up to one text, so it cannot be the message's.
func thoughtID(message string) string {
	if message == "" {
		return ""
	}
	return message + "-thought"
}

func reasoningDelta(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	d := b.(*protocol.ReasoningDelta)
	return t.piece(dst, t.thought, e.Turn, ThoughtChunk, d.More.MessageID, thoughtID(d.More.MessageID), -1, d.Text)
}

func reasoningCompleted(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	r := b.(*protocol.ReasoningCompleted)
	if r.More.Hidden {
		return dst
	}
	return t.rest(dst, t.thought, e.Turn, ThoughtChunk, r.More.MessageID, thoughtID(r.More.MessageID), r.Content)
}

func stepRetry(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	t.forget(e.Turn)
	r := b.(*protocol.TurnStepRetry)
	if t.replay || !t.Caps.Notices {
		return dst
	}
	reason := r.More.Message
	if reason == "" {
		reason = r.Reason
	}
	return append(dst, Told{Update: Notice("warning", "The answer broke off and is asked for again: "+protocol.Prefix(reason, 300))})
}

// usageUpdate says how full the model's context is.
type usageUpdate struct {
	Update string `json:"sessionUpdate"`
	Used   int    `json:"used"`
	Size   int    `json:"size"`
	Cost   *cost  `json:"cost,omitempty"` // of the session, where prices are known
}

type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

func tokenStats(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	s := b.(*protocol.TokenStatsUpdated)
	t.usage = s
	if s.More.Cost != nil {
		t.cost += *s.More.Cost
	}
	if t.replay || t.stale {
		return dst
	}
	return t.used(dst)
}

func (t *Teller) used(dst []Told) []Told {
	if t.usage == nil || t.usage.Stats.ContextWindowTokens <= 0 || t.usage.Stats.SamplingKind == protocol.SamplingCompact {
		return dst
	}
	s := &t.usage.Stats
	u := usageUpdate{Update: UsageUpdate, Used: s.InputTokens + s.OutputTokens, Size: s.ContextWindowTokens}
	if t.cost > 0 {
		u.Cost = &cost{t.cost, "USD"}
	}
	return update(dst, u)
}

func planUpdated(_ *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	p := struct {
		Update  string      `json:"sessionUpdate"`
		Entries []PlanEntry `json:"entries"`
	}{PlanUpdate, []PlanEntry{}}
	left := maxPiece
	for _, s := range b.(*protocol.PlanUpdated).Plan {
		step := cut(s.Step, maxName)
		if left -= len(step) + len(s.Status); left < 0 {
			break
		}
		if s.Status != "cancelled" {
			p.Entries = append(p.Entries, PlanEntry{step, "medium", s.Status})
		}
	}
	return update(dst, p)
}

func notice(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	said := b.(*protocol.Notice)
	n := struct{ Severity, Title string }{said.Severity, said.Title}
	if n.Title == "" && len(said.More.Data) > 0 {
		_ = json.Unmarshal(said.More.Data, &n)
	}
	if t.replay || !t.Caps.Notices || n.Title == "" {
		return dst
	}
	if n.Severity == "" {
		n.Severity = "info"
	}
	return append(dst, Told{Update: Notice(n.Severity, n.Title)})
}

func compacted(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	var rec protocol.Compaction
	_ = json.Unmarshal(b.(*protocol.ContextCompacted).Record, &rec)
	if !t.Caps.Compaction {
		return said(dst, ThoughtChunk, rec.ID, "The conversation was summarised to make room.\n")
	}
	c := struct {
		Update  string    `json:"sessionUpdate"`
		ID      string    `json:"compactionId"`
		Status  string    `json:"status"`
		Summary []Content `json:"summary,omitempty"`
	}{CompactionUpdate, rec.ID, "completed", nil}
	if rec.HandoffMessage.Content != "" {
		c.Summary = []Content{TextContent(middle(rec.HandoffMessage.Content))}
	}
	return update(dst, c)
}

func turnEnded(t *Teller, dst []Told, e *protocol.Entry, _ protocol.Body) []Told {
	t.forget(e.Turn)
	return dst
}

func turnFailed(t *Teller, dst []Told, e *protocol.Entry, b protocol.Body) []Told {
	t.forget(e.Turn)
	if t.own(e.Turn) {
		return dst
	}
	return said(dst, ThoughtChunk, string(e.Turn)+"-end", "Turn failed: "+protocol.Prefix(b.(*protocol.TurnFailed).Error, 2000))
}

func taskUpdated(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	var task protocol.Task
	if t.replay || !t.Caps.Notices || json.Unmarshal(b.(*protocol.TaskUpdated).Task, &task) != nil {
		return dst
	}
	return append(dst, Told{Update: Notice("info", "Background task "+task.Status+": "+protocol.Prefix(task.Command, 200))})
}

func settingsChanged(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	if t.replay {
		return dst
	}
	return append(dst, Told{Settings: b.(*protocol.SessionSettingsChanged)})
}

// commandsChanged tells what can be called now: ours, then what a hosted agent offers beside. Of two with one name ours is the one that runs.
func commandsChanged(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	var theirs []json.RawMessage
	if t.replay || json.Unmarshal(b.(*protocol.CommandsChanged).More.Data, &theirs) != nil {
		return dst
	}
	all, names := []Command{}, map[string]bool{}
	for _, c := range t.Commands {
		all, names[c.Name] = append(all, c), true
	}
	left := maxPiece
	for _, raw := range theirs { // one that cannot be read, or that does not fit, costs only itself
		var c Command
		if left < len(raw) || json.Unmarshal(raw, &c) != nil || c.Name == "" || names[c.Name] {
			continue
		}
		left -= len(raw)
		all, names[c.Name] = append(all, c), true
	}
	return append(dst, Told{Update: Commands(all)})
}

func renamed(t *Teller, dst []Told, _ *protocol.Entry, b protocol.Body) []Told {
	if t.replay {
		return dst
	}
	return update(dst, struct {
		Update string `json:"sessionUpdate"`
		Title  string `json:"title"`
	}{InfoUpdate, b.(*protocol.SessionRenamed).Title})
}

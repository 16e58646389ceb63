package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// History is the fold of a log into messages: what session/replay shows in message mode and what the model is given.
// It belongs to one goroutine; the messages it hands out are never changed afterwards.
type History struct {
	head      Seq
	items     []*Item
	calls     map[string]int      // tool call id -> index of its result, -1 while it has none
	compacted boundary            // the newest compaction; at 0 is none
	beside    beside[besideEntry] // of executions of parallel providers that have not ended
	open      map[string]int      // message id -> index of the assistant message being built from one step's entries
	owed      int                 // calls that have no result
	refused   map[TurnID]bool     // turns whose answer was filtered: the model is not given them again
}

// Item is one message of the history.
type Item struct {
	Message
	Time     time.Time
	Turn     TurnID
	Seq      Seq
	Raw      map[string]string // call id -> arguments as the model wrote them, where they are no object
	Hidden   bool              // goal checkpoint, task notification: not in message mode
	Note     string            // for the model, behind the text
	Requests int               // model requests this message came from
}

// Messages interrupted by a cancel, a failure or a crash keep their text; this tells the model so.
const interruptedNote = "[This message was cut off here.]"

// UnknownOutcome is the result of a call that may have run (docs/protocol/rind-v2.md section 7.4).
const UnknownOutcome = "Outcome unknown: the runtime stopped before this call's result was saved. The call may or may not have run; check before repeating it."

func newHistory() *History {
	return &History{calls: map[string]int{}, open: map[string]int{}, beside: beside[besideEntry]{}, refused: map[TurnID]bool{}}
}

// remembers reports whether entries of a kind have to be decoded for the fold: the others only move its head.
func remembers(k protocol.Kind) bool {
	return historyKind(k) || k == protocol.KindSessionForked || k == protocol.KindTurnAccepted || k == protocol.KindTurnFailed
}

// Apply folds one entry in. b is its body, nil for a kind the fold does not remember.
func (h *History) Apply(e *Entry, b protocol.Body) {
	h.head = e.Seq
	before, now := h.beside.take(e, b, besideEntry{e.Seq, e.Time, b})
	for _, k := range before {
		h.apply(k.seq, e.Turn, k.time, k.body)
	}
	if now {
		h.apply(e.Seq, e.Turn, e.Time, b)
	}
}

func (h *History) apply(seq Seq, turn TurnID, at time.Time, b protocol.Body) {
	add := func(m Message) *Item {
		it := &Item{Message: m, Time: at, Turn: turn, Seq: seq}
		h.items = append(h.items, it)
		return it
	}
	switch b := b.(type) {
	case *protocol.SessionForked:
		for _, fe := range forkedEntries(b) {
			h.apply(seq, fe.turn, fe.time, fe.body)
		}
	case *protocol.UserMessage:
		for _, sys := range b.More.Skills {
			add(Message{Role: RoleSystem, Text: sys.Content}).Hidden = true
		}
		it := add(Message{ID: b.More.ID, Role: RoleUser, Text: b.More.Text, Parts: b.More.Parts})
		it.Hidden = b.More.Origin != protocol.OriginUser
	case *protocol.QueuedInputDelivered:
		add(Message{ID: b.InputID, Role: RoleUser, Text: b.Input, Parts: b.More.Parts})
	case *protocol.ReasoningCompleted:
		it := h.assistant(b.More.MessageID, add)
		text := b.Content
		if b.More.Hidden {
			text = b.More.Text
		}
		h.change(it, func(m *Item) {
			m.Reasoning = append(m.Reasoning[:len(m.Reasoning):len(m.Reasoning)], Reasoning{
				Text: text, Opaque: b.More.Opaque, Provider: b.More.Provider, Model: b.More.Model,
			})
		})
	case *protocol.AssistantMessageCompleted:
		it := h.assistant(b.MessageID, add)
		h.change(it, func(m *Item) {
			m.Text, m.Interrupted = b.Content, b.Interrupted
			if b.Interrupted {
				m.Note = interruptedNote
			}
		})
	case *protocol.ToolRequested:
		it := h.assistant(b.More.MessageID, add)
		h.change(it, func(m *Item) {
			m.Calls = append(m.Calls[:len(m.Calls):len(m.Calls)], Call{ID: b.ToolCallID, Name: b.ToolName, Arguments: b.Arguments})
			if b.More.Bad {
				raw := map[string]string{b.ToolCallID: b.More.Raw}
				for k, v := range m.Raw {
					raw[k] = v
				}
				m.Raw = raw
			}
		})
		if at, known := h.calls[b.ToolCallID]; !known || at >= 0 {
			h.owed++
		}
		h.calls[b.ToolCallID] = -1
	case *protocol.ToolResult:
		h.result(seq, turn, at, b.ToolCallID, b.ToolName, modelText(b), b.More.Attachments)
	case *protocol.ContextCompacted:
		h.compact(b)
	case *protocol.TurnFailed:
		if refuses(b) {
			h.refused[turn] = true
		}
	case *protocol.HistoryRepaired:
		if b.More.ToolCallID != "" {
			h.result(seq, turn, at, b.More.ToolCallID, "", b.More.Text, nil)
		}
	}
}

// refuses reports whether b ends a turn that the model is not given again: with it in the context, whatever follows would be refused, too.
func refuses(b protocol.Body) bool {
	failed, ok := b.(*protocol.TurnFailed)
	return ok && failed.ErrorType == protocol.FailFiltered
}

func modelText(b *protocol.ToolResult) string {
	if b.More.ModelText != "" {
		return b.More.ModelText
	}
	return b.Result
}

// assistant returns the index of the assistant message id, made when a step's first entry names it.
func (h *History) assistant(id string, add func(Message) *Item) int {
	if i, ok := h.open[id]; ok && id != "" {
		return i
	}
	add(Message{ID: id, Role: RoleAssistant})
	i := len(h.items) - 1
	h.open = map[string]int{id: i} // only the newest step is ever added to
	return i
}

// change replaces item i by a changed copy: a turn may be reading the old one.
func (h *History) change(i int, f func(*Item)) {
	c := *h.items[i]
	f(&c)
	h.items[i] = &c
}

// result adds a tool message right behind the calls it belongs to, whatever was said in between.
func (h *History) result(seq Seq, turn TurnID, at time.Time, id, name, text string, parts []protocol.Part) {
	at0, known := h.calls[id]
	if !known || at0 >= 0 {
		return // no such call, or answered already: the first result stands
	}
	where := len(h.items)
	for i := len(h.items) - 1; i >= 0; i-- {
		if h.items[i].Role == RoleAssistant && hasCall(h.items[i], id) {
			where = i + 1
			for where < len(h.items) && h.items[where].Role == RoleTool {
				where++
			}
			for _, c := range h.items[i].Calls {
				if c.ID == id {
					name = c.Name
				}
			}
			break
		}
	}
	var head struct {
		OK *bool `json:"ok"`
	}
	failed := json.Unmarshal([]byte(text), &head) != nil || head.OK == nil || !*head.OK
	it := &Item{
		Message: Message{ID: "result_" + id, Role: RoleTool, Text: text, CallID: id, ToolName: name, Failed: failed, Parts: parts},
		Time:    at, Turn: turn, Seq: seq,
	}
	h.items = append(h.items, nil)
	copy(h.items[where+1:], h.items[where:])
	h.items[where] = it
	if where < len(h.items)-1 { // in the middle only after a repair
		h.open = map[string]int{}
		if where < h.compacted.at {
			h.compacted.at++
		}
		for k, i := range h.calls {
			if i >= where {
				h.calls[k] = i + 1
			}
		}
	}
	h.calls[id] = where
	h.owed--
}

func hasCall(it *Item, id string) bool {
	for _, c := range it.Calls {
		if c.ID == id {
			return true
		}
	}
	return false
}

// usedCallID reports whether the session has seen a tool call id before.
func (h *History) usedCallID(id string) bool { _, ok := h.calls[id]; return ok }

// unanswered lists calls without a result, oldest first, except those of the open step.
func (h *History) unanswered(open *OpenTurn) []Call {
	if h.owed == 0 { // the rule, however long the conversation
		return nil
	}
	var out []Call
	for _, it := range h.items {
		for _, c := range it.Calls {
			if h.calls[c.ID] < 0 && (open == nil || open.call(c.ID) == nil) {
				out = append(out, c)
			}
		}
	}
	return out
}

// given are the items behind the newest compaction, without those of refused turns.
func (h *History) given() []*Item {
	items := h.items[h.compacted.at:]
	if len(h.refused) == 0 { // the rule, however long the conversation
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(it *Item) bool { return h.refused[it.Turn] })
}

// context returns the messages the model is given: valid whatever the log holds (docs/protocol/rind-v2.md section 6 and 7.4).
func (h *History) context() []Message {
	items := h.given()
	out := slices.Grow(h.summary(), len(items)+2) // a system prompt and a word about the goal may come
	for i, it := range items {
		m := it.Message
		if m.Role == RoleAssistant {
			if m.Text == "" && len(m.Calls) == 0 {
				continue // reasoning of a step that never said anything: no provider takes it alone
			}
			if it.Note != "" {
				m.Text += "\n\n" + it.Note
			}
		}
		if m.Role == RoleAssistant && len(m.Calls) > 0 {
			out = append(out, m)
			for _, c := range m.Calls { // a call still without a result: only seen when its fact could not be stored
				if h.calls[c.ID] < 0 {
					out = append(out, Message{Role: RoleTool, CallID: c.ID, ToolName: c.Name, Text: failureText(c.Name, protocol.ErrToolOutcomeUnknown, UnknownOutcome, it.Time), Failed: true})
				}
			}
			continue
		}
		if m.Role == RoleTool && i == 0 {
			continue
		}
		out = append(out, m)
	}
	return out
}

// failureText is the result JSON of a call that failed (docs/protocol/rind-v2.md section 9).
func failureText(tool, errorType, text string, at time.Time) string {
	return string(protocol.MustMarshal(struct {
		OK        bool   `json:"ok"`
		Tool      string `json:"tool"`
		Error     string `json:"error"`
		ErrorType string `json:"error_type"`
		TS        string `json:"ts"`
	}{false, tool, text, errorType, protocol.FormatTime(at)}))
}

// Wire is a message as session/replay shows it in message mode (docs/protocol/rind-v2.md section 4.4).
type Wire struct {
	ID          string      `json:"id"`
	TS          string      `json:"ts"`
	Role        Role        `json:"role"`
	Content     *string     `json:"content,omitempty"`
	Attachments *[]WirePart `json:"attachments,omitempty"`
	ToolCalls   []WireCall  `json:"tool_calls,omitempty"`
	ToolCallID  string      `json:"tool_call_id,omitempty"`
	Interrupted bool        `json:"interrupted,omitempty"`
}

// WirePart is an attachment of a user message.
type WirePart struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	URI  string `json:"uri,omitempty"`
}

// WireCall is a tool call of an assistant message.
type WireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // function
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// wire lists the messages of message mode; system is message 0.
func (h *History) wire(system string, created time.Time) []Wire {
	out := make([]Wire, 0, len(h.items)+1)
	out = append(out, Wire{ID: "system", TS: protocol.FormatTime(created), Role: RoleSystem, Content: &system})
	for _, it := range h.items {
		if it.Hidden || it.Role == RoleSystem {
			continue
		}
		w := Wire{ID: it.ID, TS: protocol.FormatTime(it.Time), Role: it.Role, Interrupted: it.Interrupted, ToolCallID: it.CallID}
		text := it.Text
		switch it.Role {
		case RoleUser:
			parts := make([]WirePart, 0, len(it.Parts))
			for _, p := range it.Parts {
				parts = append(parts, WirePart{Kind: p.Kind, Name: p.Name, MIME: p.MIME, URI: p.URI})
			}
			w.Attachments, w.Content = &parts, &text
		case RoleAssistant:
			if text == "" && len(it.Calls) == 0 {
				continue
			}
			if text != "" {
				w.Content = &text
			}
		default:
			w.Content = &text
		}
		for _, c := range it.Calls {
			wc := WireCall{ID: c.ID, Type: "function"}
			wc.Function.Name, wc.Function.Arguments = c.Name, string(c.Arguments)
			if raw, bad := it.Raw[c.ID]; bad {
				wc.Function.Arguments = raw
			}
			w.ToolCalls = append(w.ToolCalls, wc)
		}
		out = append(out, w)
		for _, c := range it.Calls {
			if h.calls[c.ID] < 0 {
				t := failureText(c.Name, protocol.ErrToolOutcomeUnknown, UnknownOutcome, it.Time)
				out = append(out, Wire{ID: "result_" + c.ID, TS: protocol.FormatTime(it.Time), Role: RoleTool, Content: &t, ToolCallID: c.ID})
			}
		}
	}
	return out
}

// preview describes the last n visible messages, for resume_preview.
func (h *History) preview(id SessionID, n int) string {
	type line struct{ role, text string }
	var lines []line
	for _, it := range h.items {
		if it.Hidden || it.Text == "" || it.Role != RoleUser && it.Role != RoleAssistant {
			continue
		}
		lines = append(lines, line{string(it.Role), protocol.Prefix(oneLine(it.Text), 180)})
	}
	if len(lines) == 0 {
		return ""
	}
	name := string(id)
	if len(name) > 18 {
		name = name[:10] + "..." + name[len(name)-4:]
	}
	shown := lines[max(0, len(lines)-n):]
	out := fmt.Sprintf("Resumed session %s: %d visible message(s), showing last %d.", name, len(lines), len(shown))
	if hidden := len(lines) - len(shown); hidden > 0 {
		out += fmt.Sprintf("\nFull context is still loaded; %d older message(s) are hidden from the terminal.", hidden)
	}
	for _, l := range shown {
		out += "\n- " + l.role + ": " + l.text
	}
	return out + "\nUse /status for details, /sessions to switch, or continue typing below."
}

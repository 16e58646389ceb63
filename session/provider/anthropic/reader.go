package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

// wireEvent is one event of the stream; everything may be missing or null.
type wireEvent struct {
	Type    modelhttp.Loose `json:"type"`
	Index   int             `json:"index"`
	Message struct {
		Usage *usage `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       modelhttp.Loose `json:"type"`
		Text       modelhttp.Loose `json:"text"`
		Thinking   modelhttp.Loose `json:"thinking"`
		Signature  modelhttp.Loose `json:"signature"`
		Partial    modelhttp.Loose `json:"partial_json"`
		StopReason modelhttp.Loose `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type contentBlock struct {
	Type      modelhttp.Loose `json:"type"`
	Text      modelhttp.Loose `json:"text"`
	Thinking  modelhttp.Loose `json:"thinking"`
	Signature modelhttp.Loose `json:"signature"`
	ID        modelhttp.Loose `json:"id"`
	Name      modelhttp.Loose `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// usage counts what was used so far: each event that has one tells the sums anew, some servers only a part of them.
type usage struct {
	Input   int `json:"input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) add(more *usage) {
	if more == nil {
		return
	}
	u.Input, u.Read, u.Created = max(u.Input, more.Input), max(u.Read, more.Read), max(u.Created, more.Created)
	u.Output, u.Details.Thinking = max(u.Output, more.Output), max(u.Details.Thinking, more.Details.Thinking)
}

// answer makes one completion.
func (m *Model) answer(a *modelhttp.Answer, r session.ModelRequest) error {
	if err := m.ask(a, r); err != nil {
		return err
	}
	p := &reader{Answer: a, open: map[int]*openBlock{}, ids: map[string]bool{}}
	for {
		e, err := p.Next()
		if err != nil {
			return p.Broken(err)
		}
		done := false
		if e.Comment {
			err = p.Emit(session.Chunk{Kind: session.ChunkAlive})
		} else {
			done, err = p.event(e)
		}
		if err != nil {
			return err
		}
		if done {
			p.Finish()
			return nil
		}
	}
}

// reader turns events into chunks.
type reader struct {
	*modelhttp.Answer
	open    map[int]*openBlock
	ids     map[string]bool // of the calls so far
	text    int             // bytes of text told so far
	thought bool            // reasoning was told
	usage   usage
	reason  string
}

// openBlock is a block that is being written.
type openBlock struct {
	kind      string
	id, name  string          // of a call
	raw       strings.Builder // of a call: its arguments; of thinking: the text
	whole     json.RawMessage // of a call: arguments given with its start; of redacted thinking: the block
	signature strings.Builder
	place     place
	told      bool
}

// event reads one event; done after the end mark.
func (p *reader) event(in modelhttp.Event) (done bool, err error) {
	var e wireEvent
	if err := json.Unmarshal(in.Data, &e); err != nil {
		return false, p.Unreadable(err)
	}
	kind := string(e.Type)
	if kind == "" {
		kind = in.Name
	}
	switch kind {
	case "ping":
		return false, p.Emit(session.Chunk{Kind: session.ChunkAlive})
	case "message_start":
		p.usage.add(e.Message.Usage)
	case "content_block_start":
		return false, p.start(&e)
	case "content_block_delta":
		return false, p.delta(&e)
	case "content_block_stop":
		return false, p.stop(e.Index)
	case "message_delta":
		p.usage.add(e.Usage)
		if e.Delta.StopReason != "" {
			p.reason = string(e.Delta.StopReason)
		}
	case "message_stop":
		return true, p.end()
	default:
		if kind == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
			return true, p.Failed(in.Data)
		}
	}
	return false, nil
}

func (p *reader) start(e *wireEvent) error {
	var b contentBlock
	if err := json.Unmarshal(e.Block, &b); err != nil {
		return p.Unreadable(err)
	}
	if err := p.stop(e.Index); err != nil { // its end was left out
		return err
	}
	o := &openBlock{kind: string(b.Type), place: place{Text: p.text, Calls: len(p.ids)}}
	p.open[e.Index] = o
	switch o.kind {
	case "text":
		return p.sayText(string(b.Text))
	case "thinking":
		o.signature.WriteString(string(b.Signature))
		return p.think(o, string(b.Thinking))
	case "redacted_thinking":
		o.whole = modelhttp.WellFormed(e.Block)
	case "tool_use":
		o.id, o.name = p.name(string(b.ID)), string(b.Name)
		if input := string(b.Input); input != "" && input != "{}" && input != "null" {
			o.whole = b.Input
		}
		return p.Say(session.Chunk{Kind: session.ChunkCallStart, CallID: o.id, Name: o.name})
	}
	return nil
}

// name makes the id of a new call. One that names an older call too, in this answer, gets a number behind it.
func (p *reader) name(id string) string {
	given := id
	if given == "" {
		given = "call"
	}
	for n := len(p.ids) + 1; p.ids[id]; n++ {
		id = given + "_" + strconv.Itoa(n)
	}
	p.ids[id] = true
	return id
}

func (p *reader) delta(e *wireEvent) error {
	o := p.open[e.Index]
	switch e.Delta.Type {
	case "text_delta":
		return p.sayText(string(e.Delta.Text))
	case "thinking_delta":
		return p.think(o, string(e.Delta.Thinking))
	case "signature_delta":
		if o != nil {
			o.signature.WriteString(string(e.Delta.Signature))
		}
	case "input_json_delta":
		if o == nil || o.kind != "tool_use" || e.Delta.Partial == "" {
			return nil
		}
		o.raw.WriteString(string(e.Delta.Partial))
		return p.Say(session.Chunk{Kind: session.ChunkCallDelta, CallID: o.id, Text: string(e.Delta.Partial)})
	}
	return nil
}

func (p *reader) sayText(text string) error {
	if text == "" {
		return nil
	}
	p.text += len(text)
	return p.Say(session.Chunk{Kind: session.ChunkText, Text: text})
}

// think tells a piece of thinking; blocks of it are paragraphs.
func (p *reader) think(o *openBlock, text string) error {
	if text == "" {
		return nil
	}
	if o != nil {
		o.raw.WriteString(text)
		if !o.told && p.thought {
			text = "\n\n" + text
		}
		o.told = true
	}
	p.thought = true
	return p.Say(session.Chunk{Kind: session.ChunkReasoning, Text: text})
}

// stop ends the block of an index, if there is one.
func (p *reader) stop(index int) error {
	o := p.open[index]
	if o == nil {
		return nil
	}
	delete(p.open, index)
	switch o.kind {
	case "tool_use":
		if o.raw.Len() == 0 && len(o.whole) > 0 {
			o.raw.Write(o.whole)
			if err := p.Say(session.Chunk{Kind: session.ChunkCallDelta, CallID: o.id, Text: o.raw.String()}); err != nil {
				return err
			}
		}
		return p.Say(session.Chunk{Kind: session.ChunkCallEnd, CallID: o.id, Name: o.name, Text: o.raw.String()})
	case "thinking", "redacted_thinking":
		if opaque := o.keep(); opaque != nil {
			return p.Say(session.Chunk{Kind: session.ChunkOpaque, Opaque: opaque})
		}
	}
	return nil
}

// end sends what a complete answer ends with.
func (p *reader) end() error {
	if !p.Began && p.reason == "" {
		return &session.ModelError{Fault: session.FaultBadReply, Status: 200, Message: "The provider's answer was empty."}
	}
	for _, index := range slices.Sorted(maps.Keys(p.open)) {
		if err := p.stop(index); err != nil {
			return err
		}
	}
	finish := session.FinishStop
	switch {
	case p.reason == "max_tokens", p.reason == "model_context_window_exceeded" && p.Began: // what was told is not taken back
		finish = session.FinishLength
	case p.reason == "refusal":
		finish = session.FinishFilter
	case p.reason == "model_context_window_exceeded":
		return &session.ModelError{Fault: session.FaultContext, Status: 200, Message: "The model's context window has no room for an answer."}
	case len(p.ids) > 0:
		finish = session.FinishCalls
	case p.reason == "pause_turn": // of tools the provider runs, and we offer none: whoever added them, the answer is not complete
		return &session.ModelError{Fault: session.FaultCut, Status: 200, Message: "The provider paused the answer before it was complete."}
	}
	if p.usage != (usage{}) {
		u := session.Usage{
			Input: p.usage.Input + p.usage.Read + p.usage.Created, Cached: p.usage.Read, Output: p.usage.Output, Reasoning: p.usage.Details.Thinking,
		}
		if err := p.Emit(session.Chunk{Kind: session.ChunkUsage, Usage: u}); err != nil {
			return err
		}
	}
	return p.Emit(session.Chunk{Kind: session.ChunkFinish, Finish: finish})
}

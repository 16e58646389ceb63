package openai

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/modelhttp"
)

type responsesEvent struct {
	Type        string          `json:"type"`
	Delta       modelhttp.Loose `json:"delta"`
	OutputIndex int             `json:"output_index"`
	Item        json.RawMessage `json:"item"`
	Error       json.RawMessage `json:"error"`
	Response    struct {
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
		Error      json.RawMessage `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
}

type outputItem struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments modelhttp.Loose `json:"arguments"`
	Encrypted string          `json:"encrypted_content"`
	Content   json.RawMessage `json:"content"`
}

// responses makes one completion over the Responses API.
func (m *Model) responses(a *modelhttp.Answer, r session.ModelRequest) error {
	build := func() any { return m.responsesBody(r) }
	if err := m.ask(a, "/responses", build, noEncrypted(r.Model), noSummary(r.Model)); err != nil {
		return err
	}
	p := &responsesReader{Answer: a, m: m, open: map[string]*call{}, told: map[string]bool{}}
	for {
		e, err := p.Next()
		switch {
		case err != nil:
			return p.Broken(err)
		case e.Comment:
			err = p.Emit(session.Chunk{Kind: session.ChunkAlive})
		case string(e.Data) == "[DONE]":
			return p.Broken(io.EOF) // this API ends with an event of its own
		default:
			var done bool
			if done, err = p.event(e.Data); done && err == nil {
				p.Finish()
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// responsesReader turns events into chunks.
type responsesReader struct {
	*modelhttp.Answer
	m     *Model
	calls calls
	open  map[string]*call // calls being written, by item
	told  map[string]bool  // items whose text came in pieces
}

func (p *responsesReader) event(data []byte) (done bool, err error) {
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, p.Unreadable(err)
	}
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		p.told[e.key()] = true
		return false, p.Say(session.Chunk{Kind: session.ChunkText, Text: string(e.Delta)})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, p.Say(session.Chunk{Kind: session.ChunkReasoning, Text: string(e.Delta)})
	case "response.reasoning_summary_part.added":
		if key := "summary " + e.key(); !p.told[key] {
			p.told[key] = true
			return false, nil
		}
		return false, p.Say(session.Chunk{Kind: session.ChunkReasoning, Text: "\n\n"}) // parts are paragraphs
	case "response.output_item.added", "response.output_item.done":
		return false, p.item(&e)
	case "response.function_call_arguments.delta":
		if c := p.open[e.key()]; c != nil && e.Delta != "" {
			c.args.WriteString(string(e.Delta))
			return false, p.Say(session.Chunk{Kind: session.ChunkCallDelta, CallID: c.id, Text: string(e.Delta)})
		}
	case "response.completed", "response.incomplete":
		return true, p.end(&e)
	case "response.failed", "error":
		inner := e.Response.Error
		if len(inner) == 0 || string(inner) == "null" {
			return true, p.Failed(data)
		}
		return true, p.Failed([]byte(`{"error":` + string(inner) + `}`))
	case "":
		if len(e.Error) > 0 && string(e.Error) != "null" {
			return true, p.Failed(data)
		}
	}
	return false, nil
}

// key names the item of an event: by its place, as some servers leave ids out or give an item another one at its end.
func (e *responsesEvent) key() string { return strconv.Itoa(e.OutputIndex) }

func (p *responsesReader) item(e *responsesEvent) error {
	var it outputItem
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return p.Unreadable(err)
	}
	ended := e.Type == "response.output_item.done"
	switch it.Type {
	case "function_call":
		return p.call(e.key(), &it, ended)
	case "reasoning":
		// Without its encrypted content the item could only be found where it was stored, and nothing is.
		if opaque := modelhttp.WellFormed(e.Item); ended && it.Encrypted != "" && opaque != nil {
			return p.Say(session.Chunk{Kind: session.ChunkOpaque, Opaque: opaque})
		}
	case "message":
		if ended && !p.told[e.key()] { // a server that streams items only
			if text := textOf(it.Content); text != "" {
				return p.Say(session.Chunk{Kind: session.ChunkText, Text: text})
			}
		}
	}
	return nil
}

func (p *responsesReader) call(key string, it *outputItem, ended bool) error {
	c := p.open[key]
	if c == nil {
		c = &call{id: p.calls.name(it.CallID), given: it.CallID, name: it.Name, started: true}
		p.calls.all = append(p.calls.all, c)
		p.open[key] = c
		if err := p.Say(session.Chunk{Kind: session.ChunkCallStart, CallID: c.id, Name: c.name}); err != nil {
			return err
		}
	}
	if !ended {
		return nil
	}
	delete(p.open, key)
	// The whole at the end tells what the pieces left out; where it tells something else, the pieces were what the model wrote.
	rest, more := strings.CutPrefix(string(it.Arguments), c.args.String())
	if !more || rest == "" {
		return nil
	}
	c.args.WriteString(rest)
	return p.Say(session.Chunk{Kind: session.ChunkCallDelta, CallID: c.id, Text: rest})
}

func textOf(content json.RawMessage) string {
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text + p.Refusal)
	}
	return text.String()
}

func (p *responsesReader) end(e *responsesEvent) error {
	f := session.FinishStop
	switch reason := e.Response.Incomplete.Reason; {
	case reason == "max_output_tokens":
		f = session.FinishLength
	case reason == "content_filter":
		f = session.FinishFilter
	case e.Type == "response.incomplete":
		return &session.ModelError{Fault: session.FaultCut, Message: p.m.at.Line("The provider ended the answer before it was complete: " + reason)}
	case len(p.calls.all) > 0:
		f = session.FinishCalls
	}
	if err := p.calls.end(p.Emit); err != nil {
		return err
	}
	if u := e.Response.Usage; u != nil {
		if err := p.Emit(session.Chunk{Kind: session.ChunkUsage, Usage: session.Usage{
			Input: u.Input, Cached: u.Details.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning,
		}}); err != nil {
			return err
		}
	}
	return p.Emit(session.Chunk{Kind: session.ChunkFinish, Finish: f})
}

package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// surface is the scope of our idempotency keys.
const surface = "acp"

// prompt asks for a turn; it is answered when the connection was told all of it (docs/protocol/acp.md section 2.4).
func prompt(k *call) {
	o, err := k.opened()
	if err != nil {
		if _, bad := acp.ReadBlocks(k.params); bad != nil { // params before session
			err = bad
		}
		k.Fail(err)
		return
	}
	blocks, err := acp.ReadBlocks(k.params)
	if err != nil {
		k.Fail(err)
		return
	}
	req := session.PromptRequest{Surface: surface, Editor: k.c.editor(o)}
	req.Input, req.Parts = acp.Input(blocks)
	k.c.measure(o, req.Parts)
	if strings.TrimSpace(req.Input) == "" && len(req.Parts) == 0 {
		k.Fail(acp.Bad("The prompt is empty."))
		return
	}
	if err := k.key(&req); err != nil {
		k.Fail(err)
		return
	}
	if len(blocks) > 0 && blocks[0].Type == "text" && strings.HasPrefix(blocks[0].Text, "/") && k.command(o, blocks[0].Text, &req) {
		return
	}
	if hasImage(req.Parts) && !k.imagesTaken(o.s) {
		return
	}
	k.ask(o, req)
}

// measure says how long the files are that links name, where they lie in the session's folders: the model reads them by tool, and should know
// what it is in for (docs/protocol/acp.md section 2.4). Of a prompt with very many links it does so for the first ones.
func (c *Conn) measure(o *opened, parts []protocol.Part) {
	if c.d.cfg.FileSize == nil {
		return
	}
	for i := range parts[:min(len(parts), 100)] {
		path, ok := acp.FilePath(parts[i].URI)
		if !ok || parts[i].Kind != "resource_link" {
			continue
		}
		if bytes, ok := c.d.cfg.FileSize(append([]string{o.s.Workspace()}, o.roots...), path); ok {
			parts[i].Size = bytes
		}
	}
}

// key reads the idempotency key.
func (k *call) key(req *session.PromptRequest) error {
	key, err := k.params.Meta(acp.MetaKey)
	switch {
	case err != nil:
		return err
	case key == "":
		return nil
	case protocol.CharLen(key) > 200:
		return acp.Bad("An idempotency key has at most 200 characters.")
	}
	canon, err := protocol.Canonical(bytes.NewReader(k.params["prompt"]))
	if err != nil {
		return acp.Bad("prompt: %v", err)
	}
	req.Key, req.Digest = key, protocol.Digest(canon)
	return nil
}

func hasImage(parts []protocol.Part) bool {
	for _, p := range parts {
		if p.Kind == "image" {
			return true
		}
	}
	return false
}

// imagesTaken reports whether the session's model takes images; the call is answered when it does not.
func (k *call) imagesTaken(s *session.Session) bool {
	var sel session.Selection
	if err := s.InspectNow(context.Background(), func(v *session.View) { sel = v.Sel }); err != nil {
		k.Fail(err)
		return false
	}
	got, err := k.c.d.cfg.Sessions.Models().Select(context.Background(), sel)
	if err == nil && (got.Info.Images == nil || !*got.Info.Images) {
		err = acp.Bad("The model %s takes no images.", sel.Model)
	}
	if err != nil {
		k.Fail(err)
	}
	return err == nil
}

// ask hands the prompt to the session.
func (k *call) ask(o *opened, req session.PromptRequest) {
	s := o.s
	var head session.Seq // where the log stood when a prompt with a key came
	var broken *acp.TurnNote
	req.Started = k.covers
	done := func(out session.Outcome, err error) {
		if err != nil {
			k.Fail(err)
			return
		}
		k.ended(s.ID, out, out.Seq > 0 && out.Seq <= head, nil)
	}
	k.c.mu.Lock()
	k.session = s.ID
	k.c.mu.Unlock()
	if req.Key == "" {
		k.set(s.Prompt(req, done))
		return
	}
	// With a key the turn may be there already: a running one is waited for, an interrupted one is closed rather than gone on with.
	if err := s.InspectNow(context.Background(), func(v *session.View) {
		head = v.Head
		if t := v.Serial; t != nil && t.Key == req.Key {
			if note := openTurn(v); note != nil && note.Status == "interrupted" {
				broken = note
			}
		}
	}); err != nil {
		k.Fail(notOpen(s.ID))
		return
	}
	if broken != nil {
		k.Background(func() { k.closeBroken(s, &req, broken) })
		return
	}
	k.set(s.Prompt(req, done))
}

// closeBroken closes the interrupted turn that a repeated key names, and answers with that.
func (k *call) closeBroken(s *session.Session, req *session.PromptRequest, broken *acp.TurnNote) {
	ctx, stop := context.WithTimeout(context.Background(), cleanupWithin)
	defer stop()
	key, err := k.c.d.cfg.Sessions.Store().Key(ctx, s.ID, surface, req.Key)
	if err == nil && key.Digest != req.Digest {
		err = protocol.Errorf(protocol.IdempotencyConflict, "The idempotency key was already used with another prompt.")
	}
	if err != nil {
		k.Fail(err)
		return
	}
	asked := make(chan error, 1)
	s.Cancel(session.CancelRequest{Turn: broken.Turn, Surface: surface}, func(err error) { asked <- err })
	if err := <-asked; err != nil && protocol.KindOf(err) != protocol.TurnNotActive { // closed by somebody else meanwhile is as good
		k.Fail(err)
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var end session.Seq
		open := true
		err := s.InspectNow(ctx, func(v *session.View) {
			open = v.Serial != nil && v.Serial.ID == broken.Turn
			end = v.Head
		})
		if err != nil {
			k.Fail(err)
			return
		}
		if !open {
			k.ended(s.ID, session.Outcome{Turn: broken.Turn, Outcome: session.OutcomeCancelled, Seq: end}, false, broken)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.Fail(ctx.Err())
			return
		}
	}
}

func (k *call) set(p *session.Prompt) {
	k.c.mu.Lock()
	k.c.prompts++
	k.prompt, k.place = p, k.c.prompts
	k.c.mu.Unlock()
}

// goOn goes on with the interrupted turn, or waits for the end of a waiting one.
func goOn(k *call) {
	k.with(func(o *opened) {
		s := o.s
		k.c.mu.Lock()
		k.session = s.ID
		k.c.mu.Unlock()
		s.Inspect(func(v *session.View) {
			if v.Serial != nil && !v.Working() {
				k.covers(v.Serial.ID)
			}
		})
		k.set(s.Prompt(session.PromptRequest{Resume: true, Surface: surface, Editor: k.c.editor(o)}, func(out session.Outcome, err error) {
			if err != nil {
				k.Fail(err)
				return
			}
			k.ended(s.ID, out, false, nil)
		}))
	})
}

// ended answers a prompt with the outcome of its turn. replayed says that it ended before, broken that it was interrupted and is closed now.
func (k *call) ended(id session.SessionID, out session.Outcome, replayed bool, broken *acp.TurnNote) {
	stop, fault := stopReason(out)
	res := acp.Prompted{Stop: stop, Meta: map[string]json.RawMessage{}}
	if out.Seq > 0 {
		res.Meta[acp.MetaCursor] = protocol.MustMarshal(acp.CursorText(out.Seq))
	}
	if replayed {
		res.Meta[acp.MetaReplayed] = json.RawMessage("true")
	}
	if broken != nil {
		res.Meta[acp.MetaTurn] = protocol.MustMarshal(broken)
	}
	if out.Outcome == session.OutcomeWaiting {
		res.Meta[acp.MetaTurn] = protocol.MustMarshal(acp.TurnNote{Status: session.OutcomeWaiting, Turn: out.Turn})
	}
	seq := out.Seq
	if replayed {
		seq = 0
	}
	k.at(id, seq, func(f *follow) (any, error) {
		k.c.disown(out.Turn)
		if f != nil {
			if ids := f.teller.Dropped(out.Turn); len(ids) > 0 {
				res.Meta[acp.MetaDropped] = protocol.MustMarshal(ids)
			}
		}
		if fault != nil {
			if ids := res.Meta[acp.MetaDropped]; ids != nil {
				fault.Details[acp.MetaDropped] = ids
			}
			return nil, fault
		}
		if f != nil && !replayed {
			if u := f.teller.Usage(); u != nil {
				res.Meta[acp.MetaUsage] = protocol.MustMarshal(u.Stats)
			}
		}
		if len(res.Meta) == 0 {
			res.Meta = nil
		}
		return res, nil
	})
}

// stopReason is what a prompt is answered with: a reason, or the error of a failed turn.
func stopReason(out session.Outcome) (string, *protocol.Error) {
	switch {
	case out.Stop == "max_tokens":
		return "max_tokens", nil
	case out.Stop == "content_filter":
		return "refusal", nil
	case out.Stop == "max_turn_requests", out.Fault != nil && out.Fault.Type == protocol.FailLimit:
		return "max_turn_requests", nil
	case out.Outcome == session.OutcomeCompleted:
		return "end_turn", nil
	case out.Outcome == session.OutcomeCancelled, out.Outcome == session.OutcomeWaiting, out.Fault == nil:
		return "cancelled", nil
	case out.Fault.Type == protocol.FailTurn: // interrupted: it was closed by somebody else
		return "cancelled", nil
	case out.Fault.Type == protocol.FailConfiguration:
		return "", &protocol.Error{Kind: acp.AuthRequired, Message: out.Fault.Message, Details: map[string]any{}}
	}
	return "", &protocol.Error{
		Kind: protocol.RequestFailed, Message: out.Fault.Message, Details: map[string]any{"reason": acp.Snake(out.Fault.Type), "turnId": out.Turn},
	}
}

// enqueue adds input to the running turn.
func enqueue(mode string) func(k *call) {
	return func(k *call) {
		blocks, err := acp.ReadBlocks(k.params)
		if err != nil {
			k.Fail(err)
			return
		}
		k.with(func(o *opened) {
			var words []string
			for _, b := range blocks {
				switch b.Type {
				case "text":
					words = append(words, b.Text)
				case "resource_link":
					words = append(words, "["+b.Name+"]("+b.URI+")")
				default:
					k.Fail(acp.Bad("Only text and links can be added to a running turn."))
					return
				}
			}
			turn := ""
			if k.params["turnId"] != nil {
				if turn, err = k.params.Text("turnId"); err != nil {
					k.Fail(err)
					return
				}
			}
			o.s.Enqueue(mode, strings.Join(words, "\n"), session.TurnID(turn), func(r session.InputResult, err error) {
				if protocol.KindOf(err) == protocol.TurnNotActive && k.runsElsewhere(o.s, err) {
					return
				}
				k.Settle(acp.Queued{ID: r.ID, Mode: r.Mode, Pending: r.Pending}, err)
			})
		})
	}
}

// runsElsewhere answers an input for a turn that does not run here: with -32050 when another process runs it, else with err. It reports whether the
// call is answered, now or in a moment.
func (k *call) runsElsewhere(s *session.Session, err error) bool {
	return s.Inspect(func(v *session.View) {
		if v.Serial != nil && !v.Hosted && v.Alive() {
			err = protocol.Errorf(protocol.SessionBusy, "Session is in use by another process.")
		}
		k.Fail(err)
	})
}

package dispatcher

import (
	"context"
	"encoding/json"

	"github.com/rind-dev/rind/dispatcher/executions"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// The methods of rind/executions (docs/protocol/portable-2026-09-02.md section 13): the commands of the portable protocol, with its own
// checks, texts and codes. What changes an execution is handed in on the reading goroutine, so that it takes effect in reading order.

const (
	maxEventCursor = 1<<53 - 1
	maxEventPage   = 10_000 // events; the line of a page is at most replayBytes long
)

// refuse answers with an error of the portable protocol.
func (k *call) refuse(err error) {
	e := portable.FromError(err)
	line := e.Line()
	if e.Code == portable.Internal {
		line = k.c.d.internal(err)
		line.Details["code"] = portable.Internal
	}
	k.Fail(line)
}

// object is the text of the params, which stand for the body of a request there: null is not absent in it, and half a surrogate pair is no text.
func (k *call) object() (json.RawMessage, error) {
	if k.Params == nil {
		return json.RawMessage("{}"), nil
	}
	return portable.Text(k.Params)
}

// member is a member of the params as it was sent: an object of the portable protocol that is null is there, and is none. nil when it is absent.
func (k *call) member(name string) (value json.RawMessage) {
	for n, v := range protocol.Members(k.Params) {
		if string(n) == name {
			value = v // the last of a repeated one stands
		}
	}
	return value
}

// answered waits for an execution in the background.
func (k *call) answered(answer executions.Answer, err error) {
	if err != nil {
		k.refuse(err)
		return
	}
	k.Background(func() {
		e, err := answer(context.Background())
		if err != nil {
			k.refuse(err)
			return
		}
		k.OK(e)
	})
}

// id reads a parameter that has to be there.
func (k *call) id(name string) (string, error) {
	if id, ok := k.params.Text(name); ok && id != "" {
		return id, nil
	}
	return "", portable.Invalid(name + " must be a non-empty string")
}

// run finds the execution a request names.
func (k *call) run() (*executions.Run, error) {
	id, err := k.id("execution_id")
	if err != nil {
		return nil, err
	}
	return k.c.d.cfg.Executions.Find(context.Background(), id)
}

func runtimeDescribe(k *call) { k.OK(k.c.d.cfg.Executions.Describe()) }

func (k *call) conversation(meta session.Meta, err error) {
	if err != nil {
		k.refuse(err)
		return
	}
	k.OK(rindv2.ConversationResult{Conversation: executions.Show(&meta), SessionID: meta.ID})
}

func conversationCreate(k *call) {
	text, err := k.object()
	var metadata json.RawMessage
	if err == nil {
		metadata, err = portable.ReadConversation(text)
	}
	if err != nil {
		k.refuse(err)
		return
	}
	k.Background(func() {
		k.conversation(k.c.d.cfg.Executions.Create(context.Background(), metadata, k.c.d.cfg.Workspace))
	})
}

func conversationRead(k *call) {
	id, err := k.id("conversation_id")
	find := func(ctx context.Context) (session.Meta, error) { return k.c.d.cfg.Executions.Conversation(ctx, id) }
	if k.params.Has("session_id") {
		if !k.params.Has("conversation_id") {
			id, err = k.id("session_id")
			find = func(ctx context.Context) (session.Meta, error) {
				return k.c.d.cfg.Executions.ConversationOf(ctx, session.SessionID(id))
			}
		} else {
			err = portable.Invalid("conversation_id and session_id exclude each other")
		}
	}
	if err != nil {
		k.refuse(err)
		return
	}
	k.Background(func() { k.conversation(find(context.Background())) })
}

func executionStart(k *call) {
	text, err := k.object()
	var req portable.StartExecution
	if err == nil {
		req, err = portable.ReadStart(text)
	}
	if err != nil {
		k.refuse(err)
		return
	}
	k.answered(k.c.d.cfg.Executions.Start(context.Background(), &req))
}

func executionRead(k *call) {
	k.Background(func() {
		run, err := k.run()
		if err != nil {
			k.refuse(err)
			return
		}
		k.answered(run.Read, nil)
	})
}

func executionArtifacts(k *call) {
	k.Background(func() {
		run, err := k.run()
		var list []portable.Artifact
		if err == nil {
			list, err = run.Artifacts(context.Background())
		}
		if err != nil {
			k.refuse(err)
			return
		}
		k.OK(rindv2.ExecutionArtifacts{Artifacts: list})
	})
}

func executionCancel(k *call) {
	text, err := k.object()
	var reason *string
	if err == nil {
		reason, err = portable.ReadCancel(text)
	}
	var run *executions.Run
	if err == nil {
		run, err = k.run()
	}
	if err != nil {
		k.refuse(err)
		return
	}
	k.answered(run.Cancel(context.Background(), reason))
}

func actionRespond(k *call) {
	raw := k.member("response")
	if raw == nil {
		k.refuse(portable.Invalid("response must be an object"))
		return
	}
	text, err := portable.Text(raw)
	var run *executions.Run
	if err == nil {
		run, err = k.run()
	}
	action := ""
	if err == nil {
		action, err = k.id("action_id")
	}
	if err != nil {
		k.refuse(err)
		return
	}
	k.answered(run.Respond(context.Background(), action, text))
}

// eventsAsked are the params of rind/execution/events.
type eventsAsked struct {
	id     string
	after  int64
	limit  int
	follow bool
}

func (k *call) eventsAsked() (q eventsAsked, err error) {
	if q.id, err = k.id("execution_id"); err != nil {
		return q, err
	}
	var ok bool
	if q.after, ok = k.params.Int("after", 0); !ok || q.after < 0 || q.after > maxEventCursor {
		return q, portable.Invalid("after must be a non-negative integer")
	}
	limit, ok := k.params.Int("limit", 1000)
	if !ok || limit < 1 || limit > maxEventPage {
		return q, portable.Invalid("limit must be an integer from 1 to 10000")
	}
	q.limit = int(limit)
	switch raw := k.params.Raw("follow"); {
	case raw == nil, string(raw) == "false":
	case string(raw) == "true":
		q.follow = true
	default:
		return q, portable.Invalid("follow must be a boolean")
	}
	return q, nil
}

// executionEvents answers with a page of events and, where that is asked for, goes on to tell what comes behind it. What it does about an
// earlier follow holds from the reading on.
func executionEvents(k *call) {
	q, err := k.eventsAsked()
	if err != nil {
		k.refuse(err)
		return
	}
	claim := k.c.claim(q.id, q.follow)
	k.Background(func() {
		if err := k.events(q, claim); err != nil {
			k.c.disclaim(claim)
			k.refuse(err)
		}
	})
}

// pageRoom is how events find out whether they fit into the line of one page. They are counted as they are written.
func (k *call) pageRoom() func(event []byte) bool {
	around := protocol.MustMarshal(rindv2.ExecutionPage{Events: []portable.Event{}, NextCursor: maxEventCursor})
	line, _ := rindv2.AppendReply(nil, k.c.envelope(), protocol.Reply{ID: k.ID, Result: around}) // of a text it cannot fail
	left := replayBytes - len(line) - len("\n")
	return func(event []byte) bool {
		left -= rindv2.Written(event) + len(",")
		return left >= 0
	}
}

func (k *call) events(q eventsAsked, claim *claim) error {
	ctx := context.Background()
	run, err := k.c.d.cfg.Executions.Find(ctx, q.id)
	if err != nil {
		return err
	}
	var w *watch
	if claim != nil {
		if w, err = k.c.watch(run, claim); err != nil {
			return err
		}
	}
	part, err := run.Part(ctx, q.after, q.limit, k.pageRoom())
	if err == nil && w != nil {
		var ended bool
		if ended, err = run.Ended(ctx, &part); ended {
			w.Close()
			w = nil
			k.c.disclaim(claim)
		}
	}
	if err == nil && w != nil {
		w.expect(&part)
	}
	following := err == nil && k.Answer(func() { // before the follower, which tells what comes behind
		res := rindv2.ExecutionPage{Events: part.Events, NextCursor: part.Cursor, Following: w != nil}
		k.Out.Reply(protocol.Reply{ID: k.ID, Result: res})
	})
	switch {
	case w == nil:
	case !following: // or it was taken back meanwhile
		w.Close()
		k.c.disclaim(claim)
		k.c.out.Ring() // what waited for it need not any more
	default:
		w.follow()
	}
	return err
}

package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

const (
	progressEvery = 10 * time.Second
	// toolGrace is how long a tool may take to come back after its turn was cancelled: TERM, 1 s, KILL, 2 s to confirm, and a little.
	toolGrace = 4 * time.Second
)

// maxOverlap bounds the read-only calls of a batch that run at one time.
const maxOverlap = 8

// running is a call that has been started, or refused.
type running struct {
	c       *CallState
	refused *ToolResult // it never ran
	began   time.Time
	done    chan struct{} // closed when r and err stand
	r       ToolResult
	err     error
	took    time.Duration
}

// runCalls works the open calls of a step off in order. Read-only calls that need nobody's consent overlap; results are told in the order of
// the calls all the same. A call from before a restart is told by what the log says of it.
func (w *work) runCalls(ctx context.Context, calls []CallState) error {
	for i := 0; i < len(calls); {
		first, err := w.begin(ctx, &calls[i], nil)
		if err != nil {
			return err
		}
		batch := []*running{first}
		for n := i + 1; n < len(calls) && len(batch) < maxOverlap && w.overlaps(&calls[n-1]) && w.overlaps(&calls[n]); n++ {
			v, err := w.judge(ctx, &calls[n])
			if err != nil || v.Effect != "allow" { // while a person is asked nothing else runs: the turn may outlive its process
				break
			}
			next, err := w.begin(ctx, &calls[n], &v)
			if err != nil {
				break // what has begun ends first; the turn's end is noticed there
			}
			batch = append(batch, next)
		}
		var failure error
		for _, k := range batch {
			<-k.done
			if failure == nil {
				failure = w.settle(ctx, k)
			}
		}
		if failure != nil {
			return failure
		}
		i += len(batch)
	}
	return nil
}

// overlaps reports whether a call may run beside others.
func (w *work) overlaps(c *CallState) bool {
	tool := w.tool(c.Name)
	return tool != nil && tool.Spec().ReadOnly && !c.Bad && !c.Rejected
}

// call is what a tool gets for c.
func (w *work) call(c *CallState) ToolCall {
	return ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Session: w.t.Session(), Turn: w.t.ID, Roots: append(w.Roots(w.workspace), w.further...), Editor: w.t.Editor()}
}

// begin starts a call on a goroutine of its own, once consent is there and its start is on disk, or refuses it. v is what the policy said of
// it already. An error ends the turn.
func (w *work) begin(ctx context.Context, c *CallState, v *Verdict) (*running, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	k := &running{c: c, done: make(chan struct{})}
	tool := w.tool(c.Name)
	if k.refused = w.check(tool, c); k.refused != nil {
		close(k.done)
		return k, nil
	}
	call, spec := w.call(c), tool.Spec()
	if c.Started { // before a restart: it runs again with what it was given then
		call.Outside = c.Outside
	} else {
		var err error
		if k.refused, err = w.consent(ctx, spec, &call, c, v); err != nil {
			return nil, err
		}
		if k.refused != nil {
			close(k.done)
			return k, nil
		}
		started := &protocol.ToolCallStarted{ToolCallID: c.ID, ToolName: c.Name}
		started.More.ReadOnly, started.More.Outside = spec.ReadOnly || repeatable(c.Name, c.Arguments), call.Outside
		if err := w.t.Record(started); err != nil {
			return nil, err
		}
	}
	k.began = time.Now()
	go func() {
		defer close(k.done)
		k.r, k.err = w.run(ctx, tool, call)
		k.took = time.Since(k.began)
	}()
	return k, nil
}

// settle records how a call ended, or returns the error that ends the turn.
func (w *work) settle(ctx context.Context, k *running) error {
	if k.refused != nil {
		return w.result(k.c, 0, k.refused)
	}
	if cause := context.Cause(ctx); cause != nil { // a question that is still open is closed before its call is
		asks := false
		if err := w.t.View(func(_ *State, open *OpenTurn, _ *History) { asks = open.asks(k.c.ID) }); err != nil {
			return err
		}
		if asks || errors.Is(cause, errLeave) {
			return cause
		}
	}
	if k.err != nil {
		return k.err
	}
	return w.result(k.c, k.took, &k.r)
}

// questionTool is the tool by which a model asks a person.
const questionTool = "ask_user_question"

// check refuses what cannot be run at all.
func (w *work) check(tool Tool, c *CallState) *ToolResult {
	switch {
	case tool == nil && c.Name == questionTool: // it is not there where nobody can be asked
		return &ToolResult{
			Status: protocol.ToolUnavailable, ErrorType: protocol.ErrQuestionUnsupported, Error: "Nobody can be asked here. Decide with what is known, and say what was decided.",
		}
	case tool == nil, !w.t.limits.offers(c.Name):
		return &ToolResult{
			Status: protocol.ToolUnavailable, ErrorType: protocol.ErrToolNotFound,
			Error: fmt.Sprintf("There is no tool %q. Tools: %s.", protocol.Prefix(c.Name, 100), w.toolNames()),
		}
	case c.Bad:
		return &ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrToolArgsJSON,
			Error: fmt.Sprintf("The arguments are not a JSON object: %q. They must match %s.", protocol.Prefix(c.Raw, 120), tool.Spec().Schema),
		}
	}
	var args map[string]any
	if err := json.Unmarshal(c.Arguments, &args); err != nil {
		return &ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrToolArgsJSON, Error: "The arguments are not a JSON object."}
	}
	for k, v := range args { // null is absent
		if v == nil {
			delete(args, k)
		}
	}
	schema, err := w.schemas[c.Name]()
	if err != nil {
		return &ToolResult{Status: protocol.ToolUnavailable, ErrorType: protocol.ErrToolNotFound, Error: "This tool cannot be used: " + err.Error()}
	}
	if err := schema.Validate(args); err != nil {
		return &ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrInvalidArguments,
			Error: fmt.Sprintf("Invalid arguments for %s: %s", c.Name, argumentFault(err)),
		}
	}
	return nil
}

// argumentFault is the last, most exact part of a validation error.
func argumentFault(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "validating /"); i >= 0 {
		text = text[i+len("validating "):]
	}
	return strings.TrimPrefix(text, "validating root: ")
}

// judge asks the policy. The mode may change during a turn.
func (w *work) judge(ctx context.Context, c *CallState) (Verdict, error) {
	spec := w.tool(c.Name).Spec()
	if w.Policy == nil {
		if spec.ReadOnly || spec.Kind == "think" {
			return Verdict{Effect: "allow"}, nil
		}
		return Verdict{Effect: "ask", Title: spec.Name}, nil
	}
	mode, err := w.t.Mode()
	if err != nil {
		return Verdict{}, err
	}
	return w.Policy.Judge(ctx, mode, spec, w.call(c))
}

// consent asks the policy, unless it has said what already, and a person where the policy says so. A result refuses the call.
func (w *work) consent(ctx context.Context, spec ToolSpec, call *ToolCall, c *CallState, said *Verdict) (*ToolResult, error) {
	if c.Rejected {
		return rejectedByUser(), nil
	}
	if said == nil {
		v, err := w.judge(ctx, c)
		if err != nil {
			return nil, err
		}
		said = &v
	}
	switch {
	case said.Effect == "allow":
		call.Outside, call.Reads = said.Outside, said.Reads
		return nil, nil
	case said.Effect == "ask" && c.Allowed: // what a link leads to by now is not what was asked
		call.Outside = c.Outside
		return nil, nil
	case said.Effect == "deny":
		return &ToolResult{Status: protocol.ToolRejected, ErrorType: cmp.Or(said.ErrorType, protocol.ErrPermissionDenied), Error: said.Reason}, nil
	case w.Unattended, w.t.limits != nil && w.t.limits.Unattended:
		return &ToolResult{
			Status: protocol.ToolRejected, ErrorType: protocol.ErrApprovalUnavailable, Error: "This call needs consent and nobody can be asked.",
		}, nil
	}
	return w.ask(spec, call, c, said)
}

func rejectedByUser() *ToolResult {
	return &ToolResult{Status: protocol.ToolRejected, ErrorType: protocol.ErrApprovalRejected, Error: "The user rejected this call."}
}

// ask asks a person for consent to what the policy said of a call. A result refuses it.
func (w *work) ask(spec ToolSpec, call *ToolCall, c *CallState, v *Verdict) (*ToolResult, error) {
	ask := &protocol.ApprovalRequested{ToolCallID: call.ID, ToolName: call.Name, Title: v.Title, Arguments: call.Arguments}
	ask.More.Rule, ask.More.Outside = v.Rule, v.Outside
	if err := w.t.View(func(st *State, open *OpenTurn, _ *History) {
		if open.asks(call.ID) {
			ask.More.Outside = c.Outside // asked before a restart: consent is for what was asked then
		}
		if sandbox := w.sandbox(call); !st.Asked && sandbox != "" && spec.Kind == "execute" {
			ask.Title += " (" + sandbox + ")"
			ask.More.Sandbox = true
		}
	}); err != nil {
		return nil, err
	}
	switch allowed, err := w.t.RequestApproval(ask); {
	case err != nil:
		return nil, err
	case !allowed:
		return rejectedByUser(), nil
	}
	call.Outside = ask.More.Outside
	return nil, nil
}

// sandbox says what a command runs in, for the first approval of one.
func (w *work) sandbox(call *ToolCall) string {
	if call.Editor.Terminal != nil {
		return "in the editor's terminal, without a sandbox"
	}
	return w.Sandbox
}

// run calls the tool on a goroutine of its own, so that one which ignores its context cannot hold the turn.
func (w *work) run(ctx context.Context, tool Tool, call ToolCall) (ToolResult, error) {
	type ran struct {
		r   ToolResult
		err error
	}
	ch := make(chan ran, 1)
	go func() {
		var out ran
		defer func() {
			if r := recover(); r != nil {
				out.err = fmt.Errorf("panic in tool %s: %v\n%s", call.Name, r, debug.Stack())
			}
			ch <- out
		}()
		p := &toolProgress{t: w.t, call: call}
		defer w.t.s.post(func() { w.t.s.callOver(p) })
		if context.Cause(ctx) != nil { // cancelled since its start was recorded: nothing starts behind the answer to a cancel
			out.r = cancelledResult()
			return
		}
		out.r, out.err = tool.Run(ctx, call, p)
	}()
	var tick <-chan time.Time
	if tool.Spec().Kind == "execute" {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	began := time.Now()
	done := ctx.Done()
	var grace <-chan time.Time
	for {
		select {
		case out := <-ch:
			return w.ended(ctx, call, out.r, out.err)
		case <-tick:
			(&toolProgress{t: w.t, call: call}).Say(fmt.Sprintf("still running (%ds)", int(time.Since(began).Round(time.Second)/time.Second)))
		case <-done:
			done = nil
			timer := time.NewTimer(toolGrace)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			return cancelledResult(), nil
		}
	}
}

func cancelledResult() ToolResult {
	return ToolResult{
		Status: protocol.ToolCancelled, ErrorType: protocol.ErrCancelled, Error: "The turn was cancelled before this call finished.",
	}
}

// ended turns what a tool returned into its result.
func (w *work) ended(ctx context.Context, call ToolCall, r ToolResult, err error) (ToolResult, error) {
	switch {
	case err == nil:
		return r, nil
	case context.Cause(ctx) != nil:
		return cancelledResult(), nil
	case protocol.KindOf(err) == protocol.PersistenceError:
		return ToolResult{}, err
	}
	e := w.t.s.all.internal(fmt.Errorf("tool %s: %w", call.Name, err))
	return ToolResult{Status: protocol.ToolFailed, ErrorType: protocol.ErrInternal, Error: e.Message}, nil
}

// toolProgress is a running tool's way to the user.
type toolProgress struct {
	t    *Turn
	call ToolCall

	// Owned by the session's goroutine.
	intent *protocol.Task // recorded as starting, not handed off yet
	holds  bool           // a place for a task
}

// Say implements Progress.
func (p *toolProgress) Say(message string) {
	p.t.Note(&protocol.ToolProgress{ToolCallID: p.call.ID, ToolName: p.call.Name, Payload: protocol.Progress{Message: message}})
}

// Ask implements Progress.
func (p *toolProgress) Ask(_ context.Context, question string, options []protocol.Choice) (string, error) {
	return p.t.AskUser(p.call.ID, question, options)
}

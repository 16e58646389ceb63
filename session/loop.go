package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of a turn (docs/decisions.md).
const (
	maxSteps     = 500 // model requests of a turn whose execution names no bound of its own
	maxRepeats   = 8   // identical batches of calls in a row
	blobBudget   = 8 << 20
	windowTokens = 200_000 // of a model whose window is unknown
)

// Loop is our own Agent: context from the log, a completion, the calls it asks for, and again, until the model has nothing more to do.
// It keeps nothing between turns and owns no goroutine but those of running tools, which end with their call. What a dead process left
// open goes through the same code: a step's open calls are run before anything is sampled.
type Loop struct {
	Models Models
	Tools  []Tool
	// More are further tools, asked for when a turn begins; ctx ends with the turn. May be nil.
	More   func(ctx context.Context, t *Turn) []Tool
	Policy Policy // nil: read-only tools run, everything else asks
	Log    *slog.Logger
	Now    func() time.Time
	// Unattended: nobody can be asked; what needs consent is rejected as ApprovalUnavailable.
	Unattended bool
	Guide      Guide
	Sandbox    string                    // what commands run in, for the first approval of a command in a session; "" says nothing
	Outputs    func(id SessionID) string // directory for results too long to show
	Roots      func(workspace string) []string
	// Pause waits between retries; tests replace it. It returns the cause of ctx when that ends first.
	Pause func(ctx context.Context, d time.Duration) error

	schemas    map[string]argumentSchema
	specs      []ToolSpec
	background bool // there is a tool whose commands may go on in the background
}

// NewLoop fills in defaults. It refuses tools that share a name and schemas that are not JSON. Schemas are read when a tool is first
// called: reading all of them is a tenth of the time from spawn to the first answer.
func NewLoop(l Loop) (*Loop, error) {
	if l.Log == nil {
		l.Log = slog.New(slog.DiscardHandler)
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	if l.Guide == nil {
		l.Guide = noGuide{}
	}
	if l.Roots == nil {
		l.Roots = func(workspace string) []string { return []string{workspace} }
	}
	if l.Pause == nil {
		l.Pause = Pause
	}
	all := append(l.Tools[:len(l.Tools):len(l.Tools)], bashOutput{}, taskControl{}, updateGoal{})
	l.Tools, l.schemas = nil, map[string]argumentSchema{}
	for _, t := range all {
		spec := t.Spec()
		if !json.Valid(spec.Schema) {
			return nil, fmt.Errorf("schema of tool %s is not JSON", spec.Name)
		}
		if l.schemas[spec.Name] != nil {
			return nil, fmt.Errorf("two tools are named %s", spec.Name)
		}
		l.add(t, spec, schemaOf(spec))
	}
	return &l, nil
}

// argumentSchema is what a tool's arguments must match, read when first asked for.
type argumentSchema func() (*jsonschema.Resolved, error)

func schemaOf(spec ToolSpec) argumentSchema {
	return sync.OnceValues(func() (*jsonschema.Resolved, error) {
		var schema jsonschema.Schema
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", spec.Name, err)
		}
		return resolved, nil
	})
}

// add takes a tool in.
func (l *Loop) add(t Tool, spec ToolSpec, schema argumentSchema) {
	l.Tools = append(l.Tools, t)
	l.schemas[spec.Name] = schema
	l.specs = append(l.specs, spec)
	l.background = l.background || spec.Kind == "execute"
}

// forTurn is the loop with the tools that are there for one turn only.
func (l *Loop) forTurn(ctx context.Context, t *Turn) *Loop {
	if l.More == nil {
		return l
	}
	more := l.More(ctx, t)
	if len(more) == 0 {
		return l
	}
	c := *l
	c.Tools, c.specs, c.schemas = slices.Clip(l.Tools), slices.Clip(l.specs), maps.Clone(l.schemas)
	for _, t := range more {
		spec := t.Spec()
		if c.schemas[spec.Name] != nil {
			l.Log.Warn("tool is named twice", "tool", spec.Name)
			continue
		}
		schema := schemaOf(spec)
		if _, err := schema(); err != nil { // a server's, which may be anything
			l.Log.Warn("tool is left out", "err", err)
			continue
		}
		c.add(t, spec, schema)
	}
	return &c
}

// Pause waits for d. It returns the cause of ctx when that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// work is one turn being worked off.
type work struct {
	*Loop
	t         *Turn
	model     Selected
	workspace string
	further   []string // folders of the session beside the workspace
	repeats   int
	lastBatch string
	estimate  int // tokens of the newest request
	guide     []GuidePart
	offered   []ToolSpec
}

// Turn answers t; see Agent.
func (l *Loop) Turn(ctx context.Context, t *Turn) (string, error) {
	while, over := context.WithCancel(ctx)
	defer over()
	w := &work{Loop: l.forTurn(while, t), t: t}
	var samplings int
	var step, operation string
	if err := t.View(func(st *State, open *OpenTurn, _ *History) {
		w.workspace, samplings, step, operation = st.Workspace, open.Samplings, open.Step, open.Operation
		w.further = slices.Clone(st.Roots)
	}); err != nil {
		return "", err
	}
	if samplings == 0 { // later, in another process, a tool that was there may not be there yet
		if err := w.checkNamed(); err != nil {
			return "", err
		}
	}
	model, err := l.Models.Select(ctx, t.Selection)
	if err != nil {
		return "", providerFailure(err)
	}
	w.model = model
	if operation == protocol.OpCompact {
		if _, err := w.compact(ctx, protocol.CompactManual, protocol.CompactAlone); err != nil {
			return "", err
		}
		step = stepFinal // what was said meanwhile goes on from here
		if more, err := w.next(step); err != nil || !more {
			return stopEndTurn, err
		}
		step = stepInput
	}
	for {
		calls, err := w.openCalls()
		if err != nil {
			return "", err
		}
		if len(calls) > 0 {
			if err := w.runCalls(ctx, calls); err != nil {
				return "", err
			}
		}
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		more, err := w.next(step)
		if err != nil {
			return "", err
		}
		if !more {
			return stopEndTurn, nil
		}
		samplings++
		if err := t.limits.checkSteps(samplings); err != nil {
			return "", err
		}
		if step, err = w.sample(ctx); err != nil {
			return "", err
		}
		if err := w.checkTokens(); err != nil {
			return "", err
		}
	}
}

// limitReached ends a turn at one of its bounds.
func limitReached(message string) *Failure {
	return &Failure{Type: protocol.FailLimit, Status: "failed", Source: "runtime", Message: message}
}

// next decides what comes after a step: true for another sampling. After each sampling and its calls one steering input is given to
// the model; after one without calls, and no steering waiting, one follow-up (docs/protocol/rind-v2.md section 7.2).
func (w *work) next(step string) (bool, error) {
	if step == stepNone || step == stepInterrupted || step == stepInput {
		return true, nil
	}
	for {
		in, err := w.t.Deliver(protocol.ModeSteering)
		if err != nil || in != nil {
			return in != nil, err
		}
		if step == stepCalls && !w.putOff() {
			return true, nil
		}
		if in, err = w.t.Deliver(protocol.ModeFollowUp); err != nil || in != nil {
			return in != nil, err
		}
		if again, err := w.t.GoalStep(); err != nil || again {
			return again, err
		}
		if last, err := w.t.LastCall(); err != nil || last {
			return false, err
		}
	}
}

// putOff reports whether the person answers a question of the step with the next prompt: nothing is sampled before that.
func (w *work) putOff() (is bool) {
	_ = w.t.View(func(_ *State, open *OpenTurn, _ *History) {
		is = slices.ContainsFunc(open.Calls, func(c *CallState) bool { return c.PutOff })
	})
	return is
}

// openCalls copies the calls of the current step that have no result.
func (w *work) openCalls() ([]CallState, error) {
	var calls []CallState
	err := w.t.View(func(_ *State, open *OpenTurn, _ *History) {
		for _, c := range open.openCalls() {
			calls = append(calls, *c)
		}
	})
	return calls, err
}

// messages builds the context of the next request. A call the log holds no result for gets one, stored once.
func (w *work) messages() ([]Message, error) {
	var msgs []Message
	var broken []Call
	read := func() error {
		return w.t.View(func(_ *State, open *OpenTurn, past *History) {
			broken = past.unanswered(open)
			msgs = past.context()
		})
	}
	if err := read(); err != nil {
		return nil, err
	}
	if len(broken) > 0 {
		var repairs []protocol.Body
		for _, c := range broken {
			r := &protocol.HistoryRepaired{}
			r.More.Fault, r.More.ToolCallID = "missing_result", c.ID
			r.More.Text = failureText(c.Name, protocol.ErrToolOutcomeUnknown, UnknownOutcome, w.Now())
			repairs = append(repairs, r)
		}
		if err := w.t.Record(repairs...); err != nil {
			return nil, err
		}
		if err := read(); err != nil {
			return nil, err
		}
	}
	head := []Message{}
	w.guide = w.Guide.Parts(w.workspace)
	if text := guideText(w.guide); text != "" {
		head = append(head, Message{Role: RoleSystem, Text: text})
	}
	var goal *protocol.Goal
	if err := w.t.View(func(st *State, _ *OpenTurn, _ *History) { goal = copyGoal(st.activeGoal()) }); err != nil {
		return nil, err
	}
	w.offered = nil
	for _, spec := range w.specs {
		if w.offers(spec.Name, goal != nil) {
			w.offered = append(w.offered, spec)
		}
	}
	if goal != nil {
		head = append(head, Message{Role: RoleSystem, Text: goalText(goal)})
	}
	for _, m := range w.t.Transient() {
		head = append(head, Message{Role: RoleSystem, Text: m.Content})
	}
	return elide(append(head, msgs...)), nil
}

// offers reports whether the model is told of a tool; driven says that there is an active goal.
func (w *work) offers(tool string, driven bool) bool {
	switch tool {
	case bashOutputName:
		return false
	case updateGoalName:
		return driven && w.t.limits.offers(tool)
	case taskControlName:
		return w.background && w.t.limits.offers(tool)
	}
	return w.t.limits.offers(tool)
}

// checkNamed fails an execution whose configuration names a tool that this turn is not offered. A goal may begin in mid-turn.
func (w *work) checkNamed() error {
	if w.t.limits == nil {
		return nil
	}
	for _, name := range w.t.limits.Tools {
		if w.tool(name) == nil || !w.offers(name, true) {
			return wrongConfig("tools")
		}
	}
	return nil
}

// elide replaces the oldest attachments by a note once they are too many bytes for a request.
func elide(msgs []Message) []Message {
	left := blobBudget
	for i := len(msgs) - 1; i >= 0; i-- {
		size := 0
		for _, p := range msgs[i].Parts {
			size += len(p.Data)
		}
		if size == 0 {
			continue
		}
		if left -= size; left >= 0 {
			continue
		}
		kept := make([]protocol.Part, 0, len(msgs[i].Parts))
		for _, p := range msgs[i].Parts {
			if len(p.Data) > 0 {
				p = protocol.Part{Kind: "text", Name: p.Name, Text: "[An older attachment was left out: " + p.MIME + "]"}
			}
			kept = append(kept, p)
		}
		msgs[i].Parts = kept
	}
	return msgs
}

// providerFailure turns a model's error into the failure of the turn (docs/protocol/rind-v2.md sections 7.3 and 9).
func providerFailure(err error) error {
	m, ok := errors.AsType[*ModelError](err)
	if !ok {
		return err
	}
	f := &Failure{Source: "provider", Message: m.Message, Cause: m, Status: "rejected", Type: protocol.FailRejected}
	switch m.Fault {
	case FaultConfig:
		f.Type = protocol.FailConfiguration
	case FaultContext:
		f.Type = protocol.FailContext
	case FaultRate, FaultServer, FaultNetwork, FaultBadReply, FaultQuota:
		f.Type, f.Status = protocol.FailUnavailable, "unavailable"
	case FaultTimeout:
		f.Type, f.Status = protocol.FailTimeout, "timed_out"
	case FaultCut:
		f.Type, f.Status = protocol.FailInterrupted, "failed"
	}
	return f
}

// tool finds a tool by name.
func (l *Loop) tool(name string) Tool {
	for i, s := range l.specs {
		if s.Name == name {
			return l.Tools[i]
		}
	}
	return nil
}

func (l *Loop) toolNames() string {
	names := make([]string, 0, len(l.specs))
	for _, s := range l.specs {
		names = append(names, s.Name)
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

package session

import (
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// openTurn makes room for the turn an entry belongs to.
func (st *State) openTurn(id TurnID, parallel bool) *OpenTurn {
	if t := st.turn(id); t != nil {
		return t
	}
	t := &OpenTurn{ID: id, NextPortable: 1, Operation: protocol.OpPrompt}
	if parallel {
		t.Parallel = true
		st.Parallel[id] = t
	} else {
		st.Serial = t
	}
	return t
}

// Apply folds one entry in. b is its decoded body, nil for a kind this build does not know.
func (st *State) Apply(e *Entry, b protocol.Body) {
	st.Head = e.Seq
	switch e.Told() {
	case protocol.Durable:
		st.HeadCursor = e.Seq
	case protocol.DurableTask:
		st.TaskCursor = e.Seq
	}
	st.Activity = e.Time
	switch b.(type) {
	case *protocol.UserMessage, *protocol.TurnStarted:
		st.promote(e.Turn)
	}
	if acc, ok := b.(*protocol.TurnAccepted); ok {
		if acc.More.Surface == protocol.SurfacePortable && !acc.More.Parallel {
			st.Queued = append(slices.Clone(st.Queued), &OpenTurn{ID: e.Turn, NextPortable: 1, Operation: protocol.OpPrompt})
		}
		t := st.openTurn(e.Turn, acc.More.Parallel)
		t.Execution = true
		t.Surface, t.Scope, t.Key = acc.More.Surface, acc.More.Scope, acc.More.Key
		t.Provider, t.Accepted = acc.More.Provider, e.Seq
	}
	t := st.turn(e.Turn)
	if t != nil {
		t.LastTime = e.Time
		if e.PortableCount > 0 {
			t.NextPortable = e.PortableFirst + int64(e.PortableCount)
		}
	}
	if !st.applySession(e, b) {
		if b, ok := b.(*protocol.ApprovalRequested); ok {
			st.Asked = st.Asked || b.More.Sandbox
		}
		st.applyTurn(t, e, b)
	}
}

// applySession folds what belongs to the session, and reports whether that was all.
func (st *State) applySession(e *Entry, b protocol.Body) bool {
	switch b := b.(type) {
	case *protocol.SessionCreated:
		m := &b.More
		st.Workspace, st.Conversation, st.Created = m.WorkspaceRoot, m.ConversationID, e.Time
		st.Metadata, st.Roots, st.Surface = m.Metadata, m.Roots, m.Surface
		st.Sel = Selection{Provider: m.Provider, Model: m.Model, Effort: m.Effort, Mode: m.Mode}
		if m.Title != "" {
			st.Title, st.Renamed = m.Title, true
		}
	case *protocol.SessionForked:
		m := &b.More
		st.Workspace, st.Conversation, st.Created, st.Parent, st.Roots = m.WorkspaceRoot, m.ConversationID, e.Time, m.Parent, m.Roots
		st.Sel = Selection{Provider: m.Provider, Model: m.Model, Effort: m.Effort, Mode: m.Mode}
		st.Title, st.Renamed = m.Title, true
		for _, fe := range forkedEntries(b) {
			st.count(fe.body)
		}
	case *protocol.SessionSettingsChanged:
		st.Sel = Selection{Provider: b.Provider, Model: b.Model, Effort: b.ReasoningEffort, Mode: b.ApprovalMode}
	case *protocol.SessionRenamed:
		st.Title, st.Renamed = b.Title, true
	case *protocol.ProviderSession:
		st.Child = &ChildSession{Provider: b.More.Provider, ID: b.More.ID}
	case *protocol.GoalUpdated:
		if b.Goal != nil && b.Goal.Status == "active" && st.activeGoal() == nil {
			st.GoalFailures = 0
		}
		st.Goal, st.GoalLegacy = b.Goal, b.More.Legacy
	default:
		return false
	}
	return true
}

// count keeps the numbers and texts a list shows.
func (st *State) count(b protocol.Body) {
	switch b := b.(type) {
	case *protocol.UserMessage:
		if b.More.Origin != protocol.OriginUser {
			return
		}
		st.said(b.More.Text)
		st.UserPrompt = true
	case *protocol.QueuedInputDelivered:
		st.said(b.Input)
	case *protocol.AssistantMessageCompleted:
		st.Messages++
		st.LastMessageID = b.MessageID
		st.Preview = protocol.Prefix(oneLine(b.Content), 200)
	case *protocol.ToolRequested:
		st.ToolCalls++
		if b.More.MessageID != st.LastMessageID { // a message of calls alone
			st.Messages++
			st.LastMessageID = b.More.MessageID
		}
	case *protocol.ToolResult:
		st.Messages++
	}
}

func (st *State) said(text string) {
	st.Messages++
	if st.Title == "" && !st.Renamed {
		st.Title = protocol.Prefix(oneLine(text), 40)
	}
	st.Preview = protocol.Prefix(oneLine(text), 200)
	st.FreshCompaction = false
}

// oneLine folds white space, so that a text fits a list.
func oneLine(s string) string {
	if len(s) > 2000 {
		s = protocol.Prefix(s, 2000)
	}
	return strings.Join(strings.Fields(s), " ")
}

// applyTurn folds what belongs to turn t, which is nil for entries of ended turns and unknown ones.
func (st *State) applyTurn(t *OpenTurn, e *Entry, b protocol.Body) {
	if started, ok := b.(*protocol.TurnStarted); ok {
		if t == nil {
			t = st.openTurn(e.Turn, false)
		}
		t.start(st, e, started)
		if started.More.Roots != nil {
			st.Roots = *started.More.Roots
		}
		return
	}
	switch b := b.(type) {
	case *protocol.UserMessage:
		if t == nil {
			t = st.openTurn(e.Turn, false)
		}
		for _, id := range b.More.Tasks {
			if ended := st.task(id); ended != nil {
				ended.Told = true
			}
		}
		if t.UserMessageID == "" || b.More.Origin == protocol.OriginUser { // further ones are checkpoints of a goal
			t.UserMessageID, t.Transient = b.More.ID, b.More.Transient
		} else {
			t.Step = stepInput
		}
		st.count(b)
		if b.More.Origin == protocol.OriginUser {
			st.Held = false
		}
		return
	case *protocol.TaskUpdated:
		st.applyTask(b)
		return
	case *protocol.TaskOutput:
		return
	}
	if t == nil {
		if c, ok := b.(*protocol.CancelRequested); ok { // of a continuation that was due
			st.Held = st.Held || c.More.Hold
		}
		return
	}
	st.count(b)
	switch b := b.(type) {
	case *protocol.ContextBuilt:
		st.Context = &ContextNote{Time: e.Time, Turn: e.Turn, Total: b.More.EstimatedTotal, Window: b.More.Window, Sections: b.More.Sections}
	case *protocol.TokenStatsUpdated:
		st.Stats = &b.Stats
		if b.More.Cost != nil {
			st.Cost += *b.More.Cost
		}
		if b.More.Estimate > 0 && b.Stats.Anchor == anchorProvider {
			st.TokenRatio = min(4, max(0.25, float64(b.Stats.InputTokens)/float64(b.More.Estimate)))
		}
		t.Usage = b.Stats.ContextUsagePercent
		t.Tokens += b.Stats.InputTokens + b.Stats.OutputTokens
	case *protocol.ContextCompacted:
		st.FreshCompaction = st.FreshCompaction || b.More.Provider == ""
	case *protocol.CancelRequested:
		t.Cancel, t.CancelAt = b, e.Time
		st.Held = st.Held || b.More.Hold
	case *protocol.TurnCompleted:
		st.end(t, e, "completed", "", "", "", b.More)
	case *protocol.TurnFailed:
		st.end(t, e, "failed", "", b.Error, b.ErrorType, b.More)
	case *protocol.TurnCancelled:
		st.end(t, e, "cancelled", b.Reason, "", "", b.More)
	default:
		t.apply(e, b)
	}
}

func (st *State) end(t *OpenTurn, e *Entry, status, reason, fault, faultType string, end protocol.End) {
	if t.Parallel {
		delete(st.Parallel, t.ID)
		return
	}
	if i := st.queued(t.ID); i >= 0 {
		st.Queued = slices.Delete(slices.Clone(st.Queued), i, i+1)
		return
	}
	st.Serial = nil
	if t.Origin == protocol.OriginGoal {
		if st.GoalFailures++; status != "failed" {
			st.GoalFailures = 0
		}
	}
	st.Last = &TurnEnd{
		Turn: t.ID, Status: status, Time: e.Time, Reason: reason, Error: fault, ErrorType: faultType, Stop: end.StopReason,
		Seq: e.Seq, Recovery: t.Recovery,
	}
}

// start folds a turn_started: the first one of a turn, or a resumption, which gives up what the dead attempt left open.
func (t *OpenTurn) start(st *State, e *Entry, b *protocol.TurnStarted) {
	t.Operation = b.Operation
	if b.Origin == protocol.OriginResume {
		t.Attempts++
		return
	}
	t.Started, t.StartedAt, t.Origin, t.Hosted = true, e.Time, b.Origin, b.More.Hosted
}

// apply folds what a turn did.
func (t *OpenTurn) apply(e *Entry, b protocol.Body) {
	switch b := b.(type) {
	case *protocol.AssistantDelta:
		if t.MessageID != b.More.MessageID || len(t.Text) == 0 {
			t.MessageID, t.Text, t.TextChars, t.TextFirst = b.More.MessageID, nil, 0, e.PortableFirst
		}
		t.Text = append(t.Text, b.Text...)
		t.LastPiece, t.LastPieceAt = e.Event, e.Time
		t.TextChars += protocol.CharLen(b.Text)
	case *protocol.ReasoningDelta:
		t.Thinking = append(t.Thinking, b.Text...)
	case *protocol.TurnStepRetry:
		t.dropText()
		t.Retries, t.Recovery = b.Attempt, t.Recovery+1
	case *protocol.ReasoningCompleted:
		t.Thinking = nil
	case *protocol.AssistantMessageCompleted:
		t.message(b)
	case *protocol.ToolRequested:
		t.request(b)
	case *protocol.PlanUpdated:
		t.Plan = b.Plan
	case *protocol.FileChange:
		t.changed(b.FilePath)
	case *protocol.QueuedInputDelivered:
		t.dropInput(b.InputID)
		t.Step = stepInput
	case *protocol.QueuedInputReturned:
		t.dropInput(b.InputID)
	case *protocol.InputAccepted:
		t.Inputs = append(t.Inputs, &Input{ID: b.More.InputID, Text: b.More.Input, Mode: b.More.Mode, Parts: b.More.Parts})
	case *protocol.InputMoved:
		t.moveInput(b)
	default:
		t.applyCall(e, b)
	}
}

// applyCall folds what happened to one tool call.
func (t *OpenTurn) applyCall(e *Entry, b protocol.Body) {
	switch b := b.(type) {
	case *protocol.ToolCallStarted:
		if c := t.call(b.ToolCallID); c != nil {
			c.Started, c.ReadOnly, c.StartedAt, c.Outside = true, b.More.ReadOnly, e.Time, b.More.Outside
		}
	case *protocol.ToolResult:
		if c := t.call(b.ToolCallID); c != nil {
			c.Done, c.Status, c.ErrorType, c.Duration = true, b.Status, b.ErrorType, b.DurationMS
			c.Output = protocol.Prefix(b.Result, 30_000)
		}
	case *protocol.ApprovalRequested:
		t.Actions = append(t.Actions, &Action{
			ID: b.ActionID, CallID: b.ToolCallID, Tool: b.ToolName, Title: b.Title, Approval: b, Time: e.Time,
			QuestionEventID: b.More.QuestionEventID,
		})
		if c := t.call(b.ToolCallID); c != nil {
			c.Rule, c.Outside = b.More.Rule, b.More.Outside
		}
	case *protocol.UserQuestionRequested:
		t.Actions = append(t.Actions, &Action{
			ID: b.More.ActionID, CallID: b.ToolCallID, Question: true, Title: b.Question, Choices: b.Options, Time: e.Time,
		})
	case *protocol.ApprovalResolved:
		t.dropAction(b.ActionID)
		if c := t.call(b.ToolCallID); c != nil {
			c.Allowed, c.Rejected = b.Outcome == protocol.OutcomeAllowed, b.Outcome == protocol.OutcomeRejected
			c.Always = b.OptionID == "allow_always" || b.OptionID == "reject_always"
		}
	case *protocol.UserQuestionAnswered:
		t.dropAction(b.More.ActionID)
		if c := t.call(b.ToolCallID); c != nil {
			c.Answer, c.PutOff = &b.Answer, b.More.PutOff
		}
	}
}

func (t *OpenTurn) message(b *protocol.AssistantMessageCompleted) {
	t.dropText()
	t.Thinking = nil
	t.Retries = 0
	t.LastMessage = b.Content
	t.HasOutput = true
	t.Calls = t.openCalls()
	if b.Interrupted {
		t.Step = stepInterrupted
		return
	}
	t.Step = stepFinal
	t.Samplings++
}

func (t *OpenTurn) request(b *protocol.ToolRequested) {
	if t.Step != stepCalls || t.callsDone() {
		t.Calls = t.openCalls()
		if t.Step != stepFinal { // the message before the calls counted the sampling already
			t.Samplings++
		}
	}
	t.Step, t.Retries = stepCalls, 0
	t.Calls = append(t.Calls, &CallState{
		ID: b.ToolCallID, Name: b.ToolName, MessageID: b.More.MessageID, Arguments: b.Arguments, Raw: b.More.Raw, Bad: b.More.Bad,
		Preview: b.ArgsPreview,
	})
}

func (t *OpenTurn) dropText() { t.MessageID, t.Text, t.TextChars, t.TextFirst = "", nil, 0, 0 }

package rindv2

import (
	"encoding/json"

	"github.com/rind-dev/rind/protocol"
)

// telling is one row of the table below.
type telling struct {
	event  string // type of the event
	silent bool   // nothing is told; a row without event that is not silent is of no kind of this version
	as     protocol.Durability
	merge  merging
	// inPlace makes the event that a client who does not know the first one is told besides; nil for none.
	inPlace func(protocol.SessionID, *protocol.Entry) (protocol.Envelope, bool)
}

// merging is what may be told less often to a follower that lags (docs/protocol/rind-v2.md section 3.8).
type merging uint8

const (
	never  merging = iota // told one by one
	joined                // pieces of one text, told as one piece
	newest                // only the newest is told
)

// told is the one table of what is told of each kind of entry (docs/protocol/rind-v2.md section 5, docs/protocol/catalogue.md).
var told = [256]telling{
	protocol.KindSessionCreated:            {silent: true},
	protocol.KindSessionForked:             {silent: true},
	protocol.KindTurnAccepted:              {silent: true},
	protocol.KindUserMessage:               {silent: true},
	protocol.KindTurnStarted:               {event: "turn_started", as: protocol.Durable},
	protocol.KindContextBuilt:              {event: "context_built", as: protocol.Incremental, merge: newest},
	protocol.KindAssistantDelta:            {event: "assistant_delta", as: protocol.Incremental, merge: joined},
	protocol.KindReasoningDelta:            {event: "reasoning_delta", as: protocol.Incremental, merge: joined},
	protocol.KindReasoningCompleted:        {event: "reasoning_completed", as: protocol.Durable},
	protocol.KindTurnStepRetry:             {event: "turn_step_retry", as: protocol.Incremental},
	protocol.KindToolInputStarted:          {event: "tool_input_started", as: protocol.Incremental},
	protocol.KindToolInputDelta:            {event: "tool_input_delta", as: protocol.Incremental, merge: joined},
	protocol.KindToolInputEnded:            {event: "tool_input_ended", as: protocol.Incremental},
	protocol.KindTokenStatsUpdated:         {event: "token_stats_updated", as: protocol.Incremental, merge: newest},
	protocol.KindAssistantMessageCompleted: {event: "assistant_message_completed", as: protocol.Durable},
	protocol.KindToolRequested:             {event: "tool_requested", as: protocol.Durable},
	protocol.KindPlanUpdated:               {event: "plan_updated", as: protocol.Incremental},
	protocol.KindApprovalRequested:         {event: "approval_requested", as: protocol.Durable, inPlace: Question},
	protocol.KindApprovalResolved:          {event: "approval_resolved", as: protocol.Durable},
	protocol.KindToolCallStarted:           {event: "tool_call_started", as: protocol.Incremental},
	protocol.KindUserQuestionRequested:     {event: "user_question_requested", as: protocol.Durable},
	protocol.KindUserQuestionAnswered:      {event: "user_question_answered", as: protocol.Durable},
	protocol.KindToolProgress:              {event: "tool_progress", as: protocol.Incremental, merge: newest},
	protocol.KindFileChange:                {event: "file_change", as: protocol.Incremental},
	protocol.KindToolResult:                {event: "tool_result", as: protocol.Durable},
	protocol.KindArtifactCreated:           {silent: true},
	protocol.KindProviderEvent:             {silent: true},
	protocol.KindNotice:                    {event: "notice", as: protocol.Incremental},
	protocol.KindCommandsChanged:           {silent: true},
	protocol.KindInputAccepted:             {silent: true},
	protocol.KindInputMoved:                {silent: true},
	protocol.KindQueuedInputDelivered:      {event: "queued_input_delivered", as: protocol.Durable},
	protocol.KindQueuedInputReturned:       {event: "queued_input_returned", as: protocol.Durable},
	protocol.KindCancelRequested:           {silent: true},
	protocol.KindContextCompacted:          {event: "context_compacted", as: protocol.Durable},
	protocol.KindHistoryRepaired:           {silent: true},
	protocol.KindTurnCompleted:             {event: "turn_completed", as: protocol.Durable},
	protocol.KindTurnFailed:                {event: "turn_failed", as: protocol.Durable},
	protocol.KindTurnCancelled:             {event: "turn_cancelled", as: protocol.Durable},
	protocol.KindTaskUpdated:               {event: "task_updated", as: protocol.DurableTask},
	protocol.KindTaskOutput:                {event: "task_output", as: protocol.Incremental, merge: newest},
	protocol.KindBackgroundWaitChanged:     {event: "background_wait_changed", as: protocol.Incremental, merge: newest},
	protocol.KindTaskContinuationFailed:    {event: "task_continuation_failed", as: protocol.Incremental},
	protocol.KindGoalUpdated:               {event: "goal_updated", as: protocol.Incremental},
	protocol.KindSessionSettingsChanged:    {event: "session_settings_changed", as: protocol.Incremental},
	protocol.KindSessionRenamed:            {event: "session_renamed", as: protocol.Incremental},
	protocol.KindProviderSession:           {silent: true},
	protocol.KindProviderContinuity:        {silent: true},
}

// EnvelopeOf is the envelope of a stored entry; ok is false when it is not told: its kind is not, it has no event, or it was written by a
// newer version. Sequence is left to the writer.
func EnvelopeOf(id protocol.SessionID, e *protocol.Entry) (env protocol.Envelope, ok bool) {
	env = protocol.Envelope{Session: id, Turn: e.Turn, Event: e.Event}
	row := &told[e.Kind]
	if e.Event == nil || row.event == "" {
		return protocol.Envelope{}, false
	}
	switch row.as {
	case protocol.Durable:
		env.Durable, env.Cursor = true, e.Seq
	case protocol.DurableTask:
		env.Durable, env.TaskCursor, env.Turn = true, e.Seq, "" // the entry lies in its turn while that is open, the event does not
	case protocol.Incremental, protocol.NotTold:
	}
	return env, true
}

// Question is the incremental user_question_requested that stands for an approval (docs/protocol/rind-v2.md section 7.7), for connections
// that did not say they know approvals. Its id was made when the approval was stored, so it is the same for all of them. ok is false for an
// entry that is no approval.
func Question(id protocol.SessionID, e *protocol.Entry) (env protocol.Envelope, ok bool) {
	body, err := protocol.Decode(e)
	if err != nil {
		return protocol.Envelope{}, false
	}
	a, ok := body.(*protocol.ApprovalRequested)
	if !ok {
		return protocol.Envelope{}, false
	}
	choices := make([]protocol.Choice, len(a.Options))
	for i, o := range a.Options {
		choices[i].Label = o.Label
	}
	q, err := protocol.Encode(protocol.Head{Time: e.Time, EventID: a.More.QuestionEventID, Session: id, Turn: e.Turn}, &protocol.UserQuestionRequested{
		ToolCallID: a.ToolCallID, Question: a.Title, Options: choices,
	})
	return protocol.Envelope{Session: id, Turn: e.Turn, Event: q.Event}, err == nil
}

// Replayed is the line of a logged entry in a replay page (section 4.4): the one told live, but for sequence, which is the cursor. Pages
// hold rind v2 envelopes over JSON-RPC too. ok is false when the entry is not told.
func Replayed(id protocol.SessionID, e *protocol.Entry) (line json.RawMessage, ok bool) {
	env, ok := EnvelopeOf(id, e)
	if !ok {
		return nil, false
	}
	env.Sequence = int64(e.Seq)
	return AppendEvent(nil, Rind, &env), true
}

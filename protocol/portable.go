package protocol

// Numbering says what the number of portable events of an entry depends on beside its body.
type Numbering struct {
	Execution bool // the turn is an execution: it has a turn_accepted. Compaction-only turns have none
	Parallel  bool // its provider is mock, script or fixture
	Open      bool // the turn has no terminal yet
}

// PortableCount returns how many events of the portable protocol an entry with body b is: 0, 1 or 2
// (docs/protocol/catalogue.md, column P). The number is given once, when the entry is appended.
func PortableCount(b Body, t Numbering) int {
	if !t.Execution || !t.Open {
		return 0
	}
	one := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	switch b := b.(type) {
	case *TurnAccepted, *TurnStarted, *ReasoningDelta, *TurnStepRetry, *TokenStatsUpdated, *ToolRequested, *PlanUpdated,
		*ApprovalRequested, *ToolCallStarted, *UserQuestionRequested, *ToolProgress, *ToolResult, *ArtifactCreated,
		*ProviderEvent, *QueuedInputDelivered, *ContextCompacted, *TurnFailed, *TurnCancelled, *TaskUpdated:
		return 1
	case *UserMessage:
		return one(len(b.More.Parts) > 0 && b.More.Origin == OriginUser)
	case *AssistantDelta:
		return 1 + one(b.More.Separator)
	case *AssistantMessageCompleted:
		return one(!t.Parallel)
	case *ApprovalResolved:
		return one(b.By == ByClient)
	case *UserQuestionAnswered:
		return one(b.More.By == ByClient)
	case *FileChange:
		return 1 + one(b.More.First)
	case *TurnCompleted:
		return 2
	default:
		return 0
	}
}

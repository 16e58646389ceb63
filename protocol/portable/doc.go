// Package portable is the codec of the portable execution protocol (docs/protocol/portable-2026-09-02.md): its requests, objects, events and
// errors. It is pure: no goroutine, no I/O, no clock. What an entry of a log is told as stands in one table (events.go), what an error is
// answered with in another (errors.go).
package portable

// Version is the protocol's version, as manifests and descriptions name it.
const Version = "2026-09-02"

// Prefixes of ids.
const (
	ConversationPrefix = "conv_"
	ExecutionPrefix    = "exec_"
	ActionPrefix       = "action_"
)

// Package acp is the codec of the Agent Client Protocol, version 1, as far as an agent speaks it (docs/protocol/acp.md): it reads an
// editor's lines, writes answers, updates and calls, and knows what each entry of a session's log is told as. The structs are our own, after
// the public schema; unions keep what they do not know as it was sent.
//
// It promises that one table says for every kind of entry what is told of it, that the text told of a message always adds up to the stored
// message, and that nothing it writes has a field of ours at the root of a type of the protocol. Pure functions and values; no goroutine, no
// clock, no I/O. A Teller belongs to the goroutine that writes its connection.
package acp

// Versions of the protocol: the one that is spoken, and the draft that is answered where it is asked for.
const (
	Version      = 1
	DraftVersion = 2
)

// Methods a client calls.
const (
	MethodInitialize    = "initialize"
	MethodAuthenticate  = "authenticate"
	MethodNew           = "session/new"
	MethodFork          = "session/fork" // unstable
	MethodLoad          = "session/load"
	MethodResume        = "session/resume"
	MethodList          = "session/list"
	MethodClose         = "session/close"
	MethodDelete        = "session/delete"
	MethodPrompt        = "session/prompt"
	MethodCancel        = "session/cancel" // a notification; with an id it is done and answered {}
	MethodSetMode       = "session/set_mode"
	MethodSetOption     = "session/set_config_option"
	MethodSteer         = "_rind/session/steer"
	MethodFollowUp      = "_rind/session/follow_up"
	MethodContinue      = "_rind/session/continue"
	MethodReplay        = "_rind/session/replay"
	MethodCancelRequest = "$/cancel_request" // a notification, both ways
)

// Methods an agent calls.
const (
	MethodUpdate      = "session/update" // a notification
	MethodPermission  = "session/request_permission"
	MethodElicitation = "elicitation/create"
)

// Keys of _meta that are ours (docs/protocol/acp.md section 4).
const (
	MetaCursor     = "rind/cursor"
	MetaAfter      = "rind/afterCursor"
	MetaKey        = "rind/idempotencyKey"
	MetaTurn       = "rind/turn"
	MetaUsage      = "rind/usage"
	MetaReplayed   = "rind/replayed"
	MetaDropped    = "rind/dropped"
	MetaExtensions = "rind/extensions"
)

// Package rindv2 is the codec of the rind v2 protocol (docs/protocol/rind-v2.md) and of its plain JSON-RPC twin
// (docs/protocol/jsonrpc.md): pure functions between frames and the words of package protocol. Both envelopes share methods, params,
// results and events.
//
// Coming in: Decode checks an envelope, Params and the Read methods of the params types check what a method was given. Going out:
// AppendReply, AppendEvent and AppendCall; the event objects of a log are spliced, never encoded again. What is told of each kind of
// entry is one table (told), what each kind of error becomes another (errors), and the methods with their params and results a third
// (Methods), from which Schema and TypeScript describe the protocol to clients.
//
// It promises that no line it makes holds invalid UTF-8, a raw line end, or a raw U+2028 or U+2029 outside of a client's own request id.
// It does no I/O, reads no clock, owns no goroutine, and all its functions are safe for concurrent use.
package rindv2

// Envelope is which of the two a connection speaks.
type Envelope uint8

// Envelopes.
const (
	Rind Envelope = iota
	JSONRPC
)

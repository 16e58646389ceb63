// Package protocol holds the words the rooms of the runtime share: identifiers, log entries and their kinds (the
// catalogue), requests, replies and errors. It has no behaviour beyond turning an entry into bytes and back, starts no
// goroutine, does no I/O and imports the standard library only.
//
// The JSON form of an event object is defined here by struct tags (docs/protocol/rind-v2.md section 5), so that the session can
// store an event exactly as every client will be told it, without knowing a dialect.
package protocol

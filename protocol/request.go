package protocol

import "encoding/json"

// Request is one call read from a connection, whatever its dialect.
type Request struct {
	ID     json.RawMessage // as sent, byte for byte; nil for a notification
	Method string
	Params json.RawMessage // a JSON object, or nil when absent or null

	// Answer is set when the peer answered a call of ours instead; the other members are then empty.
	Answer *Answer
}

// Answer is what a peer said to a call of ours. Exactly one of Result and Err is set.
type Answer struct {
	ID     json.RawMessage // of the call, as sent back
	Result json.RawMessage
	Err    *Error
}

// Call is a request of ours to a peer.
type Call struct {
	ID     string
	Method string
	Params json.RawMessage // a JSON object
}

// Reply answers one Request. Exactly one of Result and Err is set.
type Reply struct {
	ID     json.RawMessage // echo of Request.ID; nil becomes null
	Result any
	Err    *Error
}

// Envelope is one event line: the stored event object of an entry and what the connection adds to it.
type Envelope struct {
	Method     string // "session/update" unless said otherwise
	Sequence   int64  // number of the line on its connection
	Durable    bool
	Cursor     Seq // of durable conversation events, else 0
	TaskCursor Seq // of durable task events, else 0
	Session    SessionID
	Turn       TurnID
	Execution  string          // of "execution/event" lines, which name neither session nor turn
	Event      json.RawMessage // spliced, never re-encoded
}

// Package rpc is the only room that knows sourcegraph/jsonrpc2: a read pump and a table of outgoing calls, behind a stream of our own.
//
// The library closes a connection on a malformed line, mangles ids it cannot hold in 64 bits, re-encodes params, ignores the context of a
// write and has no bounds (docs/protocol/acp.md section 6). So the stream here owns framing, size, depth, encoding and malformed lines; it
// keeps the peer's raw request in a table under a small integer and hands the library a tiny object with that integer. The handler only
// classifies: it finds the request again by its integer and passes it on, in the order of reading. Replies and events never go through the
// library; calls of ours do, as tokens: their bytes are the codec's.
//
// Goroutines: jsonrpc2 starts one for a connection, which reads and calls the Peer, and one that waits for the context. Both end with the
// input or with the context of Serve; a read that blocks then cannot be interrupted, so the first may stay inside it until the input ends,
// and calls nothing any more. A Call runs on its caller's goroutine.
package rpc

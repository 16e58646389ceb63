package outlet

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/rind-dev/rind/protocol"
)

// Call is a request being answered, or a notification, whose answer is nobody's. Whoever answers first, answers: what comes later is dropped.
// Safe for concurrent use.
type Call struct {
	protocol.Request
	Out *Outlet // of its connection
	// Taken runs once, before the answer is handed over, and Left once, behind that. Both may be nil.
	Taken, Left func()

	done atomic.Bool // it has its answer
}

// Answer runs give, which hands the answer over, unless there is one: then it returns false.
func (k *Call) Answer(give func()) bool {
	if k.done.Swap(true) {
		return false
	}
	if k.Taken != nil {
		k.Taken()
	}
	if k.ID != nil {
		give()
	}
	if k.Left != nil {
		k.Left()
	}
	return true
}

// OK answers with a result.
func (k *Call) OK(result any) {
	k.Answer(func() { k.Out.Reply(protocol.Reply{ID: k.ID, Result: result}) })
}

// Fail answers with an error.
func (k *Call) Fail(err error) {
	k.Answer(func() { k.Out.Reply(protocol.Reply{ID: k.ID, Err: k.Out.opt.Told(err)}) })
}

// Settle answers with whichever there is.
func (k *Call) Settle(result any, err error) {
	if err != nil {
		k.Fail(err)
		return
	}
	k.OK(result)
}

// At answers at a place of a log; the id is the call's.
func (k *Call) At(h *Hold) {
	k.Answer(func() {
		h.ID = k.ID
		k.Out.Hold(h)
	})
}

// Background runs f on a goroutine of its own, which ends with it: for what reads files, the network or long pages. A panic is the answer.
func (k *Call) Background(f func()) {
	k.Out.working.begin()
	go func() {
		defer k.Out.working.end()
		defer func() {
			if v := recover(); v != nil {
				k.Panicked(v, debug.Stack())
			}
		}()
		f()
	}()
}

// Panicked answers a call whose method panicked.
func (k *Call) Panicked(value any, stack []byte) { k.Fail(Panic(k.Method, value, stack)) }

// Panic is the error of a method that panicked: for the log file, no client is told its text.
func Panic(method string, value any, stack []byte) error {
	return fmt.Errorf("panic in method %s: %v\n%s", method, value, stack)
}

// Internal is the answer to an unexpected error: id is what it is found by in the log file, and all that is told of it.
func Internal(id string, err error) *protocol.Error {
	return &protocol.Error{Kind: protocol.InternalError, Message: "Internal error (id " + id + ").", Details: map[string]any{"error_id": id}, Cause: err}
}

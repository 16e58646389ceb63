package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/rind-dev/rind/protocol"
)

// wire is a client's end of a rind v2 connection (docs/protocol/rind-v2.md section 2). It belongs to the goroutine that calls it; the
// goroutine that reads the lines (see receive) ends with the connection.
type wire struct {
	to      io.Writer
	next    int
	waiting map[string]func(reply) // by request id, as sent
}

// reply is the answer to a request.
type reply struct {
	result json.RawMessage
	fault  *wireFault
}

// wireFault is the error of an answer.
type wireFault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// into reads the result; an error of the answer is returned as one.
func (r reply) into(v any) error {
	if r.fault != nil {
		return &protocol.Error{Kind: protocol.ErrorKind(r.fault.Type), Message: r.fault.Message}
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(r.result, v)
}

// told is a line of the other end: an answer, or an event.
type told struct {
	Kind      string          `json:"kind"`
	RequestID json.RawMessage `json:"request_id"`
	Result    json.RawMessage `json:"result"`
	Fault     *wireFault      `json:"error"`
	Method    string          `json:"method"`
	Session   string          `json:"session_id"`
	Turn      string          `json:"turn_id"`
	Event     json.RawMessage `json:"event"`
}

// call sends a request; answered runs when its answer is taken by settle.
func (w *wire) call(method string, params any, answered func(reply)) error {
	w.next++
	line, err := protocol.Marshal(struct {
		Kind   string `json:"kind"`
		ID     int    `json:"request_id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{"request", w.next, method, params})
	if err != nil {
		return fmt.Errorf("write %s: %w", method, err)
	}
	if w.waiting == nil {
		w.waiting = map[string]func(reply){}
	}
	w.waiting[fmt.Sprint(w.next)] = answered
	if _, err := w.to.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write %s: %w", method, err)
	}
	return nil
}

// settle hands an answer to whoever asked.
func (w *wire) settle(t *told) {
	f := w.waiting[string(t.RequestID)]
	delete(w.waiting, string(t.RequestID))
	if f != nil {
		f(reply{t.Result, t.Fault})
	}
}

// receive reads lines until from ends, and closes lines then. A line nobody takes holds the connection up, never the runtime.
func receive(from io.Reader, lines chan<- told) {
	defer close(lines)
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		b, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var t told
		if json.Unmarshal(b, &t) == nil {
			lines <- t
		}
	}
}

// kindNamed finds the kind of an event by its type.
var kindNamed = sync.OnceValue(func() map[string]protocol.Kind {
	m := map[string]protocol.Kind{}
	for k := range protocol.Catalogue {
		if kind := protocol.Kind(k); kind.Known() && kind.Info().Told != protocol.NotTold {
			m[kind.Info().Name] = kind
		}
	}
	return m
})

// body is the content of an event line; nil for events that are no entry of a log.
func (t *told) body() (name string, b protocol.Body, err error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(t.Event, &head); err != nil {
		return "", nil, err
	}
	kind, ok := kindNamed()[head.Type]
	if !ok {
		return head.Type, nil, nil
	}
	b, err = protocol.Decode(&protocol.Entry{Kind: kind, Event: t.Event})
	return head.Type, b, err
}

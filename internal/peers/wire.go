package peers

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"time"
)

// Wire is the client's end of a connection: it sends lines, and gathers those of the server, each read into an L.
type Wire[L any] struct {
	T      T
	In     *io.PipeWriter // what the server reads
	Out    *io.PipeReader // what it writes
	Served chan error     // the result of serving
	Ended  chan struct{}  // closed when the output has ended

	parse func(line []byte) (L, error)
	gone  bool

	mu      sync.Mutex // guards what follows
	lines   []L
	changed chan struct{} // closed, and made anew, with each line
	deaf    chan struct{} // closed when the next line is read; nil while lines are
}

// Dial opens a connection: serve is given the server's ends, and returns when they are done with. deaf says that nothing is read until Hear.
func Dial[L any](t T, serve func(in io.Reader, out io.Writer) error, parse func(line []byte) (L, error), deaf bool) *Wire[L] {
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	w := &Wire[L]{
		T: t, In: in, Out: out, Served: make(chan error, 1), Ended: make(chan struct{}), parse: parse, changed: make(chan struct{}),
	}
	if deaf {
		w.Deafen()
	}
	go func() {
		err := serve(serverIn, serverOut)
		_ = serverIn.Close()
		_ = serverOut.Close()
		w.Served <- err
	}()
	go w.gather()
	return w
}

// Deafen stops reading behind the line that is being waited for.
func (w *Wire[L]) Deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf == nil {
		w.deaf = make(chan struct{})
	}
}

// Hear reads on; it returns false where nothing was stopped.
func (w *Wire[L]) Hear() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf == nil {
		return false
	}
	close(w.deaf)
	w.deaf = nil
	return true
}

func (w *Wire[L]) gather() {
	defer close(w.Ended)
	r := bufio.NewReader(w.Out)
	for {
		w.mu.Lock()
		deaf := w.deaf
		w.mu.Unlock()
		if deaf != nil {
			<-deaf
			continue
		}
		b, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		l, err := w.parse(bytes.TrimSuffix(b, []byte("\n")))
		if err != nil {
			w.T.Errorf("line of the server: %v", err)
			continue
		}
		w.mu.Lock()
		w.lines = append(w.lines, l)
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
}

// Got is what the server has written so far.
func (w *Wire[L]) Got() []L {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[:len(w.lines):len(w.lines)]
}

// Find returns the place of the first line from a place on that matches, waiting for it; false when it does not come.
func (w *Wire[L]) Find(from int, match func(L) bool) (int, bool) {
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		w.mu.Lock()
		lines, changed := w.lines, w.changed
		w.mu.Unlock()
		for ; from < len(lines); from++ {
			if match(lines[from]) {
				return from, true
			}
		}
		select {
		case <-changed:
		case <-late.C:
			return 0, false
		}
	}
}

// Send sends bytes as they are. They may go nowhere, when the connection has ended.
func (w *Wire[L]) Send(text string) { _, _ = io.WriteString(w.In, text) }

// HangUp closes the input, waits for the end of the serving and returns its error. Who is deaf reads nothing any more.
func (w *Wire[L]) HangUp() error {
	w.T.Helper()
	if w.gone {
		return nil
	}
	w.gone = true
	_ = w.In.Close()
	w.mu.Lock()
	deaf := w.deaf != nil
	w.mu.Unlock()
	if deaf {
		_ = w.Out.Close()
		w.Hear()
	}
	select {
	case err := <-w.Served:
		<-w.Ended
		return err
	case <-time.After(Patience):
		w.T.Fatal("the serving did not return after the end of its input")
		return nil
	}
}

package rpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
)

func TestServeTellsHowTheInputEnded(t *testing.T) {
	broken := errors.New("broken")
	line := `{"id":1,"method":"x"}` + "\n"
	for _, c := range []struct {
		name string
		in   io.Reader
		how  frame.Framing
		want error
		got  int // requests and refusals
	}{
		{"clean", strings.NewReader(line), frame.Lines, nil, 1},
		{"in a line, which is not executed", strings.NewReader(line + `{"id":2,"method":"x"}`), frame.Lines, io.ErrUnexpectedEOF, 1},
		{"broken", io.MultiReader(strings.NewReader(line), iotest.ErrReader(broken)), frame.Lines, broken, 1},
		{"headers nobody can follow", strings.NewReader("Content-Length: 21\r\n\r\n" + line + "X: y\r\n\r\n" + line), frame.Headers, frame.ErrHeader, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPeer()
			r := frame.NewReader(c.in)
			r.SetFraming(c.how)
			if err := serveAll(t.Context(), r, p); !errors.Is(err, c.want) {
				t.Errorf("Serve = %v, want %v", err, c.want)
			}
			if len(p.got) != c.got {
				t.Errorf("got %q", p.got)
			}
		})
	}
}

func TestJ24AnswersMayStillBeWrittenAfterTheInputEnded(t *testing.T) {
	p := newPeer()
	var open []protocol.Request
	p.request = func(r protocol.Request) { open = append(open, r) }
	if err := serveAll(t.Context(), frame.NewReader(strings.NewReader(`{"id":-1,"method":"x"}`+"\n")), p); err != nil {
		t.Fatal(err)
	}
	if len(open) != 1 || string(open[0].ID) != "-1" { // what it takes to answer; the sink was never the library's to close
		t.Errorf("open requests: %v", open)
	}
}

func TestJ25ServeDoesNotWaitForAReadThatBlocks(t *testing.T) {
	r, w := io.Pipe()
	p := newPeer()
	reading := make(chan struct{}, 10)
	p.ready = func() { reading <- struct{}{} }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveAll(ctx, frame.NewReader(r), p) }()
	<-reading
	cancel()
	if err := receive(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("Serve = %v", err)
	}
	// The read ends with its input, and what it brought is nobody's business any more.
	if _, err := io.WriteString(w, `{"id":1,"method":"x"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if len(p.got) > 0 {
		t.Errorf("after the end the peer was given %q", p.got)
	}
}

func TestNothingIsReadWhileThePeerIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		p := newPeer()
		gate := make(chan struct{})
		p.ready = func() { <-gate }
		done := make(chan error, 1)
		go func() { done <- serveAll(t.Context(), frame.NewReader(r), p) }()
		wrote := make(chan struct{})
		go func() {
			_, _ = io.WriteString(w, `{"id":1,"method":"x"}`+"\n")
			close(wrote)
			w.Close()
		}()
		synctest.Wait() // the reader stands at the gate, the client in its write
		select {
		case <-wrote:
			t.Error("the input was read")
		default:
		}
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(p.got) != 1 {
			t.Errorf("got %q", p.got)
		}
	})
}

func FuzzServe(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"x","params":{}}` + "\n", "garbage\n{}\n", `{"id":null,"result":1}` + "\n", `{"id":1,"error":2}` + "\n", "\xff\n", "[[[[\n",
		`{"id":"a","method":"b"}`, "Content-Length: 2\r\n\r\n{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := serve(t, in) // whatever comes, the connection lives to its end
		again := serve(t, append(append([]byte{}, in...), "\n"+`{"id":"last","method":"ping"}`+"\n"...))
		if len(again) < len(got)+1 || again[len(again)-1] != `request "last" ping ` {
			t.Errorf("%q: %q, and with a ping behind it %q", in, got, again)
		}
	})
}

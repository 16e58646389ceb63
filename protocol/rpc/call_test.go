package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/frame"
	"github.com/rind-dev/rind/protocol/rpc"
)

func TestJ19ThePeersErrorIsTheCallers(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{})
	answer := c.call(t.Context(), "a")
	receive(t, c.sent)
	c.say(t, `{"id":"a","error":{"code":-32601}}`)
	if got, e := receive(t, answer), (*protocol.Error)(nil); !errors.As(got.err, &e) || e.Message != `{"code":-32601}` {
		t.Errorf("the call got %v", got.err)
	}
}

func TestJ21CallsOfAnyIdsDoNotCollide(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{})
	ids := []string{"0", "1", "2", "auth-x", "3"}
	var answers []<-chan outcome
	for _, id := range ids {
		answers = append(answers, c.call(t.Context(), id))
		if sent := receive(t, c.sent); sent.ID != id {
			t.Fatalf("sent as %q", sent.ID)
		}
	}
	if got := receive(t, c.call(t.Context(), "auth-x")); got.err == nil {
		t.Error("a second call with an id that is open was made")
	}
	for i := len(ids) - 1; i >= 0; i-- {
		c.say(t, fmt.Sprintf(`{"id":%q,"result":%d}`, ids[i], i))
	}
	for i, a := range answers {
		if got := receive(t, a); got.err != nil || string(got.result) != fmt.Sprint(i) {
			t.Errorf("call %q got %s, %v", ids[i], got.result, got.err)
		}
	}
}

func TestJ22ACancelledCallIsWithdrawnWaitedForAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		sent, gone := make(chan protocol.Call, 10), make(chan string, 10)
		p := newPeer()
		conn := rpc.New(frame.NewReader(r), p, rpc.Options{
			Send: func(c protocol.Call) { sent <- c }, Withdraw: func(id string) { gone <- id },
		})
		done := make(chan error, 1)
		go func() { done <- conn.Serve(t.Context()) }()
		why := errors.New("the user left")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 1)
		begun := time.Now()
		go func() {
			_, err := conn.Call(ctx, protocol.Call{ID: "a", Method: "ask"})
			got <- err
		}()
		<-sent
		cancel(why)
		if id := <-gone; id != "a" {
			t.Errorf("withdrew %q", id)
		}
		if err := <-got; !errors.Is(err, why) || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		// A late answer is dropped, and the same id is free again: nothing of the old call is left.
		_, _ = io.WriteString(w, `{"id":"a","result":"late"}`+"\n"+`{"id":7,"method":"ping"}`+"\n")
		if got := p.wait(t, 1); got[0] != "request 7 ping " {
			t.Errorf("behind a late answer came %q", got)
		}
		res := make(chan string, 1)
		go func() {
			b, err := conn.Call(t.Context(), protocol.Call{ID: "a", Method: "ask"})
			res <- fmt.Sprint(string(b), err)
		}()
		<-sent
		_, _ = io.WriteString(w, `{"id":"a","result":"new"}`+"\n")
		if s := <-res; s != `"new"<nil>` {
			t.Errorf("the new call got %s", s)
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestJ22AnAnswerWithinTheGraceCounts(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{Grace: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	answer := c.call(ctx, "a")
	receive(t, c.sent)
	cancel()
	receive(t, c.gone)
	c.say(t, `{"id":"a","result":"allowed"}`)
	if got := receive(t, answer); got.err != nil || string(got.result) != `"allowed"` {
		t.Errorf("%s, %v", got.result, got.err)
	}
}

func TestACallEndsWithItsConnection(t *testing.T) {
	c := open(t, newPeer(), rpc.Options{})
	answer := c.call(t.Context(), "a")
	receive(t, c.sent)
	c.to.Close()
	if got := receive(t, answer); !errors.Is(got.err, rpc.ErrEnded) {
		t.Errorf("the call got %v", got.err)
	}
	if got := receive(t, c.call(t.Context(), "b")); !errors.Is(got.err, rpc.ErrEnded) {
		t.Errorf("a call after the end got %v", got.err)
	}
	if len(c.gone) > 0 {
		t.Error("a call was withdrawn from a peer that is gone")
	}
}

func TestAConnectionWithoutASenderMakesNoCalls(t *testing.T) {
	conn := rpc.New(frame.NewReader(strings.NewReader("")), newPeer(), rpc.Options{})
	if _, err := conn.Call(t.Context(), protocol.Call{ID: "a"}); err == nil {
		t.Error("Call succeeded")
	}
}

func TestACallBeforeTheConnectionIsServedWaitsForIt(t *testing.T) {
	conn := rpc.New(frame.NewReader(strings.NewReader("")), newPeer(), rpc.Options{Send: func(protocol.Call) {}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := conn.Call(ctx, protocol.Call{ID: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Call = %v", err)
	}
}

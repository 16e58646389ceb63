package outlet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// counting is a stream that says its places 1, 2, … up to end, some in each page.
type counting struct {
	name      string
	mu        sync.Mutex
	end, told session.Seq
	step      session.Seq
	faults    int // pages that cannot be read yet
	closed    int
}

func (c *counting) Page(buf []byte, limit func() session.Seq) ([]byte, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults > 0 {
		c.faults--
		return buf, false, errors.New("the disk is away")
	}
	most := limit()
	for i := session.Seq(0); i < c.step && c.told < c.end && (most < 0 || c.told < most); i++ {
		c.told++
		buf = fmt.Appendf(buf, "%s%d\n", c.name, c.told)
	}
	return buf, c.told < c.end && (most < 0 || c.told < most), nil
}

func (c *counting) Told() session.Seq {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

func (c *counting) Close() { c.closed++ }

func (c *counting) grow(n session.Seq) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end += n
}

// wire is an outlet with what it wrote.
type wire struct {
	*outlet.Outlet
	out    bytes.Buffer
	unread []string
	lost   error
}

func open(sink io.Writer) *wire {
	w := &wire{}
	if sink == nil {
		sink = &w.out
	}
	w.Outlet = outlet.New(outlet.Options{
		Sink: sink, Frame: func(r protocol.Reply) []byte { return fmt.Appendln(nil, r.Result) }, Answering: func([]string) {}, Answered: func([]string) {}, Lost: func(err error) { w.lost = err },
		Unread: func(key string, err error, last bool) { w.unread = append(w.unread, fmt.Sprint(key, " ", last)) },
	})
	go w.Run()
	return w
}

func (w *wire) end() string {
	w.Close()
	<-w.Done()
	return strings.ReplaceAll(w.out.String(), "\n", " ")
}

func said(text string) func(outlet.Stream) (any, error) {
	return func(outlet.Stream) (any, error) { return text, nil }
}

func TestAnAnswerComesBehindWhatItsPlaceHoldsAndAnExactOneBeforeTheRest(t *testing.T) {
	for _, exact := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := open(nil)
			s := &counting{name: "a", step: 2}
			w.Follow("a", s, nil)
			h := w.Hold(&outlet.Hold{Stream: "a", Seq: 3, Exact: exact, Wait: true, ID: json.RawMessage("1")})
			s.grow(6)
			w.Ring()
			synctest.Wait()
			before := strings.Fields(w.out.String())
			w.Ready(h, said("answer"))
			got, want := w.end(), "a1 a2 a3 a4 a5 a6 answer "
			if exact {
				want = "a1 a2 a3 answer a4 a5 a6 "
				if len(before) != 3 {
					t.Errorf("before the answer was ready: %q", before)
				}
			}
			if got != want {
				t.Errorf("exact %v: %q, want %q", exact, got, want)
			}
		})
	}
}

func TestTheLastAnswerEndsTheOutletBehindEverythingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &stuck{let: make(chan struct{})}
		close(sink.let)
		w := open(sink)
		h := w.Hold(&outlet.Hold{Last: true, Wait: true, ID: json.RawMessage("1")})
		other := w.Hold(&outlet.Hold{Wait: true, ID: json.RawMessage("2")})
		w.Ready(h, said("last"))
		synctest.Wait()
		if sink.out.Len() > 0 {
			t.Errorf("written ahead of another answer: %q", sink.out.String())
		}
		sink.let = make(chan struct{})
		w.Line([]byte("x\n"), "") // holds the writer up until both are there
		synctest.Wait()
		w.Follow("a", &counting{name: "a", step: 1, end: 3}, nil)
		w.Ready(other, said("other"))
		close(sink.let)
		<-w.Done()
		if got := sink.out.String(); got != "x\na1\nother\na2\na3\nlast\n" {
			t.Errorf("written %q", got)
		}
	})
}

func TestALogThatCannotBeReadForAMomentIsReadAgainAndNothingIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(nil)
		bad, good := &counting{name: "a", step: 5, end: 5, faults: 4}, &counting{name: "b", step: 1, end: 2}
		w.Follow("a", bad, &outlet.Hold{Stream: "a", Seq: 5, ID: json.RawMessage("1"), Reply: said("answer")})
		w.Follow("b", good, nil)
		synctest.Wait()
		if got := w.out.String(); got != "b1\nb2\n" {
			t.Errorf("while it rests: %q", got)
		}
		w.Ring() // does not end the rest
		synctest.Wait()
		if len(w.unread) != 1 {
			t.Errorf("asked again at once: %v", w.unread)
		}
		if got := w.end(); got != "b1 b2 a1 a2 a3 a4 a5 answer " {
			t.Errorf("written %q", got)
		}
		if bad.closed != 0 || strings.Join(w.unread, ",") != "a false,a false,a false,a false" {
			t.Errorf("closed %d times, said %v", bad.closed, w.unread)
		}
	})
}

func TestALogThatStaysUnreadableEndsItsStreamAndHoldsNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(nil)
		bad := &counting{name: "a", step: 5, end: 5, faults: 1 << 20}
		w.Follow("a", bad, &outlet.Hold{Stream: "a", Seq: 5, ID: json.RawMessage("1"), Reply: said("answer")})
		begin := time.Now()
		for w.Stream("a") != nil && time.Since(begin) < time.Minute {
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if took := time.Since(begin); took < 30*time.Second || took > 35*time.Second {
			t.Errorf("given up after %v", took)
		}
		if n := len(w.unread); n > 25 || w.unread[n-1] != "a true" {
			t.Errorf("%d tries: %v", n, w.unread)
		}
		if got := w.end(); got != "answer " || bad.closed != 1 {
			t.Errorf("written %q, closed %d times", got, bad.closed)
		}
	})
}

// stuck is a sink that takes nothing until it is let go.
type stuck struct {
	let chan struct{}
	out bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.let
	return s.out.Write(b)
}

func TestAReaderThatFallsBehindPausesAtItsBoundAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &stuck{let: make(chan struct{})}
		w := open(sink)
		for i := range 1023 {
			w.Line([]byte("x\n"), fmt.Sprint(i))
		}
		w.Pause() // not yet
		w.Line([]byte("x\n"), "last")
		over := make(chan struct{})
		go func() {
			w.Pause()
			close(over)
		}()
		synctest.Wait()
		select {
		case <-over:
			t.Error("1024 unwritten answers do not pause the reader")
		default:
		}
		close(sink.let)
		<-over
		w.Close()
		<-w.Done()
		if n := sink.out.Len(); n != 2048 {
			t.Errorf("%d bytes written", n)
		}
	})
}

type torn struct{}

func (torn) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAFailedWriteEndsTheOutletAndFreesItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(torn{})
		for range 2000 {
			w.Line([]byte("x\n"), "1")
		}
		w.Pause()
		<-w.Done()
		w.Pause()
		if !errors.Is(w.lost, io.ErrClosedPipe) {
			t.Errorf("lost: %v", w.lost)
		}
	})
}

func TestAStreamThatTakesThePlaceOfAnotherClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(nil)
		first, second := &counting{name: "a", step: 9, end: 2}, &counting{name: "b", step: 9, end: 2}
		w.Follow("k", first, nil)
		synctest.Wait()
		w.Follow("k", second, nil)
		synctest.Wait()
		if first.closed != 1 || second.closed != 0 || len(w.Streams()) != 1 {
			t.Errorf("closed %d and %d times, streams %v", first.closed, second.closed, w.Streams())
		}
		if !w.Unfollow("k") || w.Unfollow("k") || second.closed != 1 {
			t.Errorf("second closed %d times", second.closed)
		}
		if got := w.end(); got != "a1 a2 b1 b2 " {
			t.Errorf("written %q", got)
		}
	})
}

// wordy is a stream whose every page fills a batch.
type wordy struct {
	counting
}

func (w *wordy) Page(buf []byte, limit func() session.Seq) ([]byte, bool, error) {
	if len(buf) >= outlet.BatchBytes {
		return buf, w.Told() < w.end, nil
	}
	out, more, err := w.counting.Page(buf, limit)
	if len(out) > len(buf) {
		out = append(out, make([]byte, outlet.BatchBytes)...)
	}
	return out, more, err
}

func TestAStreamWhosePagesFillABatchLeavesTheOthersTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &stuck{let: make(chan struct{})}
		w := open(sink)
		w.Line([]byte("x\n"), "") // holds the writer up until all of them are followed
		synctest.Wait()
		w.Follow("a", &wordy{counting{name: "a", step: 1, end: 9}}, nil)
		w.Follow("b", &counting{name: "b", step: 1, end: 1}, nil)
		w.Follow("c", &wordy{counting{name: "c", step: 1, end: 9}}, nil)
		close(sink.let)
		synctest.Wait()
		w.Close()
		<-w.Done()
		got := strings.ReplaceAll(sink.out.String(), "\x00", "")
		for _, late := range []string{"b1\n", "c1\n"} {
			if before, _, ok := strings.Cut(got, late); !ok || strings.Contains(before, "a4") {
				t.Errorf("%q came behind four batches of another stream, or not at all", late)
			}
		}
	})
}

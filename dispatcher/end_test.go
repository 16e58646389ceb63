package dispatcher_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher"
	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

const hanging = `{"turns": [{"match": "p", "steps": [{"text": "partial"}, {"hang": true}]}, {"match": "s", "steps": [{"call": {"id": "c1", "name": "stay", "arguments": {}}}]}]}`

// endsWithShutdown checks that the end of the runtime is what ended the session's last turn.
func endsWithShutdown(t *testing.T, p *process, id string) {
	t.Helper()
	p.Sound(id)
	es := p.Entries(id)
	last := es[len(es)-1]
	if last.Kind != protocol.KindTurnCancelled || !strings.Contains(string(last.Event), `"reason":"Worker shutting down"`) {
		t.Errorf("the log ends with %s", last.Event)
	}
}

func TestShutdownIsAnsweredLastAfterWhatItEnds(t *testing.T) {
	for _, input := range []string{"p", "s"} {
		t.Run(input, func(t *testing.T) {
			onBoth(t, func(t *testing.T, env rindv2.Envelope) {
				p := launch(t, peers.NewWorld(), "p", hanging, "")
				defer p.end()
				c := p.connect(env)
				id := c.hello()
				prompt := c.send("session/prompt", `{"input":"`+input+`"}`)
				waiting := c.send("session/prompt", `{"input":"`+input+` again"}`)
				c.settle()
				began := time.Now()
				end := c.send("shutdown", "")
				l := c.response(end)
				if l.raw != fmt.Sprintf(`{"kind":"response","request_id":%s,"result":{"ok":true}}`, end) {
					t.Errorf("got %s", l.raw)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the end took %v", took)
				}
				if err := <-c.Served; err != nil { // without waiting for the end of the input
					t.Errorf("Serve: %v", err)
				}
				c.Served <- nil
				lines := c.settle()
				gapFree(t, lines)
				if lines[len(lines)-1] != l {
					t.Errorf("after the answer to shutdown: %s", lines[len(lines)-1].raw)
				}
				if a := c.response(prompt); a.text("outcome") != "cancelled" || a.text("stop_reason") != "shutdown" {
					t.Errorf("the prompt was answered %s", a.raw)
				}
				if a := c.response(waiting); a.err == nil && a.text("outcome") != "cancelled" {
					t.Errorf("the waiting prompt was answered %s", a.raw)
				}
				terminal := place(lines, func(l *line) bool { return l.has("turn_cancelled") })
				answer := place(lines, func(l *line) bool { return l.id == prompt })
				if terminal < 0 || terminal > answer {
					t.Errorf("terminal at line %d, answer at %d", terminal, answer)
				}
				endsWithShutdown(t, p, id)
			})
		})
	}
}

func TestRequestsReadAfterShutdownAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connectDeaf(env)
		c.ask("1", "initialize", `{}`)
		c.ask("2", "shutdown", ``)
		c.ask("3", "ping", ``)
		c.ask("4", "shutdown", ``)
		c.settle() // all is read, nothing is written
		c.Hear()
		for _, id := range []string{"3", "4"} {
			if l := c.response(id); l.err == nil || l.err.Type != "ServerStopping" || l.err.Message != "Runtime is shutting down." {
				t.Errorf("got %s", l.raw)
			}
		}
		c.response("2")
		if lines := c.settle(); lines[len(lines)-1].id != "2" {
			t.Errorf("the last line is %s", lines[len(lines)-1].raw)
		}
	})
}

func TestShutdownWithoutWorkIsAnsweredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connect(env)
		began := time.Now()
		c.call("shutdown", "") // also before initialize
		if took := time.Since(began); took >= 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestEndOfInputInATurnEndsTheTurnAndIsTold(t *testing.T) {
	for _, input := range []string{"p", "s"} {
		t.Run(input, func(t *testing.T) {
			onBoth(t, func(t *testing.T, env rindv2.Envelope) {
				p := launch(t, peers.NewWorld(), "p", hanging, "")
				defer p.end()
				c := p.connect(env)
				id := c.hello()
				prompt := c.send("session/prompt", `{"input":"`+input+`"}`)
				c.settle()
				if env == rindv2.Rind {
					c.Send(`{"kind":"request","request_id":"half","method":"session/new"}`) // without its line end it is not executed
				}
				began := time.Now()
				if err := c.hangUp(); err != nil {
					t.Errorf("Serve: %v", err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the end took %v", took)
				}
				lines := c.Got()
				gapFree(t, lines)
				last := lines[len(lines)-1]
				if last.id != prompt || last.text("outcome") != "cancelled" || last.text("stop_reason") != "shutdown" {
					t.Errorf("the last line is %s", last.raw)
				}
				endsWithShutdown(t, p, id)
			})
		})
	}
}

// TestWhatWasReadBeforeTheEndIsAnswered: a script may write all its lines at once and close the pipe, or send shutdown behind them.
func TestWhatWasReadBeforeTheEndIsAnswered(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		for _, last := range []string{"", "shutdown"} {
			p := launch(t, peers.NewWorld(), "p", hanging, "")
			c := p.connect(env)
			c.hello()
			asked := map[string]string{}
			for _, m := range []string{"session/list", "model/list", "rind/usage/summary", "rind/context/inspect", "rind/background/list", "rind/task/list", "session/replay", "rind/runtime/describe"} {
				asked[c.send(m, `{"refresh":true}`)] = m
			}
			if last != "" {
				c.send(last, "")
				<-c.Served
				c.Served <- nil
			} else if err := c.hangUp(); err != nil {
				t.Errorf("Serve: %v", err)
			}
			c.settle()
			answered := map[string]bool{}
			for _, l := range c.Got() {
				answered[l.id] = true
			}
			for id, m := range asked {
				if !answered[id] {
					t.Errorf("%q: %s was not answered", last, m)
				}
			}
			p.end()
		}
	})
}

func TestAShutdownIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connect(rindv2.JSONRPC)
		c.hello()
		prompt := c.send("session/prompt", `{"input":"p"}`)
		c.settle()
		c.Send(`{"jsonrpc":"2.0","id":"end","method":"shutdown"}` + "\n" + `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"end"}}` + "\n")
		if l := c.response(`"end"`); l.err != nil || !strings.Contains(l.raw, `"result":{"ok":true}`) {
			t.Errorf("shutdown was answered %s", l.raw)
		}
		if err := <-c.Served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		c.Served <- nil
		if lines := c.settle(); lines[len(lines)-1].id != `"end"` || c.response(prompt).text("outcome") != "cancelled" {
			t.Errorf("the lines:\n%s", c.dump())
		}
	})
}

// TestAShutdownWhoseLogCannotBeWrittenSaysSo: on a disk that takes nothing, and on one that does not answer. Without the request the end is not
// to be told to anybody.
func TestAShutdownWhoseLogCannotBeWrittenSaysSo(t *testing.T) {
	for name, breaks := range map[string]func(*storetest.Fault) (mend func()){
		"full":    func(f *storetest.Fault) func() { f.FillUpAt(1); return f.Mend },
		"stalled": (*storetest.Fault).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, env rindv2.Envelope) {
				for _, asked := range []bool{true, false} {
					var fault *storetest.Fault
					p := launchAround(t, peers.NewWorld(), "p", hanging, "", func(s session.Store) session.Store {
						fault = storetest.NewFault(s)
						return fault
					})
					c := p.connect(env)
					c.hello()
					c.send("session/prompt", `{"input":"p"}`)
					c.settle()
					mend := breaks(fault)
					began := time.Now()
					if !asked {
						if err := c.hangUp(); protocol.KindOf(err) == protocol.ShutdownFailed {
							t.Errorf("Serve: %v", err)
						}
					} else {
						end := c.send("shutdown", "")
						err := <-c.Served
						c.Served <- err
						l := c.response(end)
						if protocol.KindOf(err) != protocol.ShutdownFailed || l.err == nil || l.err.Type != "ShutdownFailed" {
							t.Errorf("answered %s, Serve: %v", l.raw, err)
						}
						if lines := c.settle(); lines[len(lines)-1] != l {
							t.Errorf("after the answer to shutdown: %s", lines[len(lines)-1].raw)
						}
					}
					if took := time.Since(began); took > time.Second {
						t.Errorf("the end took %v", took)
					}
					mend()
					p.end()
				}
			})
		})
	}
}

func TestClosedOutputEndsTheTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connect(env)
		id := c.hello()
		c.send("session/prompt", `{"input":"p"}`)
		c.settle()
		_ = c.Out.Close()
		c.send("ping", "") // the next write finds it closed
		select {
		case <-c.Served:
			c.Served <- nil
		case <-time.After(peers.Patience):
			t.Fatal("Serve goes on without an output")
		}
		endsWithShutdown(t, p, id)
	})
}

func TestClientThatNeverReadsDoesNotHoldUpTheEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connectDeaf(env)
		c.ask("1", "initialize", `{}`)
		c.ask("2", "session/prompt", `{"input":"p"}`)
		c.settle()
		began := time.Now()
		_ = c.In.Close()
		err := <-c.Served
		c.Served <- err
		if err == nil {
			t.Error("Serve says that all was written")
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		endsWithShutdown(t, p, p.only())
	})
}

func TestCancelRequestWithdrawsAPromptAndEndsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", hanging, "")
		defer p.end()
		c := p.connect(rindv2.JSONRPC)
		c.hello()
		c.ask(`"run"`, "session/prompt", `{"input":"p"}`)
		c.ask(`"wait"`, "session/prompt", `{"input":"p"}`)
		c.settle()
		c.Send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"wait"}}` + "\n")
		if l := c.response(`"wait"`); l.text("outcome") != "cancelled" || !strings.Contains(l.raw, `"turn_id":""`) {
			t.Errorf("got %s", l.raw)
		}
		c.Send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"id":"run"}}` + "\n")
		if l := c.response(`"run"`); l.text("outcome") != "cancelled" {
			t.Errorf("got %s", l.raw)
		}
	})
}

func TestHeaderFramingIsFoundByItsFirstBytesAndAnsweredAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		serverIn, in := io.Pipe()
		out, serverOut := io.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- p.d.Serve(t.Context(), serverIn, serverOut, dispatcher.Options{})
			_ = serverOut.Close()
		}()
		r := bufio.NewReader(out)
		next := func() *line {
			var n int
			if _, err := fmt.Fscanf(r, "Content-Length: %d\r\n\r\n", &n); err != nil {
				t.Fatalf("header of an answer: %v", err)
			}
			b := make([]byte, n)
			if _, err := io.ReadFull(r, b); err != nil {
				t.Fatal(err)
			}
			l, err := readLine(rindv2.JSONRPC, b)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		send := func(head, body string) {
			fmt.Fprintf(in, "%s: %d\r\nX-Other: y\r\n\r\n%s", head, len(body), body)
		}
		send("content-LENGTH", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
		if l := next(); l.id != "1" || l.err != nil {
			t.Errorf("got %s", l.raw)
		}
		send("Content-Length", `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"input":"x"}}`)
		var seen []*line
		for {
			l := next()
			seen = append(seen, l)
			if l.id == "2" {
				break
			}
		}
		gapFree(t, seen)
		if told(seen, "") != "x" {
			t.Errorf("told %q", told(seen, ""))
		}
		if _, err := io.WriteString(in, "No-Length: 1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if l := next(); l.err == nil || l.err.Code != -32700 {
			t.Errorf("got %s", l.raw)
		}
		if err := <-served; err != nil { // it cannot be found again in such a stream
			t.Errorf("Serve: %v", err)
		}
		_ = serverIn.Close()
	})
}

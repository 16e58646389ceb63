package dispatcher_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

var connections = flag.Int("connections", 100, "how many connections TestManyConnectionsAreToldTheSameAndCostLittle opens")

// connectionBytes bounds what an open connection that follows a session costs, its client in this test included.
const connectionBytes = 96 << 10

// TestManyConnectionsAreToldTheSameAndCostLittle lets many connections follow one session: some only from its middle on, some of which read
// nothing at first. Each is told every durable event behind its cursor, in order, and is answered while the others are being told.
func TestManyConnectionsAreToldTheSameAndCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peers.NewWorld()
		p := launch(t, w, "p", `{"turns": [{"steps": [{"repeat": {"times": 20, "steps": [
			{"text": "some words that are told to everybody. ", "chunk": 5, "delayMs": 30}, {"call": {"name": "look"}}, {"finish": "tool_calls"}, {"text": "done"}, {"finish": "stop"}]}}]}]}`, "")
		defer p.end()
		first := p.connect(rindv2.Rind)
		first.hello()
		first.call("session/prompt", `{"input":"go"}`)
		id := p.only()

		before := inUse()
		var all []*client
		var deaf []*client
		for i := range *connections {
			c := p.connectDeaf(rindv2.Rind)
			if i%10 != 9 {
				c.Hear()
				all = append(all, c)
			} else {
				deaf = append(deaf, c)
			}
			c.ask("1", "initialize", `{"client_capabilities":["rind/approvals"]}`)
			c.ask("2", "session/subscribe", fmt.Sprintf(`{"session_id":%q,"after_cursor":%d}`, id, i%7))
		}
		synctest.Wait()
		if each := (inUse() - before) / int64(*connections); each > connectionBytes {
			t.Errorf("a connection costs %d bytes, at most %d were promised", each, connectionBytes)
		} else {
			t.Logf("a connection costs %d bytes", each)
		}
		for range 3 {
			first.call("session/prompt", `{"input":"go"}`)
		}
		for _, c := range all {
			c.ask("3", "ping", "")
		}
		synctest.Wait()
		for _, c := range deaf {
			c.Hear()
			c.ask("3", "ping", "")
		}
		synctest.Wait()
		want := p.durables(id)
		for _, c := range slices.Concat(all, deaf) {
			got := cursors(c.Got())
			if behind := want[len(want)-len(got):]; len(got) < len(want)-7 || !slices.Equal(got, behind) {
				t.Fatalf("a connection was told %v of %v", got, want)
			}
			for _, answer := range []string{"1", "2", "3"} {
				if !slices.ContainsFunc(c.Got(), func(l *line) bool { return l.id == answer && l.err == nil }) {
					t.Fatalf("request %s has no answer", answer)
				}
			}
		}
	})
}

// inUse is what is in use, stacks included.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

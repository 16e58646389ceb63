package dispatcher_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/rindv2"
)

// H066: a place behind the end is an empty page that tells where the end is, at once.
func TestAReplayFromBehindTheEndIsAnEmptyPageWithTheHead(t *testing.T) {
	onBoth(t, func(t *testing.T, env rindv2.Envelope) {
		p := launch(t, peers.NewWorld(), "p", `[{"text": "x"}]`, "")
		defer p.end()
		c := p.connect(env)
		c.hello()
		c.call("session/prompt", `{"input":"x"}`)
		head := pageOf(t, c.call("session/replay", `{"after_cursor":0}`)).Head
		for _, after := range []string{fmt.Sprint(head), fmt.Sprint(head + 1), "1000000000000", "9007199254740993"} {
			got := pageOf(t, c.call("session/replay", `{"after_cursor":`+after+`}`))
			if len(got.Events) != 0 || got.More || got.Head != head || head == 0 || fmt.Sprint(got.Cursor) != after {
				t.Errorf("after %s: %+v, the head is %d", after, got, head)
			}
		}
		for _, after := range []string{"-1", "1.5", `"5"`, `""`, "1e300", "true", "[]"} {
			c.refused("session/replay", `{"after_cursor":`+after+`}`, "InvalidRequest", "session/replay after_cursor must be a non-negative integer.")
		}
	})
}

// H068: a long history is read in pages of bounded size, and pings are answered between them.
func TestAPageOfAReplayEndsAtItsBytesAndIsReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launch(t, peers.NewWorld(), "p", `{"turns": [{"steps": [{"repeat": {"times": 40, "steps": [{"text": "`+strings.Repeat("long ", 64_000)+`", "chunk": 100000}, {"finish": "stop"}]}}]}], "strict": false}`, "")
		defer p.end()
		c := p.connect(rindv2.Rind)
		c.hello()
		for range 16 {
			if l := c.call("session/prompt", `{"input":"x"}`); l.text("outcome") != "completed" {
				t.Fatal(l.raw)
			}
		}
		live := map[int64]string{}
		for _, l := range c.settle() {
			if l.cursor > 0 {
				live[l.cursor] = bare(l)
			}
		}
		pages, seen := 0, 0
		for after := int64(0); ; {
			pages++
			l := c.call("session/replay", fmt.Sprintf(`{"after_cursor":%d,"limit":1000}`, after))
			if len(l.raw) > 5<<20 {
				t.Errorf("a page of %d bytes", len(l.raw))
			}
			got := pageOf(t, l)
			for _, e := range got.Events {
				l, err := readLine(rindv2.Rind, e)
				if err != nil {
					t.Fatal(err)
				}
				if seen++; bare(l) != live[l.cursor] {
					t.Errorf("cursor %d is not as it was told", l.cursor)
				}
			}
			if !got.More {
				break
			}
			after = got.Cursor
			c.call("ping", "")
		}
		if pages < 2 || seen != len(live) {
			t.Errorf("%d events in %d pages, %d were told", seen, pages, len(live))
		}
	})
}

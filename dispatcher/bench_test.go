package dispatcher

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// pieces is a message in n pieces, as the log holds it.
func pieces(b *testing.B, n int) []session.Entry {
	b.Helper()
	out := make([]session.Entry, n)
	text := strings.Repeat("word ", 8)
	for i := range out {
		d := &protocol.AssistantDelta{Text: text}
		d.More.MessageID, d.More.Offset = "m1", i*len(text)
		e, err := protocol.Encode(protocol.Head{Time: time.Unix(0, 0), EventID: fmt.Sprintf("%032x", i), Session: "s", Turn: "0123456789abcdef0123456789abcdef"}, d)
		if err != nil {
			b.Fatal(err)
		}
		e.Seq, e.Turn = session.Seq(i+1), "0123456789abcdef0123456789abcdef"
		out[i] = e
	}
	return out
}

func benchmarkTold(b *testing.B, env rindv2.Envelope, lag bool) {
	entries := pieces(b, outlet.PageEntries)
	c := newConn(New(Config{}), strings.NewReader(""), io.Discard)
	c.env = env
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		t := rindv2.Teller{Session: "s"}
		c.out.told = t.Tell(c.out.told[:0], entries, lag)
		buf = c.out.appendTold(buf[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(entries)), "ns/piece")
}

func BenchmarkToldLive(b *testing.B)    { benchmarkTold(b, rindv2.Rind, false) }
func BenchmarkToldLiveRPC(b *testing.B) { benchmarkTold(b, rindv2.JSONRPC, false) }
func BenchmarkToldLagging(b *testing.B) { benchmarkTold(b, rindv2.Rind, true) }

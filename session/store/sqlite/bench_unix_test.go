//go:build unix

package sqlite_test

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

// BenchmarkExecution is an execution of four events that is alone in its conversation: its acceptance with its start, and its end.
func BenchmarkExecution(b *testing.B) {
	s := benchStore(b)
	l := benchLease(b, s, "s")
	row := session.Row{Title: "a title", Preview: "a preview", UserPrompt: true}
	end := row
	end.Fold = bytes.Repeat([]byte("x"), 1500)
	var seq session.Seq
	next := func(turn session.TurnID, body protocol.Body) session.Entry {
		seq++
		return storetest.Entry(seq, turn, body)
	}
	first := true
	start := used()
	for i := 0; b.Loop(); i++ {
		turn := session.TurnID(fmt.Sprintf("%032x", uint64(i)*0x9E3779B97F4A7C15))
		acc := &protocol.TurnAccepted{}
		acc.More.Provider, acc.More.Surface, acc.More.Parallel, acc.More.Config = "mock", protocol.SurfacePortable, true, []byte("{}")
		batch := session.Batch{Entries: []session.Entry{
			next(turn, acc), next(turn, &protocol.UserMessage{}), next(turn, &protocol.TurnStarted{Operation: protocol.OpPrompt}),
		}, Row: &row, Retake: !first}
		first = false
		if err := storetest.Append(s, l, batch); err != nil {
			b.Fatal(err)
		}
		end.FoldSeq = seq + 1
		if err := storetest.Append(s, l, session.Batch{Entries: []session.Entry{next(turn, &protocol.TurnCompleted{})}, Row: &end, Release: true}); err != nil {
			b.Fatal(err)
		}
	}
	cpu(b, start)
}

// BenchmarkText is a piece of streamed text, appended alone while those before it are on their way.
func BenchmarkText(b *testing.B) {
	s := benchStore(b)
	l := benchLease(b, s, "s")
	const turn = "00000000000000000000000000000001"
	ahead := make(chan struct{}, 256)
	start := used()
	for i := session.Seq(1); b.Loop(); i++ {
		ahead <- struct{}{}
		s.Append(l, session.Batch{Entries: []session.Entry{storetest.Entry(i, turn, &protocol.AssistantDelta{Text: "word "})}}, func(err error) {
			if err != nil {
				b.Error(err)
			}
			<-ahead
		})
	}
	for range cap(ahead) {
		ahead <- struct{}{}
	}
	cpu(b, start)
}

// used is the CPU time of the process so far.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpu reports the CPU time of an operation: on a shared machine the one figure that stands.
func cpu(b *testing.B, since time.Duration) {
	b.ReportMetric(float64(used()-since)/float64(b.N), "cpu-ns/op")
}

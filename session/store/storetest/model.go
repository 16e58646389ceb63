package storetest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// modelled drives two processes on one store at random and compares each answer with a model that fits on a page.
func modelled(t *testing.T, open Opener) {
	stores := map[string]session.Store{"a": open(t, "a"), "b": open(t, "b")}
	run := 0 // gives each run sessions of its own
	rapid.Check(t, func(rt *rapid.T) {
		run++
		type log struct {
			owner string
			epoch int64
			texts []string
			keys  map[string]bool
		}
		logs := map[session.SessionID]*log{}
		leases := map[string][]session.Lease{} // all that were ever given, also stale ones
		name := func() session.SessionID {
			return session.SessionID(fmt.Sprintf("r%d_%d", run, rapid.IntRange(0, 1).Draw(rt, "session")))
		}
		who := func() string { return rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "process") }
		expect := func(what string, err, want error) {
			if !errors.Is(err, want) || want == nil && err != nil {
				rt.Fatalf("%s: got %v, want %v", what, err, want)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(*rapid.T) {
				n := name()
				var want error
				if logs[n] != nil {
					want = session.ErrExists
				}
				expect("create", stores[who()].Create(ctx, session.Meta{ID: n, ConversationID: "conv_" + string(n)}), want)
				if want == nil {
					logs[n] = &log{keys: map[string]bool{}}
				}
			},
			"acquire": func(*rapid.T) {
				n, p := name(), who()
				l, err := stores[p].Acquire(ctx, n)
				m := logs[n]
				switch {
				case m == nil:
					expect("acquire", err, session.ErrNotFound)
				case m.owner != "" && m.owner != p:
					expect("acquire", err, session.ErrBusy)
				default:
					expect("acquire", err, nil)
					if m.owner == "" {
						m.owner, m.epoch = p, m.epoch+1
					}
					if l.Epoch != m.epoch || int(l.Head) != len(m.texts) {
						rt.Fatalf("lease %+v, want epoch %d, head %d", l, m.epoch, len(m.texts))
					}
					leases[p] = append(leases[p], l)
				}
			},
			"release": func(*rapid.T) {
				p := who()
				if len(leases[p]) == 0 {
					return
				}
				l := rapid.SampledFrom(leases[p]).Draw(rt, "lease")
				expect("release", stores[p].Release(ctx, l), nil)
				if m := logs[l.Session]; m != nil && m.owner == p && m.epoch == l.Epoch {
					m.owner = ""
				}
			},
			"append": func(*rapid.T) {
				p := who()
				if len(leases[p]) == 0 {
					return
				}
				l := rapid.SampledFrom(leases[p]).Draw(rt, "lease")
				m := logs[l.Session]
				if m == nil {
					return
				}
				at := len(m.texts) + rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(rt, "off")
				var b session.Batch
				var texts []string
				for i := range rapid.IntRange(1, 3).Draw(rt, "entries") {
					text := rapid.StringN(0, 20, 60).Draw(rt, "text")
					texts = append(texts, text)
					b.Entries = append(b.Entries, Entry(session.Seq(at+i+1), turnID(run*10+int(l.Session[len(l.Session)-1]-'0')), &protocol.AssistantDelta{Text: text}))
				}
				key := rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key")
				if key != "" {
					b.Keys = []session.Key{{Surface: "rind", Key: key}}
				}
				b.Retake, b.Release = rapid.Bool().Draw(rt, "retake"), rapid.Bool().Draw(rt, "release")
				err := Append(stores[p], l, b)
				fenced, gap, used := m.owner != p && !(b.Retake && m.owner == "") || m.epoch != l.Epoch, at != len(m.texts), m.keys[key]
				switch {
				case !fenced && !gap && !used:
					expect("append", err, nil)
					m.texts = append(m.texts, texts...)
					if m.owner = p; b.Release {
						m.owner = ""
					}
					if key != "" {
						m.keys[key] = true
					}
				case fenced && errors.Is(err, session.ErrFenced), gap && errors.Is(err, session.ErrGap), used && errors.Is(err, session.ErrKeyUsed):
				default:
					rt.Fatalf("append: %v, fenced %v, gap %v, key used %v", err, fenced, gap, used)
				}
			},
			"": func(*rapid.T) { // the newest entry after each step, all of them at the end
				for n, m := range logs {
					for p, s := range stores {
						es, err := s.ReadBack(ctx, n, 0, 1, protocol.ViewAll)
						expect("read back", err, nil)
						if len(es) == 0 && len(m.texts) > 0 || len(es) > 0 && int(es[0].Seq) != len(m.texts) {
							rt.Fatalf("%s reads head %v of %s, want %d", p, seqs(es), n, len(m.texts))
						}
					}
				}
			},
		})
		for n, m := range logs {
			for p, s := range stores {
				es, err := s.Read(ctx, n, 0, 1000, protocol.ViewAll)
				expect("read", err, nil)
				if len(es) != len(m.texts) {
					rt.Fatalf("%s reads %d entries of %s, want %d", p, len(es), n, len(m.texts))
				}
				for i := range es {
					want := Entry(session.Seq(i+1), "", &protocol.AssistantDelta{Text: m.texts[i]})
					b, err := protocol.Decode(&es[i])
					expect("decode", err, nil)
					w, err := protocol.Decode(&want)
					expect("decode", err, nil)
					if int(es[i].Seq) != i+1 || b.(*protocol.AssistantDelta).Text != w.(*protocol.AssistantDelta).Text {
						rt.Fatalf("%s reads %+v of %s, want %q", p, b, n, m.texts[i])
					}
				}
			}
		}
	})
}

package undo_test

import (
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// leaveOpen adds a turn without a terminal to the log, as a process that was killed leaves it.
func (d *desk) leaveOpen(id session.TurnID, parallel bool) {
	d.t.Helper()
	store := d.backing.Open("killed" + string(id[:4]))
	defer store.Close()
	lease, err := store.Acquire(d.t.Context(), d.id)
	if err != nil {
		d.t.Fatal(err)
	}
	accepted := &protocol.TurnAccepted{}
	accepted.More.Parallel, accepted.More.Provider, accepted.More.Surface = parallel, "mock", protocol.SurfacePortable
	var entries []session.Entry
	for i, b := range []protocol.Body{accepted, &protocol.TurnStarted{Operation: protocol.OpPrompt, Origin: protocol.OriginUser}} {
		e, err := protocol.Encode(protocol.Head{Time: time.Now(), EventID: protocol.RandomIDs{}.Hex32(), Session: d.id, Turn: id}, b)
		if err != nil {
			d.t.Fatal(err)
		}
		e.Seq, e.PortableFirst, e.PortableCount = lease.Head+session.Seq(i+1), int64(i+1), 1
		entries = append(entries, e)
	}
	done := make(chan error, 1)
	store.Append(lease, session.Batch{Entries: entries}, func(err error) { done <- err })
	if err := <-done; err != nil {
		d.t.Fatal(err)
	}
}

func TestAnOpenTurnOfAProviderWithoutToolsHoldsUpNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"a": "1", "b": "1"})
	d.turn(write("a", "2"))
	d.turn(write("b", "2"))
	d.leaveOpen("aaaa0000000000000000000000000000", true)
	d.undone("", "b restored")
	d.leaveOpen("bbbb0000000000000000000000000000", false)
	d.refused(d.process, "", protocol.SessionBusy)
	if got := d.get("a"); got != "2" {
		t.Errorf("a is %q", got)
	}
}

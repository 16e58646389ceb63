package sqlite_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/storetest"
)

// Numbers that share a column and texts that share memory come apart again.
func TestEntriesComeBackAsTheyWereWritten(t *testing.T) {
	s := open(t, filled(t))
	l := storetest.Create(t, s, "s")
	turn := session.TurnID(strings.Repeat("a", 32))
	var want, told []session.Entry
	next := int64(1) << 40
	for i, at := range []time.Time{
		time.Unix(0, 0), time.UnixMicro(-1), time.Date(1900, 1, 2, 3, 4, 5, 6000, time.UTC), time.Date(2026, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		for count := range 3 {
			e := session.Entry{
				Seq: session.Seq(len(want) + 1), Kind: protocol.KindAssistantDelta, Time: at.UTC(), PortableFirst: next, PortableCount: count,
				Event: []byte(`"` + strings.Repeat("e", i*9000) + `"`), More: []byte(`{"v":1}`),
			}
			next += int64(count)
			if count > 0 {
				e.Turn, e.Kind = turn, protocol.KindProviderContinuity
				told = append(told, e)
			} else if i == 1 {
				e.Event, e.More = nil, nil
			}
			want = append(want, e)
		}
	}
	if err := storetest.Append(s, l, session.Batch{Entries: want}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Read(t.Context(), "s", 0, 100, protocol.ViewAll)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if got, err = s.ReadTurn(t.Context(), turn, 0, 100, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(told, got); diff != "" {
		t.Errorf("the turn (-want +got):\n%s", diff)
	}
	for i := range got { // what grows does not reach into its neighbour
		_ = append(got[i].Event, "overwritten"...)
	}
	for i := range got {
		if !bytes.Equal(got[i].More, told[i].More) || !bytes.Equal(got[i].Event, told[i].Event) {
			t.Fatalf("entry %d was overwritten by another one", got[i].Seq)
		}
	}
}

func TestARowOfAnotherShapeIsNotReadable(t *testing.T) {
	path := twoSessions(t)
	query(t, path, `UPDATE entries SET event = 7 WHERE seq = 30 AND session = (SELECT id FROM sessions WHERE session = 'damaged')`)
	s := open(t, path)
	if _, err := s.Read(t.Context(), damaged, 0, 100, protocol.ViewAll); !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), "entry 30 of session damaged") {
		t.Errorf("read: %v", err)
	}
}

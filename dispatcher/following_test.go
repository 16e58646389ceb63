package dispatcher

import (
	"io"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// gate holds up a session's goroutine until it is called; what was asked of the session before is done.
func gate(t *testing.T, s *session.Session) (open func()) {
	t.Helper()
	stands, let := make(chan struct{}), make(chan struct{})
	if !s.Inspect(func(*session.View) {
		close(stands)
		<-let
	}) {
		t.Fatal("the session is gone")
	}
	<-stands
	return func() { close(let) }
}

// TestAskingToFollowTwiceInARowSkipsNothing: what a client sends at once may all be read before the session has come to any of it, and what the
// log grows by in between belongs to the connection.
func TestAskingToFollowTwiceInARowSkipsNothing(t *testing.T) {
	all, s, store := stored(t)
	kept := make(chan func(), 1)
	store.keep.Store(&kept)
	c := newConn(New(Config{Sessions: all}), strings.NewReader(""), io.Discard)
	renamed := make(chan error, 1)
	s.Rename("a name", func(_ string, err error) { renamed <- err })
	acknowledge := <-kept
	open := gate(t, s)
	c.follow(s)
	acknowledge() // between the two
	c.follow(s)
	open()
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
	var head session.Seq
	if err := s.InspectNow(t.Context(), func(v *session.View) { head = v.Head }); err != nil {
		t.Fatal(err)
	}
	f := c.out.Stream(string(s.ID))
	buf, _, err := f.Page(nil, func() session.Seq { return -1 })
	if err != nil || f.Told() != head || !strings.Contains(string(buf), protocol.KindSessionRenamed.String()) {
		t.Errorf("of a log up to %d a connection was told up to %d: %q, %v", head, f.Told(), buf, err)
	}
	c.out.Unfollow(string(s.ID))
}

// TestWhatASessionIsAskedAboutFollowingTakesEffectInReadingOrder: also where all of it is read before the session comes to any.
func TestWhatASessionIsAskedAboutFollowingTakesEffectInReadingOrder(t *testing.T) {
	for _, c := range []struct {
		ask  string
		want bool
	}{{"s", true}, {"su", false}, {"sus", true}, {"ssu", false}, {"asu", false}, {"sua", true}, {"u", false}} {
		all, s, _ := stored(t)
		conn := newConn(New(Config{Sessions: all}), strings.NewReader(""), io.Discard)
		conn.ready = true
		open := gate(t, s)
		for i, r := range c.ask {
			method, params := "session/subscribe", `{"session_id":"`+string(s.ID)+`"}`
			switch r {
			case 'u':
				method = "session/unsubscribe"
			case 'a':
				params = `{"session_id":"` + string(s.ID) + `","after_cursor":1}`
			}
			conn.Request(protocol.Request{ID: []byte{'1' + byte(i)}, Method: method, Params: []byte(params)})
		}
		open()
		if err := s.InspectNow(t.Context(), func(*session.View) {}); err != nil {
			t.Fatal(err)
		}
		if got := conn.following(s.ID); got != c.want {
			t.Errorf("after %q it is followed: %v", c.ask, got)
		}
		conn.out.Unfollow(string(s.ID))
	}
}

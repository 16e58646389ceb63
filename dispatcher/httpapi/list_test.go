package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// unreadable is a store whose turns cannot be read any more after some pages of them.
type unreadable struct {
	session.Store
	pages atomic.Int64
	hangs bool          // until nobody waits for it
	asked chan struct{} // told of each read that hangs
}

func (u *unreadable) ReadTurn(ctx context.Context, turn session.TurnID, after int64, limit int, into *session.Page) ([]session.Entry, error) {
	if limit > 1 && u.pages.Add(-1) < 0 {
		if u.hangs {
			u.asked <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return nil, session.ErrLocked
	}
	return u.Store.ReadTurn(ctx, turn, after, limit, into)
}

// Section 5.1: a list is all events behind a cursor, however many; one that fits into a write says how long it is.
func TestAListOfAnyLengthHoldsTheEventsOfTheStream(t *testing.T) {
	for words, long := range map[int]bool{3: false, 100: false, 2000: true} {
		p := mocking(t)
		id := p.start(p.conversation(), "mock", strings.Repeat("word ", words), `,"config":{"prefix":"","delayMs":0}`)
		told := p.follow(id, nil, nil)
		for _, after := range []int{0, 1, len(told) - 2, len(told), len(told) + 7} {
			path := "/v1/executions/" + id + "/events?after=" + strconv.Itoa(after)
			want := portable.EventList{Events: []portable.Event{}, NextCursor: int64(max(after, len(told)))}
			if after < len(told) {
				want.Events = told[after:]
			}
			a := p.must(200, "GET", path, "")
			var got bytes.Buffer
			if err := json.NewEncoder(&got).Encode(want); err != nil {
				t.Fatal(err)
			}
			if string(a.body)+"\n" != got.String() {
				t.Errorf("%d words behind %d: %.300s, want %.300s", words, after, a.body, got.String())
			}
			length := a.header.Get("Content-Length")
			if told := length != ""; told == (long && after < 2) || told && length != strconv.Itoa(len(a.body)) {
				t.Errorf("%d words behind %d: Content-Length %q of %d bytes", words, after, length, len(a.body))
			}
			if kind := a.header.Get("Content-Type"); kind != "application/json" || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d words behind %d: %v", words, after, a.header)
			}
			if head := p.must(200, "HEAD", path, ""); len(head.body) > 0 || head.header.Get("Content-Length") != length || head.header.Get("Content-Type") != "application/json" {
				t.Errorf("HEAD of %d words behind %d: %v", words, after, head.header)
			}
		}
		p.stop()
	}
}

// A list, or a stream, that cannot be read to its end must not look like a whole one: the end of a stream says that there is nothing more.
func TestWhatCannotBeReadToItsEndIsRefusedOrCutOff(t *testing.T) {
	backing := memory.NewBacking()
	p := serve(t, backing.Open("a"), &model{})
	id := p.start(p.conversation(), "mock", strings.Repeat("word ", 2000), `,"config":{"prefix":"","delayMs":0}`)
	p.follow(id, nil, nil)
	p.stop()
	store := &unreadable{Store: backing.Open("b")} // of a process that has nothing of it in memory
	store.pages.Store(1 << 30)
	p = serve(t, store, &model{})
	get := func(accept string, pages int64) (int, int, error) {
		store.pages.Store(pages)
		r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/v1/executions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+p.token)
		r.Header.Set("Accept", accept)
		resp, err := p.http.Do(r)
		if err != nil {
			return 0, 0, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, bytes.Count(body, []byte(`"executionId"`)), err
	}
	for _, accept := range []string{"application/json", "text/event-stream"} {
		if status, n, err := get(accept, 5); status != 200 || n >= 2004 || err == nil {
			t.Errorf("%s, the first pages can be read: %d, %d events, %v", accept, status, n, err)
		}
		if status, n, err := get(accept, 100); status != 200 || n != 2004 || err != nil {
			t.Errorf("%s, all can be read: %d, %d events, %v", accept, status, n, err)
		}
	}
	if status, _, err := get("application/json", 0); status != 503 || err != nil {
		t.Errorf("nothing can be read: %d, %v", status, err)
	}
	if status, _, err := get("text/event-stream", 0); status == 200 && err == nil {
		t.Errorf("nothing of a stream can be read: %d, %v", status, err)
	}
}

// A reader that leaves while a list is told is no fault of ours: nothing is noted as one.
func TestAReaderThatLeavesDuringAListIsNoFault(t *testing.T) {
	store := &unreadable{Store: memory.NewBacking().Open("a"), hangs: true, asked: make(chan struct{}, 8)}
	store.pages.Store(1 << 30)
	var faults atomic.Int64
	p := serve(t, store, &model{}, func(c *Config) {
		c.ErrorID = func(error) string {
			faults.Add(1)
			return "id"
		}
	})
	id := p.start(p.conversation(), "mock", strings.Repeat("word ", 2000), `,"config":{"prefix":"","delayMs":0}`)
	p.follow(id, nil, nil)
	for _, pages := range []int64{0, 5} {
		store.pages.Store(pages)
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", p.base+"/v1/executions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+p.token)
		if pages == 0 {
			go func() {
				<-store.asked // it is being read
				leave()
			}()
		}
		resp, err := p.http.Do(r)
		if err == nil {
			_, _ = io.ReadFull(resp.Body, make([]byte, 1000))
			leave()
			resp.Body.Close()
		}
		leave()
	}
	p.stop()
	if n := faults.Load(); n > 0 {
		t.Errorf("%d faults were noted", n)
	}
}

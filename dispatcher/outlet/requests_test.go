package outlet

import (
	"context"
	"strconv"
	"testing"
	"time"
)

func TestAnIdIsFreeWhenItsAnswerIsAboutToBeWrittenAndItsPlaceOnceItIs(t *testing.T) {
	const most = 8
	r := NewRequests[int](most)
	for i := range most {
		r.Add(strconv.Itoa(i), i)
	}
	if !r.Full() {
		t.Error("not full")
	}
	r.Answering([]string{"3", "", "nobody's"})
	if _, ok := r.Find("3"); ok {
		t.Error("the id is taken still")
	}
	if !r.Full() {
		t.Error("the place is free before the answer is written")
	}
	r.Answered([]string{"3"})
	if r.Full() || len(r.All()) != most-1 {
		t.Error("the place is taken still")
	}
}

func TestWaitEndsWithTheLastRequestThatCounts(t *testing.T) {
	r := NewRequests[string](64)
	for _, id := range []string{"long", "a", "b"} {
		r.Add(id, id)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Wait(t.Context(), nil, func(c string) bool { return c != "long" })
	}()
	r.Answering([]string{"a"})
	select {
	case <-ended:
		t.Fatal("ended while b has no answer")
	case <-time.After(20 * time.Millisecond):
	}
	r.Answering([]string{"b"})
	<-ended
	all := func(string) bool { return true }
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r.Wait(ctx, nil, all)
	gone := make(chan struct{})
	close(gone)
	r.Wait(t.Context(), gone, all)
}

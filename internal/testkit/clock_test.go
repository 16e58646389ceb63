package testkit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

func TestAClockStandsStillUntilItIsMoved(t *testing.T) {
	c := testkit.NewClock(time.Time{})
	if !c.Now().Equal(testkit.Epoch) {
		t.Errorf("it begins at %v", c.Now())
	}
	late, soon := c.After(2*time.Second), c.After(time.Second)
	c.Advance(time.Second)
	select {
	case at := <-soon:
		if !at.Equal(testkit.Epoch.Add(time.Second)) {
			t.Errorf("rang at %v", at)
		}
	default:
		t.Error("a second has passed and nothing rang")
	}
	select {
	case <-late:
		t.Error("rang a second early")
	default:
	}
	select {
	case <-c.After(0):
	default:
		t.Error("no time to wait, and no ring")
	}
}

func TestAPauseEndsWithTheClockOrItsContext(t *testing.T) {
	c := testkit.NewClock(time.Time{})
	ended := make(chan error)
	go func() { ended <- c.Pause(t.Context(), time.Minute) }()
	if err := c.AwaitWaiters(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Minute)
	if err := <-ended; err != nil {
		t.Errorf("Pause = %v", err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { ended <- c.Pause(ctx, time.Minute) }()
	if err := c.AwaitWaiters(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if err := <-ended; !errors.Is(err, cause) {
		t.Errorf("Pause = %v, want the cause of its context", err)
	}
	if err := c.AwaitWaiters(ctx, 1); !errors.Is(err, cause) {
		t.Errorf("a pause that was given up still waits: %v", err)
	}
}

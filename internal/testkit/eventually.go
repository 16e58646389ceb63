package testkit

import (
	"testing"
	"time"
)

// eventuallyWithin is longer than anything that is waited for takes, on a busy machine.
const eventuallyWithin = 20 * time.Second

// Eventually waits until ok holds, of something that tells nobody when it does: another process, a goroutine that was told to end, a file.
// It fails the test when it does not within 20 s. Where there is something to wait on, wait on that.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(eventuallyWithin); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", eventuallyWithin, what)
		}
	}
}

package testkit

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// failing is a test that remembers how it failed.
type failing struct {
	testing.TB
	how string
}

func (f *failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) {
	f.how = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestWhatComesIsWaitedForAndWhatNeverComesFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		Eventually(t, "the third time", func() bool { asked++; return asked == 3 })
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
		f, began := &failing{TB: t}, time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Eventually(f, "a thing", func() bool { return false })
		}()
		<-ended
		if took := time.Since(began); f.how != "not within 20s: a thing" || took < eventuallyWithin || took > eventuallyWithin+time.Second {
			t.Errorf("after %v: %q", took, f.how)
		}
	})
}

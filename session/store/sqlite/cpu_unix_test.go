//go:build unix

package sqlite_test

import (
	"syscall"
	"testing"
	"time"
)

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

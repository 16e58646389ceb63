package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"time"
)

// settled is when a process has answered what an editor asks first.
const settled = time.Second

// spawned makes the process one that an editor keeps beside its own all day: a closed pipe does not kill it, and memory matters more than the
// collector's time. The context ends with the first of the signals; a second one ends the process, and what is left is left to the next.
//
// One goroutine, which ends with the process.
func spawned(ctx context.Context, ends []os.Signal) (context.Context, context.CancelFunc) {
	ignorePipe()
	if os.Getenv("GOGC") == "" {
		// Not at once: it would collect twice before the first answer.
		time.AfterFunc(settled, func() { debug.SetGCPercent(40) })
	}
	ctx, cancel := context.WithCancel(ctx)
	sigs := make(chan os.Signal, 2)
	if len(ends) > 0 { // Notify without signals takes all of them
		signal.Notify(sigs, ends...)
	}
	go func() {
		<-sigs
		cancel()
		<-sigs
		os.Exit(exitOK)
	}()
	return ctx, cancel
}

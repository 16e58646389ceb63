package main

import (
	"context"
	"os"
	"os/signal"
)

// signalContext ends with the first signal that asks the program to stop.
func signalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals()...)
}

// swallow lets a signal do nothing here. signal.Ignore would do so too, but what a process ignores the commands it starts ignore as well, and
// cannot change: "yes | head" would not end there.
func swallow(sig os.Signal) { signal.Notify(make(chan os.Signal, 1), sig) }

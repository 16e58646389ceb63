package main

import (
	"context"
	"os/signal"
)

// signalContext ends with the first signal that asks the program to stop.
func signalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, stopSignals()...)
}

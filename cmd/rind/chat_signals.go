package main

import (
	"os"
	"os/signal"
)

// heeded are the signals that end a turn or the program, without those the program was started to ignore (nohup, a job in the background).
func heeded() []os.Signal {
	var sigs []os.Signal
	for _, s := range stopSignals() {
		if !signal.Ignored(s) {
			sigs = append(sigs, s)
		}
	}
	return sigs
}

package main

import (
	"os"
	"runtime"
)

// leaveCores has the process compute on half of its cores, at least on one, unless GOMAXPROCS says how many. A server waits most of its time: for a
// model, for a disk, for the commands of its agents, which want the other half, as the program that asks it does. And what goes from one core to
// another costs more than what it does there: on two cores an execution takes a quarter less CPU on one of them, and a third more fit into a second
// (docs/performance.md).
func leaveCores() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(half(runtime.GOMAXPROCS(0)))
	}
}

// half is what a process takes of n cores.
func half(n int) int { return max(1, n/2) }

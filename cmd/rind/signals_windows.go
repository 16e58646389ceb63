package main

import "os"

// stopSignals end a turn at first, the program at second.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// endSignals start the graceful end of a server.
func endSignals() []os.Signal { return []os.Signal{} }

// ignorePipe: Windows has no such signal.
func ignorePipe() {}

package main

import "os"

// stopSignals end a turn at first, the program at second.
func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

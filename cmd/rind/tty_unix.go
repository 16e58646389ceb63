//go:build unix

package main

import "os"

// maxTypedLine is the longest line a terminal in its line mode hands over; what is typed or pasted beyond it is gone.
const maxTypedLine = 4095

// openTerminal opens the terminal the program was started from, whatever its standard input is.
func openTerminal() (*os.File, error) { return os.Open("/dev/tty") }

package main

import (
	"io"
	"os"
)

// wireOf takes the protocol's stream out of the way of everything else: what prints to os.Stdout afterwards goes to standard error.
func wireOf(out io.Writer) io.Writer {
	if out == io.Writer(os.Stdout) {
		os.Stdout = os.Stderr
	}
	return out
}

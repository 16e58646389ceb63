package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// maxTypedLine: a console hands over lines of any length.
const maxTypedLine = 1 << 30

// openTerminal opens the console of the program, whatever its standard input is.
func openTerminal() (*os.File, error) { return os.OpenFile("CONIN$", os.O_RDWR, 0) }

// forgetTyped drops what was typed before it was asked for: it is no answer.
func forgetTyped(f *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }

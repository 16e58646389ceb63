package main

import "os"

// maxTypedLine: a console hands over lines of any length.
const maxTypedLine = 1 << 30

// openTerminal opens the console of the program, whatever its standard input is.
func openTerminal() (*os.File, error) { return os.OpenFile("CONIN$", os.O_RDWR, 0) }

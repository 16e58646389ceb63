package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNoTerminal: nobody sits at a terminal.
var errNoTerminal = errors.New("there is no terminal to ask at")

// isTerminal reports whether v is a terminal.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// understands reports whether the terminal w takes escape sequences.
func understands(w io.Writer) bool {
	return isTerminal(w) && (os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb" || os.Getenv("WT_SESSION") != "")
}

// widthOf is the width of the terminal w in columns, or a usual one.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width >= 40 {
			return width
		}
	}
	return 120
}

// palette puts text into colours, or leaves it as it is.
type palette bool

// paletteFor gives colours to a terminal that takes them, unless the person wants none (NO_COLOR).
func paletteFor(w io.Writer) palette {
	return palette(understands(w) && os.Getenv("NO_COLOR") == "")
}

func (p palette) paint(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }
func (p palette) red(s string) string  { return p.paint("31", s) }

// printable keeps text from steering the terminal: control characters but line feed and tab are dropped.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// unturned makes visible what would turn the order of characters around: a person who is asked for consent must read what will be done.
func unturned(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c {
			return '\uFFFD'
		}
		return r
	}, printable(s))
}

// plainLine is s as one line that shows nothing else than it says.
func plainLine(s string) string { return oneLine(unturned(s)) }

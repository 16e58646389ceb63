package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rind-dev/rind/protocol"
)

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

// turns reports whether a character turns the order of others around.
func turns(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

// unturned makes visible what would turn the order of characters around: a person who is asked for consent must read what will be done.
func unturned(s string) string {
	return strings.Map(func(r rune) rune {
		if turns(r) {
			return '\uFFFD'
		}
		return r
	}, printable(s))
}

// writeLine writes v as one line of JSON. On a terminal, what JSON leaves as it is and a terminal obeys is escaped: the value is the same.
func writeLine(out io.Writer, v any) error {
	line, err := protocol.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a line of JSON: %w", err)
	}
	if isTerminal(out) {
		line = escaped(line)
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

// writeLines writes each of list with writeLine.
func writeLines[T any](out io.Writer, list []T) error {
	for _, v := range list {
		if err := writeLine(out, v); err != nil {
			return err
		}
	}
	return nil
}

// escaped is JSON that steers no terminal. Control characters below the space are escaped in any JSON; these stand in its strings alone.
func escaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r >= 0x7f && r < 0xa0 || turns(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// plainLine is s as one line that shows nothing else than it says.
func plainLine(s string) string { return oneLine(unturned(s)) }

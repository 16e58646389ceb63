package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Marks a terminal puts around pasted text once it was asked to (bracketed paste).
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// typed is one thing a person entered: a line, lines joined by backslashes at their ends, or a line with what was pasted into it.
type typed struct {
	text string
	at   time.Time // when it was read
	cut  bool      // the terminal may have lost the end of a line
}

// errTooLong: what was entered at once is more than maxStdin.
var errTooLong = errors.New("too long")

// readTyped reads r to its end and hands over what was entered; send returns false to stop it. Pasted text is taken whole: its line feeds
// end nothing. What stands unended before the end of r counts.
func readTyped(r io.Reader, terminal bool, send func(typed) bool) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var text strings.Builder
	pasting, cut := false, false
	for {
		line, err := readLine(in, maxStdin-text.Len())
		if errors.Is(err, errTooLong) {
			return fmt.Errorf("more than %d bytes were entered at once", maxStdin)
		}
		ended := err == nil
		line = strings.TrimSuffix(line, "\r")
		cut = cut || terminal && len(line) >= maxTypedLine
		for {
			mark := pasteBegin
			if pasting {
				mark = pasteEnd
			}
			before, after, found := strings.Cut(line, mark)
			text.WriteString(before)
			if !found {
				break
			}
			pasting, line = !pasting, after
		}
		switch {
		case ended && pasting:
			text.WriteByte('\n')
			continue
		case ended && continues(line):
			joined := strings.TrimSuffix(text.String(), `\`)
			text.Reset()
			text.WriteString(joined + "\n")
			continue
		}
		if ended || text.Len() > 0 {
			if !send(typed{strings.ToValidUTF8(text.String(), "\uFFFD"), time.Now(), cut}) {
				return nil
			}
			text.Reset()
			cut = false
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
				return nil
			}
			return fmt.Errorf("read input: %w", err)
		}
	}
}

// continues reports whether a line ends with one backslash, not with two.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

// readLine reads one line without its end. An error comes with what was read before it.
func readLine(in *bufio.Reader, limit int) (string, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) > limit+1 {
			return "", errTooLong
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return string(line[:len(line)-1]), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return string(line), err
		}
	}
}

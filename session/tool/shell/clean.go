package shell

import "unicode/utf8"

// cleaner makes text of what a command writes, piece by piece: invalid UTF-8 becomes U+FFFD, control characters other than tab, newline and
// carriage return are taken out, and so are the escape sequences of terminals.
type cleaner struct {
	state escape
	long  int    // bytes of the escape sequence so far
	part  []byte // the beginning of a character that was cut in two
	lossy bool   // something was changed
}

type escape uint8

// Where in an escape sequence the text is.
const (
	noEscape  escape = iota
	escaped          // after ESC
	between          // after ESC and an intermediate
	csi              // after ESC [
	command          // in a string for the terminal, up to BEL or ESC \
	commandST        // in one, after ESC
)

// maxEscape ends a sequence that does not end: what comes after it is text again.
const maxEscape = 4096

// plain are the bytes that stay as they are.
var plain = func() (t [256]bool) {
	for b := 0x20; b < 0x7f; b++ {
		t[b] = true
	}
	t['\t'], t['\n'], t['\r'] = true, true, true
	return t
}()

const replacement = "\uFFFD"

// clean appends the text of p to dst.
func (c *cleaner) clean(dst, p []byte) []byte {
	if len(c.part) > 0 {
		p = append(c.part, p...)
		c.part = nil
	}
	for i := 0; i < len(p); {
		if c.state != noEscape {
			i += c.skip(p[i])
			continue
		}
		start := i
		for i < len(p) && plain[p[i]] {
			i++
		}
		dst = append(dst, p[start:i]...)
		if i == len(p) {
			break
		}
		b := p[i]
		switch {
		case b == 0x1b:
			c.begin(escaped)
			i++
		case b < utf8.RuneSelf:
			c.lossy = true
			i++
		case !utf8.FullRune(p[i:]):
			c.part = append([]byte(nil), p[i:]...)
			return dst
		default:
			r, size := utf8.DecodeRune(p[i:])
			i += size
			switch {
			case r == utf8.RuneError && size == 1:
				dst = append(dst, replacement...)
				c.lossy = true
			case r == 0x9b:
				c.begin(csi)
			case r == 0x90 || r == 0x98 || r >= 0x9d && r <= 0x9f:
				c.begin(command)
			case r < 0xa0:
				c.lossy = true
			default:
				dst = append(dst, p[i-size:i]...)
			}
		}
	}
	return dst
}

func (c *cleaner) begin(s escape) { c.state, c.long, c.lossy = s, 0, true }

// skip takes one byte of an escape sequence; 0 when it is none of it.
func (c *cleaner) skip(b byte) int {
	if c.long++; c.long > maxEscape {
		c.state = noEscape
		return 0
	}
	switch c.state {
	case escaped:
		switch {
		case b == '[':
			c.state = csi
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.state = command
		case b >= 0x20 && b < 0x30:
			c.state = between
		case b >= 0x30 && b < 0x7f:
			c.state = noEscape
		default:
			c.state = noEscape
			return 0
		}
	case between:
		if b < 0x20 || b >= 0x30 {
			c.state = noEscape
		}
		if b < 0x20 || b >= 0x7f {
			return 0
		}
	case csi:
		if b < 0x20 || b >= 0x40 {
			c.state = noEscape
		}
		if b < 0x20 || b >= 0x7f {
			return 0
		}
	case command:
		switch b {
		case 0x07:
			c.state = noEscape
		case 0x1b:
			c.state = commandST
		case '\n': // none goes over lines: it was never ended
			c.state = noEscape
			return 0
		}
	case commandST:
		c.state = noEscape
		if b != '\\' {
			c.state = escaped
			return 0
		}
	case noEscape:
	}
	return 1
}

// flush appends what is left at the end of the output.
func (c *cleaner) flush(dst []byte) []byte {
	if len(c.part) > 0 {
		dst = append(dst, replacement...)
		c.part, c.lossy = nil, true
	}
	return dst
}

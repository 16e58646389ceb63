package frame

import "unicode/utf8"

// check looks for what no decoder should be given, in the order of docs/protocol/rind-v2.md section 2.
func check(b []byte) error {
	switch {
	case !utf8.Valid(b):
		return ErrUTF8
	case tooDeep(b):
		return ErrDepth
	}
	return nil
}

// tooDeep reports whether b nests deeper than MaxDepth. It needs neither recursion nor a stack, and b need not be valid JSON: where an
// invalid text is taken for less deep than it looks, the decoder stops before the depth.
func tooDeep(b []byte) bool {
	deep, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if deep++; deep > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			deep--
		}
	}
	return false
}

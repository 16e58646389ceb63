package protocol

// Deeper reports whether a JSON text nests deeper than most. It needs neither recursion nor a stack, stops at the first level too many, and
// text need not be valid: where an invalid one is taken for less deep than it looks, a decoder stops before the depth.
func Deeper[Text []byte | string](text Text, most int) bool {
	deep, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if deep++; deep > most {
				return true
			}
		case c == '}' || c == ']':
			deep--
		}
	}
	return false
}

package protocol

// Member returns the value of a member of an object as it stands there, which costs a tenth of decoding; nil when there is none. The object is
// valid JSON; names with escapes are not found.
func Member(object []byte, name string) []byte {
	i := behindSpace(object, 0)
	if i == len(object) || object[i] != '{' {
		return nil
	}
	for i++; ; i++ {
		i = behindSpace(object, i)
		end := behindString(object, i)
		if end < 0 {
			return nil
		}
		found := string(object[i+1:end-1]) == name
		i = behindSpace(object, behindSpace(object, end)+1) // a colon
		if end = behindValue(object, i); end < 0 {
			return nil
		}
		if found {
			return object[i:end:end]
		}
		if i = behindSpace(object, end); i == len(object) || object[i] != ',' {
			return nil
		}
	}
}

// behindValue returns where the value of a valid text that begins at i ends; -1 when there is none.
func behindValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue // what stands between values ends none
		default:
			if i = behindScalar(text, i); i < 0 {
				return -1
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return -1
}

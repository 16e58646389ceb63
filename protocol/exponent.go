package protocol

import (
	"strconv"
	"strings"
)

// shiftExponent is a decimal exponent, as a number's text names it, plus n. It is worked on the digits: the text may be megabytes long,
// and turning so many digits into a number and back takes minutes.
func shiftExponent(text string, n int64) string {
	negative := strings.HasPrefix(text, "-")
	digits := strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
	const word = 18 // digits that fit a machine word, with room for n
	if len(digits) <= word {
		e, _ := strconv.ParseInt("0"+digits, 10, 64)
		if negative {
			e = -e
		}
		return strconv.FormatInt(e+n, 10)
	}
	if negative {
		n = -n
	}
	head, tail := []byte(digits[:len(digits)-word]), digits[len(digits)-word:]
	low, _ := strconv.ParseInt(tail, 10, 64)
	const carry = 1_000_000_000_000_000_000 // 10 to the power of word; n is far smaller
	switch low += n; {
	case low >= carry:
		low -= carry
		head = step(head, '9', '0', 1)
	case low < 0:
		low += carry
		head = step(head, '0', '9', -1)
	}
	sum := strings.TrimLeft(string(head)+padded(low, word), "0")
	if negative {
		return "-" + sum
	}
	return sum
}

// step adds one to decimal digits, or takes one away: digits that are full become empty until one is not.
func step(digits []byte, full, empty byte, by int) []byte {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] != full {
			digits[i] = byte(int(digits[i]) + by)
			return digits
		}
		digits[i] = empty
	}
	return append([]byte{'1'}, digits...) // only where one is added: there is something to take from
}

// padded is n with zeros before it, width digits long.
func padded(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	return strings.Repeat("0", width-len(s)) + s
}

package protocol

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// Canonical writes one JSON value so that equal values have equal text (docs/protocol/portable-2026-09-02.md section 6): members sorted by
// the bytes of their decoded names, no white space, a number as sign, significant digits and decimal exponent, worked on the text.
func Canonical(r io.Reader) ([]byte, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("canonical text: %w", err)
	}
	return appendCanonical(nil, v), nil
}

func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return fmt.Append(dst, v)
	case string:
		return AppendString(dst, v)
	case json.Number:
		return append(dst, canonicalNumber(v.String())...)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCanonical(dst, e)
		}
		return append(dst, ']')
	case map[string]any:
		names := make([]string, 0, len(v))
		for k := range v {
			names = append(names, k)
		}
		sort.Strings(names)
		dst = append(dst, '{')
		for i, k := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, k), ':')
			dst = appendCanonical(dst, v[k])
		}
		return append(dst, '}')
	}
	return dst
}

// canonicalNumber is a number as sign, digits without leading or trailing zeros, and exponent: 1 = 1.0 = 1e0, -0 = 0.
func canonicalNumber(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	mantissa, expText, _ := strings.Cut(strings.ToLower(s), "e")
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return "0"
	}
	trimmed := strings.TrimRight(digits, "0")
	return sign + trimmed + "e" + shiftExponent(expText, int64(len(digits)-len(trimmed)-len(frac)))
}

// Integer reads a number without a fraction, however it is written: 1, 1.0 and 0.1e1 are one. ok is false for any other value, and for what
// an int64 cannot hold. The value has no space around it.
func Integer(value json.RawMessage) (n int64, ok bool) {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	digits, exponent, _ := strings.Cut(canonicalNumber(string(value)), "e")
	zeros := 0
	if exponent != "" {
		var err error
		if zeros, err = strconv.Atoi(exponent); err != nil || zeros < 0 || zeros > 18 {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

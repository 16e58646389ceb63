package httpapi

import "testing"

// Section 2.1: a number of any length is a number; what is none makes no range.
func TestARangeMayNameNumbersOfAnyLength(t *testing.T) {
	const huge = "99999999999999999999"
	for text, want := range map[string]span{
		"bytes=0-" + huge:                          {0, 10},
		"bytes=3-" + huge:                          {3, 10},
		"bytes=-" + huge:                           {0, 10},
		"bytes=" + huge + "-":                      {1<<63 - 1, 10}, // past the end
		"bytes=" + huge + "-" + huge:               {1<<63 - 1, 10},
		"bytes=9223372036854775808-":               {1<<63 - 1, 10},
		"bytes=000000000000000000000000000000002-": {2, 10},
		"bytes=10-":                                {10, 10},
		"bytes=-0":                                 {10, 10},
	} {
		if got, ok := byteRange([]string{text}, 10); !ok || got != want {
			t.Errorf("%s is %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"bytes=", "bytes=-", "bytes=--1", "bytes=+1-", "bytes=1-+2", "bytes=1_0-", "bytes=0x1-", "bytes=1e1-", "bytes=1 -2", "bytes=٣-", "bytes=" + huge + "x-", "bytes=" + huge + "-2", "bytes=-" + huge + "x"} {
		if got, ok := byteRange([]string{text}, 10); ok {
			t.Errorf("%s is the range %v", text, got)
		}
	}
}

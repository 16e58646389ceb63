package frame

import (
	"unicode/utf8"

	"github.com/rind-dev/rind/protocol"
)

// check looks for what no decoder should be given, in the order of docs/protocol/rind-v2.md section 2.
func check(b []byte) error {
	switch {
	case !utf8.Valid(b):
		return ErrUTF8
	case protocol.Deeper(b, MaxDepth):
		return ErrDepth
	}
	return nil
}

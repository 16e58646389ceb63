package modelhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestName is what every provider takes of the name of a tool, in bytes; longestID of the id of a call.
const (
	longestName = 64
	longestID   = 64
)

// unnamed stands for the name of a call that names no tool.
const unnamed = "unnamed"

// CallName is the name of a call of the past as every provider takes it: a model may have called what never was, as functions.read or nothing
// at all, and a name that is refused would end the session. A name that is taken anyhow stays as it is.
func CallName(name string) string {
	name = strings.Map(func(r rune) rune {
		if odd(r) {
			return '_'
		}
		return r
	}, name)
	if name == "" {
		return unnamed
	}
	return name[:min(len(name), longestName)]
}

// CallID is the id of a call as strict providers take it: letters, digits, _ and -, at most 64. Those of other providers may hold more; the
// same id becomes the same.
func CallID(id string) string {
	if id != "" && len(id) <= longestID && !strings.ContainsFunc(id, odd) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// odd tells characters that no provider has in its own names and ids.
func odd(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

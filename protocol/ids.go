package protocol

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// SessionID names one conversation under a data root: YYYYMMDD_HHMMSS_<8 hex> when made by the runtime
// (docs/protocol/rind-v2.md section 0).
type SessionID string

// TurnID names one turn: 32 lower-case hex digits; "" on session-level and task-level entries. The portable protocol
// shows it as "exec_" + TurnID.
type TurnID string

// Seq is the position of an entry in its session's log, from 1, strictly increasing, never reused.
type Seq int64

// ValidSessionID reports whether id has the accepted form of docs/protocol/rind-v2.md section 0: a letter or digit, then up to 127 letters,
// digits, "_", "." and "-", without "..".
func ValidSessionID(id string) bool {
	if id == "" || len(id) > 128 || strings.Contains(id, "..") {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// IDs makes identifiers. It is a port so that golden transcripts have stable ids.
// Implementations are safe for concurrent use.
type IDs interface {
	Hex32() string // 32 lower-case hex digits, unpredictable outside tests
}

// RandomIDs makes identifiers from crypto/rand.
type RandomIDs struct{}

// Hex32 returns 16 random bytes as hex.
func (RandomIDs) Hex32() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}

// NewSessionID makes the id of a session created at t.
func NewSessionID(ids IDs, t time.Time) SessionID {
	return SessionID(t.UTC().Format("20060102_150405") + "_" + ids.Hex32()[:8])
}

// TimeForm is the layout of every event time: RFC 3339, UTC, microseconds (docs/protocol/rind-v2.md, head).
const TimeForm = "2006-01-02T15:04:05.000000+00:00"

// FormatTime writes t as event times are written.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeForm) }

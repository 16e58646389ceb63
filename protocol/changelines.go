package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Bounds of a FileChange (docs/protocol/rind-v2.md section 5).
const (
	maxChangeLines = 120
	maxChangeChars = 12_000
	maxChangeText  = 64 << 10 // bytes of each text that is carried whole: it stays in the log for good
)

// Digest names a content: the SHA-256 of its bytes, in hex.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Carry puts both texts of the file into the change, where neither is too large. Created is set before: a file that was made has no old one.
func (c *FileChange) Carry(old, text string) {
	if len(old) > maxChangeText || len(text) > maxChangeText {
		return
	}
	c.More.NewText = &text
	if !c.More.Created {
		c.More.OldText = &old
	}
}

// ChangeLines gathers the lines a FileChange tells. The zero value is ready.
type ChangeLines struct {
	lines []DiffLine
	chars int
	full  bool
}

// Take adds a text line by line, without line ends, and returns how many lines it has. Behind the first line that is too much none is told.
func (c *ChangeLines) Take(kind, text string) (n int) {
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		c.chars += CharLen(line)
		if c.full = c.full || len(c.lines) == maxChangeLines || c.chars > maxChangeChars; !c.full {
			c.lines = append(c.lines, DiffLine{Kind: kind, Text: line})
		}
	}
	return n
}

// Told are the lines, never nil.
func (c *ChangeLines) Told() []DiffLine { return append([]DiffLine{}, c.lines...) }

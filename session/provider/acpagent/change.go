package acpagent

import (
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rind-dev/rind/protocol"
)

// Bounds of the lines a change shows.
const (
	maxLines   = 120
	maxChars   = 12_000
	maxDiffing = 4 << 20 // bytes that are worth the time
)

// change tells what became of a file. Only pieces of it may be known.
func change(path, before, after string, created bool) protocol.FileChange {
	ch := protocol.FileChange{FilePath: filepath.ToSlash(path)}
	shown := diffLines{lines: []protocol.DiffLine{}}
	if len(before)+len(after) > maxDiffing {
		shown.add("removed", protocol.Prefix(before, maxChars/2))
		shown.add("added", protocol.Prefix(after, maxChars/2))
		ch.More.Added, ch.More.Removed = strings.Count(after, "\n"), strings.Count(before, "\n")
	} else {
		for _, e := range udiff.Lines(before, after) {
			ch.More.Removed += shown.add("removed", before[e.Start:e.End])
			ch.More.Added += shown.add("added", e.New)
		}
	}
	ch.Lines = shown.lines
	ch.More.Created = created
	if len(before) <= maxToldText && len(after) <= maxToldText {
		if ch.More.NewText = &after; !created {
			ch.More.OldText = &before
		}
	}
	return ch
}

// diffLines are the first lines of a change.
type diffLines struct {
	lines []protocol.DiffLine
	full  bool // one was left out, and all behind it are
	chars int
}

// add shows the lines of a text, and counts them.
func (d *diffLines) add(kind, text string) (n int) {
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		d.chars += protocol.CharLen(line)
		if d.full = d.full || len(d.lines) == maxLines || d.chars > maxChars; !d.full {
			d.lines = append(d.lines, protocol.DiffLine{Kind: kind, Text: line})
		}
	}
	return n
}

// Package frame reads and encodes bounded frames: JSON lines, and the header framing of editors' language clients
// (docs/protocol/rind-v2.md section 2, docs/protocol/jsonrpc.md). It finds where a frame ends and whether its bytes may be given to a decoder at
// all, and nothing more.
//
// It promises that no input, however long or deep, costs more memory than the longest frame allowed, that the memory of one long frame is
// given back before the next is waited for, and that reading goes on after every fault but a broken header block.
//
// It owns no goroutine: a Reader belongs to the goroutine that uses it.
package frame

import (
	"errors"
	"fmt"
)

// Bounds of what is read.
const (
	MaxBytes  = 16 << 20 // of a frame: everything before the LF of a line, or the body's length
	MaxDepth  = 1000     // levels of nesting
	MaxHeader = 4 << 10  // of a header block, its line ends included
)

// keep is the largest buffer held on to between frames.
const keep = 1 << 20

// Faults of a frame. Reading goes on after all of them but ErrHeader.
var (
	ErrTooLong = errors.New("frame exceeds the bound of bytes")
	ErrUTF8    = errors.New("frame is not valid UTF-8")
	ErrDepth   = fmt.Errorf("nesting exceeds %d levels", MaxDepth)
	// ErrHeader: a header block without a usable Content-Length. Where the next frame begins cannot be known.
	ErrHeader = errors.New("header block has no valid Content-Length")
)

// Framing is how frames are separated.
type Framing uint8

// Framings.
const (
	Lines   Framing = iota // one JSON text a line
	Headers                // Content-Length: N, blank line, N bytes
)

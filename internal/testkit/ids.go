package testkit

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/rind-dev/rind/protocol"
)

// IDs counts identifiers, so that golden files hold the same ones in every run. The zero value begins at 1. The counter is written four
// times, 8 hex digits each: the runtime shortens identifiers for session and call ids, and every part of 8 digits is still unique.
// Safe for concurrent use; their order is then that of the calls.
type IDs struct{ n atomic.Uint32 }

var _ protocol.IDs = (*IDs)(nil)

// Hex32 implements protocol.IDs.
func (c *IDs) Hex32() string { return strings.Repeat(fmt.Sprintf("%08x", c.n.Add(1)), 4) }

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"
)

const agentsFolder = "agents" // in the data folder; may be deleted at any time

// agentMemory keeps what was seen of hosted agents, a file for each command line: so that it can be told without starting them.
type agentMemory struct{ root string }

func (m agentMemory) path(spec agentSpec) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{spec.Command}, spec.Args...), "\x00")))
	return filepath.Join(m.root, agentsFolder, hex.EncodeToString(sum[:8])+".json")
}

// Recall implements acpagent.Memory.
func (m agentMemory) Recall(spec agentSpec) (k agentKnown, ok bool) {
	ok = recallJSON(m.path(spec), &k) && !k.At.After(time.Now())
	if !ok {
		k = agentKnown{}
	}
	return k, ok
}

// Keep implements acpagent.Memory.
func (m agentMemory) Keep(spec agentSpec, k agentKnown) { keepJSON(m.path(spec), k) }

package main

import "github.com/rind-dev/rind/session/proc/contain"

// containMain answers the hidden command that puts a command into the sandbox (docs/containment.md). It comes back with false for any other,
// and for this one not at all. main calls it before everything else: it stands at the start of every command that is run.
func containMain(args []string) bool { return contain.Main(args) }

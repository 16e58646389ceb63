// Package contain is what a process does to itself before it becomes a command: it takes from itself the right to write anywhere but in the
// folders it is given, and to read what it is denied, and then executes the command in its place. The program that offers commands a sandbox
// runs itself again for this ("contain SPEC PATH ARGS..."), as a process of Go cannot restrict a child between its fork and its exec.
//
// It owns no goroutine, and imports little: it stands at the start of every command.
package contain

import (
	"encoding/json"
	"fmt"
	"os"
)

// Command is the hidden command that Main answers.
const Command = "contain"

// failed is the exit code when the command could not be started in the sandbox: shells use it for what cannot be executed.
const failed = 126

// Spec says what a command may touch. Paths are absolute.
type Spec struct {
	// Write are the folders and files it may write; those that do not exist are left out. What lies in a denied folder and is named here
	// may be read and written all the same.
	Write []string `json:"write,omitempty"`
	// Read are folders and files it may read although they lie in what is denied.
	Read []string `json:"read,omitempty"`
	// Deny are the folders and files it may neither write nor read. The names in them stay visible.
	Deny []string `json:"deny,omitempty"`
	// Devices lets it use terminals, and shared memory.
	Devices bool `json:"devices,omitempty"`
}

// Args are the arguments that make this program, whose main calls Main, run path with args in the sandbox. argv[0] of the command is path.
func Args(s Spec, path string, args ...string) []string {
	data, err := json.Marshal(s)
	if err != nil {
		panic("contain: " + err.Error()) // strings and booleans
	}
	return append([]string{Command, string(data), path}, args...)
}

// Main answers the hidden command: it reports false when args, without the name of the program, are not meant for it; else it does not come
// back. main calls it before anything else.
func Main(args []string) bool {
	if len(args) == 0 || args[0] != Command {
		return false
	}
	fmt.Fprintf(os.Stderr, "rind: the command was not started: %v\n", become(args[1:]))
	os.Exit(failed)
	return true
}

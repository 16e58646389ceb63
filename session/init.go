package session

import (
	"fmt"
	"path/filepath"

	"github.com/rind-dev/rind/protocol"
)

// Init is the prompt by which /init has a RIND.md written, in every dialect.
type Init struct {
	Scope string // project, user
	Path  string // of the file, with slashes
	Input string
	Told  protocol.SystemMessage // to the model, with the prompt
}

// InitOf makes the prompt: scope is "project" or "" for the RIND.md of the workspace, "user" for that of the person, in dataRoot. It is false for
// any other scope, and where there is no dataRoot.
func InitOf(scope, workspace, dataRoot string) (Init, bool) {
	dir, about := workspace, "this project: how it is built, tested and laid out, what to mind when changing it, and what its people expect"
	switch {
	case scope == "" || scope == "project":
		scope = "project"
	case scope == "user" && dataRoot != "":
		dir, about = dataRoot, "this person: what they expect in every project, as far as you were told or can see; ask where you do not know"
	default:
		return Init{}, false
	}
	path := filepath.ToSlash(filepath.Join(dir, "RIND.md"))
	return Init{
		Scope: scope, Path: path, Input: fmt.Sprintf("Initialize %s RIND.md at %s", scope, path),
		Told: protocol.SystemMessage{Kind: "rind_init", Content: "Write the file " + path + ", which every later conversation is given. " +
			"It tells an agent about " + about + ". Look at what is there first; where the file exists, keep what is right and improve it. " +
			"Only facts that hold and matter, in short lines; at most 150 of them."},
	}, true
}

//go:build unix

package shell

import (
	"path/filepath"
	"sync"

	"github.com/rind-dev/rind/session/proc"
)

// findShell finds bash, else sh. It gets no login profile: what that sets is in the environment already.
var findShell = sync.OnceValue(func() interpreter {
	for _, name := range []string{"bash", "/bin/bash", "sh", "/bin/sh"} {
		path, err := proc.LookPath(name)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		backend := filepath.Base(name)
		return interpreter{backend: backend, path: path, words: backend, args: []string{"-c"}}
	}
	return interpreter{backend: "sh", words: "sh"}
})

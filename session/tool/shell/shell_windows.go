package shell

import (
	"sync"

	"github.com/rind-dev/rind/session/proc"
)

// findShell finds PowerShell (preview).
var findShell = sync.OnceValue(func() interpreter {
	for _, name := range []string{"pwsh.exe", "powershell.exe"} {
		if path, err := proc.LookPath(name); err == nil {
			return interpreter{
				backend: "powershell", path: path, words: "PowerShell (not bash)",
				args: []string{"-NoLogo", "-NoProfile", "-NonInteractive", "-Command"},
			}
		}
	}
	return interpreter{backend: "powershell", words: "PowerShell"}
})

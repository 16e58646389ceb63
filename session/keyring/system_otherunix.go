//go:build unix && !darwin

package keyring

import (
	"os"
	"path/filepath"

	"github.com/rind-dev/rind/session/proc"
)

// system: without a bus of the person's session nobody answers, and secret-tool would try to start one.
func system(env func(string) (string, bool)) (Ring, error) {
	if bus, _ := env("DBUS_SESSION_BUS_ADDRESS"); bus == "" {
		dir, _ := env("XDG_RUNTIME_DIR")
		if _, err := os.Stat(filepath.Join(dir, "bus")); dir == "" || err != nil {
			return nil, ErrNone
		}
	}
	path, err := proc.LookPath("secret-tool")
	if err != nil || !filepath.IsAbs(path) {
		return nil, ErrNone
	}
	return secretTool{newProgram(path, env)}, nil
}

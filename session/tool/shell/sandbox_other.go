//go:build !linux

package shell

import (
	"errors"

	"github.com/rind-dev/rind/session/proc"
)

// offered: there is no sandbox on this system yet.
func offered() string { return "" }

func installed(string) bool { return false }

func wrap(string, *proc.Spec, proc.Bounds) error {
	return errors.New("there is no sandbox on this system")
}

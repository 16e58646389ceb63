//go:build !linux

package contain

import "errors"

// Available reports which version of the kernel's means there is; 0 for none.
func Available() int { return 0 }

func become([]string) error { return errors.New("there is no sandbox on this system") }

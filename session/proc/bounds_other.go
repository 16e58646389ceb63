//go:build !linux

package proc

import "errors"

// Landlock reports the version of Landlock that this kernel offers, and Spec.Bounds needs; 0 for none.
func Landlock() int { return 0 }

func (b *Bounds) restrict() error { return errors.New("there is none on this system") }

func firstThread() bool { return false }

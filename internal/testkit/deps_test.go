package testkit

// Libraries of tests still to be written, kept in go.mod until those use them.
import (
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "golang.org/x/tools/txtar"
)

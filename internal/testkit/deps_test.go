package testkit

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "go.uber.org/goleak"
	_ "golang.org/x/tools/txtar"
	_ "pgregory.net/rapid"
)

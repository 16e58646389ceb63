package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rind-dev/rind/internal/testkit"
)

var builtProgram = flag.Bool("built", false, "let tests that start the program build it; otherwise the test binary stands in for it, which takes no time")

// program is what to start, and what its environment needs for it.
func program(t testing.TB) (path string, env []string) {
	t.Helper()
	if *builtProgram {
		return testkit.Build(t), nil
	}
	return os.Args[0], []string{"RIND_TEST_CHILD=1"}
}

// tests removes at the end what was built.
type tests struct{ m *testing.M }

func (r tests) Run() int { return testkit.Main(r.m) }

package search_test

import (
	"testing"

	"github.com/rind-dev/rind/session/tool/search"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestGlobKeepsThePromisesOfTools(t *testing.T) {
	tooltest.Run(t, search.Glob(), tooltest.NewWorkspace(t))
}

func TestGrepKeepsThePromisesOfTools(t *testing.T) {
	tooltest.Run(t, search.Grep(nil), tooltest.NewWorkspace(t))
}

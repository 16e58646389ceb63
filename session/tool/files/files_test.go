package files_test

import (
	"testing"

	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestReadFileKeepsThePromisesOfTools(t *testing.T) {
	tooltest.Run(t, files.ReadFile(), tooltest.NewWorkspace(t))
}

package testkit

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// Packages installs npm packages that others wrote into a folder of the test, and returns node and the folder. The test is skipped where they
// cannot be had.
func Packages(t *testing.T, packages ...string) (node, dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("installs packages")
	}
	node, err1 := exec.LookPath("node")
	npm, err2 := exec.LookPath("npm")
	if err1 != nil || err2 != nil {
		t.Skip("needs node and npm")
	}
	dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--omit=optional", "--prefix", dir}, packages...)
	install := exec.CommandContext(ctx, npm, args...)
	install.Dir = dir
	install.WaitDelay = time.Second
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("no package registry in reach: %v: %.200s", err, out)
	}
	return node, dir
}

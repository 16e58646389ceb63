package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// The binary of this test run.
var (
	building sync.Once
	built    string
	buildErr error
)

// Build returns the path of the real program, ./cmd/rind of this module, built as `make build` builds it: once per test binary,
// whoever asks first. A test package that uses it has a TestMain of one line, os.Exit(testkit.Main(m)), which removes it again.
func Build(t testing.TB) string {
	t.Helper()
	building.Do(func() {
		root, err := moduleRoot()
		if err != nil {
			buildErr = err
			return
		}
		built, buildErr = buildInto(root, "./cmd/rind", "rind")
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return built
}

// Main runs the tests and removes what Build made.
func Main(m *testing.M) int {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built)) // what is left is swept by a later Build
	}
	return code
}

// folders of builds are named so; older ones were left by runs that were killed.
const (
	buildFolder = "rind-testkit-"
	buildStale  = 24 * time.Hour
)

// buildInto builds one package of the module at root into a new folder below the system's temporary one.
func buildInto(root, pkg, name string) (string, error) {
	sweep()
	dir, err := os.MkdirTemp("", buildFolder)
	if err != nil {
		return "", fmt.Errorf("make a folder for the program: %w", err)
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}

func sweep() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), buildFolder+"*"))
	for _, dir := range old {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > buildStale {
			_ = os.RemoveAll(dir)
		}
	}
}

// moduleRoot finds the folder of go.mod above the current one, which in a test is that of its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the folder of the test")
		}
		dir = up
	}
}

package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoHome is why Root can give no path.
var ErrNoHome = errors.New("neither RIND_HOME nor HOME is set; set RIND_HOME to a folder for rind's data")

// Root gives the absolute path of the data root: RIND_HOME with ~ expanded, else .rind in the home folder. It looks at nothing on disk.
// The error's text is the reason of a start-up failure (docs/protocol/rind-v2.md section 1.3).
func Root(env Env) (string, error) {
	if dir := env.value("RIND_HOME"); dir != "" {
		dir, err := Expand(dir, env)
		if err != nil {
			return "", err
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("find the folder %s of RIND_HOME: %w", dir, err)
		}
		return abs, nil
	}
	home, err := home(env)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".rind"), nil
}

// Expand replaces a leading ~ of a path by the home folder.
func Expand(path string, env Env) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path, nil
	}
	home, err := home(env)
	if err != nil {
		return "", err
	}
	return filepath.Join(home, rest), nil
}

// home refuses a relative HOME: what it means would depend on where the process was started, and data would land in a workspace.
func home(env Env) (string, error) {
	for _, name := range homeVariables {
		if dir := env.value(name); dir != "" {
			if !filepath.IsAbs(dir) {
				return "", fmt.Errorf("%s is %s, which is not an absolute path; set RIND_HOME to a folder for rind's data", name, dir)
			}
			return dir, nil
		}
	}
	return "", ErrNoHome
}

// MakeRoot makes the data root and its folders where they are missing, readable by their owner only. What exists is left as it is.
// The error names the path.
func MakeRoot(root string) error {
	for _, dir := range []string{root, filepath.Join(root, "sessions"), filepath.Join(root, "locks"), filepath.Join(root, "logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("the data folder %s cannot be used: %s; set RIND_HOME to another one", root, reasonOf(err))
		}
	}
	// The folders of others before us may be there and closed to us: that is better said now than at the first prompt.
	f, err := os.CreateTemp(filepath.Join(root, "locks"), ".probe-*")
	if err != nil {
		return fmt.Errorf("the data folder %s cannot be written: %s; set RIND_HOME to another one", root, reasonOf(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

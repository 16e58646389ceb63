// Package search holds the tools that find files and text: glob and grep (docs/protocol/rind-v2.md section 9). They are pure Go, take
// every argument as data, honour .gitignore files as git does, touch files through session/roots only and own no goroutine. Results come in
// the order of the walk: folder by folder, names sorted.
package search

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	defaultResults = 1000
	maxResults     = 10_000
	maxPattern     = 4096    // bytes
	maxBraces      = 8       // groups {a,b} of a glob: each multiplies the work of the others
	maxData        = 1 << 20 // bytes of all results, roughly
)

// errEnough ends a walk that has found what it needs.
var errEnough = errors.New("enough found")

func results(n float64) int {
	if n < 1 {
		return defaultResults
	}
	return int(min(n, maxResults))
}

// globPattern checks a glob and brings it to the form walked names have: slashes, no "./" before it.
func globPattern(p string) (string, error) {
	p = filepath.ToSlash(p)
	for strings.HasPrefix(p, "./") {
		p = strings.TrimLeft(p[2:], "/")
	}
	switch {
	case p == "":
		return "", errors.New("the glob is empty")
	case len(p) > maxPattern:
		return "", fmt.Errorf("the glob is longer than %d bytes", maxPattern)
	case strings.Count(p, "{") > maxBraces:
		return "", fmt.Errorf("the glob has more than %d groups in braces", maxBraces)
	case !doublestar.ValidatePattern(p):
		return "", fmt.Errorf("%q is no valid glob", p)
	}
	return p, nil
}

// based moves the fixed beginning of a glob that is absolute or has ".." steps into the folder the search starts in.
func based(dir, pattern string) (string, string) {
	if !path.IsAbs(pattern) && !filepath.IsAbs(pattern) && !strings.Contains("/"+pattern, "/../") {
		return dir, pattern
	}
	base, rest := doublestar.SplitPattern(pattern)
	if path.IsAbs(base) || filepath.IsAbs(base) {
		return base, rest
	}
	return dir + "/" + base, rest // not joined: ".." behind a link is for roots to follow
}

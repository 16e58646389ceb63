package shell_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// sleeping lists the processes that are "sleep" for one of the times.
func sleeping(t *testing.T, times ...string) (found []string) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		data, _ := os.ReadFile(name)
		for _, s := range times {
			if bytes.HasPrefix(data, []byte("sleep\x00"+s)) {
				found = append(found, string(data))
			}
		}
	}
	return found
}

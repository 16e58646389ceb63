package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheSizeOfALinkedFileIsToldWithinTheFoldersOnly(t *testing.T) {
	folder, further, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(folder, "a.go"), "12345")
	write(t, filepath.Join(further, "b.go"), "123")
	write(t, filepath.Join(outside, "secret"), "1")
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(folder, "link")); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]int64{
		filepath.Join(folder, "a.go"): 5, filepath.Join(further, "b.go"): 3,
		filepath.Join(outside, "secret"): -1, filepath.Join(folder, "link"): -1, folder: -1, filepath.Join(folder, "none"): -1,
	} {
		size, ok := sizeWithin([]string{folder, further}, filepath.ToSlash(path))
		if ok != (want >= 0) || ok && size != want {
			t.Errorf("%s: %d, %v", path, size, ok)
		}
	}
}

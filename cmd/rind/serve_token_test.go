package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Section 1: whoever reads the token file of a data folder reaches every server that runs on it, in whatever order they come and go; a token
// that no server uses any more is not used again.
func TestServersOfOneDataFolderShareATokenForAsLongAsOneOfThemRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http-token")
	begin := func() *bearer {
		t.Helper()
		b, err := bearerOf("", path)
		if err == nil {
			err = b.publish()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.drop)
		if text, err := os.ReadFile(path); err != nil || string(text) != b.token+"\n" {
			t.Fatalf("the file holds %q, %v, the server takes %q", text, err, b.token)
		}
		return b
	}
	first := begin()
	second := begin()
	first.drop()
	third := begin()
	if second.token != first.token || third.token != first.token {
		t.Error("servers that run side by side take different tokens")
	}
	second.drop()
	third.drop()
	if next := begin(); next.token == first.token {
		t.Error("a token was used again after its servers had ended")
	} else {
		next.drop()
	}
	last := begin()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if next := begin(); next.token == last.token {
		t.Error("a token came back that somebody took away")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".http-token-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestServersThatStartAtOnceAgreeOnAToken(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "http-token")
		all := make([]*bearer, 8)
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				b, err := bearerOf("", path)
				if err == nil {
					err = b.publish()
				}
				if err != nil {
					t.Error(err)
				}
				all[i] = b
			})
		}
		wg.Wait()
		text, _ := os.ReadFile(path)
		for _, b := range all {
			if b.token+"\n" != string(text) {
				t.Errorf("the file holds %q, a server takes %q", text, b.token)
			}
			defer b.drop()
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".http-token-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// A file that the user names is read where it is there and made where it is not; nothing else is put beside it, and no other server's token comes from it.
func TestATokenFileOfTheUsersOwnIsSharedWithNothing(t *testing.T) {
	dir, own := t.TempDir(), t.TempDir()
	path := filepath.Join(own, "token")
	first, err := bearerOf(path, filepath.Join(dir, "http-token"))
	if err == nil {
		err = first.publish()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer first.drop()
	byDefault, err := bearerOf("", filepath.Join(dir, "http-token"))
	if err == nil {
		err = byDefault.publish()
	}
	if err != nil || byDefault.token == first.token {
		t.Errorf("the token of the data folder is %q, %v", byDefault.token, err)
	}
	defer byDefault.drop()
	again, err := bearerOf(path, filepath.Join(dir, "http-token"))
	if err == nil {
		err = again.publish()
	}
	if err != nil || again.token != first.token {
		t.Errorf("read again it is %q, %v", again.token, err)
	}
	if files, _ := os.ReadDir(own); len(files) != 1 {
		t.Errorf("beside it lie %v", files)
	}
}

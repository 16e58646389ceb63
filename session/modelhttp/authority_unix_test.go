//go:build unix

package modelhttp_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/modelhttp"
)

func TestAPipeInPlaceOfAnAuthorityIsNotWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "ca.pem")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 1)
	go func() {
		_, err := modelhttp.New(modelhttp.Config{Name: "mine", BaseURL: "http://host", CAFile: pipe}, modelhttp.API{})
		said <- err
	}()
	select {
	case err := <-said:
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it is waited for")
	}
}

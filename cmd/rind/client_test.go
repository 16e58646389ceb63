//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// TestAStockJSONRPCClientSpeaksBothFramings drives the server with a client library as an extension would (docs/protocol/jsonrpc.md).
func TestAStockJSONRPCClientSpeaksBothFramings(t *testing.T) {
	node, dir := testkit.Packages(t, "vscode-jsonrpc@8.2.1")
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	client, err := filepath.Abs("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, framing := range []string{"headers", "lines"} {
		t.Run(framing, func(t *testing.T) {
			root := chaosRoot(t, `{"turns":[{"steps":[{"text":"Hello from the script.","chunk":4}]}]}`)
			cmd := exec.CommandContext(ctx, node, client, framing, os.Args[0], "app-server", "--stdio")
			cmd.Dir = dir
			cmd.Env = []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + root, "PATH=" + os.Getenv("PATH")}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "ok "+framing) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

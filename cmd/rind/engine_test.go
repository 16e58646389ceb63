//go:build linux && amd64

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/internal/testkit"
)

// TestATurnWithAToolOverARealEngine has a real inference engine sample a turn: the call of a tool, its result given back, an answer. The
// engine is an npm package; without a registry in reach, or its cache, there is nothing to test with.
func TestATurnWithAToolOverARealEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("installs an engine")
	}
	t.Parallel()
	url, asked := startEngine(t)
	root, ws := dataAndWorkspace(t, `{"provider":"local","baseUrl":"`+url+`","apiKey":"","model":"tiny"}`)
	write(t, filepath.Join(ws, "one.txt"), "1")
	write(t, filepath.Join(ws, "two.txt"), "2")

	if r := rind(t, root, ws, nil, "doctor", "--online"); r.code != exitOK || !strings.Contains(r.out, "lists 1 models") {
		t.Fatalf("%+v", r)
	}
	r := rind(t, root, ws, nil, "prompt", "--json", "which files are there?")
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	var told struct{ Type string }
	var types []string
	for line := range strings.Lines(r.out) {
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		types = append(types, told.Type)
	}
	for _, want := range []string{"tool_requested", "tool_result", "assistant_delta", "assistant_message_completed", "turn_completed"} { // in this order
		at := slices.Index(types, want)
		if at < 0 {
			t.Fatalf("no %s, or not in its place:\n%s", want, r.out)
		}
		types = types[at+1:]
	}
	first, second := <-asked, <-asked
	if !slices.Contains(first.Offered, "glob") || first.Result != "" {
		t.Errorf("the engine was asked first with %+v", first)
	}
	if second.Messages <= first.Messages || !strings.Contains(second.Result, "one.txt") && !strings.Contains(second.Result, "two.txt") {
		t.Errorf("the engine was given no result: %+v", second)
	}
}

// enginesRequest is what the engine was asked.
type enginesRequest struct {
	Messages int
	Offered  []string
	Result   string
}

// startEngine installs and starts one, and ends it with the test.
func startEngine(t *testing.T) (url string, asked <-chan enginesRequest) {
	t.Helper()
	const version = "3.21.1"
	node, dir := testkit.Packages(t, "node-llama-cpp@"+version, "@node-llama-cpp/linux-x64@"+version)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	script, err := os.ReadFile("testdata/engine.mjs")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "engine.mjs"), string(script)) // packages are looked for beside it
	write(t, filepath.Join(dir, "tiny.gguf"), string(tinyModel()))
	cmd := exec.CommandContext(ctx, node, "engine.mjs", "tiny.gguf")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	questions := make(chan enginesRequest, 16)
	go func() {
		defer close(ended)
		defer close(questions)
		d := json.NewDecoder(lines)
		for {
			var q enginesRequest
			if d.Decode(&q) != nil {
				break
			}
			questions <- q
		}
		_, _ = io.Copy(io.Discard, lines)
	}()
	t.Cleanup(func() {
		in.Close()
		cancel()
		<-ended
		_ = cmd.Wait()
	})
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		<-ended
		t.Fatalf("the engine does not start: %v: %q", err, line)
	}
	return strings.TrimSpace(line), questions
}

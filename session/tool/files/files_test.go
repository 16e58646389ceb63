package files_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/files"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestEveryToolKeepsThePromisesOfTools(t *testing.T) {
	for _, tool := range []session.Tool{files.ReadFile(), files.WriteFile(nil), files.EditFile(nil)} {
		t.Run(tool.Spec().Name, func(t *testing.T) {
			w := tooltest.NewWorkspace(t)
			if tool.Spec().Name == "edit_file" {
				w.Args = map[string]any{"old_str": "beta", "new_str": "delta"}
			}
			tooltest.Run(t, tool, w)
		})
	}
}

type args map[string]any

// workspace is a folder of files for one test.
type workspace string

func newWorkspace(t testing.TB, content map[string]string) workspace {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := workspace(filepath.Join(root, "w"))
	if err := os.Mkdir(string(w), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range content {
		w.put(t, name, text)
	}
	return w
}

func (w workspace) at(name string) string { return filepath.Join(string(w), filepath.FromSlash(name)) }

func (w workspace) put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.at(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.at(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w workspace) get(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(w.at(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (w workspace) run(t testing.TB, tool session.Tool, a args) session.ToolResult {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	res, err := tool.Run(t.Context(), session.ToolCall{Name: tool.Spec().Name, Arguments: raw, Roots: []string{string(w)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// refused checks that a call ended with status and error_type, and a text that holds each of says.
func refused(t testing.TB, res session.ToolResult, status, errorType string, says ...string) {
	t.Helper()
	if res.Status != status || res.ErrorType != errorType {
		t.Errorf("%s %s (%s), want %s %s", res.Status, res.ErrorType, res.Error, status, errorType)
	}
	for _, s := range says {
		if !strings.Contains(res.Error, s) {
			t.Errorf("text %q does not say %q", res.Error, s)
		}
	}
}

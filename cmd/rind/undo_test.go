package main

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/tool/files"
)

// writing is a model that makes calls, one a request, and then says that it is done.
type writing struct{ calls []session.Call }

func (m *writing) Generate(context.Context, session.ModelRequest) iter.Seq2[session.Chunk, error] {
	return func(yield func(session.Chunk, error) bool) {
		if len(m.calls) == 0 {
			_ = yield(session.Chunk{Kind: session.ChunkText, Text: "Done."}, nil) && yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishStop}, nil)
			return
		}
		c := m.calls[0]
		m.calls = m.calls[1:]
		_ = yield(session.Chunk{Kind: session.ChunkCallStart, CallID: c.ID, Name: c.Name}, nil) &&
			yield(session.Chunk{Kind: session.ChunkCallEnd, CallID: c.ID, Name: c.Name, Text: string(c.Arguments)}, nil) &&
			yield(session.Chunk{Kind: session.ChunkFinish, Finish: session.FinishCalls}, nil)
	}
}

func (m *writing) Default() session.Selection {
	return session.Selection{Provider: "test", Model: "m", Mode: "full"}
}

func (m *writing) Select(context.Context, session.Selection) (session.Selected, error) {
	return session.Selected{Model: m, Info: session.ModelInfo{Provider: "test", ID: "m", Window: 100_000}}, nil
}

func (m *writing) List(context.Context, bool) ([]session.ModelInfo, string, error) {
	return nil, "", nil
}

// allowing is a policy that allows everything.
type allowing struct{ session.Policy }

func (allowing) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	return session.Verdict{Effect: "allow"}, nil
}

// wrote lets a model write files in the data folder's newest session of workspace, in a process that then ends. It returns the turn.
func wrote(t *testing.T, workspace string, content ...string) session.TurnID {
	t.Helper()
	rt, err := compose(&streams{err: os.Stderr}, &common{cwd: workspace}, composition{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.close()
	m := &writing{}
	for i := 0; i < len(content); i += 2 {
		m.calls = append(m.calls, session.Call{
			ID: "call" + content[i], Name: "write_file", Arguments: protocol.MustMarshal(map[string]string{"path": content[i], "content": content[i+1]}),
		})
	}
	loop, err := session.NewLoop(session.Loop{Models: m, Policy: allowing{}, Tools: []session.Tool{files.WriteFile(rt.kept)}})
	if err != nil {
		t.Fatal(err)
	}
	all := session.NewSessions(session.Config{Store: rt.store, Agent: loop, Models: m})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = all.Shutdown(ctx)
	}()
	s, err := all.Latest(t.Context(), rt.workspace)
	if protocol.KindOf(err) == protocol.SessionNotFound {
		s, err = all.Draft(t.Context(), session.DraftOptions{Workspace: rt.workspace})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := make(chan session.Outcome, 1)
	s.Prompt(session.PromptRequest{Input: "write"}, func(o session.Outcome, err error) {
		if err != nil {
			t.Error(err)
		}
		ended <- o
	})
	return (<-ended).Turn
}

func TestUndoAndDiffOnTheCommandLine(t *testing.T) {
	t.Setenv("RIND_HOME", t.TempDir())
	ws := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := func(name string) string {
		data, err := os.ReadFile(filepath.Join(ws, name))
		if os.IsNotExist(err) {
			return "-"
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	rind := func(code int, args ...string) (out, errs string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if got := run(t.Context(), append(args, "--cwd", ws), strings.NewReader(""), &stdout, &stderr); got != code {
			t.Errorf("rind %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	like := func(got, want string) {
		t.Helper()
		if !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("%q\nis not like %q", got, want)
		}
	}

	put("a  b.txt", "one\n")
	first := wrote(t, ws, "a  b.txt", "two\n", "new", "x\n")
	second := wrote(t, ws, "a  b.txt", "three\n", "c", "c\n")

	out, errs := rind(0, "diff")
	like(out, `--- a/a  b.txt\n\+\+\+ b/a  b.txt\n@@ -1 \+1 @@\n-two\n\+three\n--- /dev/null\n\+\+\+ b/c\n@@ -0,0 \+1 @@\n\+c\n`)
	like(errs, "Turn "+string(second)+": 2 files\n")
	out, _ = rind(0, "diff", string(first[:6]), "--json")
	var line diffLine
	if err := json.Unmarshal([]byte(strings.SplitAfter(out, "\n")[1]), &line); err != nil || line.Path != "new" || line.Turn != first || !line.Created || !line.Kept || line.Diff == "" {
		t.Errorf("%+v, %v\n%s", line, err, out)
	}

	out, errs = rind(0, "undo", "--dry-run")
	like(out, `to restore     a  b.txt\nto restore     c\n`)
	like(errs, "Turn "+string(second)+" can be undone.\n")
	if get("c") != "c\n" {
		t.Error("a dry run wrote something")
	}
	put("c", "mine\n")
	out, errs = rind(6, "undo")
	like(out, `restored       a  b.txt\nchanged since  c\n`)
	like(errs, "Turn "+string(second)+": 1 file left alone; 'rind diff "+string(second[:8])+"' shows what the turn changed.\n")
	if get("a  b.txt") != "two\n" || get("c") != "mine\n" {
		t.Errorf("%q %q", get("a  b.txt"), get("c"))
	}
	out, _ = rind(0, "undo", "--json")
	like(out, `\{"session_id":"[^"]+","turn_id":"`+string(first)+`","dry_run":false,"files":\[\{"path":"a  b.txt","status":"restored"\},\{"path":"new","status":"restored"\}\]\}\n`)
	if get("a  b.txt") != "one\n" || get("new") != "-" {
		t.Errorf("%q %q", get("a  b.txt"), get("new"))
	}
	out, errs = rind(0, "undo")
	like(out+errs, "Nothing to undo.\n")
}

func TestUndoIsRefusedWhileAnotherProcessWorksInTheSession(t *testing.T) {
	t.Setenv("RIND_HOME", t.TempDir())
	ws := t.TempDir()
	wrote(t, ws, "a", "1")
	rt, err := compose(&streams{err: os.Stderr}, &common{cwd: ws}, composition{})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.close()
	page, _, err := rt.store.Sessions(t.Context(), session.Query{Workspace: rt.workspace, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.store.Acquire(t.Context(), page[0].ID); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"undo", "--cwd", ws}, strings.NewReader(""), &stdout, &stderr); code != exitFailed || !strings.Contains(stderr.String(), "in use by another process") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if data, err := os.ReadFile(filepath.Join(ws, "a")); err != nil || string(data) != "1" {
		t.Errorf("%q, %v", data, err)
	}
}

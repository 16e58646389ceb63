//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/tool/shell"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a home folder with a workspace and the runtime's data in it, and the tool.
type desk struct {
	home, root, data, outputs string
	config                    shell.Config
	outside                   []string
	reads                     bool
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{home: filepath.Join(top, "home")}
	d.root, d.data = filepath.Join(d.home, "app"), filepath.Join(d.home, ".rind")
	d.outputs = filepath.Join(d.data, "sessions", "outputs")
	for _, dir := range []string{d.root, d.data, filepath.Join(d.home, "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	children := proc.NewChildren(filepath.Join(d.data, "children"))
	t.Cleanup(func() {
		if err := children.KillAll(); err != nil {
			t.Error(err)
		}
	})
	d.config = shell.Config{
		Children: children, Private: []string{d.data}, Outputs: func(session.SessionID) string { return d.outputs },
		Environ: func() []string {
			return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.home, "LC_ALL=C", "LANG=C"}
		},
	}
	return d
}

func (d *desk) put(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(d.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

type args map[string]any

// told is the data of a result, by the names of the contract.
type told struct {
	Status     string `json:"status"`
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	CWD        string `json:"cwd"`
	Backend    string `json:"shell_backend"`
	Executable string `json:"shell_executable"`
	Task       string `json:"task_id"`
	Background string `json:"bg_id"`
}

func (d *desk) asked(arguments []byte) session.ToolCall {
	return session.ToolCall{
		ID: "call_1", Name: "bash", Arguments: arguments, Session: "s-1", Turn: "t-1", Roots: []string{d.root}, Outside: d.outside, Reads: d.reads,
	}
}

func (d *desk) call(ctx context.Context, t testing.TB, a args) (told, session.ToolResult) {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	res, err := shell.Bash(d.config).Run(ctx, d.asked(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	var data told
	if res.Data != nil {
		if err := json.Unmarshal(protocol.MustMarshal(res.Data), &data); err != nil {
			t.Fatal(err)
		}
	}
	return data, res
}

func (d *desk) run(t testing.TB, command string) (told, session.ToolResult) {
	t.Helper()
	return d.call(t.Context(), t, args{"command": command})
}

func TestTheToolKeepsThePromisesOfTools(t *testing.T) {
	d := newDesk(t)
	w := tooltest.NewWorkspace(t)
	w.Args = map[string]any{"command": "true"}
	w.Only = map[string][]any{
		"command": {"true", "echo x", "exit 3", "cat a.txt", "sleep 0.01", "printf '\\377\\033[1m'", "echo x >made; rm made", "nope", "(", ""},
	}
	tooltest.Run(t, shell.Bash(d.config), w)
}

func TestAResultTellsHowTheCommandEnded(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		command, status, stdout, stderr string
		code                            int
	}{
		{"echo out; echo err >&2", "completed", "out\n", "err\n", 0},
		{"exit 7", "failed", "", "", 7},
		{"kill -9 $$", "failed", "", "", 137},
		{"cat; read x; echo got:$x", "completed", "got:\n", "", 0},
		{"test -t 0 || test -t 1 || echo none", "completed", "none\n", "", 0},
		{"echo $PWD", "completed", d.root + "\n", "", 0},
	} {
		t.Run(c.command, func(t *testing.T) {
			data, res := d.run(t, c.command)
			if data.Status != c.status || data.ExitCode != c.code || data.Stdout != c.stdout || data.Stderr != c.stderr {
				t.Errorf("%+v", data)
			}
			if res.ErrorType != "" || res.Status != "" || data.CWD != d.root || !filepath.IsAbs(data.Executable) || data.Backend != filepath.Base(data.Executable) {
				t.Errorf("%+v, %q %q", data, res.Status, res.ErrorType)
			}
			if res.Meta["truncated"] != false || res.Meta["total_bytes"] != int64(len(c.stdout+c.stderr)) || res.Meta["output_path"] != nil {
				t.Errorf("meta %v", res.Meta)
			}
		})
	}
}

func TestArgumentsOfBothFormsAreTakenAndNotMixed(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		a    args
		says string // "" for none: it runs
	}{
		{args{"command": "true", "yield_time_ms": 0, "notify": "manual", "timeout_ms": 5000}, ""},
		{args{"command": "true", "run_in_background": true}, ""},
		{args{"command": "true", "run_in_background": false, "wait_ms": 1000.0}, ""},
		{args{"command": "true", "cwd": nil, "timeout_ms": nil, "wait_ms": nil}, ""},
		{args{"command": "true", "timeout_ms": 1e300}, ""},
		{args{"command": "true", "run_in_background": true, "yield_time_ms": 5}, "mixed"},
		{args{"command": "true", "wait_ms": 5, "notify": "manual"}, "mixed"},
		{args{"command": "true", "yield_time_ms": 60001}, "60000"},
		{args{"command": "true", "wait_ms": -1}, "60000"},
		{args{"command": "true", "timeout_ms": 0}, "timeout_ms"},
		{args{"command": "true", "notify": "x"}, "notify"},
		{args{"command": " \n"}, "empty"},
		{args{"command": "a\x00b"}, "NUL"},
		{args{"command": strings.Repeat("x", 200_000)}, "bytes"},
		{args{}, "command is missing"},
	} {
		_, res := d.call(t.Context(), t, c.a)
		switch {
		case c.says == "" && res.ErrorType != "":
			t.Errorf("%v: %s", c.a, res.Error)
		case c.says != "" && (res.ErrorType != protocol.ErrInvalidArguments || res.Status != protocol.ToolRejected || !strings.Contains(res.Error, c.says)):
			t.Errorf("%.100v: %s %s", c.a, res.ErrorType, res.Error)
		}
	}
}

func TestTheFolderOfACommandLiesInsideTheRootsOrIsConsentedTo(t *testing.T) {
	d := newDesk(t)
	d.put(t, "app/sub/f", "")
	d.put(t, "app/f", "")
	other := filepath.Join(d.home, "other")
	if err := os.Symlink(other, filepath.Join(d.root, "out")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cwd, errorType, at string
		outside            []string
	}{
		{"sub", "", d.root + "/sub", nil},
		{d.root + "/sub/..", "", d.root, nil},
		{".", "", d.root, nil},
		{"../other", protocol.ErrPermissionDenied, "", nil},
		{"out", protocol.ErrPermissionDenied, "", nil},
		{"out", "", other, []string{other}},
		{"nope", protocol.ErrNotFound, "", nil},
		{"f", protocol.ErrInvalidArguments, "", nil},
	} {
		d.outside = c.outside
		data, res := d.call(t.Context(), t, args{"command": "pwd -P", "cwd": c.cwd})
		if res.ErrorType != c.errorType || strings.TrimSpace(data.Stdout) != c.at || data.CWD != c.at {
			t.Errorf("%s: %s %s, %+v", c.cwd, res.ErrorType, res.Error, data)
		}
	}
}

func TestACancelledCommandTellsWhatItWroteAndLeavesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	made := filepath.Join(d.root, "made")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(made); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	began := time.Now()
	data, res := d.call(ctx, t, args{"command": "trap '' TERM; echo so far; (setsid sleep 311.25 &); sleep 312.25 & touch made; sleep 313.25; sleep 313.25"})
	cancel()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if res.Status != protocol.ToolCancelled || res.ErrorType != protocol.ErrCancelled || data.Status != "cancelled" || data.Stdout != "so far\n" {
		t.Errorf("%q %q %+v", res.Status, res.ErrorType, data)
	}
	if res.Touched == nil || len(res.Touched.Files) != 1 {
		t.Errorf("touched %+v", res.Touched)
	}
	if pids := sleeping(t, "311.25", "312.25", "313.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}

func TestACommandIsEndedWhenItsTimeIsUp(t *testing.T) {
	d := newDesk(t)
	data, res := d.call(t.Context(), t, args{"command": "yes", "timeout_ms": 1500})
	if res.Status != protocol.ToolTimedOut || res.ErrorType != protocol.ErrTimedOut || data.Status != "timed_out" || !strings.HasPrefix(data.Stdout, "y\ny\n") {
		t.Errorf("%q %q %.100q", res.Status, res.Error, data.Stdout)
	}
	d.config.MaxTime = 100 * time.Millisecond
	if _, res = d.run(t, "sleep 60"); res.Status != protocol.ToolTimedOut || !strings.Contains(res.Error, "most a command may take") {
		t.Errorf("%q %q", res.Status, res.Error)
	}
}

func TestAGrandchildThatHoldsTheOutputIsEndedAndSaidSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	began := time.Now()
	data, res := d.call(t.Context(), t, args{"command": "echo done; sleep 431.25 &", "timeout_ms": 60_000})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if data.Stdout != "done\n" || data.Status != "completed" || !strings.Contains(res.Meta["note"].(string), "were ended") {
		t.Errorf("%+v %v", data, res.Meta)
	}
	if pids := sleeping(t, "431.25"); len(pids) != 0 {
		t.Errorf("left: %v", pids)
	}
}

func TestNothingStartsWhileTheRuntimeShutsDown(t *testing.T) {
	d := newDesk(t)
	d.config.Children.Refuse()
	if _, res := d.run(t, "true"); res.Status != protocol.ToolCancelled || res.ErrorType != protocol.ErrCancelled {
		t.Errorf("%q %q", res.Status, res.Error)
	}
}

func TestCommandsGetTheUsersEnvironmentWithoutItsSecrets(t *testing.T) {
	d := newDesk(t)
	d.config.Secrets = func(_, value string) bool { return value == "s3cret" }
	kept := []string{"GOFLAGS=-mod=mod", "SSH_AUTH_SOCK=/run/agent", "EDITOR=vi", "NODE_ENV=test", "GIT_AUTHOR_NAME=a", "DATABASE_URL=x", "KEYBOARD=de"}
	lost := []string{
		"OPENAI_API_KEY=x", "GITHUB_TOKEN=x", "aws_secret_access_key=x", "AWS_ACCESS_KEY_ID=x", "AWS_SESSION_TOKEN=x", "DB_PASSWORD=x", "RIND_HOME=/x",
		"RIND_TRACE_LLM=1", "STRIPE_SECRET=x", "PGPASSWORD=x", "npm_config_//registry.example/:_authToken=x", "ODD=s3cret", "SIGNING_PRIVATE_KEY=x",
		"CDPATH=/", "GLOBIGNORE=x", "BASHOPTS=dotglob", "SHELLOPTS=noglob",
	}
	base := d.config.Environ()
	d.config.Environ = func() []string {
		return append(append(append([]string{"TERM=xterm", "PAGER=less", "CI_x=1"}, base...), kept...), lost...)
	}
	data, _ := d.run(t, "env")
	env := strings.Split(strings.TrimSpace(data.Stdout), "\n")
	has := func(kv string) bool {
		for _, e := range env {
			if e == kv {
				return true
			}
		}
		return false
	}
	for _, kv := range append(kept, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "CI_x=1", "PWD="+d.root) {
		if !has(kv) {
			t.Errorf("%s is missing", kv)
		}
	}
	for _, kv := range append(lost, "TERM=xterm", "PAGER=less") {
		if has(kv) {
			t.Errorf("%s is there", kv)
		}
	}
	for _, kv := range env {
		if strings.HasPrefix(kv, "RIND_") && !strings.HasPrefix(kv, "RIND_CHILD=") {
			t.Error(kv)
		}
	}
}

package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/tool/shell"
)

// guarded is a desk whose commands run in the sandbox.
func guarded(t *testing.T) *desk {
	t.Helper()
	if proc.Landlock() == 0 {
		t.Skip("this kernel offers no sandbox")
	}
	d := newDesk(t)
	for _, name := range []string{
		"app/f", "other/f", ".rind/settings.json", ".rind/sessions/outputs/output-1.txt", ".ssh/id_x", ".config/gh/hosts.yml", ".bashrc", ".netrc", ".cache/f",
	} {
		d.put(t, name, "text of "+name+"\n")
	}
	return d
}

func TestTheSandboxLetsThroughWhatACommandNeeds(t *testing.T) {
	for _, sandbox := range []string{"landlock", "bubblewrap"} {
		t.Run(sandbox, func(t *testing.T) {
			if sandbox == "bubblewrap" && !shell.BubblewrapWorks() {
				t.Skip("bubblewrap is not installed, or may not be used")
			}
			defer shell.Offer(sandbox)()
			letsThrough(t, sandbox)
		})
	}
}

func letsThrough(t *testing.T, sandbox string) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	d := guarded(t)
	outside := d.put(t, "consented/f", "x")
	for _, c := range []struct {
		name, command string
		reads, ok     bool
	}{
		{"write in the workspace", "echo x >f && mkdir -p a/b && mv f a/b/f && cp a/b/f f && rm -r a", false, true},
		{"write what was consented to", "echo x >" + outside, false, true},
		{"make what was consented to", "mkdir -p ~/consented/new/deep && echo x >~/consented/new/deep/f && rm -r ~/consented/new", false, true},
		{"write in a cache", "echo x >~/.cache/new", false, true},
		{"a file of its own for a moment", "f=$(mktemp) && echo x >$f && cat $f && rm $f", false, true},
		{"here documents", "cat <<E\nx\nE", false, true},
		{"standard files", "echo x >/dev/null; echo x >/dev/stderr; cat </dev/null; diff <(echo a) <(echo a)", false, true},
		{"a pipe by name", "mkfifo p && (echo x >p & cat p) && rm p", false, true},
		{"read elsewhere", "cat ~/other/f ~/.bashrc /etc/passwd && ls ~ /", false, true},
		{"read its own output", "cat ~/.rind/sessions/outputs/output-1.txt", false, true},
		{"write elsewhere in the home", "echo x >~/other/f", false, false},
		{"a new file in the home", "echo x >~/new", false, false},
		{"append to what a shell starts with", "echo x >>~/.bashrc", false, false},
		{"write a key", "echo x >~/.ssh/authorized_keys", false, false},
		{"write in the system", "echo x >/etc/rind-test", false, false},
		{"read the data folder", "cat ~/.rind/settings.json", false, false},
		{"write the data folder", "echo x >~/.rind/settings.json", false, false},
		{"change its own output", "echo x >~/.rind/sessions/outputs/output-1.txt", false, false},

		{"reads: read", "cat f ~/other/f && ls && git --version", true, true},
		{"reads: write in the workspace", "echo x >new", true, false},
		{"reads: write in a cache", "echo x >~/.cache/new", true, false},
		{"reads: write in /tmp", "echo x >/tmp/rind-test-file", true, false},
		{"reads: a file of its own", "f=$(mktemp) && echo x >$f && sort $f", true, true},
		{"reads: keys", "cat ~/.ssh/id_x", true, false},
		{"reads: tokens", "cat ~/.config/gh/hosts.yml", true, false},
		{"reads: passwords", "cat ~/.netrc", true, false},
		{"reads: the data folder", "cat ~/.rind/settings.json", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.put(t, "app/f", "x")
			d.outside, d.reads = []string{outside, d.home + "/consented/new/deep/f", d.home + "/new"}, c.reads
			data, res := d.run(t, c.command)
			if (data.ExitCode == 0) != c.ok || res.Meta["sandbox"] != sandbox {
				t.Errorf("exit %d, want success %v: %s%s meta %v", data.ExitCode, c.ok, data.Stdout, data.Stderr, res.Meta)
			}
			if !c.ok && sandbox == "landlock" && !strings.Contains(data.Stderr, "Permission denied") {
				t.Errorf("%q", data.Stderr)
			}
			if c.reads && res.Touched != nil {
				t.Errorf("touched %+v", res.Touched)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "rind-command-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWithoutTheSandboxNothingIsRefusedAndItIsSaid(t *testing.T) {
	d := guarded(t)
	if got := shell.Describe(d.config); got != "sandbox: landlock, writes only below the workspace" {
		t.Error(got)
	}
	d.config.Mode = shell.ModeOff
	if got := shell.Describe(d.config); got != "no sandbox" {
		t.Error(got)
	}
	data, res := d.run(t, "echo x >~/new && cat ~/.rind/settings.json")
	if data.ExitCode != 0 || res.Meta["sandbox"] != nil {
		t.Errorf("%+v %v", data, res.Meta)
	}
}

// needs skips the test where a program is not installed.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip(err)
	}
}

const identity = "git config user.email a@example && git config user.name a && "

func TestGitWorksInTheSandbox(t *testing.T) {
	needs(t, "git")
	d := guarded(t)
	app := d.root
	succeeds := func(command string) {
		t.Helper()
		if data, _ := d.run(t, command); data.ExitCode != 0 {
			t.Fatalf("%s: %s%s", command, data.Stdout, data.Stderr)
		}
	}
	succeeds("git init -q -b main && " + identity + "git add f && git commit -qm one && echo y >>f && git commit -qam two && git checkout -qb topic")
	succeeds("git worktree add -q wt main && mkdir sub && echo x >sub/f && git add sub && git commit -qm three")
	d.root = filepath.Join(app, "sub") // a folder of a repository
	succeeds("echo z >f && git commit -qam four")
	d.root = filepath.Join(app, "wt")
	succeeds("echo z >f && git commit -qam five && git log --oneline")
	d.root = app
	if data, _ := d.run(t, "git -C ~/other init"); data.ExitCode == 0 {
		t.Error("a repository was made elsewhere")
	}
}

func TestAWorkspaceCannotNameAForeignRepositoryAsItsOwn(t *testing.T) {
	needs(t, "git")
	d := guarded(t)
	other := filepath.Join(d.home, "other")
	if out, err := exec.Command("git", "init", "-q", other).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	for _, at := range []string{other + "/.git", d.home + "/.ssh", d.home, "/"} {
		d.put(t, "app/.git", "gitdir: "+at+"\n")
		if data, _ := d.run(t, "echo x >"+at+"/hooks-test"); data.ExitCode == 0 {
			t.Errorf("%s was written", at)
		}
	}
}

func TestGoBuildsInTheSandbox(t *testing.T) {
	needs(t, "go")
	if testing.Short() {
		t.Skip("builds a program")
	}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Skip(err)
	}
	d := guarded(t)
	base := d.config.Environ()
	d.config.Environ = func() []string {
		return append(base, "GOCACHE="+strings.TrimSpace(string(out)), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod")
	}
	d.put(t, "app/go.mod", "module example\n\ngo 1.21\n")
	d.put(t, "app/main.go", "package main\n\nfunc main() { println(\"built\") }\n")
	data, _ := d.run(t, "go vet . && go build -o prog . && ./prog")
	if data.ExitCode != 0 || !strings.Contains(data.Stderr, "built\n") {
		t.Errorf("%+v", data)
	}
}

func TestNpmWorksInTheSandbox(t *testing.T) {
	needs(t, "npm")
	d := guarded(t)
	if testing.Short() {
		t.Skip("packs a package")
	}
	d.put(t, "app/package.json", `{"name":"example","version":"1.0.0"}`)
	data, _ := d.run(t, "npm pack --silent && ls ~/.npm/_logs >/dev/null")
	if data.ExitCode != 0 {
		t.Errorf("%+v", data)
	}
}

func TestAVariableCannotOpenTheHomeFolder(t *testing.T) {
	d := guarded(t)
	base := d.config.Environ()
	for _, at := range []string{d.home, "/", d.home + "/x/..", filepath.Dir(d.home), "relative", ""} {
		d.config.Environ = func() []string { return append(base, "GOPATH="+at, "CARGO_HOME="+at) }
		if data, _ := d.run(t, "echo x >~/other/f"); data.ExitCode == 0 {
			t.Errorf("GOPATH=%s opened it", at)
		}
	}
	mine := filepath.Join(d.home, "gopath")
	d.put(t, "gopath/f", "")
	d.config.Environ = func() []string { return append(base, "GOPATH="+mine) }
	if data, _ := d.run(t, "echo x >~/gopath/f"); data.ExitCode != 0 {
		t.Errorf("%+v", data)
	}
}

func TestACommandHasTheThreeStandardDescriptorsOnly(t *testing.T) {
	d := guarded(t)
	for _, mode := range []string{shell.ModeAuto, shell.ModeOff} {
		d.config.Mode = mode
		data, _ := d.run(t, "ls /proc/self/fd; git --version >&2")
		if got := strings.Join(strings.Fields(data.Stdout), " "); got != "0 1 2 3" || data.ExitCode != 0 { // 3 is the folder that ls reads
			t.Errorf("%s: descriptors %s", mode, got)
		}
	}
}

func TestAPipeWhereGitNamesAFolderIsNotWaitedFor(t *testing.T) {
	for _, name := range []string{"gitdir", "commondir"} {
		d := guarded(t)
		at := filepath.Join(d.root, "kept")
		d.put(t, "app/.git", "gitdir: "+at+"\n")
		d.put(t, "app/kept/gitdir", filepath.Join(d.root, ".git")+"\n")
		_ = os.Remove(filepath.Join(at, name))
		if err := syscall.Mkfifo(filepath.Join(at, name), 0o600); err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 1)
		go func() {
			data, _ := d.run(t, "echo hi")
			said <- data.Stdout
		}()
		select {
		case out := <-said:
			if out != "hi\n" {
				t.Errorf("%s: %q", name, out)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is waited for", name)
		}
	}
}

package contain_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/proc/contain"
)

func TestMain(m *testing.M) {
	if contain.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

// tree is home/{app,cache,data,.ssh} with a file in each, a link from app to data, and one at the side.
func tree(t *testing.T) string {
	t.Helper()
	if contain.Available() == 0 {
		t.Skip("this kernel offers no sandbox")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"app/sub", "cache", "data/inner", ".ssh", "other"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, dir, "f"), []byte("text of "+dir+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"app/link": "../data", "side": "data", "app/linkf": "../data/f"} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "top"), []byte("text of top\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return home
}

// run runs a command in the sandbox and reports what it says and whether it succeeded.
func run(t *testing.T, s contain.Spec, home, command string) (string, bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], contain.Args(s, "/bin/sh", "-c", command)...)
	cmd.Dir, cmd.Env = filepath.Join(home, "app"), append(os.Environ(), "HOME="+home, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok && err != nil {
		t.Fatal(err)
	}
	return string(out), err == nil
}

func TestACommandTouchesOnlyWhatItMay(t *testing.T) {
	home := tree(t)
	writes := contain.Spec{Write: []string{home + "/app", home + "/cache", home + "/nothing"}, Deny: []string{home + "/data", home + "/nowhere"}}
	reads := contain.Spec{Write: []string{home + "/cache"}, Deny: []string{home + "/side", home + "/.ssh"}} // side leads to data
	inner := contain.Spec{Write: []string{home + "/data/inner"}, Deny: []string{home + "/data"}}
	output := contain.Spec{Write: []string{home + "/app"}, Read: []string{home + "/data/inner"}, Deny: []string{home + "/data"}}
	around := contain.Spec{Write: []string{home}, Deny: []string{home + "/data"}}
	for _, c := range []struct {
		name string
		spec contain.Spec
		cmd  string
		ok   bool
	}{
		{"write in the workspace", writes, "echo x >f && echo y >>sub/new && mkdir d && mv f d/f && mv d/f f && rm -r d sub/new", true},
		{"write in a cache", writes, "echo x >~/cache/f", true},
		{"write elsewhere", writes, "echo x >~/other/f", false},
		{"append elsewhere", writes, "echo x >>~/other/f", false},
		{"truncate elsewhere", writes, "truncate -s 0 ~/other/f", false},
		{"make elsewhere", writes, "mkdir ~/other/d", false},
		{"remove elsewhere", writes, "rm -f ~/other/f", false},
		{"move out", writes, "mv sub/f ~/other/g", false},
		{"link out", writes, "ln ~/other/f linked", false},
		{"read elsewhere", writes, "cat ~/other/f /etc/passwd ~/top >/dev/null && ls ~ / >/dev/null", true},
		{"read what is denied", writes, "cat ~/data/f", false},
		{"read what is denied, through a link", writes, "cat link/f", false},
		{"read what is denied, through another link", writes, "cat ~/side/f", false},
		{"read what is denied, through a link to it", writes, "cat linkf", false},
		{"read what is denied, through /proc", writes, "cat /proc/self/root" + home + "/data/f", false},
		{"write what is denied", writes, "echo x >~/data/f", false},
		{"make in what is denied", writes, "echo x >~/data/new", false},
		{"standard files by name", writes, "echo x >/dev/null && echo x >/dev/stderr && echo x >/dev/fd/1 && head -c 1 /dev/urandom >/dev/null", true},
		{"in a shell of the shell", writes, "sh -c 'sh -c \"echo x >~/other/f\"'", false},
		{"read only: write in the workspace", reads, "echo x >f", false},
		{"read only: make in the workspace", reads, "touch new", false},
		{"read only: write where it may", reads, "echo x >~/cache/f && cat sub/f ~/other/f >/dev/null", true},
		{"read only: credentials", reads, "cat ~/.ssh/f", false},
		{"read only: what a denied link leads to", reads, "cat ~/data/f", false},
		{"a folder given in a denied one", inner, "echo x >~/data/inner/f && cat ~/data/inner/f", true},
		{"beside a folder given in a denied one", inner, "cat ~/data/f", false},
		{"read a folder given to read in a denied one", output, "cat ~/data/inner/f", true},
		{"write a folder given to read in a denied one", output, "echo x >~/data/inner/f", false},
		{"beside a folder given to read in a denied one", output, "cat ~/data/f", false},
		{"a denied folder in a given one", around, "cat ~/data/f", false},
		{"around a denied folder in a given one", around, "echo x >f && echo x >~/other/new && echo x >~/top", true},
		{"denied itself", contain.Spec{Write: []string{home + "/app"}, Deny: []string{home + "/app"}}, "cat " + home + "/app/f", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ok := run(t, c.spec, home, c.cmd)
			if ok != c.ok {
				t.Errorf("succeeded: %v, want %v: %s", ok, c.ok, out)
			}
			if strings.Contains(out, "text of data\n") || strings.Contains(out, "text of .ssh") {
				t.Errorf("it was read: %s", out)
			}
		})
	}
	if data, _ := os.ReadFile(home + "/other/f"); string(data) != "text of other\n" && string(data) != "x\n" {
		t.Errorf("other/f holds %q", data)
	}
}

func TestTheCommandTakesThePlaceOfTheSandboxWithItsCodeAndDescriptors(t *testing.T) {
	home := tree(t)
	s := contain.Spec{Write: []string{home}, Deny: []string{home + "/data"}}
	cmd := exec.Command(os.Args[0], contain.Args(s, "/bin/sh", "-c", "echo $$; ls /proc/self/fd; exit 7")...)
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	if len(got) != 5 || got[0] != strconv.Itoa(cmd.Process.Pid) || strings.Join(got[1:], " ") != "0 1 2 3" { // 3 is the folder that ls reads
		t.Errorf("pid and descriptors %v", got)
	}
}

func TestWhatCannotBeStartedSaysSo(t *testing.T) {
	home := tree(t)
	for _, args := range [][]string{
		{contain.Command},
		{contain.Command, "{"},
		{contain.Command, "{", "/bin/sh"},
		contain.Args(contain.Spec{}, "/no/such/program"),
		contain.Args(contain.Spec{Deny: []string{home + "/app"}}, home+"/app/f"),
	} {
		cmd := exec.Command(os.Args[0], args...)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 126 || !strings.HasPrefix(string(out), "rind: the command was not started: ") || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}

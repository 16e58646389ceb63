package proc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/proc"
)

// tree is home/{app,cache,data,.ssh} with a file in each, a link from app to data, and one at the side.
func tree(t *testing.T) string {
	t.Helper()
	if proc.Landlock() == 0 {
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

// confined runs a command within bounds and reports what it says and whether it succeeded.
func confined(t *testing.T, b proc.Bounds, home, command string) (string, bool) {
	t.Helper()
	c, _ := children(t)
	var out text
	s := shell(command, &out)
	s.Dir, s.Env, s.Bounds = filepath.Join(home, "app"), append(s.Env, "HOME="+home, "LC_ALL=C"), &b
	exit := wait(t, begin(t, c, s))
	return out.String(), exit.Code == 0
}

func TestACommandTouchesOnlyWhatItMay(t *testing.T) {
	home := tree(t)
	writes := proc.Bounds{Write: []string{home + "/app", home + "/cache", home + "/nothing"}, Deny: []string{home + "/data", home + "/nowhere"}}
	reads := proc.Bounds{Write: []string{home + "/cache"}, Deny: []string{home + "/side", home + "/.ssh"}} // side leads to data
	inner := proc.Bounds{Write: []string{home + "/data/inner"}, Deny: []string{home + "/data"}}
	output := proc.Bounds{Write: []string{home + "/app"}, Read: []string{home + "/data/inner"}, Deny: []string{home + "/data"}}
	around := proc.Bounds{Write: []string{home}, Deny: []string{home + "/data"}}
	for _, c := range []struct {
		name string
		spec proc.Bounds
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
		{"denied itself", proc.Bounds{Write: []string{home + "/app"}, Deny: []string{home + "/app"}}, "cat " + home + "/app/f", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ok := confined(t, c.spec, home, c.cmd)
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

func TestBoundsHoldForTheChildOnly(t *testing.T) {
	home := tree(t)
	if _, ok := confined(t, proc.Bounds{}, home, "echo x >f"); ok {
		t.Fatal("it was written")
	}
	var wg sync.WaitGroup
	for n := range 64 { // on as many threads as there are
		wg.Go(func() {
			name := filepath.Join(home, "app", "n"+strconv.Itoa(n))
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Millisecond)
		})
	}
	wg.Wait()
	if _, ok := confined(t, proc.Bounds{Write: []string{home}}, home, "echo x >f"); !ok {
		t.Error("a child after it cannot write")
	}
}

func TestAConfinedChildHasTheThreeStandardDescriptorsAndItsCode(t *testing.T) {
	home := tree(t)
	out, _ := confined(t, proc.Bounds{Deny: []string{home + "/data"}}, home, "ls /proc/self/fd; exit 7")
	if got := strings.Fields(out); strings.Join(got, " ") != "0 1 2 3" { // 3 is the folder that ls reads
		t.Errorf("descriptors %v", got)
	}
}

func TestAProgramThatMayNotBeReadIsNotStarted(t *testing.T) {
	home := tree(t)
	path := filepath.Join(home, "data", "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c, _ := children(t)
	if _, err := c.Start(proc.Spec{Path: path, Bounds: &proc.Bounds{Deny: []string{home + "/data"}}}); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

func BenchmarkStart(b *testing.B) {
	home, err := os.UserHomeDir()
	if err != nil {
		b.Skip(err)
	}
	for name, bounds := range map[string]*proc.Bounds{
		"free": nil, "confined": {Write: []string{b.TempDir()}}, "confined, home listed": {Write: []string{b.TempDir()}, Deny: []string{home + "/.ssh", home + "/.cache"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := proc.Start(proc.Spec{Path: "/bin/true", Bounds: bounds})
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
			}
		})
	}
}

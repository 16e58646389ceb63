package proc_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/session/proc"
)

// running lists the processes whose command line holds what.
func running(what string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		data, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && pid != os.Getpid() && bytes.Contains(bytes.ReplaceAll(data, []byte{0}, []byte(" ")), []byte(what)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// odd makes a duration for sleep that no other process of this machine has.
func odd(seconds int) string {
	return fmt.Sprintf("%d.%d%d", seconds, os.Getpid(), time.Now().UnixNano()%1e9)
}

// family starts a command as H044 has it: a grandchild in a session of its own, one in the group, and the child.
func family(tail string) (command string, sleeps []string) {
	sleeps = []string{"sleep " + odd(311), "sleep " + odd(312), "sleep " + odd(313)}
	return fmt.Sprintf("(setsid %s &); %s & %s%s", sleeps[0], sleeps[1], sleeps[2], tail), sleeps
}

func allRun(sleeps []string) func() bool {
	return func() bool {
		return !slices.ContainsFunc(sleeps, func(s string) bool { return len(asleep(s)) == 0 })
	}
}

// asleep lists the sleeps themselves, without the shells that name them.
func asleep(s string) (pids []int) {
	for _, pid := range running(s) {
		if data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.HasPrefix(data, []byte("sleep\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func none(t *testing.T, sleeps []string) {
	t.Helper()
	for _, s := range sleeps {
		if pids := running(s); len(pids) != 0 {
			t.Errorf("left: %s (%v)", s, pids)
		}
	}
}

func TestEndLeavesNothingNotEvenWhatLeftTheGroup(t *testing.T) {
	c, _ := children(t)
	command, sleeps := family("")
	p := begin(t, c, shell(command, new(text)))
	testkit.Eventually(t, "all three run", allRun(sleeps))
	began := time.Now()
	if err := p.End(proc.Grace); err != nil {
		t.Fatal(err)
	}
	none(t, sleeps)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWhatLeavesTheGroupOutlivesItsCommandButNotTheRuntime(t *testing.T) {
	c, _ := children(t)
	daemon := "sleep " + odd(311)
	var out text
	p := begin(t, c, shell("setsid "+daemon+" >/dev/null 2>&1 & sleep 0.1; echo done", &out))
	wait(t, p)
	if left := p.Left(); left.Running != 1 || out.String() != "done\n" || len(running(daemon)) != 1 {
		t.Errorf("%+v, %q, %v", left, out.String(), running(daemon))
	}
	if err := c.KillAll(); err != nil {
		t.Fatal(err)
	}
	none(t, []string{daemon})
}

// kill9 runs a runtime, lets it start a command, and kills it.
func kill9(t *testing.T, dir, command string, up func() bool) (leader int) {
	t.Helper()
	cmd := double("runtime", "DIR="+dir, "COMMAND="+command)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if leader, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(line)
	}
	testkit.Eventually(t, "its processes run", up)
	if n, err := proc.Sweep(dir); n != 0 || err != nil || !up() {
		t.Fatalf("a sweep touched a living runtime: %d %v", n, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return leader
}

func TestAKilledRuntimeTakesTheChildAlongAndTheNextOneFindsTheRest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "children")
	command, sleeps := family("")
	leader := kill9(t, dir, command, allRun(sleeps))
	testkit.Eventually(t, "the child dies with its runtime", func() bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", leader))
		return err != nil || bytes.Contains(data, []byte(") Z "))
	})
	if n, err := proc.Sweep(dir); n != 1 || err != nil {
		t.Fatalf("%d dead, %v", n, err)
	}
	none(t, sleeps)
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestASweepTouchesNoProcessThatGotAnIdAnew(t *testing.T) {
	sleeper := exec.Command("sleep", odd(60))
	sleeper.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	start := startOf(t, sleeper.Process.Pid)
	for _, x := range []struct {
		name, start, boot string
		dies              bool
	}{
		{"another start time", start + "1", strings.TrimSpace(string(boot)), false},
		{"another boot", start, "another", false},
		{"nothing", "", "", false},
		{"the same", start, strings.TrimSpace(string(boot)), true},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			data, _ := json.Marshal(map[string]any{"pid": sleeper.Process.Pid, "start": x.start, "boot": x.boot})
			for name, text := range map[string]string{"": string(data), "2": `{"pid":`, "3": `{"pid":1}`, "4": `{"pid":-1}`} {
				if err := os.WriteFile(filepath.Join(dir, strings.Repeat("a", 32)+".1"+name+".child"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := proc.Sweep(dir); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			var info unix.Siginfo
			testkit.Eventually(t, "the state is as expected", func() bool {
				info = unix.Siginfo{}
				_ = unix.Waitid(unix.P_PID, sleeper.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
				return (info.Signo != 0) == x.dies
			})
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left in the journal: %v", left)
			}
		})
	}
}

func startOf(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))[19]
}

func TestAChildHasTheThreeStandardDescriptorsOnly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd := double("parent")
	cmd.ExtraFiles = []*os.File{r, w} // what a careless editor leaves open
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{"0", "1", "2", "3"}) { // 3 is the folder that ls reads
		t.Errorf("descriptors %v", got)
	}
}

package proc_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/session/proc"
)

// doubleName selects what this test binary does when it is run again.
const doubleName = "PROC_TEST_DOUBLE"

func TestMain(m *testing.M) {
	switch os.Getenv(doubleName) {
	case "runtime":
		runtimeDouble()
	case "parent":
		parentDouble()
	default:
		goleak.VerifyTestMain(m)
	}
}

// runtimeDouble starts a command and waits to be killed.
func runtimeDouble() {
	c := proc.NewChildren(os.Getenv("DIR"))
	p, err := c.Start(proc.Spec{Path: "/bin/sh", Args: []string{"-c", os.Getenv("COMMAND")}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	time.Sleep(time.Minute)
}

// parentDouble has descriptors that it was started with, and lists those a child of its own has.
func parentDouble() {
	p, err := proc.Start(proc.Spec{Path: "/bin/sh", Args: []string{"-c", "ls /proc/self/fd"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: struct{ io.Writer }{os.Stdout}})
	if err == nil {
		_, err = p.Wait(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// double is this test binary in another role.
func double(role string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, doubleName+"="+role)...)
	cmd.Stderr = os.Stderr
	return cmd
}

package shell

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rind-dev/rind/session/proc"
)

// offered looks once for what this system offers.
var offered = sync.OnceValue(func() string {
	switch {
	case proc.Landlock() > 0:
		return landlock
	case bubblewrapWorks():
		return bubblewrap
	}
	return ""
})

// bubblewrapWorks tries it: where unprivileged user namespaces are off, it is there and of no use.
func bubblewrapWorks() bool {
	path, err := proc.LookPath(bubblewrapProgram)
	if err != nil {
		return false
	}
	p, err := proc.Start(proc.Spec{
		Path: path, Args: []string{"--ro-bind", "/", "/", "--dev", "/dev", "--", "/bin/sh", "-c", "exit 0"}, Env: os.Environ(), Stderr: io.Discard,
	})
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	exit, err := p.Wait(ctx)
	return err == nil && exit.Code == 0
}

const bubblewrapProgram = "bwrap"

// installed reports whether a program is in PATH; asked once for each.
func installed(program string) bool {
	if known, ok := programs.Load(program); ok {
		return known.(bool)
	}
	_, err := proc.LookPath(program)
	programs.Store(program, err == nil)
	return err == nil
}

var programs sync.Map

// wrap keeps a command within limits.
func wrap(sandbox string, spec *proc.Spec, limits proc.Bounds) error {
	if sandbox == bubblewrap {
		path, err := proc.LookPath(bubblewrapProgram)
		if err != nil {
			return err
		}
		spec.Path, spec.Args = path, bubblewrapArgs(limits, spec)
		return nil
	}
	spec.Bounds = &limits
	return nil
}

// bubblewrapArgs are the arguments that run spec within limits. Here what is denied is not there: an empty folder, or the null device, lies
// over it.
func bubblewrapArgs(limits proc.Bounds, spec *proc.Spec) []string {
	args := []string{"--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"}
	if limits.Devices {
		args = append(args, "--dev-bind", "/dev", "/dev")
	} else {
		args = append(args, "--dev", "/dev")
	}
	for _, path := range limits.Write {
		args = append(args, "--bind-try", path, path)
	}
	var hidden []string
	for _, path := range limits.Deny {
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			args = append(args, "--tmpfs", path)
			hidden = append(hidden, path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	for _, path := range limits.Write { // those that are given in spite of lying in what is denied
		if slices.ContainsFunc(hidden, func(d string) bool { return d != path && within(path, d) }) {
			args = append(args, "--bind-try", path, path)
		}
	}
	for _, path := range limits.Read {
		args = append(args, "--ro-bind-try", path, path)
	}
	for _, path := range hidden {
		args = append(args, "--remount-ro", path)
	}
	if spec.Dir != "" {
		args = append(args, "--chdir", spec.Dir)
	}
	return append(append(args, "--", spec.Path), spec.Args...)
}

package consent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/consent"
)

func TestGitInARepositoryOfAnotherNameAsks(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{"bare/HEAD": "ref: refs/heads/main\n", "bare/objects/x": "", "bare/config": "[core]\n\tfsmonitor = ./x\n", "bare/in/y": "", "tree/HEAD": "", "tree/commondir": "../bare\n", ".git/HEAD": ""} {
		path := filepath.Join(p.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join("bare", "in"), filepath.Join(p.root, "other")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, command := range []string{"cd other && git status", "git -C other log", "git -C bare status", "cd bare && git status", "cd bare/in && git diff", "git -C bare/in log", "cd bare; git -C in show", "git -C tree status", "timeout 5 git -C bare log"} {
		if v := p.run("ask", command); v.Effect != "ask" || patterns(v) != command {
			t.Errorf("%s is %s, remembers %q", command, short(v), patterns(v))
		}
	}
	for _, command := range []string{"git status", "git -C src status", "git log -- bare"} {
		if v := p.run("ask", command); !v.Reads {
			t.Errorf("%s is %s", command, short(v))
		}
	}
}

func TestAReaderThatLiesInTheWorkspaceAsks(t *testing.T) {
	p := newPlace(t)
	bin, venv := filepath.Join(p.root, "bin"), filepath.Join(p.root, "venv")
	for _, name := range []string{filepath.Join(bin, "rg"), filepath.Join(p.root, "src", "jq"), filepath.Join(p.outside, "fd")} {
		_ = os.MkdirAll(filepath.Dir(name), 0o700)
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.MkdirAll(venv, 0o700)
	if err := os.Symlink(filepath.Join(p.outside, "fd"), filepath.Join(venv, "fd")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	p.policy = consent.New(consent.Config{Path: strings.Join([]string{venv, bin, p.outside, "."}, string(filepath.ListSeparator))})
	for command, want := range map[string]string{
		"rg main src": "ask", "timeout 5 rg main src": "ask", "ls | rg main": "ask", "cd src && jq . ../data.json": "ask", "jq . data.json": "reads", "fd main": "reads", "ls": "reads", "/usr/bin/rg main src": "reads", "[ -f rg ]": "reads",
	} {
		if v := p.run("ask", command); short(v) != want {
			t.Errorf("%s is %s, want %s", command, short(v), want)
		}
	}
}

package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for the program: as the command rind of the scripts, and as the child of tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv("RIND_TEST_CHILD") == "1" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(tests{m}, map[string]func(){
		"rind": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script: the program as a person or a shell sees it, one file a topic.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			home := env.WorkDir + "/home"
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			for _, name := range []string{"RIND_HOME", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "RIND_TRACE_LLM"} {
				env.Setenv(name, "")
			}
			return os.MkdirAll(home, 0o700)
		},
	})
}

// TestTheReadmesCommandsAreThere runs every `rind …` of the README far enough to know that command and flags exist.
func TestTheReadmesCommandsAreThere(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{`go run ./cmd/rind prompt "explain this folder"`, "go test ./..."} {
		if !strings.Contains(string(text), must) {
			t.Errorf("the README lacks %q", must)
		}
	}
	root := rootCommand(&streams{})
	found := regexp.MustCompile("`rind ([^`]+)`|rind (config set [a-zA-Z]+)").FindAllStringSubmatch(string(text), -1)
	if len(found) < 8 {
		t.Fatalf("found only %d commands", len(found))
	}
	for _, f := range found {
		args := strings.Fields(f[1] + f[2])
		if args[0] == "completion" || strings.ToUpper(args[0]) == args[0] {
			continue // cobra adds it when it runs
		}
		cmd, rest, err := root.Find(args)
		if err != nil || cmd == root {
			t.Errorf("rind %s: no such command (%v)", strings.Join(args, " "), err)
			continue
		}
		for _, a := range rest {
			if name, ok := strings.CutPrefix(a, "--"); ok && name != "help" && cmd.Flags().Lookup(name) == nil {
				t.Errorf("rind %s: no flag %s", strings.Join(args, " "), a)
			}
		}
	}
}

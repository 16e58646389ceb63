package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for the program: as the command rind of the scripts, and as the child of tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv("RIND_TEST_CHILD") == "1" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){
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

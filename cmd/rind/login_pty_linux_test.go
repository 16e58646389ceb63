package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAKeyIsTypedUnseen(t *testing.T) {
	root := folders(t, `[{"text":"x"}]`)
	p := atPTY(t, root, nil, "login", "openai", "--no-test")
	p.expect("API key for openai (api.openai.com): ")
	p.keys("sk-CANARY-1234\n")
	p.expect("the key was not tried; kept in")
	p.ends(0)
	if text := p.all(); strings.Contains(text, "CANARY") {
		t.Errorf("the terminal shows the key:\n%s", text)
	}
	file, err := os.ReadFile(filepath.Join(root, "data", "settings.json"))
	if err != nil || !strings.Contains(string(file), "sk-CANARY-1234") {
		t.Errorf("settings %s, %v", file, err)
	}
}

func TestCtrlCWhileAKeyIsAskedForLeavesTheTerminalAsItWas(t *testing.T) {
	root := folders(t, `[{"text":"x"}]`)
	p := atPTY(t, root, nil, "login", "openai", "--no-test")
	p.expect("API key for openai")
	if echoes(t, p) {
		t.Error("the terminal shows what is typed while a key is asked for")
	}
	p.keys("sk-CANARY")
	p.keys("\x03")
	p.ends(130)
	if !echoes(t, p) {
		t.Error("the terminal does not show any more what is typed")
	}
	if file, _ := os.ReadFile(filepath.Join(root, "data", "settings.json")); strings.Contains(string(file), "CANARY") {
		t.Error("half a key was kept")
	}
}

func TestWhoeverHasNoProviderIsAskedForOne(t *testing.T) {
	root := folders(t, `[{"text":"x"}]`)
	if err := os.WriteFile(filepath.Join(root, "data", "settings.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := atPTY(t, root, nil, "login", "--no-test")
	p.expect("Provider (anthropic, openai, openrouter): ")
	p.keys("openrouter\n")
	p.expect("API key for openrouter (openrouter.ai): ")
	p.keys("sk-CANARY-1234\n")
	p.ends(0)
	if file, _ := os.ReadFile(filepath.Join(root, "data", "settings.json")); !strings.Contains(string(file), `"provider": "openrouter"`) {
		t.Errorf("settings %s", file)
	}
}

// echoes reports whether the terminal shows what is typed.
func echoes(t *testing.T, p *terminal) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

package keyring

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARealSecretServiceKeepsKeys runs against GNOME's keyring on a session bus of its own (Debian: gnome-keyring, libsecret-tools, dbus).
func TestARealSecretServiceKeepsKeys(t *testing.T) {
	if os.Getenv("RIND_TEST_RING") == "1" {
		keepsKeys(t)
		return
	}
	for _, name := range []string{"dbus-run-session", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
	home := t.TempDir()
	run := filepath.Join(home, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dbus-run-session", "--", os.Args[0], "-test.run=^TestARealSecretServiceKeepsKeys$", "-test.v")
	cmd.Env = append(os.Environ(), "RIND_TEST_RING=1", "HOME="+home, "XDG_RUNTIME_DIR="+run, "XDG_DATA_HOME="+filepath.Join(home, "data"), "DISPLAY=", "WAYLAND_DISPLAY=")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// keepsKeys is the test inside the session.
func keepsKeys(t *testing.T) {
	end := keyringDaemon(t, "--unlock")
	defer func() { end() }()
	ring, err := System(os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, b := Account("openai", "https://api.example.com/v1"), Account("openai", "https://other.example.com/v1?x=a b'\"$(c)")
	for { // the daemon comes onto the bus, and unlocks its keyring, in its own time
		if err = ring.Set(ctx, a, "sk-first"); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("nothing is kept: %v", err)
	}
	odd := "sk-✓ 'quoted' \"twice\" $HOME %s \\n " + strings.Repeat("long", 2000)
	for account, secret := range map[string]string{a: "sk-second", b: odd} { // one takes the place of the first
		if err := ring.Set(ctx, account, secret); err != nil {
			t.Fatal(err)
		}
		if got, err := ring.Get(ctx, account); err != nil || got != secret {
			t.Errorf("%s: %.60q, %v", account, got, err)
		}
	}
	if got, err := ring.Get(ctx, a); err != nil || got != "sk-second" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ring.Get(ctx, "openai"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an account nobody has: %v", err)
	}
	for want := range 2 {
		if had, err := ring.Delete(ctx, a); err != nil || had != (want == 0) {
			t.Errorf("delete %d: %v %v", want, had, err)
		}
	}
	if got, err := ring.Get(ctx, b); err != nil || got != odd {
		t.Errorf("the other one went too: %v", err)
	}
	if _, err := ring.Get(ctx, a); !errors.Is(err, ErrNotFound) {
		t.Errorf("after delete: %v", err)
	}
	end() // and another one, whose keyring nobody unlocks
	end = keyringDaemon(t)
	for {
		if _, err = ring.Get(ctx, b); errors.Is(err, ErrLocked) || ctx.Err() != nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !errors.Is(err, ErrLocked) {
		t.Errorf("a locked keyring: %v", err)
	}
	if _, err := ring.Get(ctx, a); !errors.Is(err, ErrNotFound) {
		t.Errorf("a locked keyring without the key: %v", err)
	}
	if err := ring.Set(ctx, a, "sk-third"); err == nil || strings.Contains(err.Error(), "sk-third") {
		t.Errorf("a locked keyring takes a key: %v", err)
	}
}

// keyringDaemon starts the service and returns what ends it.
func keyringDaemon(t *testing.T, args ...string) (end func()) {
	t.Helper()
	daemon := exec.CommandContext(t.Context(), "gnome-keyring-daemon", append(args, "--components=secrets", "--foreground")...)
	daemon.Stdin = strings.NewReader("the login password\n")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	}
}

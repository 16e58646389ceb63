//go:build unix

package keyring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secretToolDouble behaves as secret-tool does: secrets are files named by account, and each call's arguments are written down.
const secretToolDouble = `#!/bin/sh
dir=$(dirname "$0")
echo "$@" >> "$dir/calls"
cmd=$1; shift
[ "$cmd" = store ] && shift
file="$dir/$(echo "$4" | tr ' /:' '___')"
case $cmd in
store) cat > "$file" ;;
lookup) [ -f "$file" ] || exit 1; cat "$file" ;;
clear) rm -f "$file" ;;
esac
`

// securityDouble behaves as security does, with its interactive mode.
const securityDouble = `#!/bin/sh
dir=$(dirname "$0")
echo "$@" >> "$dir/calls"
case $1 in
-i) while read -r line; do
	eval "set -- $line"
	[ "$1" = add-generic-password ] && [ "$7" = -X ] || { echo "security: bad command" >&2; continue; }
	printf "$(echo "$8" | sed 's/../\\x&/g')" > "$dir/$(echo "$6" | tr ' /:' '___')"
done ;;
find-generic-password) file="$dir/$(echo "$5" | tr ' /:' '___')"; [ -f "$file" ] || { echo "security: not found" >&2; exit 44; }; cat "$file"; echo ;;
delete-generic-password) file="$dir/$(echo "$5" | tr ' /:' '___')"; [ -f "$file" ] || exit 44; rm "$file" ;;
esac
`

// double writes a program and returns it with its folder.
func double(t *testing.T, text string) (program, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "tool")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return newProgram(path, os.LookupEnv), dir
}

func TestASecretIsKeptReplacedAndForgottenAndIsNoArgument(t *testing.T) {
	for name, text := range map[string]string{"secret-tool": secretToolDouble, "security": securityDouble} {
		t.Run(name, func(t *testing.T) {
			p, dir := double(t, text)
			var ring Ring = secretTool{p}
			if name == "security" {
				if _, err := os.Stat("/bin/bash"); err != nil {
					t.Skip("no bash, whose printf the double needs")
				}
				_ = os.WriteFile(p.path, []byte(strings.Replace(text, "/bin/sh", "/bin/bash", 1)), 0o700)
				ring = security{p}
			}
			ctx := t.Context()
			account := Account("openai", "https://api.example/v1")
			if _, err := ring.Get(ctx, account); !errors.Is(err, ErrNotFound) {
				t.Errorf("before: %v", err)
			}
			for _, secret := range []string{"sk-CANARY-1", `sk-CANARY "quoted" $x\n`} {
				if err := ring.Set(ctx, account, secret); err != nil {
					t.Fatal(err)
				}
				if got, err := ring.Get(ctx, account); got != secret || err != nil {
					t.Errorf("got %q, %v; want %q", got, err, secret)
				}
			}
			if _, err := ring.Get(ctx, Account("openai", "https://evil.example/v1")); !errors.Is(err, ErrNotFound) {
				t.Errorf("of another address: %v", err)
			}
			for _, there := range []bool{true, false} {
				if got, err := ring.Delete(ctx, account); got != there || err != nil {
					t.Errorf("delete = %v, %v", got, err)
				}
			}
			if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || strings.Contains(string(calls), "CANARY") {
				t.Errorf("calls %s, %v", calls, err)
			}
		})
	}
}

func TestAKeyringThatDoesNotAnswerIsGivenUp(t *testing.T) {
	p, _ := double(t, "#!/bin/sh\nsleep 600\n")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := (secretTool{p}).Get(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestWhatAKeyringSaysIsOneLineWithoutTheSecret(t *testing.T) {
	p, _ := double(t, "#!/bin/sh\nread secret\necho \"cannot keep\n$secret\" >&2\nexit 3\n")
	for _, ring := range []Ring{secretTool{p}, security{p}} {
		err := ring.Set(t.Context(), "a", "sk-CANARY")
		if err == nil || !strings.Contains(err.Error(), "cannot keep") || strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%T: %v", ring, err)
		}
		if text := err.Error(); strings.Contains(text, "CANARY") || strings.Contains(text, "434e415259") {
			t.Errorf("%T shows the secret: %s", ring, text)
		}
	}
	if err := (security{p}).Set(t.Context(), `a"b`, "x"); err == nil {
		t.Error("an account that cannot be quoted was taken")
	}
	if err := (security{p}).Set(t.Context(), "a", strings.Repeat("x", 4000)); err == nil {
		t.Error("a key longer than a line was taken")
	}
}

func TestTheProgramGetsNoKeysOfOurEnvironment(t *testing.T) {
	p, dir := double(t, "#!/bin/sh\nenv > \"$(dirname \"$0\")/env\"\nexit 1\n")
	p = newProgram(p.path, func(name string) (string, bool) { return "v-" + name, name != "PATH" })
	_, _ = secretTool{p}.Get(t.Context(), "a")
	got, err := os.ReadFile(filepath.Join(dir, "env"))
	if err == nil && strings.Contains(string(got), "_KEY") || !strings.Contains(strings.Join(p.env, " "), "DBUS_SESSION_BUS_ADDRESS=v-") {
		t.Errorf("environment %s, %v", got, p.env)
	}
}

func TestAnAccountNamesTheAddressWithoutItsPassword(t *testing.T) {
	if got := Account("p", "https://me:CANARY@host/v1"); got != "p https://host/v1" {
		t.Error(got)
	}
}

func TestASystemWithoutASessionHasNoKeyring(t *testing.T) {
	if _, err := system(func(string) (string, bool) { return "", false }); !errors.Is(err, ErrNone) {
		t.Skip("this system needs no session:", err)
	}
}

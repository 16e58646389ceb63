// Package keyring keeps keys in the system's own store of secrets, which it reaches through the program the system has for that:
// secret-tool for the Secret Service of Linux desktops, security for the keychain of macOS. Elsewhere there is none.
//
// A secret goes to the program on its standard input, never as an argument, and comes back on its standard output; no error holds one. Each
// call runs one process and ends with its context, the process with it. The package owns no goroutine.
package keyring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/rind-dev/rind/session/proc"
)

var (
	// ErrNone: this system has no keyring that could be asked.
	ErrNone = errors.New("this system has no keyring")
	// ErrNotFound: the keyring has no such secret.
	ErrNotFound = errors.New("the keyring has no such key")
	// ErrLocked: the keyring has such a secret, but is locked, and could not ask anybody to unlock it.
	ErrLocked = errors.New("the keyring is locked; log in to the desktop, or unlock it there")
)

// service is what our secrets are filed under.
const service = "rind"

// Ring is a store of secrets by account: any text. Safe for concurrent use. A keyring that is locked may ask the person who sits there, and
// waits for them until ctx ends.
type Ring interface {
	// Get returns a secret. ErrNotFound, ErrLocked.
	Get(ctx context.Context, account string) (string, error)
	// Set stores a secret in place of the one there is.
	Set(ctx context.Context, account, secret string) error
	// Delete removes a secret; false when there is none.
	Delete(ctx context.Context, account string) (bool, error)
}

// System is the keyring of the person who runs this process, or ErrNone. env looks up an environment variable as os.LookupEnv does. It
// starts nothing.
func System(env func(string) (string, bool)) (Ring, error) { return system(env) }

// Account is the account of a provider's key: the key goes to the address it was stored for, and to no other. A name and a password in the
// address are left out, since accounts are no secrets.
func Account(provider, baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil && u.User != nil {
		u.User = nil
		baseURL = u.String()
	}
	return provider + " " + baseURL
}

// program is a program that reaches a keyring, with what it needs of our environment.
type program struct {
	path string
	env  []string
}

// passed are the variables such a program needs: to find the person's session, and to ask them. No key is among them.
var passed = []string{
	"HOME", "PATH", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
}

func newProgram(path string, env func(string) (string, bool)) program {
	p := program{path: path}
	for _, name := range passed {
		if v, ok := env(name); ok {
			p.env = append(p.env, name+"="+v)
		}
	}
	return p
}

// longest is how much a program may say: keys are short.
const longest = 64 << 10

// answer is what a program said.
type answer struct {
	out, err string
	code     int
}

// run runs the program to its end, at most as long as ctx.
func (p program) run(ctx context.Context, input string, args ...string) (answer, error) {
	var out, said bounded
	child, err := proc.Start(proc.Spec{Path: p.path, Args: args, Env: p.env, Dir: "/", Stdin: strings.NewReader(input), Stdout: &out, Stderr: &said})
	if err != nil {
		return answer{}, fmt.Errorf("ask the keyring: %w", err)
	}
	end, err := child.Wait(ctx)
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("the keyring did not answer: %w", context.Cause(ctx))
	}
	if err != nil {
		return answer{}, fmt.Errorf("ask the keyring: %w", err)
	}
	return answer{out.String(), said.String(), end.Code}, nil
}

// refused is the error of an answer that is none of those expected: what the program said, on one line, without the secret.
func (a answer) refused(doing, secret string) error {
	text := strings.Join(strings.Fields(a.err), " ")
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	if text == "" {
		text = fmt.Sprintf("exit code %d", a.code)
	}
	return fmt.Errorf("%s: %s", doing, text)
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := longest - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

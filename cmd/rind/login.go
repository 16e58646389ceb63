package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session/settings"
)

type loginFlags struct {
	stdin, untried bool
	store          string
}

func loginCommand(std *streams) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login [PROVIDER]",
		Short: "Keep the API key of a provider",
		Long: "Asks for a key, which is not shown, tries it with the provider, and keeps it: in the system's keyring where there is one, else in\n" +
			"settings.json, which only its owner can read. Without PROVIDER it is for the one in use. A provider's environment variable wins over both.",
		Args: atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return login(cmd.Context(), std, &f, strings.Join(args, ""))
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.stdin, "key-stdin", false, "read the key from standard input")
	fl.BoolVar(&f.untried, "no-test", false, "keep the key without trying it")
	fl.StringVar(&f.store, "store", "", "where to keep it: keyring or file (default: the keyring where there is one)")
	return cmd
}

func login(ctx context.Context, std *streams, f *loginFlags, name string) error {
	if f.store != "" && f.store != storeKeyring && f.store != storeFile {
		return usageError{errors.New("--store is keyring or file")}
	}
	rt, err := compose(&streams{nil, io.Discard, std.err}, &common{}, composition{})
	if err != nil {
		return err
	}
	defer rt.close()
	l := rt.logins()
	name, err = l.named(std, name)
	if err != nil {
		return err
	}
	p, err := l.provider(name)
	if err != nil {
		return coded(err)
	}
	var key string
	if f.stdin {
		key, err = readKey(std.in)
	} else {
		key, err = askKey(ctx, std, fmt.Sprintf("API key for %s (%s): ", name, hostOf(p.BaseURL)))
	}
	if err != nil {
		return err
	}
	k, err := l.keep(ctx, attempt{
		provider: p, key: key, untried: f.untried, store: f.store, progress: func(text string) { fmt.Fprintln(std.err, "rind: "+text) },
	})
	if err != nil {
		return coded(err)
	}
	for _, n := range k.notes {
		fmt.Fprintln(std.err, "rind: "+n)
	}
	tried := fmt.Sprintf("it lists %d models", k.models)
	if k.models == 0 {
		tried = "the key is taken"
	}
	if f.untried {
		tried = "the key was not tried"
	}
	fmt.Fprintf(std.out, "%s: %s; kept in %s\n", name, tried, l.placeOf(k.source))
	if now := rt.models.Default(); now.Provider != name {
		fmt.Fprintf(std.err, "rind: new sessions use %s (%s); 'rind config set provider %s' changes that\n", now.Provider, now.Model, name)
	}
	return nil
}

// coded gives an error of a login its exit code: settings and keys have one of their own.
func coded(err error) error {
	e, ok := errors.AsType[*protocol.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == protocol.ConfigurationError:
		return &exit{exitConfig, e.Message}
	}
	return &exit{exitFailed, e.Message}
}

// named is the provider meant: the one named, else the one in use, else one a person chooses.
func (l *logins) named(std *streams, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	set, err := settings.Load(l.rt.path)
	if err != nil {
		return "", coded(err)
	}
	p, variable, err := set.Selected(l.rt.env)
	if set.Configured() || variable != "" {
		return p.Name, coded(err)
	}
	all := set.Login(l.rt.env)
	all = slices.DeleteFunc(all, func(n string) bool { return n == settings.DefaultProvider })
	choices := strings.Join(all, ", ")
	tty, err := openTerminal()
	if err != nil || !isTerminal(std.err) {
		return "", usageError{fmt.Errorf("no provider is in use: name one, as in 'rind login openai' (%s)", choices)}
	}
	defer tty.Close()
	fmt.Fprintf(std.err, "Provider (%s): ", choices)
	line, err := readLineOf(tty)
	if err != nil || line == "" {
		return "", exitf(exitFailed, "no provider was named; nothing was changed")
	}
	return line, nil
}

// readKey reads a key from standard input: all of it, white space around it left out.
func readKey(in io.Reader) (string, error) {
	const longest = 8 << 10
	text, err := io.ReadAll(io.LimitReader(in, longest+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the key from standard input: %w", err)
	case len(text) > longest:
		return "", exitf(exitFailed, "standard input is longer than any key")
	}
	return strings.TrimSpace(string(text)), nil
}

// readLineOf reads a line of a terminal byte by byte, so that nothing behind it is lost.
func readLineOf(tty io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for len(line) < maxTypedLine {
		n, err := tty.Read(b)
		if n == 1 && b[0] == '\n' {
			break
		}
		if n == 1 {
			line = append(line, b[0])
		}
		if err != nil {
			return strings.TrimSpace(string(line)), err
		}
	}
	return strings.TrimSpace(string(line)), nil
}

// askKey asks at the terminal for a key that is not shown: the terminal stops showing what is typed before the question stands there, so that
// nothing pasted early is seen. Ctrl-C and Ctrl-D give up, and leave the terminal as it was.
func askKey(ctx context.Context, std *streams, question string) (string, error) {
	tty, err := openTerminal()
	if err != nil || !isTerminal(std.err) {
		return "", usageError{errors.New("nobody can be asked for the key here: give it on standard input, with --key-stdin")}
	}
	defer tty.Close()
	ctx, stop := signal.NotifyContext(ctx, append(endSignals(), os.Interrupt)...)
	defer stop()
	before, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return "", fmt.Errorf("ask for the key: %w", err)
	}
	defer func() { _ = term.Restore(int(tty.Fd()), before) }()
	forgetTyped(tty)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, std.err}, "")
	type typed struct {
		key string
		err error
	}
	got := make(chan typed, 1)
	go func() { // ends with the line, or with the process: a read of a terminal cannot be interrupted
		key, err := screen.ReadPassword(question)
		got <- typed{key, err}
	}()
	select {
	case t := <-got:
		switch {
		case errors.Is(t.err, term.ErrPasteIndicator) || t.err == nil:
			return strings.TrimSpace(t.key), nil
		case !errors.Is(t.err, io.EOF):
			return "", fmt.Errorf("ask for the key: %w", t.err)
		}
	case <-ctx.Done():
	}
	fmt.Fprint(std.err, "\r\n")
	return "", &exit{code: exitInterrupted}
}

func logoutCommand(std *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "logout [PROVIDER]",
		Short: "Forget the API key of a provider",
		Long:  "Removes the key that 'rind login' kept, from the keyring and from settings.json. Without PROVIDER it is that of the one in use.",
		Args:  atMostArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			rt, err := compose(&streams{nil, io.Discard, std.err}, &common{}, composition{})
			if err != nil {
				return err
			}
			defer rt.close()
			l := rt.logins()
			name, err := l.named(std, strings.Join(args, ""))
			if err != nil {
				return err
			}
			deleted, source, err := l.Logout(cmd.Context(), name)
			if err != nil {
				return coded(err)
			}
			text := "%s: there was no key\n"
			if deleted {
				text = "%s: the key is forgotten\n"
			}
			if source != settings.FromNowhere {
				fmt.Fprintf(std.err, "rind: a key still comes from %s\n", l.placeOf(source))
			}
			_, err = fmt.Fprintf(std.out, text, name)
			return err
		},
	}
}

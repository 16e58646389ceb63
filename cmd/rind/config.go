package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session/settings"
)

func configCommand(std *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Read and change settings.json",
		Long: "Settings are one JSON file in the data folder; docs/settings.md lists them all. To use a local server:\n" +
			"  rind config set baseUrl http://127.0.0.1:11434/v1\n  rind config set apiKey \"\"\n  rind config set model NAME",
		Args: noArgs,
		RunE: withoutCommand(std),
	}
	cmd.AddCommand(
		&cobra.Command{Use: "path", Short: "Show where the settings file is", Args: noArgs, RunE: func(*cobra.Command, []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.out, path)
			return err
		}},
		&cobra.Command{Use: "get KEY", Short: "Show one setting; a key of a provider is masked", Args: exactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			value, set, err := settings.Get(path, args[0])
			if err != nil {
				return configError(err)
			}
			if !set {
				return exitf(exitFailed, "%s is not set", args[0])
			}
			_, err = fmt.Fprintln(std.out, value)
			return err
		}},
		&cobra.Command{Use: "set KEY VALUE", Short: "Change one setting", Args: exactArgs(2), RunE: func(_ *cobra.Command, args []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			if err := settings.MakeRoot(filepath.Dir(path)); err != nil {
				return err
			}
			return configError(settings.Set(path, args[0], args[1]))
		}},
		&cobra.Command{Use: "unset KEY", Short: "Remove one setting", Args: exactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
			path, err := settingsPath()
			if err != nil {
				return err
			}
			return configError(settings.Unset(path, args[0]))
		}},
		&cobra.Command{Use: "check", Short: "Check the settings file", Args: noArgs, RunE: func(*cobra.Command, []string) error { return configCheck(std) }},
		&cobra.Command{Use: "schema", Short: "Write the JSON Schema of the settings", Args: noArgs, RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(std.out, "%s\n", settings.Schema())
			return err
		}},
	)
	return cmd
}

func settingsPath() (string, error) {
	root, err := settings.Root(os.LookupEnv)
	if err != nil {
		return "", exitf(exitFailed, "Startup error: %s", messageOf(err))
	}
	return filepath.Join(root, settings.FileName), nil
}

// configError gives mistakes in a key or value the exit code of a wrong command line.
func configError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*settings.UnknownKeyError](err); ok {
		return usageError{e}
	}
	if e, ok := errors.AsType[*settings.ValueError](err); ok {
		return usageError{e}
	}
	return &exit{exitConfig, messageOf(err)}
}

func configCheck(std *streams) error {
	path, err := settingsPath()
	if err != nil {
		return err
	}
	set, err := settings.Load(path)
	if err != nil {
		return &exit{exitConfig, messageOf(err)}
	}
	for _, u := range set.Unknown() {
		fmt.Fprintf(std.err, "%s:%d:%d: unknown setting %s is ignored\n", path, u.Line, u.Col, u.Key)
	}
	p, variable, err := set.Selected(os.LookupEnv)
	if err != nil {
		return &exit{exitConfig, messageOf(err)}
	}
	source, err := p.Source(os.LookupEnv)
	if err != nil {
		return &exit{exitConfig, messageOf(err)}
	}
	by := "settings"
	if variable != "" {
		by = "$" + variable
	}
	_, err = fmt.Fprintf(std.out, "ok: provider %s (%s, chosen by %s), %s, %s\n", p.Name, p.Type, by, modelWords(p), keyWords(p, source))
	return err
}

// keyWords says where the key of a provider comes from.
func keyWords(p settings.Provider, source string) string {
	switch {
	case !p.NeedsKey():
		return "which needs no key"
	case source == settings.FromNowhere:
		return "no key is sent"
	}
	return "key from " + source
}

// modelWords says which model a provider is asked for.
func modelWords(p settings.Provider) string {
	if p.Type == settings.ACP && (p.Model == "" || p.Model == ownModel) {
		return "the model is its own choice"
	}
	return "model " + p.Model
}

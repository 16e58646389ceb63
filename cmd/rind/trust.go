package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session/settings"
)

type trustFlags struct {
	revoke, show, yes, json bool
}

func trustCommand(std *streams) *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a workspace's own settings, servers and skills take effect",
		Long: "Shows what a workspace would enable (.mcp.json, .rind/settings.json, .rind/skills), asks, and remembers the answer for exactly\n" +
			"that content: whatever changes there asks again. Nothing in a workspace takes effect before that.",
		Args: atMostArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return runTrust(std, &f, strings.Join(args, "")) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.revoke, "revoke", false, "take trust back")
	fl.BoolVar(&f.show, "show", false, "only show what the workspace enables and whether it is trusted")
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	fl.BoolVar(&f.json, "json", false, "write one JSON object instead of text")
	return cmd
}

// States of a workspace's trust, as shown.
const (
	trustHolds   = "trusted"
	trustNever   = "not trusted"
	trustChanged = "changed since it was trusted"
)

// trustReport is what is shown of a workspace.
type trustReport struct {
	Workspace string      `json:"workspace_root"`
	State     string      `json:"state"`
	Trusted   bool        `json:"trusted"`
	Files     []trustFile `json:"files"` // never nil
}

type trustFile struct {
	Path    string   `json:"path"`
	Size    int      `json:"size"`
	Enables []string `json:"enables"` // a line for each thing in it; never nil
}

func runTrust(std *streams, f *trustFlags, dir string) error {
	if f.revoke && f.show {
		return usageError{errors.New("--revoke and --show cannot be combined")}
	}
	ws, err := workspace(dir, os.LookupEnv)
	if err != nil {
		return err
	}
	path, err := settingsPath()
	if err != nil {
		return err
	}
	if f.revoke {
		return f.distrust(std, path, ws)
	}
	content, err := enabledBy(ws)
	if err != nil {
		return err
	}
	set, err := settings.Load(path)
	if err != nil {
		return &exit{exitConfig, messageOf(err)}
	}
	r := reportTrust(path, ws, set, content)
	if f.show || len(content.Files) == 0 || r.Trusted {
		return f.write(std, r)
	}
	if !f.json {
		if err := r.text(std); err != nil {
			return err
		}
	}
	if !f.yes {
		if err := confirm(std, "Trust it with this? [y/N] ", "look at it with 'rind trust --show', then run 'rind trust --yes'", ws+" is not trusted; nothing was changed"); err != nil {
			return err
		}
	}
	if err := settings.MakeRoot(filepath.Dir(path)); err != nil {
		return err
	}
	if err := settings.Trust(path, ws, content); err != nil { // what was shown, not what lies there by now
		return &exit{exitConfig, messageOf(err)}
	}
	r.Trusted, r.State = true, trustHolds
	if f.json {
		return f.write(std, r)
	}
	_, err = fmt.Fprintf(std.out, "%s is trusted until one of these files changes.\n", printable(ws))
	return err
}

func (f *trustFlags) distrust(std *streams, path, ws string) error {
	_, was, err := settings.Get(path, "trustedWorkspaces."+ws)
	if err == nil && was {
		err = settings.Distrust(path, ws)
	}
	if err != nil {
		return &exit{exitConfig, messageOf(err)}
	}
	if f.json {
		return f.write(std, &trustReport{Workspace: ws, State: trustNever, Files: []trustFile{}})
	}
	text := "%s is no longer trusted.\n"
	if !was {
		text = "%s was not trusted.\n"
	}
	_, err = fmt.Fprintf(std.out, text, printable(ws))
	return err
}

// enabledBy reads what a workspace would enable.
func enabledBy(ws string) (settings.Content, error) {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return settings.Content{}, fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	return settings.Enables(root.FS())
}

func reportTrust(path, ws string, set settings.Settings, c settings.Content) *trustReport {
	r := &trustReport{Workspace: ws, State: trustNever, Files: []trustFile{}}
	for _, file := range c.Files {
		r.Files = append(r.Files, trustFile{Path: file.Path, Size: len(file.Data), Enables: enabledIn(file)})
	}
	_, before, err := settings.Get(path, "trustedWorkspaces."+ws)
	switch {
	case len(c.Files) > 0 && set.Trusted(ws, c):
		r.State, r.Trusted = trustHolds, true
	case err == nil && before:
		r.State = trustChanged
	}
	return r
}

// endpoint is a server or provider of a workspace, as far as trust is concerned: what it starts and where it goes.
type endpoint struct {
	Command string
	Args    []string
	URL     string
	BaseURL string
}

func (e endpoint) does() string {
	switch {
	case e.Command != "":
		return " runs " + strings.Join(append([]string{e.Command}, e.Args...), " ")
	case e.URL+e.BaseURL != "":
		return " connects to " + e.URL + e.BaseURL
	}
	return ""
}

func describe(what string, all map[string]endpoint) []string {
	lines := []string{}
	for name, e := range all {
		lines = append(lines, what+" "+name+e.does())
	}
	return lines
}

// enabledIn tells what one file would do, a line for each thing. Values that may be keys are not shown.
func enabledIn(file settings.ContentFile) []string {
	lines := []string{}
	switch file.Path {
	case ".mcp.json":
		var doc struct {
			Servers map[string]endpoint `json:"mcpServers"`
		}
		if json.Unmarshal(file.Data, &doc) != nil {
			return []string{"is not understood"}
		}
		lines = describe("server", doc.Servers)
	case ".rind/settings.json":
		var doc map[string]json.RawMessage
		var ends struct {
			Providers map[string]endpoint
			Servers   map[string]endpoint `json:"mcpServers"`
		}
		if json.Unmarshal(file.Data, &doc) != nil || json.Unmarshal(file.Data, &ends) != nil {
			return []string{"is not understood"}
		}
		lines = append(describe("provider", ends.Providers), describe("server", ends.Servers)...)
		for name, value := range doc {
			switch {
			case name == "providers" || name == "mcpServers":
			case name == "apiKey" || len(value) > 0 && value[0] == '{':
				lines = append(lines, "setting "+name)
			default:
				lines = append(lines, "setting "+name+" = "+string(value))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (f *trustFlags) write(std *streams, r *trustReport) error {
	if f.json {
		return writeLine(std.out, r)
	}
	return r.text(std)
}

func (r *trustReport) text(std *streams) error {
	var b strings.Builder
	if len(r.Files) == 0 {
		fmt.Fprintf(&b, "%s enables nothing: there is nothing to trust.\n", printable(r.Workspace))
	} else {
		fmt.Fprintf(&b, "%s is %s. It enables:\n", printable(r.Workspace), r.State)
		for _, file := range r.Files {
			fmt.Fprintf(&b, "  %s (%d bytes)\n", plainLine(file.Path), file.Size)
			for _, line := range file.Enables {
				fmt.Fprintf(&b, "    %s\n", plainLine(line))
			}
		}
	}
	_, err := std.out.Write([]byte(b.String()))
	return err
}

// confirm asks a yes/no question at the terminal; everything but yes is no, an error in the words of refused. Where nobody can be asked the error
// says what to do instead.
func confirm(std *streams, question, instead, refused string) error {
	nobody := exitf(exitConsent, "nobody can be asked here: %s", instead)
	if !isTerminal(std.err) {
		return nobody
	}
	tty, err := openTerminal()
	if err != nil {
		return nobody
	}
	defer tty.Close()
	forgetTyped(tty)
	fmt.Fprint(std.err, question)
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil && line == "" { // Ctrl-D is no answer
		fmt.Fprintln(std.err)
	}
	if line = strings.ToLower(strings.TrimSpace(line)); line != "y" && line != "yes" {
		return exitf(exitFailed, "%s", refused)
	}
	return nil
}

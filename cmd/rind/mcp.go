package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session/settings"
)

// serverWait is how long rind mcp waits for servers to connect.
const serverWait = 10 * time.Second

// toolServers are the servers of the Model Context Protocol of a process.
type toolServers interface {
	Start()
	Wait(ctx context.Context)
	States() []serverState
	Close()
}

// serverState is how one of them fares, as it is shown.
type serverState struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Transport string   `json:"transport"`
	Where     string   `json:"where"`
	Server    string   `json:"server"`
	Tools     []string `json:"tools"`
	Error     string   `json:"error,omitempty"`
}

// The states that matter here.
const (
	serverReady    = "ready"
	serverDisabled = "disabled"
	serverStarting = "starting"
)

// mcpCommand lists servers; open makes those of a process, which mcpCommand closes.
func mcpCommand(std *streams, open func(rt *process) toolServers) *cobra.Command {
	var c common
	var asJSON bool
	show := func(cmd *cobra.Command, _ []string) error { return listServers(cmd.Context(), std, &c, open, asJSON) }
	bind := func(cmd *cobra.Command) *cobra.Command {
		c.bind(cmd)
		cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
		return cmd
	}
	list := bind(&cobra.Command{
		Use: "list", Short: "Connect to the servers of the settings and show their tools", Args: noArgs, RunE: show,
		Long: "Starts the servers of mcpServers (docs/mcp.md), waits for them at most 10 s, shows what each offers or why it cannot be used, and ends\n" +
			"them. Exit code 1 when one of them cannot be used.",
	})
	cmd := bind(&cobra.Command{Use: "mcp", Short: "Servers of the Model Context Protocol whose tools a model may use", Long: list.Long, Args: noArgs, RunE: show})
	cmd.AddCommand(list)
	return cmd
}

func listServers(ctx context.Context, std *streams, c *common, open func(rt *process) toolServers, asJSON bool) error {
	rt, err := compose(&streams{nil, io.Discard, std.err}, c, composition{})
	if err != nil {
		return err
	}
	defer rt.close()
	_, problems, err := serverEntries(rt.path, rt.workspace)
	if err != nil {
		return exitf(exitConfig, "Configuration error: %s", messageOf(err))
	}
	for _, p := range problems {
		fmt.Fprintln(std.err, "rind: "+plainLine(p))
	}
	servers := open(rt)
	defer servers.Close()
	servers.Start()
	wait, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	servers.Wait(wait)
	states := servers.States()
	failed := len(problems) > 0
	for i := range states {
		if states[i].State == serverStarting {
			states[i].Error = fmt.Sprintf("it has not connected within %v", serverWait)
		}
		failed = failed || states[i].State != serverReady && states[i].State != serverDisabled
	}
	if err := showServers(std.out, states, asJSON); err != nil {
		return err
	}
	if failed {
		return &exit{code: exitFailed}
	}
	return nil
}

func showServers(out io.Writer, states []serverState, asJSON bool) error {
	if asJSON {
		return writeLines(out, states)
	}
	if len(states) == 0 {
		_, err := fmt.Fprintln(out, "No servers. Add some under mcpServers in settings.json (docs/mcp.md).")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, s := range states {
		count := fmt.Sprintf("%d tools", len(s.Tools))
		if len(s.Tools) == 1 {
			count = "1 tool"
		}
		if s.State != serverReady {
			count = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", plainLine(s.Name), s.State, count, plainLine(s.Where))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range states {
		var b strings.Builder
		if s.Error != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", plainLine(s.Name), plainLine(s.Error))
		} else if len(s.Tools) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", plainLine(s.Name))
			for _, name := range s.Tools {
				fmt.Fprintf(&b, "  %s\n", plainLine(name))
			}
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// serverEntries are the servers of the settings file at path, with those of the workspace where a person trusts it. Of two of a name the
// workspace's counts, taken whole; its .rind/settings.json wins over its .mcp.json. problems are lines about files that cannot be used.
func serverEntries(path, workspace string) (entries map[string]json.RawMessage, problems []string, err error) {
	set, err := settings.Load(path)
	if err != nil {
		return nil, nil, err
	}
	entries = map[string]json.RawMessage{}
	if err := addServers(entries, set.MCPServers()); err != nil {
		return nil, nil, fmt.Errorf("mcpServers in settings.json: %w", err)
	}
	if set.TrustedWorkspaces()[workspace] == "" {
		return entries, nil, nil
	}
	content, err := enabledBy(workspace)
	if err != nil || !set.Trusted(workspace, content) { // nothing of it takes effect
		return entries, nil, nil
	}
	for _, name := range []string{".mcp.json", ".rind/settings.json"} {
		if data := content.File(name); data != nil {
			if err := addFile(entries, workspace, name, data); err != nil {
				problems = append(problems, fmt.Sprintf("%s of the workspace is left out: %v", name, err))
			}
		}
	}
	return entries, problems, nil
}

func addFile(entries map[string]json.RawMessage, workspace, name string, data []byte) error {
	if name == ".rind/settings.json" {
		own, err := settings.Parse(filepath.Join(workspace, filepath.FromSlash(name)), data)
		if err != nil {
			return err
		}
		return addServers(entries, own.MCPServers())
	}
	var doc struct {
		Servers json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return errors.New("it is not a JSON object with mcpServers")
	}
	return addServers(entries, doc.Servers)
}

func addServers(entries map[string]json.RawMessage, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var more map[string]json.RawMessage
	if err := json.Unmarshal(raw, &more); err != nil {
		return errors.New("mcpServers must be an object of servers by name")
	}
	maps.Copy(entries, more)
	return nil
}

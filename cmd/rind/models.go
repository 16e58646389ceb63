package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/settings"
)

// loopbackWindow is what the window of a model on this machine is taken for while nobody says: servers there run with small ones, and cut the
// beginning of a conversation off without a word where it is longer.
const loopbackWindow = 8192

// describer is a provider's model that knows something of models without asking.
type describer interface {
	Info(model string) session.ModelInfo
}

// describe tells what is known of a model of p without asking: the settings win over what the provider said, now or in the list that was kept,
// and that over the table.
func (m *models) describe(p settings.Provider, model string) session.ModelInfo {
	info := session.ModelInfo{Provider: p.Name, ID: model, Name: model, API: p.Type}
	if p.NeedsKey() {
		if r, err := m.remote(p); err == nil {
			if d, ok := r.(describer); ok {
				info = d.Info(model)
			}
		}
		if last, ok := listsOf(m.path).get(p); ok && info.Window == 0 {
			for _, listed := range last.Models {
				if listed.ID == model {
					info = listed
				}
			}
		}
	}
	return bounded(info, p)
}

// bounded is info under what the settings say, with a window where a model on this machine has none.
func bounded(info session.ModelInfo, p settings.Provider) session.ModelInfo {
	info = described(info, p)
	if info.Window == 0 && isLoopback(p.BaseURL) {
		info.Window = loopbackWindow
		info.Note = fmt.Sprintf("window unknown, taken for %d: set contextWindow", loopbackWindow)
	}
	return info
}

// isLoopback tells whether an address is on this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost") || strings.HasSuffix(strings.ToLower(u.Hostname()), ".localhost")
}

// list gives the models of one provider: as it listed them within a day, unless refresh asks for a list of now, or it runs on this machine, where
// asking costs nothing. Where it cannot be asked, it is the last list there was, or the model the settings name; and a warning.
func (m *models) list(ctx context.Context, name string, refresh bool) (found []session.ModelInfo, warning string) {
	p, _, err := m.provider(name)
	if err != nil {
		return nil, messageOf(err)
	}
	if p.Type == settings.ACP {
		return m.hostedModels(specOf(p)), ""
	}
	if !p.NeedsKey() {
		if p.Model == "" {
			return nil, ""
		}
		return []session.ModelInfo{m.describe(p, p.Model)}, ""
	}
	last, had := listsOf(m.path).get(p)
	listed := last.Models
	asked := !had || refresh || isLoopback(p.BaseURL) || time.Since(last.At) > listFresh
	if asked {
		listed, err = m.listRemote(ctx, p)
	}
	switch {
	case err != nil && had:
		listed = last.Models
		warning = fmt.Sprintf("Provider %s could not be asked for its models, this is its list of %s: %s", p.Name, last.At.Format(time.DateOnly), oneLine(messageOf(err)))
	case err != nil:
		return []session.ModelInfo{m.describe(p, p.Model)}, fmt.Sprintf("Provider %s could not be asked for its models: %s", p.Name, oneLine(messageOf(err)))
	case asked:
		listsOf(m.path).put(p, listed)
	}
	for _, info := range listed {
		found = append(found, bounded(info, p))
	}
	return found, warning
}

// listAll gives the models of several providers, in the order of their names; they are asked side by side.
func (m *models) listAll(ctx context.Context, names []string, refresh bool) (found []session.ModelInfo, warnings []string) {
	answers := make([][]session.ModelInfo, len(names))
	said := make([]string, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() { answers[i], said[i] = m.list(ctx, name, refresh) })
	}
	asked.Wait()
	for i := range names {
		found = append(found, answers[i]...)
		if said[i] != "" {
			warnings = append(warnings, said[i])
		}
	}
	return found, warnings
}

type modelsFlags struct {
	refresh, json bool
	provider      string
}

func modelsCommand(std *streams) *cobra.Command {
	var f modelsFlags
	cmd := &cobra.Command{
		Use: "models", Short: "List the models that can be used", Args: noArgs,
		Long: "Asks each provider that can be selected for its models, once a day. One that cannot be asked is named on standard error, and what is known\n" +
			"of it without asking is shown. Prices are in US dollars per million tokens, where the provider tells them.",
		RunE: func(cmd *cobra.Command, _ []string) error { return listModels(cmd.Context(), std, &f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.refresh, "refresh", false, "ask providers again that were asked within a day")
	fl.BoolVar(&f.json, "json", false, "one JSON object a line")
	fl.StringVar(&f.provider, "provider", "", "only this provider")
	return cmd
}

// modelLine is one model as --json shows it.
type modelLine struct {
	Provider string   `json:"provider_id"`
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	API      string   `json:"api"`
	Selected bool     `json:"selected"` // what new sessions here begin with
	Window   *int     `json:"context_window"`
	Efforts  []string `json:"reasoning_efforts"` // never nil
	Images   *bool    `json:"image_input"`
	Input    *float64 `json:"input_price"` // US dollars per million tokens
	Output   *float64 `json:"output_price"`
	Note     string   `json:"note,omitempty"`
	// Agent is what is known of the agent that answers, where one is hosted: capability -> level (docs/protocol/acp.md section 5.6).
	Agent map[string]string `json:"agent,omitempty"`
}

func listModels(ctx context.Context, std *streams, f *modelsFlags) error {
	rt, err := compose(&streams{nil, io.Discard, std.err}, &common{}, composition{typed: true, modelFlag: true})
	if err != nil {
		return err
	}
	defer rt.close()
	names := []string{f.provider}
	if f.provider == "" {
		set, err := rt.settings()
		if err != nil {
			return coded(err)
		}
		names = set.Names(rt.env)
	} else if _, _, err := rt.models.provider(f.provider); err != nil {
		return coded(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	selected := rt.models.DefaultIn(rt.workspace)
	found, warnings := rt.models.listAll(ctx, names, f.refresh)
	for _, w := range warnings {
		fmt.Fprintln(std.err, "rind: "+plainLine(w))
	}
	var lines []modelLine
	for _, info := range found {
		lines = append(lines, lineOf(info, info.Provider == selected.Provider && info.ID == selected.Model))
	}
	var agents []string
	for _, spec := range rt.models.hostedSpecs() {
		about := rt.hosts.About("", spec)
		for i := range lines {
			if lines[i].Provider == spec.Provider {
				lines[i].Agent = about.Manifest
			}
		}
		if slices.ContainsFunc(lines, func(l modelLine) bool { return l.Provider == spec.Provider }) {
			agents = append(agents, about.String())
		}
	}
	if err := showModels(std.out, lines, f.json); err != nil {
		return err
	}
	if len(agents) > 0 && !f.json {
		fmt.Fprintln(std.out, "\nHosted agents:")
		for _, a := range agents {
			fmt.Fprintln(std.out, plainLine(a))
		}
	}
	if len(lines) == 0 {
		return &exit{code: exitFailed}
	}
	return nil
}

func lineOf(info session.ModelInfo, selected bool) modelLine {
	l := modelLine{
		Provider: info.Provider, ID: info.ID, Name: info.Name, API: info.API, Selected: selected, Efforts: slices.Clone(info.Efforts), Images: info.Images, Note: info.Note,
	}
	if l.Efforts == nil {
		l.Efforts = []string{}
	}
	if info.Window > 0 {
		l.Window = &info.Window
	}
	if info.Price != nil {
		l.Input, l.Output = &info.Price.Input, &info.Price.Output
	}
	return l
}

func showModels(out io.Writer, lines []modelLine, asJSON bool) error {
	if asJSON {
		return writeLines(out, lines)
	}
	if len(lines) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tPROVIDER\tMODEL\tWINDOW\tEFFORTS\tIMAGES\tPRICE\tNOTE")
	for _, l := range lines {
		mark, window, images, price := "", "?", "?", "?"
		if l.Selected {
			mark = "*"
		}
		if l.Window != nil {
			window = strconv.Itoa(*l.Window)
		}
		if l.Images != nil {
			images = map[bool]string{true: "yes", false: "no"}[*l.Images]
		}
		if l.Input != nil {
			price = fmt.Sprintf("%s / %s", money(*l.Input), money(*l.Output))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, plainLine(l.Provider), plainLine(l.ID), window, plainLine(strings.Join(l.Efforts, ",")), images, price, l.Note)
	}
	return w.Flush()
}

func money(dollars float64) string { return strconv.FormatFloat(dollars, 'f', -1, 64) }

// described is what a provider knows of a model, under what the settings say.
func described(info session.ModelInfo, p settings.Provider) session.ModelInfo {
	if p.ContextWindow > 0 {
		info.Window = p.ContextWindow
	}
	if p.Images != nil {
		info.Images = p.Images
	}
	return info
}

// listRemote asks an endpoint for its models.
func (m *models) listRemote(ctx context.Context, p settings.Provider) ([]session.ModelInfo, error) {
	model, err := m.remote(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return model.List(ctx)
}

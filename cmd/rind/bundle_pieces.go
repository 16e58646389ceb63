package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rind-dev/rind/session/settings"
)

// gather makes the pieces of a bundle of what was found. What cannot be read is left out: the findings say why.
func gather(ctx context.Context, e *examined, f *doctorFlags) []piece {
	c := newCleaner(e, f)
	pieces := []piece{
		c.piece("about.json", "versions of rind, Go, the system and its sandbox", about(e)),
		c.piece("findings.json", "what rind doctor shows", e.found),
		c.piece("names.json", "names of tools, providers and MCP servers", names(e)),
	}
	if e.set.Path != "" {
		pieces = append(pieces, c.piece("settings.json", "settings; of secret ones only that they are set", plainSettings(e.set.Path)))
	}
	if e.process != nil {
		if h, err := e.process.store.Health(ctx); err == nil {
			pieces = append(pieces, c.piece("store.json", "size, schema and integrity of the store", map[string]any{
				"bytes": h.Bytes, "sessions": h.Sessions, "entries": h.Entries, "written_by": h.WrittenBy, "readable_from": h.ReadableFrom, "integrity": h.Integrity,
			}))
		}
	}
	if e.root != "" {
		if log := c.log(filepath.Join(e.root, "logs", "rind.log")); len(log) > 0 {
			pieces = append(pieces, piece{"log.jsonl", "the end of the log file: what happened, without texts of others", log})
		}
	}
	return pieces
}

// piece renders a value and takes out of it what a bundle never holds.
func (c *cleaner) piece(name, what string, value any) piece {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(c.value(decoded(value))) // what was decoded encodes
	return piece{name, what, b.Bytes()}
}

// decoded is a value as JSON has it: maps, lists, texts, numbers.
func decoded(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	_ = d.Decode(&v)
	return v
}

func about(e *examined) map[string]any {
	a := map[string]any{
		"rind": version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(), "kernel": kernel(),
	}
	if name := distribution("/etc/os-release"); name != "" {
		a["system"] = name
	}
	if e.process != nil {
		a["sandbox"] = e.process.sandbox
	}
	return a
}

// distribution is how a Linux system calls itself; "" where there is no such file.
func distribution(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return plainLine(strings.Trim(v, `"'`))
		}
	}
	return ""
}

func names(e *examined) map[string]any {
	tools, servers, providers := []string{}, []string{}, []map[string]string{}
	if rt := e.process; rt != nil {
		tools = append(tools, rt.offered...)
		slices.Sort(tools)
		if entries, _, err := serverEntries(rt.path, rt.workspace); err == nil {
			servers = append(servers, slices.Sorted(maps.Keys(entries))...)
		}
		for _, name := range e.set.Names(rt.env) {
			kind := "cannot be used"
			if p, err := e.set.Named(name); err == nil {
				kind = p.Type
			}
			providers = append(providers, map[string]string{"name": name, "type": kind})
		}
	}
	return map[string]any{"tools": tools, "mcp_servers": servers, "providers": providers}
}

// isSet stands for a value that is not shown.
const isSet = "(set)"

// plainSettings are the settings of the file at path that can be shown: rows, so that a member that no row describes is never among them.
func plainSettings(path string) map[string]any {
	out := map[string]any{}
	all := map[string]bool{} // entries of providers
	if value, set, err := settings.Get(path, "providers"); err == nil && set {
		var entries map[string]json.RawMessage
		_ = json.Unmarshal([]byte(value), &entries)
		for name := range entries {
			all[name] = true
		}
	}
	for _, row := range settings.Rows() {
		key, ofProvider := strings.CutPrefix(row.Key, "providers.NAME.")
		if !ofProvider {
			if row.Key != "providers" {
				showSetting(out, path, row.Key, row)
			}
			continue
		}
		for name := range all {
			showSetting(out, path, "providers."+name+"."+key, row)
		}
	}
	return out
}

func showSetting(out map[string]any, path, key string, row settings.Row) {
	value, set, err := settings.Get(path, key)
	switch {
	case err != nil || !set:
	case row.Secret:
		out[key] = isSet
	case row.Type == "map" || row.Type == "object" || row.Type == "list":
		out[key] = fmt.Sprintf("(%d entries)", entriesOf(value))
	case strings.HasSuffix(row.Key, "Url"):
		out[key] = address(value)
	default:
		out[key] = value
	}
}

func entriesOf(value string) int {
	var list []json.RawMessage
	if json.Unmarshal([]byte(value), &list) == nil {
		return len(list)
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal([]byte(value), &object)
	return len(object)
}

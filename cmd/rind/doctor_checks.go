package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/settings"
)

func (r *report) store(ctx context.Context, rt *process) {
	if info, err := os.Stat(rt.storeFile); err != nil {
		r.add("store", "ok", "%s (none yet)", rt.storeFile)
		return
	} else if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		r.add("store", "warning", "%s can be read by others: chmod 600 it", rt.storeFile)
	}
	h, err := rt.store.Health(ctx)
	if err != nil {
		text := strings.ReplaceAll(err.Error(), "run 'rind doctor'", "copy it away; 'rind sessions export' writes what can still be read")
		r.add("store", "wrong", "%s", text)
		return
	}
	r.add("store", "ok", "%s: %s, %s, %s, schema %d (readable from %d)", h.Path, counted(int(h.Sessions), "session", "sessions"), counted(int(h.Entries), "entry", "entries"), mebibytes(h.Bytes), h.WrittenBy, h.ReadableFrom)
	if h.Integrity != "ok" {
		r.add("store", "wrong", "integrity check: %s; copy the file away before you go on", h.Integrity)
	}
	page, _, err := rt.store.Sessions(ctx, session.Query{Limit: 200, All: true})
	if err != nil {
		r.add("sessions", "wrong", "%v", err)
		return
	}
	bad, whole := 0, 0
	wait, cancel := context.WithTimeout(ctx, logsWait)
	defer cancel()
	for _, m := range page {
		all, err := readable(ctx, wait, rt, m.ID)
		if err != nil {
			bad++
			text := strings.ReplaceAll(messageOf(err), "run 'rind doctor'", "'rind sessions export "+string(m.ID)+"' writes the rest of it, 'rind sessions delete "+string(m.ID)+"' removes it")
			r.add("sessions", "wrong", "%s cannot be read: %s", m.ID, text)
		} else if all {
			whole++
		}
	}
	switch {
	case bad > 0:
	case whole == len(page):
		r.add("sessions", "ok", "the newest %d can be read", len(page))
	default:
		r.add("sessions", "ok", "the newest %d can be opened; %d were read to the end in %s", len(page), whole, logsWait)
	}
}

// logsWait bounds the reading of whole logs, which may be large.
const logsWait = 5 * time.Second

// readable reports why a session cannot be opened or one of its entries not read; whole is false when wait ended before the log did.
func readable(ctx, wait context.Context, rt *process, id session.SessionID) (whole bool, err error) {
	s, err := rt.all.Open(ctx, id)
	if err != nil {
		return false, err
	}
	defer s.Close()
	for at := session.Seq(0); wait.Err() == nil; {
		page, err := rt.store.Read(wait, id, at, 512, protocol.ViewAll)
		if err != nil {
			if wait.Err() != nil {
				break
			}
			return false, err
		}
		if len(page) == 0 {
			return true, nil
		}
		for i := range page {
			if at = page[i].Seq; wait.Err() != nil {
				break
			}
			if _, err := protocol.Decode(&page[i]); err != nil {
				return false, fmt.Errorf("entry %d is not readable: run 'rind doctor'", at)
			}
		}
	}
	return false, nil
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// outputsWait bounds the look through the outputs: they may be many, on a slow disk.
const outputsWait = 2 * time.Second

// outputs are what lies beside the store: long results, and contents from before changes (docs/undo.md).
func (r *report) outputs(ctx context.Context, rt *process) {
	ctx, cancel := context.WithTimeout(ctx, outputsWait)
	defer cancel()
	dir := filepath.Join(rt.root, "outputs")
	var all, before int64
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there is none yet, or a session was deleted meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		files++
		all += info.Size()
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.Base(filepath.Dir(rel)) == "before" {
			before += info.Size()
		}
		return nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		r.add("outputs", "ok", "%s: more than %d files, %s", dir, files, mebibytes(all))
	case err != nil:
		r.add("outputs", "warning", "%s cannot be read: %v", dir, err)
	default:
		r.add("outputs", "ok", "%s: %s, %s, of it %s for undo", dir, count(files, "file"), mebibytes(all), mebibytes(before))
	}
}

// problems is what the guide of this program can tell beside.
type problems interface {
	Problems(workspace string) []string
}

func (r *report) workspace(ctx context.Context, rt *process, set settings.Settings) {
	r.trust(rt, set)
	if rules, err := rt.policy.Rules(ctx, rt.workspace); errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrNewer) {
		r.add("consent", "wrong", "the rules of this workspace cannot be read: see store")
	} else if err != nil {
		r.add("consent", "wrong", "the rules of this workspace cannot be read: %s", messageOf(err))
	} else {
		r.add("consent", "ok", "mode %s for new sessions; %s for this workspace", set.ApprovalMode(), count(len(rules), "rule"))
	}
	told := 0
	if g, ok := rt.guide.(problems); ok {
		for _, p := range g.Problems(rt.workspace) {
			told++
			r.add("notes and skills", "warning", "%s", p)
		}
	}
	if told == 0 {
		notes := 0
		for _, p := range rt.guide.Parts(rt.workspace) {
			if p.Scope != "" && p.Path != "" {
				notes++
			}
		}
		r.add("notes and skills", "ok", "%s, %s, none left out", count(notes, "note"), count(len(rt.guide.Skills(rt.workspace)), "skill"))
	}
}

// trust tells what of the workspace takes effect.
func (r *report) trust(rt *process, set settings.Settings) {
	content, err := enabledBy(rt.workspace)
	if err != nil {
		r.add("workspace", "warning", "%s cannot be trusted: %s", rt.workspace, messageOf(err))
		return
	}
	t := reportTrust(rt.path, rt.workspace, set, content)
	switch {
	case len(t.Files) == 0:
		r.add("workspace", "ok", "%s enables nothing", rt.workspace)
	case t.Trusted:
		r.add("workspace", "ok", "%s is trusted, with %s", rt.workspace, count(len(t.Files), "file"))
	default:
		r.add("workspace", "warning", "%s is %s: %s no effect; rind trust shows them", rt.workspace, t.State, counted(len(t.Files), "file in it takes", "files in it take"))
	}
}

func inSandbox(words string) string {
	if words == "no sandbox" {
		return "commands run without a sandbox (docs/containment.md)"
	}
	return "commands run in a " + words
}

func (r *report) servers(rt *process) {
	entries, left, err := serverEntries(rt.path, rt.workspace)
	if err != nil {
		r.add("mcp servers", "warning", "%s", messageOf(err))
		return
	}
	for _, p := range left {
		r.add("mcp servers", "warning", "%s", p)
	}
	if len(entries) == 0 {
		r.add("mcp servers", "ok", "none are set")
		return
	}
	r.add("mcp servers", "ok", "%d: %s; doctor does not start them, rind mcp list does", len(entries), strings.Join(slices.Sorted(maps.Keys(entries)), ", "))
}

// agents tells what is known of the agents the settings host, without starting them.
func (r *report) agents(rt *process) {
	for _, spec := range rt.models.hostedSpecs() {
		if _, err := proc.LookPath(spec.Command); err != nil {
			r.add("agent", "warning", "%s: there is no program %s; install it, or correct the command", spec.Provider, spec.Command)
			continue
		}
		r.add("agent", "ok", "%s", rt.hosts.About("", spec))
	}
}

func (r *report) search(rt *process, set settings.Settings) {
	switch err := rt.checkSearch(set); {
	case err != nil:
		r.add("web search", "warning", "%v. Until then search_web is not offered", err)
	case set.Web(rt.env).SearchURL == "":
		r.add("web search", "ok", "no endpoint is set: search_web is not offered")
	default:
		r.add("web search", "ok", "search_web asks %s", address(set.Web(rt.env).SearchURL))
	}
}

func (r *report) provider(ctx context.Context, rt *process, set settings.Settings, online bool) {
	p, variable, err := set.WithKeyring(rt.keys.key).Selected(rt.env)
	if err != nil {
		r.add("provider", "wrong", "%s", messageOf(err))
		return
	}
	if p.Type == settings.ACP && p.Model == "" {
		p.Model = ownModel
	}
	if variable != "" {
		r.add("provider", "ok", "%s (%s), because %s is set; %s", p.Name, p.Type, variable, modelWords(p))
	} else {
		r.add("provider", "ok", "%s (%s), %s", p.Name, p.Type, modelWords(p))
	}
	source, err := p.Source(rt.env)
	if err != nil {
		r.add("key", "warning", "%s Until then 'rind prompt' answers with the built-in demo, which is no AI, if nothing else is set.", messageOf(err))
		return
	}
	r.add("key", "ok", "%s", strings.TrimPrefix(strings.TrimPrefix(keyWords(p, source), "key "), "which "))
	if p.Type != settings.OpenAIChat && p.Type != settings.OpenAIResponses && p.Type != settings.Anthropic {
		return
	}
	if !online {
		r.add("connection", "ok", "not tried; --online asks %s for its models", address(p.BaseURL))
		return
	}
	began := time.Now()
	models, err := rt.models.listRemote(ctx, p)
	if err != nil {
		r.add("connection", "wrong", "%s: %s", address(p.BaseURL), messageOf(err))
		return
	}
	r.add("connection", "ok", "%s answered in %d ms and lists %d models", address(p.BaseURL), time.Since(began).Milliseconds(), len(models))
	for _, m := range models {
		if m.ID == p.Model {
			return
		}
	}
	r.add("model", "warning", "%s is not in that list", p.Model)
}

// address is where something is, without what may be a key: a user name, a password, a query.
func address(of string) string {
	u, err := url.Parse(of)
	if err != nil || u.Host == "" {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

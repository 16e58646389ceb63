package dispatcher

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

// commandResult is the result of rind/command/execute (docs/protocol/rind-v2.md section 8).
type commandResult struct {
	Text    string             `json:"text"`
	Display any                `json:"display,omitempty"`
	Prefill string             `json:"prompt_prefill,omitempty"`
	Next    *rindv2.NextPrompt `json:"next_prompt,omitempty"`
}

// command is one slash command.
type command struct {
	rindv2.Command
	run func(k *call, s *session.Session, args []string)
}

var commands = map[string]command{}

// UsageColumns is how wide the usages of commands are listed.
const UsageColumns = 29

func init() {
	register(
		command{rindv2.Command{Name: "help", Description: "List commands, or explain one", Usage: "/help [command]"}, commandHelp},
		command{rindv2.Command{Name: "model", Description: "Show or change the session's model", Usage: "/model | /model set <model>"}, commandModel},
		command{rindv2.Command{Name: "rename", Description: "Give the session a name", Usage: "/rename <name>"}, commandRename},
		command{rindv2.Command{Name: "sessions", Description: "List the sessions of this workspace", Usage: "/sessions [limit]"}, commandSessions},
		command{rindv2.Command{Name: "status", Description: "Show session, model, settings and usage", Usage: "/status"}, commandStatus},
	)
}

func register(cs ...command) {
	for _, c := range cs {
		c.Aliases = []string{}
		commands[c.Name] = c
	}
}

func commandList() []rindv2.Command {
	out := make([]rindv2.Command, 0, len(commands))
	for _, c := range commands {
		out = append(out, c.Command)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// text answers a command.
func (k *call) text(format string, args ...any) {
	k.OK(commandResult{Text: fmt.Sprintf(format, args...)})
}

// failed answers a command whose work failed: as text, for mistakes of a person are no errors.
func (k *call) failed(err error) { k.text("Command failed: %s", k.c.d.wire(err).Message) }

// unknown answers a command that there is none of.
func (k *call) unknown(name string) {
	k.text("Unknown command: /%s\nRun /help to see available commands.", protocol.Prefix(name, 200))
}

func execute(k *call) {
	input, ok := k.params.Text("input")
	input = strings.TrimSpace(input)
	if !ok || !strings.HasPrefix(input, "/") {
		k.text("Command failed: Slash command must start with '/'.")
		return
	}
	if strings.HasPrefix(input, "/skill:") {
		text, _ := k.params.Text("input")
		commandSkillName(k, text)
		return
	}
	words, err := words(input[1:])
	if err != nil {
		k.text("Command failed: %v", err)
		return
	}
	name := ""
	if len(words) > 0 {
		name, words = words[0], words[1:]
	}
	c, known := commands[name]
	if !known {
		k.unknown(name)
		return
	}
	k.with(func(s *session.Session) { c.run(k, s, words) })
}

// words splits arguments as a shell does: quotes and backslashes.
func words(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	in, quote := false, rune(0)
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			if quote == '"' && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if in {
				out = append(out, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteRune(r)
			in = true
		}
	}
	switch {
	case quote != 0:
		return nil, errQuote
	case escaped:
		return nil, errEscape
	}
	if in {
		out = append(out, word.String())
	}
	return out, nil
}

func commandHelp(k *call, _ *session.Session, args []string) {
	type display struct {
		Type     string           `json:"type"`
		Commands []rindv2.Command `json:"commands"`
		Command  *rindv2.Command  `json:"command,omitempty"`
	}
	d := display{Type: "help", Commands: commandList()}
	if len(args) == 0 {
		var b strings.Builder
		b.WriteString("Commands:")
		for _, c := range d.Commands {
			fmt.Fprintf(&b, "\n  %-*s %s", UsageColumns, c.Usage, c.Description)
		}
		k.OK(commandResult{Text: b.String(), Display: d})
		return
	}
	name := strings.TrimPrefix(args[0], "/")
	c, known := commands[name]
	if !known {
		k.unknown(name)
		return
	}
	d.Command = &c.Command
	k.OK(commandResult{Text: c.Usage + "\n" + c.Description, Display: d})
}

func commandModel(k *call, s *session.Session, args []string) {
	switch {
	case len(args) == 0:
		s.Inspect(func(v *session.View) { k.text("Model: %s", v.Sel.Model) })
	case len(args) == 2 && args[0] == "set":
		model := args[1]
		if !rindv2.ValidModel(model) {
			k.text("Command failed: Model name must be 1 to 128 characters without spaces.")
			return
		}
		s.Change(session.Change{Model: &model}, func(sel session.Selection, applies string, err error) {
			if err != nil {
				k.failed(err)
				return
			}
			last := "- active session: updated"
			if applies == "next_turn" {
				last = "- active turn: unchanged; the new model applies to the next turn"
			}
			k.text("Session model updated.\n- session model: %s\n- default model: %s (unchanged)\n%s", sel.Model, k.c.d.cfg.Sessions.Default(s.Workspace()).Model, last)
		})
	default:
		k.text("Usage: /model or /model set <model>")
	}
}

// nameOf is a name a client gives a session: at most 200 characters of it, since every list shows it.
func nameOf(given string) string {
	return strings.TrimSpace(protocol.Prefix(strings.TrimSpace(given), 200))
}

func commandRename(k *call, s *session.Session, args []string) {
	name := nameOf(strings.Join(args, " "))
	if name == "" {
		k.text("Usage: /rename <name>")
		return
	}
	s.Rename(name, func(title string, err error) {
		if err != nil {
			k.failed(err)
			return
		}
		k.OK(commandResult{Text: "Session renamed: " + title, Display: struct {
			Type  string            `json:"type"`
			ID    session.SessionID `json:"session_id"`
			Name  string            `json:"name"`
			Title string            `json:"title"`
		}{"session_renamed", s.ID, title, title}})
	})
}

func commandSessions(k *call, _ *session.Session, args []string) {
	limit := 100
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 1 || n > 100 || len(args) > 1 {
			k.text("Usage: /sessions [limit]")
			return
		}
		limit = n
	}
	type row struct {
		ID        session.SessionID `json:"id"`
		Current   bool              `json:"current"`
		UpdatedAt string            `json:"updated_at"`
		Title     string            `json:"title"`
		Messages  int               `json:"messages"`
		ToolCalls int               `json:"tool_calls"`
		Preview   string            `json:"preview"`
	}
	k.Background(func() {
		metas, _, err := k.c.d.cfg.Sessions.List(context.Background(), session.Query{Workspace: k.c.d.cfg.Workspace, Limit: limit})
		if err != nil {
			k.failed(err)
			return
		}
		list := k.c.list(metas, "")
		rows := []row{}
		var b strings.Builder
		for i, it := range list.Sessions {
			current := list.CurrentSessionID != nil && *list.CurrentSessionID == it.ID
			rows = append(rows, row{it.ID, current, it.UpdatedAt, it.Title, it.Size.Messages, it.Size.ToolCalls, it.Preview})
			fmt.Fprintf(&b, "%s  %s  %s\n", it.ID, metas[i].Activity.Local().Format("2006-01-02 15:04"), it.Title)
		}
		text := strings.TrimRight(b.String(), "\n")
		if text == "" {
			text = "No sessions found."
		}
		k.OK(commandResult{Text: text, Display: struct {
			Type    string             `json:"type"`
			Rows    []row              `json:"sessions"`
			Current *session.SessionID `json:"current_session_id"`
			Limit   int                `json:"limit"`
			Resume  string             `json:"resume_command"`
		}{"sessions", rows, list.CurrentSessionID, limit, "/sessions"}})
	})
}

func commandStatus(k *call, s *session.Session, _ []string) {
	type entry struct {
		Label string `json:"label"`
		Value string `json:"value"`
		State string `json:"state,omitempty"`
	}
	type usage struct {
		Label        string  `json:"label"`
		SamplingKind string  `json:"sampling_kind"`
		Input        int     `json:"input_tokens"`
		Window       int     `json:"context_window_tokens"`
		Percent      float64 `json:"context_usage_percent"`
		Cached       int     `json:"cached_input_tokens"`
		HitRate      float64 `json:"cache_hit_rate"`
		Output       int     `json:"output_tokens"`
	}
	guided := guided(k, s.Workspace()) // reads files: here, not on the session's goroutine
	s.Inspect(func(v *session.View) {
		set := k.c.d.cfg.Setup()
		state := func(yes bool, a, b string) string {
			if yes {
				return a
			}
			return b
		}
		entries := []entry{
			{Label: "session", Value: string(s.ID)},
			{Label: "settings", Value: "settings.json", State: state(set.SettingsFound, "found", "missing")},
			{Label: "apiKey", Value: "", State: state(set.KeySet, "set", "unset")},
			{Label: "baseUrl", Value: set.BaseURL},
			{Label: "model", Value: v.Sel.Model},
			{Label: "reasoningEffort", Value: v.Sel.Effort},
			{Label: "approvalMode", Value: v.Sel.Mode},
		}
		if k.c.d.cfg.Sandbox != "" {
			entries = append(entries, entry{Label: "sandbox", Value: strings.TrimPrefix(k.c.d.cfg.Sandbox, "sandbox: ")})
		}
		if a, ok := k.c.d.cfg.Sessions.Hosted(s.ID, v.Sel); ok {
			entries = append(entries, entry{Label: "agent", Value: a.String()})
		}
		for _, p := range guided {
			entries = append(entries, entry{Label: p.Label, Value: p.Path, State: state(p.Truncated, "truncated", "given")})
		}
		usages := []usage{}
		if st := v.Stats; st != nil {
			usages = append(usages, usage{
				"Assistant sampling:", st.SamplingKind, st.InputTokens, st.ContextWindowTokens, st.ContextUsagePercent, st.CachedInputTokens, st.CacheHitRate, st.OutputTokens,
			})
		}
		var b strings.Builder
		for _, e := range entries {
			if text := strings.TrimSpace(e.Value + " " + e.State); text != "" {
				fmt.Fprintf(&b, "%s: %s\n", e.Label, text)
			}
		}
		fmt.Fprintf(&b, "messages: %d", v.Messages)
		k.OK(commandResult{Text: b.String(), Display: struct {
			Type     string            `json:"type"`
			Session  session.SessionID `json:"session"`
			Model    string            `json:"model"`
			Debug    bool              `json:"debug"`
			Messages string            `json:"messages"`
			Entries  []entry           `json:"entries"`
			Usage    []usage           `json:"usage"`
		}{"status", s.ID, v.Sel.Model, false, strconv.Itoa(v.Messages), entries, usages}})
	})
}

// The texts are the contract's.
var (
	errQuote  = userText("No closing quotation")
	errEscape = userText("No escaped character")
)

// userText is an error whose text is shown as it is.
type userText string

func (t userText) Error() string { return string(t) }

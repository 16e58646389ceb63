package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rind-dev/rind/dispatcher/outlet"
	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/acp"
	"github.com/rind-dev/rind/session"
)

// command is one slash command; usable says that this process can do it. changes says that with these arguments it changes something: only then an
// idempotency key means anything. run answers, now or later, by says; it returns the prompt that does the work, where there is one.
type command struct {
	acp.Command
	usable  func(d *Dispatcher) bool
	changes func(args string) bool
	run     func(k *call, o *opened, args string) *session.Prompt
}

func always(*Dispatcher) bool      { return true }
func changes(string) bool          { return true }
func changesWith(args string) bool { return args != "" }
func shows(string) bool            { return false }

// commandTable is what is told as available, in this order. init and skill have no run: they become prompts.
var commandTable []command

func init() {
	hint := func(s string) *acp.InputHint { return &acp.InputHint{Hint: s} }
	commandTable = []command{
		{acp.Command{Name: "compact", Description: "Replace the conversation by a summary in the model's view"}, always, changes, commandCompact},
		{acp.Command{Name: "init", Description: "Have a RIND.md written for the project, or for you", Input: hint("project or user")}, always, nil, nil},
		{acp.Command{Name: "permissions", Description: "List remembered consent, or revoke one", Input: hint("revoke NUMBER")}, func(d *Dispatcher) bool { return d.cfg.Policy != nil }, changesWith, now(commandPermissions)},
		{acp.Command{Name: "rename", Description: "Give the session a name", Input: hint("name")}, always, changesWith, now(commandRename)},
		{acp.Command{Name: "skill", Description: "Load a skill and say what to do with it", Input: hint("name, then what to do")}, func(d *Dispatcher) bool { return d.cfg.Guide != nil }, nil, nil},
		{acp.Command{Name: "status", Description: "Show session, model and usage"}, always, shows, now(commandStatus)},
		{acp.Command{Name: "trust", Description: "Trust the workspace's own settings and skills"}, func(d *Dispatcher) bool { return d.cfg.Trust != nil }, changes, now(commandTrust)},
		{acp.Command{Name: "undo", Description: "Put back the files that a turn wrote, the last where none is named", Input: hint("turn id")}, func(d *Dispatcher) bool { return d.cfg.Undo != nil }, changes, now(commandUndo)},
	}
}

// now is a command that no prompt does.
func now(run func(k *call, o *opened, args string)) func(*call, *opened, string) *session.Prompt {
	return func(k *call, o *opened, args string) *session.Prompt {
		run(k, o, args)
		return nil
	}
}

func (c *Conn) commands() []acp.Command {
	out := []acp.Command{}
	for _, row := range commandTable {
		if row.usable(c.d) {
			out = append(out, row.Command)
		}
	}
	return out
}

// commandsIn are those of a session: an agent that is hosted there compacts its own context, by its own command or not at all.
func (c *Conn) commandsIn(id session.SessionID, sel session.Selection) []acp.Command {
	all := c.commands()
	if _, hosted := c.d.cfg.Sessions.Hosted(id, sel); hosted {
		all = slices.DeleteFunc(all, func(own acp.Command) bool { return own.Name == "compact" })
	}
	return all
}

// isTheirs reports whether a command is the hosted agent's: then it is a prompt.
func (k *call) isTheirs(o *opened, name string) bool {
	if name != "compact" {
		return false
	}
	var sel session.Selection
	if o.s.InspectNow(context.Background(), func(v *session.View) { sel = v.Sel }) != nil {
		return false
	}
	a, hosted := k.c.d.cfg.Sessions.Hosted(o.s.ID, sel)
	return hosted && slices.Contains(a.Commands, name)
}

// command runs what a prompt that begins with a slash names; false leaves it a prompt.
func (k *call) command(o *opened, text string, req *session.PromptRequest) bool {
	name, args, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "/"), " ")
	for _, row := range commandTable {
		if row.Name != name || !row.usable(k.c.d) {
			continue
		}
		if k.isTheirs(o, name) {
			return false
		}
		if name == "init" {
			if asked, ok := session.InitOf(strings.TrimSpace(args), o.s.Workspace(), k.c.d.cfg.DataRoot); ok {
				req.Input, req.Transient = asked.Input, []protocol.SystemMessage{asked.Told}
				return false
			}
			k.says(o.s.ID, 0, "Usage: /init [project|user]")
			return true
		}
		if row.run == nil {
			if args = strings.TrimSpace(args); args != "" {
				req.Input = "/skill:" + args + strings.TrimPrefix(req.Input, text)
				return false
			}
			k.skills(o)
			return true
		}
		k.c.mu.Lock()
		k.session = o.s.ID
		k.c.mu.Unlock()
		if args = strings.TrimSpace(args); req.Key != "" && row.changes(args) {
			k.once(o, req, func() *session.Prompt { return row.run(k, o, args) })
		} else if p := row.run(k, o, args); p != nil {
			k.set(p)
		}
		return true
	}
	return false
}

// once runs a command that was given an idempotency key, unless it was run for that before.
func (k *call) once(o *opened, req *session.PromptRequest, run func() *session.Prompt) {
	k.set(o.s.Errand(session.Errand{
		Surface: req.Surface, Key: req.Key, Digest: req.Digest,
		Run: func(ended func(bool, func())) *session.Prompt {
			k.errand = ended
			return run()
		},
	}, func(out session.Outcome, err error) {
		if err != nil {
			k.Fail(err)
			return
		}
		var broken *acp.TurnNote
		if out.Fault != nil {
			broken = &acp.TurnNote{Status: "interrupted"}
		}
		k.ended(o.s.ID, out, out.Outcome == session.OutcomeCompleted, broken)
	}))
}

// over answers a command that was done, or cancelled: where it has a key, once that is noted.
func (k *call) over(done bool, answer func()) {
	if k.errand == nil {
		answer()
		return
	}
	k.errand(done, answer)
}

// says answers a command: what it has to say as a message, then the end of the turn.
func (k *call) says(id session.SessionID, seq session.Seq, format string, args ...any) {
	said := acp.Chunk{Kind: acp.AgentChunk, MessageID: protocol.RandomIDs{}.Hex32(), Text: fmt.Sprintf(format, args...)}
	k.over(true, func() {
		k.At(&outlet.Hold{
			Stream: string(id), Seq: seq, Exact: true,
			Lead:  func(buf []byte, _ outlet.Stream) []byte { return append(buf, updateLine(id, said.Encode())...) },
			Reply: func(outlet.Stream) (any, error) { return acp.Prompted{Stop: "end_turn"}, nil },
		})
	})
}

func (k *call) sorry(id session.SessionID, err error) {
	k.says(id, 0, "That did not work: %s", k.c.d.wire(err).Message)
}

func commandCompact(k *call, o *opened, _ string) *session.Prompt {
	id := o.s.ID
	return o.s.Compact(func(out session.Outcome, err error) {
		switch {
		case err != nil:
			k.sorry(id, err)
		case out.Outcome == session.OutcomeCancelled:
			k.over(false, func() {
				k.at(id, out.Seq, func(*follow) (any, error) { return acp.Prompted{Stop: "cancelled"}, nil })
			})
		case out.Fault != nil:
			k.says(id, out.Seq, "That did not work: %s", out.Fault.Message)
		default:
			var rec protocol.Compaction
			_ = json.Unmarshal(out.Record, &rec)
			k.says(id, out.Seq, "The conversation up to here (%d messages) is a summary for the model now. Nothing of it is lost in the log.", rec.Source.MessageEndIndexExclusive-rec.Source.MessageStartIndex)
		}
	})
}

func commandRename(k *call, o *opened, name string) {
	id := o.s.ID
	if name == "" {
		k.says(id, 0, "Usage: /rename NAME")
		return
	}
	o.s.Rename(name, func(title string, err error) {
		if err != nil {
			k.sorry(id, err)
			return
		}
		o.s.Inspect(func(v *session.View) { k.says(id, v.Head, "The session is named %q.", title) })
	})
}

func commandStatus(k *call, o *opened, _ string) {
	o.s.Inspect(func(v *session.View) {
		var b strings.Builder
		fmt.Fprintf(&b, "Session %s\nFolder: %s\nModel: %s/%s\nMode: %s\nMessages: %d", o.s.ID, v.Workspace, v.Sel.Provider, v.Sel.Model, modeOf(v.Sel), v.Messages)
		if a, ok := k.c.d.cfg.Sessions.Hosted(o.s.ID, v.Sel); ok {
			fmt.Fprintf(&b, "\nAgent: %s", a)
		}
		if v.Stats != nil && v.Stats.ContextWindowTokens > 0 {
			fmt.Fprintf(&b, "\nContext: %d of %d tokens", v.Stats.InputTokens+v.Stats.OutputTokens, v.Stats.ContextWindowTokens)
		}
		k.says(o.s.ID, 0, "%s", b.String())
	})
}

func commandPermissions(k *call, o *opened, args string) {
	id := o.s.ID
	policy, workspace := k.c.d.cfg.Policy, o.s.Workspace()
	k.Background(func() {
		ctx := context.Background()
		if rest, ok := strings.CutPrefix(args, "revoke "); ok {
			var n int64
			if _, err := fmt.Sscan(rest, &n); err != nil {
				k.says(id, 0, "Usage: /permissions | /permissions revoke NUMBER")
				return
			}
			gone, err := policy.Revoke(ctx, workspace, n)
			switch {
			case err != nil:
				k.sorry(id, err)
			case gone:
				k.says(id, 0, "Rule %d is revoked.", n)
			default:
				k.says(id, 0, "There is no rule %d.", n)
			}
			return
		}
		rules, err := policy.Rules(ctx, workspace)
		if err != nil {
			k.sorry(id, err)
			return
		}
		if len(rules) == 0 {
			k.says(id, 0, "Nothing is remembered for this folder.")
			return
		}
		var b strings.Builder
		b.WriteString("Remembered for this folder:")
		for _, r := range rules {
			word := "deny"
			if r.Allow {
				word = "allow"
			}
			fmt.Fprintf(&b, "\n- %d: %s %s %s", r.ID, word, r.Tool, r.Pattern)
		}
		k.says(id, 0, "%s", b.String())
	})
}

func commandTrust(k *call, o *opened, _ string) {
	id, workspace := o.s.ID, o.s.Workspace()
	k.Background(func() {
		enabled, err := k.c.d.cfg.Trust(workspace)
		switch {
		case err != nil:
			k.says(id, 0, "That did not work: %s", protocol.Prefix(strings.Join(strings.Fields(err.Error()), " "), 1000))
		case len(enabled) == 0:
			k.says(id, 0, "Trusted: %s\nIt enables nothing today; whatever is added is asked about again.", workspace)
		default:
			k.says(id, 0, "Trusted: %s\nThis enables:\n- %s", workspace, strings.Join(enabled, "\n- "))
		}
	})
}

func commandUndo(k *call, o *opened, turn string) {
	id := o.s.ID
	o.s.Inspect(func(v *session.View) {
		if v.Working() || v.Serial != nil {
			k.says(id, 0, "A turn is open: wait for its end, or cancel it first.")
			return
		}
		draft := v.Draft
		k.Background(func() {
			var u session.Undone
			var err error
			if !draft {
				u, err = k.c.d.cfg.Undo.Undo(context.Background(), id, session.TurnID(turn))
			}
			if err != nil {
				k.sorry(id, err)
				return
			}
			if u.Turn == "" {
				k.says(id, 0, "There is nothing to undo.")
				return
			}
			words := map[string]string{
				session.FileRestored: "restored", session.FileChangedSince: "left alone, it was changed since", session.FileNotKept: "left alone, its content was not kept",
			}
			var b strings.Builder
			b.WriteString("Undone:")
			for _, f := range u.Files {
				fmt.Fprintf(&b, "\n- %s: %s", f.Path, words[f.Status])
			}
			k.says(id, 0, "%s", b.String())
		})
	})
}

// skills lists what /skill can load.
func (k *call) skills(o *opened) {
	id, workspace := o.s.ID, o.s.Workspace()
	k.Background(func() {
		list := k.c.d.cfg.Guide.Skills(workspace)
		if len(list) == 0 {
			k.says(id, 0, "There are no skills here.")
			return
		}
		var b strings.Builder
		b.WriteString("Skills:")
		for _, s := range list {
			fmt.Fprintf(&b, "\n- %s: %s", s.Name, s.Description)
		}
		k.says(id, 0, "%s", b.String())
	})
}

package dispatcher

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/protocol/rindv2"
	"github.com/rind-dev/rind/session"
)

func init() {
	register(
		command{rindv2.Command{Name: "init", Description: "Have a RIND.md written for the project, or for you", Usage: "/init [project|user]"}, commandInit},
		command{rindv2.Command{Name: "permissions", Description: "List what is remembered of your consent, or take it back", Usage: "/permissions [revoke <n>]"}, commandPermissions},
		command{rindv2.Command{Name: "skill", Description: "List the skills that can be loaded", Usage: "/skill [list]"}, commandSkill},
		command{rindv2.Command{Name: "trust", Description: "Trust the workspace's own settings and skills", Usage: "/trust"}, commandTrust},
		command{rindv2.Command{Name: "undo", Description: "Put back the files a turn changed", Usage: "/undo [turn_id]"}, commandUndo},
	)
}

// commandSkillName answers `/skill:name …`: the prompt is the client's to send, and loads the skill.
func commandSkillName(k *call, input string) {
	k.OK(commandResult{Next: &rindv2.NextPrompt{Input: input}})
}

func commandSkill(k *call, s *session.Session, args []string) {
	if len(args) > 1 || len(args) == 1 && args[0] != "list" {
		k.text("Usage: /skill [list]")
		return
	}
	k.Background(func() {
		skills := k.c.d.cfg.Guide.Skills(s.Workspace())
		if skills == nil {
			skills = []session.Skill{}
		}
		var b strings.Builder
		for _, sk := range skills {
			fmt.Fprintf(&b, "%s (%s)  %s\n", sk.Name, sk.Scope, sk.Description)
		}
		text := strings.TrimRight(b.String(), "\n")
		if text == "" {
			text = "No skills found."
		}
		k.OK(commandResult{Text: text, Display: struct {
			Type   string          `json:"type"`
			Skills []session.Skill `json:"skills"`
		}{"skills", skills}})
	})
}

func commandInit(k *call, s *session.Session, args []string) {
	asked, ok := session.InitOf(strings.Join(args, " "), s.Workspace(), k.c.d.cfg.DataRoot)
	if !ok {
		k.text("Usage: /init [project|user]")
		return
	}
	k.OK(commandResult{
		Text: fmt.Sprintf("Initializing %s RIND.md: %s", asked.Scope, asked.Path),
		Next: &rindv2.NextPrompt{
			Input: asked.Input, Transient: []rindv2.SystemMessage{{Role: "system", Kind: asked.Told.Kind, Content: asked.Told.Content}},
		},
	})
}

func commandPermissions(k *call, s *session.Session, args []string) {
	policy := k.c.d.cfg.Policy
	if policy == nil {
		k.text("No rules are remembered in this process.")
		return
	}
	revoke := int64(0)
	switch {
	case len(args) == 0:
	case len(args) == 2 && args[0] == "revoke":
		n, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || n < 1 {
			k.text("Usage: /permissions [revoke <n>]")
			return
		}
		revoke = n
	default:
		k.text("Usage: /permissions [revoke <n>]")
		return
	}
	type row struct {
		ID        int64  `json:"id"`
		Tool      string `json:"tool"`
		Pattern   string `json:"pattern"`
		Effect    string `json:"effect"`
		CreatedAt string `json:"created_at"`
	}
	k.Background(func() {
		ctx := context.Background()
		var b strings.Builder
		if revoke > 0 {
			gone, err := policy.Revoke(ctx, s.Workspace(), revoke)
			if err != nil {
				k.failed(err)
				return
			}
			if !gone {
				k.text("There is no rule %d in this workspace. /permissions lists them.", revoke)
				return
			}
			fmt.Fprintf(&b, "Rule %d is forgotten.\n", revoke)
		}
		rules, err := policy.Rules(ctx, s.Workspace())
		if err != nil {
			k.failed(err)
			return
		}
		rows := []row{}
		for _, r := range rules {
			effect := "deny"
			if r.Allow {
				effect = "allow"
			}
			rows = append(rows, row{r.ID, r.Tool, r.Pattern, effect, protocol.FormatTime(r.Created)})
			fmt.Fprintf(&b, "%d. %s %s: %s\n", r.ID, effect, r.Tool, r.Pattern)
		}
		if len(rows) == 0 {
			b.WriteString("No rules are remembered for this workspace.")
		}
		k.OK(commandResult{Text: strings.TrimRight(b.String(), "\n"), Display: struct {
			Type  string `json:"type"`
			Rules []row  `json:"rules"`
		}{"permissions", rows}})
	})
}

func commandTrust(k *call, s *session.Session, args []string) {
	if len(args) > 0 {
		k.text("Usage: /trust")
		return
	}
	if k.c.d.cfg.Trust == nil {
		k.text("Command failed: This process cannot trust workspaces; use 'rind trust'.")
		return
	}
	k.Background(func() {
		enabled, err := k.c.d.cfg.Trust(s.Workspace())
		if err != nil {
			k.text("Command failed: %s", firstLine(err.Error()))
			return
		}
		if enabled == nil {
			enabled = []string{}
		}
		text := "Trusted: " + s.Workspace()
		if len(enabled) == 0 {
			text += "\nIt enables nothing today; whatever is added is asked about again."
		} else {
			text += "\nThis enables:\n- " + strings.Join(enabled, "\n- ")
		}
		k.OK(commandResult{Text: text, Display: struct {
			Type      string   `json:"type"`
			Workspace string   `json:"workspace_root"`
			Trusted   bool     `json:"trusted"`
			Files     []string `json:"files"`
		}{"trust", s.Workspace(), true, enabled}})
	})
}

func commandUndo(k *call, s *session.Session, args []string) {
	undo := k.c.d.cfg.Undo
	switch {
	case len(args) > 1:
		k.text("Usage: /undo [turn_id]")
		return
	case undo == nil:
		k.text("Command failed: This process keeps no files to put back.")
		return
	}
	var turn session.TurnID
	if len(args) == 1 {
		turn = session.TurnID(args[0])
	}
	s.Inspect(func(v *session.View) {
		if v.Working() || v.Serial != nil {
			k.text("Cannot undo while a turn is running. Wait for it to finish or interrupt it first.")
			return
		}
		draft := v.Draft
		k.Background(func() {
			var done session.Undone
			var err error
			if !draft {
				done, err = undo.Undo(context.Background(), s.ID, turn)
			}
			if err != nil {
				k.failed(err)
				return
			}
			if done.Files == nil {
				done.Files = []session.FileUndo{}
			}
			k.OK(commandResult{Text: undoText(done), Display: struct {
				Type  string             `json:"type"`
				Turn  session.TurnID     `json:"turn_id"`
				Files []session.FileUndo `json:"files"`
			}{"undo", done.Turn, done.Files}})
		})
	})
}

// undoText tells a person what an undo did, a line a file.
func undoText(u session.Undone) string {
	if u.Turn == "" {
		return "Nothing to undo."
	}
	words := map[string]string{
		session.FileRestored: "restored", session.FileChangedSince: "left alone: changed since", session.FileNotKept: "left alone: its content was not kept",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Undo of turn %s:", u.Turn)
	for _, f := range u.Files {
		fmt.Fprintf(&b, "\n- %s  %s", f.Path, words[f.Status])
		if f.Reason != "" {
			b.WriteString(" (" + f.Reason + ")")
		}
	}
	if len(u.Files) == 0 {
		b.WriteString(" it wrote no files.")
	}
	return b.String()
}

// firstLine is the first line of an error's text.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// guided adds what the model is told beside the conversation to /status.
func guided(k *call, workspace string) (paths []session.GuidePart) {
	for _, p := range k.c.d.cfg.Guide.Parts(workspace) {
		if p.Path != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

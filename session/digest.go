package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol"
)

// digest is the summary that is made without a model.
func (h *History) digest() string {
	var b strings.Builder
	if rec := h.compacted.record; h.compacted.at > 0 {
		b.WriteString("Earlier summary:\n" + cutMiddle(rec.HandoffMessage.Content, keepSummaryChars/4) + "\n\n")
	}
	b.WriteString("This summary was made without a model, from the conversation itself.\n")
	var said, files []string
	tools := map[string]int{}
	answer := ""
	for _, it := range h.given() {
		switch it.Role {
		case RoleUser:
			if !it.Hidden {
				said = append(said, protocol.Prefix(oneLine(it.Text), 500))
			}
		case RoleAssistant:
			if it.Text != "" {
				answer = it.Text
			}
			for _, c := range it.Calls {
				tools[c.Name]++
				if p := pathOf(c.Arguments); p != "" && !slices.Contains(files, p) {
					files = append(files, p)
				}
			}
		}
	}
	list := func(title string, rows []string, most int) {
		if len(rows) == 0 {
			return
		}
		b.WriteString("\n" + title + "\n")
		if left := len(rows) - most; left > 0 {
			fmt.Fprintf(&b, "(%d earlier ones are left out)\n", left)
			rows = rows[left:]
		}
		for _, r := range rows {
			b.WriteString("- " + r + "\n")
		}
	}
	list("The person said:", said, 30)
	list("Files looked at or changed:", files, 60)
	var used []string
	for name, n := range tools {
		used = append(used, fmt.Sprintf("%s (%d times)", name, n))
	}
	slices.Sort(used)
	list("Tools used:", used, 30)
	if answer != "" {
		b.WriteString("\nThe last answer:\n" + cutMiddle(answer, 4_000) + "\n")
	}
	return strings.TrimSpace(b.String())
}

// pathOf reads the path argument of a call, where it has one.
func pathOf(args json.RawMessage) string {
	var a struct {
		Path     string `json:"path"`
		FilePath string `json:"file_path"`
	}
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	if a.Path != "" {
		return protocol.Prefix(oneLine(a.Path), 200)
	}
	return protocol.Prefix(oneLine(a.FilePath), 200)
}

// continuation is what the model is told in the person's place after a compaction: what must not be lost in a summary, word for word.
// The last kept items stay as they are.
func continuation(st *State, open *OpenTurn, past *History, kept int) string {
	var b strings.Builder
	b.WriteString("[The conversation up to here was replaced by the summary that follows. Go on from it.]\n")
	for i := len(past.items) - kept - 1; i >= 0; i-- {
		if it := past.items[i]; it.Role == RoleUser && !it.Hidden && it.Text != "" && !past.refused[it.Turn] {
			b.WriteString("\nThe person's last message, as it was said:\n" + cutMiddle(it.Text, keepUserChars) + "\n")
			break
		}
	}
	if len(open.Plan) > 0 {
		b.WriteString("\nThe plan:\n")
		for _, s := range open.Plan {
			fmt.Fprintf(&b, "- [%s] %s\n", s.Status, s.Step)
		}
	}
	first := true
	for _, t := range st.Tasks {
		if t.Task.Live() {
			if first {
				b.WriteString("\nBackground tasks that run:\n")
				first = false
			}
			fmt.Fprintf(&b, "- %s: %s\n", t.Task.TaskID, protocol.Prefix(oneLine(t.Task.Command), 200))
		}
	}
	if st.Goal != nil && st.Goal.Status == "active" {
		b.WriteString("\nThe goal: " + st.Goal.Objective + "\n")
	}
	return strings.TrimSpace(b.String())
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// screen shows what happens in a session to a person, or to whatever stands where a terminal could be: the answer on out, one line for each
// other fact on note. It belongs to one goroutine and owns none.
type screen struct {
	out, note io.Writer
	colour    palette // of note
	width     int     // columns of note
	root      string  // the workspace: paths within it are shown without it; "" shows them whole

	open    bool              // the line on out is not ended
	asking  bool              // a question or the input mark stands on the line of note
	calls   map[string]string // calls of the turn by id, as shown
	last    string            // id of the call whose line came last
	stats   *protocol.Stats   // of the newest sampling
	refused []string          // calls of the turn that needed consent while nobody could be asked
	err     error             // of the first failed write to out
}

func newScreen(std *streams) *screen {
	return &screen{out: std.out, note: std.err, colour: paletteFor(std.err), width: widthOf(std.err), calls: map[string]string{}}
}

// say shows a piece of the answer.
func (s *screen) say(text string) {
	text = printable(text)
	if text == "" {
		return
	}
	s.settle()
	if _, err := io.WriteString(s.out, text); err != nil && s.err == nil {
		s.err = err
	}
	s.open = !strings.HasSuffix(text, "\n")
	s.last = ""
}

// line shows one fact.
func (s *screen) line(text string) {
	s.endLine()
	s.settle()
	fmt.Fprintln(s.note, text)
}

func (s *screen) linef(format string, args ...any) { s.line(fmt.Sprintf(format, args...)) }

// fault shows what went wrong.
func (s *screen) fault(text string) { s.line(s.colour.red("rind: " + plainLine(text))) }

// ask shows text and leaves the cursor behind it.
func (s *screen) ask(text string) {
	s.endLine()
	s.settle()
	fmt.Fprint(s.note, text)
	s.asking = true
}

// answered says that the person ended the line of a question by typing one.
func (s *screen) answered() { s.asking = false }

// settle leaves the line of a question that was not answered there.
func (s *screen) settle() {
	if s.asking {
		fmt.Fprintln(s.note)
		s.asking = false
	}
}

func (s *screen) endLine() {
	if s.open {
		if _, err := fmt.Fprintln(s.out); err != nil && s.err == nil {
			s.err = err
		}
		s.open = false
	}
}

// begin forgets the turn before.
func (s *screen) begin() {
	s.calls, s.last, s.stats, s.refused = map[string]string{}, "", nil, nil
}

// entry shows one entry of the log. Questions and the ends of turns are left to the caller.
func (s *screen) entry(b protocol.Body) {
	switch b := b.(type) {
	case *protocol.AssistantDelta:
		s.say(b.Text)
	case *protocol.AssistantMessageCompleted:
		s.endLine()
		if b.Interrupted {
			s.line(s.colour.dim("(cut off)"))
		}
	case *protocol.TurnStepRetry:
		s.linef("the answer broke off; trying again (attempt %d): its text above is void", b.Attempt)
	case *protocol.ToolRequested:
		s.remember(b)
	case *protocol.ToolCallStarted:
		s.call(b.ToolCallID, b.ToolName)
	case *protocol.ToolProgress:
		s.line(s.colour.dim("  " + s.cut(b.Payload.Message, 2)))
	case *protocol.FileChange:
		s.change(b)
	case *protocol.PlanUpdated:
		for _, step := range b.Plan {
			s.line("  " + planMark(step.Status) + " " + s.cut(step.Step, 6))
		}
	case *protocol.ToolResult:
		s.result(b)
	case *protocol.TokenStatsUpdated:
		s.stats = &b.Stats
	case *protocol.TaskUpdated:
		s.task(b)
	case *protocol.Notice:
		s.line(s.colour.dim(plainLine(b.Title)))
	case *protocol.ContextCompacted:
		s.line(s.colour.dim("(the conversation so far was summarised for the model)"))
	}
}

// remember keeps what the end of a turn may have to name.
func (s *screen) remember(b protocol.Body) {
	switch b := b.(type) {
	case *protocol.ToolRequested:
		s.calls[b.ToolCallID] = s.summary(b.ToolName, b.Arguments)
	case *protocol.ToolResult:
		if b.ErrorType == protocol.ErrApprovalUnavailable {
			s.refused = append(s.refused, s.calls[b.ToolCallID])
		}
	}
}

// call shows that a tool runs.
func (s *screen) call(id, name string) {
	text := s.calls[id]
	if text == "" {
		text = plainLine(name)
	}
	s.line("• " + text)
	s.last = id
}

func (s *screen) change(b *protocol.FileChange) {
	added, removed := 0, 0
	for _, l := range b.Lines {
		if l.Kind == "added" {
			added++
		} else {
			removed++
		}
	}
	more := ""
	if added+removed >= 120 { // the event holds no more
		more = " or more"
	}
	s.linef("  %s: +%d -%d%s", s.cut(s.within(b.FilePath), 24), added, removed, more)
}

// within is a path as it is seen from the workspace.
func (s *screen) within(path string) string {
	if s.root == "" || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(s.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// result shows how a call ended, under its line.
func (s *screen) result(b *protocol.ToolResult) {
	s.remember(b)
	s.ended(b.ToolCallID, b.ToolName, b.Status, b.ErrorType, time.Duration(b.DurationMS)*time.Millisecond, b.Result)
}

// outcome shows how a call ended by what the model was told of it.
func (s *screen) outcome(id, name, result string) {
	var r struct {
		OK        bool
		ErrorType string `json:"error_type"`
	}
	status := protocol.ToolFailed
	switch err := json.Unmarshal([]byte(result), &r); {
	case err != nil || r.OK:
		status = protocol.ToolCompleted
	case r.ErrorType == protocol.ErrApprovalRejected || r.ErrorType == protocol.ErrApprovalUnavailable:
		status = protocol.ToolRejected
	case r.ErrorType == protocol.ErrCancelled:
		status = protocol.ToolCancelled
	}
	s.ended(id, name, status, r.ErrorType, 0, result)
}

func (s *screen) ended(id, name, status, errorType string, lasted time.Duration, result string) {
	if s.last != id {
		s.call(id, name)
	}
	var r struct {
		OK    bool
		Error string
		Data  json.RawMessage
	}
	_ = json.Unmarshal([]byte(result), &r)
	took := ""
	if lasted >= 50*time.Millisecond {
		took = fmt.Sprintf(" %.1fs", lasted.Seconds())
	}
	if status != protocol.ToolCompleted {
		text := "  " + status + took
		if why := firstLine(r.Error); why != "" {
			text += ": " + why
		} else if errorType != "" {
			text += ": " + errorType
		}
		s.line(s.colour.red(s.cut(text, 0)))
		return
	}
	var command struct { // of bash
		Status   string
		ExitCode *int `json:"exit_code"`
		Stdout   string
		Stderr   string
	}
	_ = json.Unmarshal(r.Data, &command)
	switch {
	case command.Status == "running":
		s.line("  goes on in the background" + took)
	case command.ExitCode != nil && *command.ExitCode != 0:
		text := fmt.Sprintf("  exit %d%s", *command.ExitCode, took)
		why := firstLine(command.Stderr)
		if why == "" {
			why = firstLine(command.Stdout)
		}
		if why != "" {
			text += ": " + why
		}
		s.line(s.colour.red(s.cut(text, 0)))
	default:
		s.line("  ok" + took)
	}
}

// task shows how a command in the background ended.
func (s *screen) task(b *protocol.TaskUpdated) {
	var task struct {
		Command  string
		Status   string
		ExitCode int `json:"exit_code"`
	}
	_ = json.Unmarshal(b.Task, &task)
	switch task.Status {
	case "completed", "failed":
		s.linef("• in the background: %s", s.cut(task.Command, 20))
		s.linef("  exit %d", task.ExitCode)
	case "cancelled", "timed_out", "lost":
		s.linef("• in the background: %s", s.cut(task.Command, 20))
		s.linef("  %s", plainLine(task.Status))
	}
}

// telling are the arguments that say best what a call does, best first.
var telling = []string{"command", "path", "file_path", "pattern", "query", "url", "question", "name", "task_id"}

// summary is a call in one line.
func (s *screen) summary(tool string, arguments json.RawMessage) string {
	var args map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &args)
	for _, name := range telling {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return plainLine(tool) + ": " + s.cut(text, len(tool)+4)
		}
	}
	if len(args) == 0 || args["plan"] != nil {
		return plainLine(tool)
	}
	return plainLine(tool) + ": " + s.cut(string(arguments), len(tool)+4)
}

// cut makes text one line that fits beside used columns.
func (s *screen) cut(text string, used int) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	text = lead + plainLine(text)
	room := max(s.width-used, 20)
	if protocol.CharLen(text) <= room {
		return text
	}
	return protocol.Prefix(text, room-1) + "…"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return plainLine(line)
}

func planMark(status string) string {
	switch status {
	case "completed":
		return "[x]"
	case "in_progress":
		return "[>]"
	case "cancelled":
		return "[-]"
	}
	return "[ ]"
}

// usage is the line behind a turn; "" where no model was asked.
func (s *screen) usage(took time.Duration, session string) string {
	st := s.stats
	if st == nil {
		return ""
	}
	approx := ""
	if st.Anchor == "estimate" {
		approx = "about "
	}
	var parts []string
	if st.InputTokens+st.OutputTokens > 0 { // the demo counts none
		parts = append(parts, fmt.Sprintf("%s%d tokens in, %d out", approx, st.InputTokens, st.OutputTokens))
		if st.ContextWindowTokens > 0 {
			parts = append(parts, fmt.Sprintf("%.0f %% of the context window", st.ContextUsagePercent*100))
		}
	}
	if took >= 50*time.Millisecond {
		parts = append(parts, fmt.Sprintf("%.1fs", took.Seconds()))
	}
	if session != "" {
		parts = append(parts, "session "+session)
	}
	if len(parts) == 0 {
		return ""
	}
	return s.colour.dim("[" + strings.Join(parts, "; ") + "]")
}

// consentMissing says what a turn was refused, and what to do; "" where nothing was.
func (s *screen) consentMissing() string {
	if len(s.refused) == 0 {
		return ""
	}
	const most = 5
	named := s.refused
	if len(named) > most {
		named = append(append([]string{}, named[:most]...), fmt.Sprintf("and %d more", len(s.refused)-most))
	}
	return fmt.Sprintf("consent was needed and nobody could be asked (%s); rind chat asks you, --mode edit lets files of the workspace be written, --mode full also lets commands run", strings.Join(named, "; "))
}

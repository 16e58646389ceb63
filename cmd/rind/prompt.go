package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// maxStdin bounds what is read from a pipe as input.
const maxStdin = 8 << 20

type promptFlags struct {
	common
	json     bool
	session  string
	latest   bool
	model    string
	provider string
	mode     string
	resume   bool
}

func promptCommand(std *streams) *cobra.Command {
	var f promptFlags
	cmd := &cobra.Command{
		Use:   "prompt [TEXT]",
		Short: "Ask the agent one thing and show its answer",
		Long: "Runs one turn and shows it as it happens: the answer on standard output, tool calls and token counts on standard error.\n" +
			"Piped input is appended to TEXT. Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 cancelled, 4 consent needed, 5 settings or key.",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runPrompt(cmd.Context(), std, &f, args) },
	}
	f.common.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "write events as JSON lines, then one result line")
	fl.StringVar(&f.session, "session", "", "go on with this session")
	fl.BoolVarP(&f.latest, "resume-latest", "c", false, "go on with the newest session of this folder")
	fl.BoolVar(&f.resume, "resume", false, "finish the interrupted turn of the session instead of asking something")
	fl.StringVar(&f.model, "model", "", "model to use")
	fl.StringVar(&f.provider, "provider", "", "provider to use, by its name in the settings")
	fl.StringVar(&f.mode, "mode", "", "approval mode: ask, edit, read or full")
	return cmd
}

func runPrompt(ctx context.Context, std *streams, f *promptFlags, args []string) error {
	input, err := promptInput(std, args)
	if err != nil {
		return err
	}
	switch {
	case f.resume && input != "":
		return usageError{errors.New("--resume cannot be combined with input")}
	case f.resume && f.session == "" && !f.latest:
		return usageError{errors.New("--resume needs --session or -c")}
	case !f.resume && strings.TrimSpace(input) == "":
		return usageError{errors.New(`nothing to ask: give a text, as in: rind prompt "explain this folder"`)}
	}
	switch f.mode {
	case "", "ask", "edit", "read", "full":
	default:
		return usageError{fmt.Errorf("--mode must be ask, edit, read or full, not %q", f.mode)}
	}
	interactive := isTerminal(std.in) && isTerminal(std.err)
	rt, err := compose(std, &f.common, composition{typed: true, temporary: true, unattended: !interactive, modelFlag: f.model != "" || f.provider != ""})
	if err != nil {
		return err
	}
	defer rt.close()
	s, err := f.find(ctx, rt)
	if err != nil {
		return asExit(err)
	}
	defer s.Close()
	show := &shower{std: std, json: f.json, rt: rt, session: s}
	return show.turn(ctx, session.PromptRequest{Input: input, Resume: f.resume}, interactive)
}

// promptInput joins the arguments and what is piped in.
func promptInput(std *streams, args []string) (string, error) {
	input := strings.Join(args, " ")
	if isTerminal(std.in) || std.in == nil {
		return input, nil
	}
	if file, ok := std.in.(*os.File); ok { // only a pipe or a file is input; an inherited descriptor that never ends is not
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 || len(args) > 0 && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 && !info.Mode().IsRegular() {
			return input, nil
		}
	}
	piped, err := io.ReadAll(io.LimitReader(std.in, maxStdin+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(piped) > maxStdin {
		return "", exitf(exitUsage, "standard input is longer than %d bytes; put it into a file of the workspace and name it", maxStdin)
	}
	switch text := strings.ToValidUTF8(string(piped), "\uFFFD"); {
	case strings.TrimSpace(text) == "":
		return input, nil
	case input == "":
		return text, nil
	default:
		return input + "\n\n" + text, nil
	}
}

// find opens the session asked for, or makes a new one, and sets it as the flags say.
func (f *promptFlags) find(ctx context.Context, rt *process) (*session.Session, error) {
	var s *session.Session
	var err error
	switch {
	case f.session != "":
		if !protocol.ValidSessionID(f.session) {
			return nil, exitf(exitUsage, "Invalid session id.")
		}
		s, err = rt.all.Open(ctx, session.SessionID(f.session))
	case f.latest:
		s, err = rt.all.Latest(ctx, rt.workspace)
	default:
		return rt.all.Draft(ctx, session.DraftOptions{
			Workspace: rt.workspace, Selection: session.Selection{Provider: f.provider, Model: f.model, Mode: f.mode},
		})
	}
	if err != nil {
		return nil, err
	}
	c := session.Change{}
	for _, x := range []struct {
		value string
		field **string
	}{{f.provider, &c.Provider}, {f.model, &c.Model}, {f.mode, &c.Mode}} {
		if x.value != "" {
			*x.field = &x.value
		}
	}
	if c == (session.Change{}) {
		return s, nil
	}
	done := make(chan error, 1)
	s.Change(c, func(_ session.Selection, _ string, err error) { done <- err })
	if err := <-done; err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// shower shows one turn to a person, or to a program.
type shower struct {
	std     *streams
	json    bool
	rt      *process
	session *session.Session

	open     bool // the line on stdout is not ended
	consent  bool // a call was rejected because nobody could be asked
	stats    *protocol.Stats
	asked    map[string]bool
	askLines chan string
}

// turn prompts, shows, and answers with the exit code.
func (sh *shower) turn(ctx context.Context, req session.PromptRequest, interactive bool) error {
	wake := make(chan struct{}, 1)
	ring := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	var at session.Seq
	var follower *session.Follower
	if err := sh.session.InspectNow(ctx, func(v *session.View) {
		at = v.Head
		follower = v.Follow(ring, nil, nil)
	}); err != nil {
		return err
	}
	defer follower.Stop()

	type end struct {
		o   session.Outcome
		err error
	}
	ended := make(chan end, 1)
	sh.session.Prompt(req, func(o session.Outcome, err error) { ended <- end{o, err} })
	sigs := make(chan os.Signal, 2)
	signal.Notify(sigs, stopSignals()...)
	defer signal.Stop(sigs)
	if interactive {
		sh.asked = map[string]bool{}
	}
	var over *end
	cancelled := false
	for {
		var err error
		if at, err = sh.drain(ctx, at); err != nil {
			return err
		}
		if over != nil && at >= over.o.Seq {
			sh.endLine()
			return sh.result(over.o, over.err)
		}
		select {
		case <-wake:
		case e := <-ended:
			over = &e
		case line := <-sh.askLines:
			sh.answer(line)
		case <-sigs:
			if cancelled {
				return &exit{code: 130}
			}
			cancelled = true
			sh.session.Cancel(session.CancelRequest{}, func(error) {})
		case <-ctx.Done():
			sh.session.Cancel(session.CancelRequest{}, func(error) {})
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// drain shows everything behind at.
func (sh *shower) drain(ctx context.Context, at session.Seq) (session.Seq, error) {
	for {
		page, head, err := sh.session.Read(ctx, at, 256)
		if err != nil {
			return at, err
		}
		for i := range page {
			at = page[i].Seq
			if err := sh.entry(&page[i]); err != nil {
				return at, err
			}
		}
		if at >= head || len(page) == 0 {
			return at, nil
		}
	}
}

func (sh *shower) entry(e *session.Entry) error {
	b, err := protocol.Decode(e)
	if err != nil {
		return err
	}
	if r, ok := b.(*protocol.ToolResult); ok && r.ErrorType == protocol.ErrApprovalUnavailable {
		sh.consent = true
	}
	if sh.json {
		if e.Event == nil {
			return nil
		}
		_, err := sh.std.out.Write(append(append([]byte(nil), e.Event...), '\n'))
		return err
	}
	return sh.person(b)
}

// person shows an entry as lines for a terminal.
func (sh *shower) person(b protocol.Body) error {
	var err error
	switch b := b.(type) {
	case *protocol.AssistantDelta:
		_, err = io.WriteString(sh.std.out, printable(b.Text))
		sh.open = !strings.HasSuffix(b.Text, "\n")
	case *protocol.AssistantMessageCompleted:
		sh.endLine()
		if b.Interrupted {
			sh.note("(cut off)")
		}
	case *protocol.TurnStepRetry:
		sh.note("the answer broke off; trying again (attempt %d): the text above since the last tool call is void", b.Attempt)
	case *protocol.ToolCallStarted:
		sh.endLine()
	case *protocol.ToolRequested:
		sh.note("· %s %s", b.ToolName, protocol.Prefix(printable(oneLine(string(b.Arguments))), 120))
	case *protocol.ToolResult:
		if b.Status != protocol.ToolCompleted {
			sh.note("  %s: %s", b.Status, b.ErrorType)
		}
	case *protocol.ToolProgress:
		sh.note("  %s", printable(oneLine(b.Payload.Message)))
	case *protocol.TokenStatsUpdated:
		sh.stats = &b.Stats
	case *protocol.ApprovalRequested:
		sh.ask(b.ActionID, fmt.Sprintf("%s  [y]es, [a]lways, [n]o: ", printable(b.Title)))
	case *protocol.UserQuestionRequested:
		text := printable(b.Question)
		for i, o := range b.Options {
			text += fmt.Sprintf("\n  %d. %s", i+1, printable(o.Label))
		}
		sh.ask(b.ToolCallID, text+"\n> ")
	}
	return err
}

func (sh *shower) note(format string, args ...any) {
	sh.endLine()
	fmt.Fprintf(sh.std.err, format+"\n", args...)
}

func (sh *shower) endLine() {
	if sh.open && !sh.json {
		fmt.Fprintln(sh.std.out)
		sh.open = false
	}
}

// ask puts a question to the person at the terminal; the answer arrives in askLines.
func (sh *shower) ask(id, text string) {
	if sh.asked == nil || sh.asked[id] {
		return
	}
	sh.asked[id] = true
	sh.endLine()
	fmt.Fprint(sh.std.err, text)
	if sh.askLines == nil {
		sh.askLines = make(chan string)
		go func() { // ends with the process: a read from a terminal cannot be cancelled
			in := bufio.NewScanner(sh.std.in)
			for in.Scan() {
				sh.askLines <- in.Text()
			}
		}()
	}
}

// answer gives a line the person typed to the oldest open action.
func (sh *shower) answer(line string) {
	var approval, question string
	var choices []protocol.Choice
	_ = sh.session.InspectNow(context.Background(), func(v *session.View) {
		lt := v.Live(true)
		switch {
		case lt == nil:
		case len(lt.Approvals) > 0:
			approval = lt.Approvals[0].ActionID
		case lt.Question != nil:
			question, choices = lt.Question.ToolCallID, lt.Question.Options
		}
	})
	done := func(err error) {
		if err != nil {
			sh.note("%s", err)
		}
	}
	switch {
	case approval != "":
		option := map[string]string{"y": "allow_once", "yes": "allow_once", "a": "allow_always", "always": "allow_always"}[strings.ToLower(strings.TrimSpace(line))]
		if option == "" {
			option = "reject_once"
		}
		sh.session.ResolveApproval(approval, option, done)
	case question != "":
		var n int
		if _, err := fmt.Sscanf(strings.TrimSpace(line), "%d", &n); err == nil && n >= 1 && n <= len(choices) {
			line = choices[n-1].Label
		}
		sh.session.AnswerQuestion(question, line, done)
	}
}

// result ends the show: the usage line, or the result line of --json, and the exit code.
func (sh *shower) result(o session.Outcome, err error) error {
	if err != nil {
		return asExit(err)
	}
	if sh.json {
		line := struct {
			Type      string             `json:"type"`
			SessionID session.SessionID  `json:"session_id"`
			TurnID    session.TurnID     `json:"turn_id"`
			Outcome   string             `json:"outcome"`
			Stop      string             `json:"stop_reason"`
			Error     *session.TurnFault `json:"error,omitempty"`
			Answer    string             `json:"answer"`
		}{"result", sh.session.ID, o.Turn, o.Outcome, o.Stop, o.Fault, o.Answer}
		j, err := json.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(sh.std.out, "%s\n", j); err != nil {
			return err
		}
	} else {
		sh.usage()
	}
	switch o.Outcome {
	case session.OutcomeCancelled:
		return &exit{code: exitCancelled, text: "cancelled; go on with: rind prompt --session " + string(sh.session.ID)}
	case session.OutcomeFailed:
		code := exitFailed
		if o.Fault != nil && o.Fault.Type == protocol.FailConfiguration {
			code = exitConfig
		}
		text := "the turn failed"
		if o.Fault != nil {
			text = o.Fault.Message
		}
		return &exit{code: code, text: text}
	}
	if sh.consent {
		return &exit{code: exitConsent, text: "a tool call needed consent and nobody could be asked; run in a terminal, or with --mode edit or full"}
	}
	return nil
}

func (sh *shower) usage() {
	if sh.stats == nil {
		return
	}
	st := sh.stats
	approx := ""
	if st.Anchor == "estimate" {
		approx = "about "
	}
	fmt.Fprintf(sh.std.err, "[%s%d tokens in, %d out; %.0f %% of the context window; session %s]\n", approx, st.InputTokens, st.OutputTokens, st.ContextUsagePercent*100, sh.session.ID)
}

// asExit gives an error of the runtime its exit code.
func asExit(err error) error {
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		if e.Kind == protocol.ConfigurationError {
			return &exit{exitConfig, e.Message}
		}
		return &exit{exitFailed, e.Message}
	}
	return err
}

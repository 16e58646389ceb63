package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// maxStdin bounds what is read from a pipe as input.
const maxStdin = 8 << 20

type promptFlags struct {
	chosen
	json   bool
	resume bool
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
	f.bind(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "write events as JSON lines, then one result line")
	fl.BoolVar(&f.resume, "resume", false, "finish the interrupted turn of the session instead of asking something")
	return cmd
}

func runPrompt(ctx context.Context, std *streams, f *promptFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
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
	ignorePipe()        // an answer that nobody takes ends the turn, not the process in the middle of it
	var person *os.File // standard input may be the prompt: answers are read from the terminal itself
	if isTerminal(std.err) {
		if tty, err := openTerminal(); err == nil {
			person = tty
			defer tty.Close()
		}
	}
	rt, err := compose(std, &f.common, composition{typed: true, temporary: true, unattended: person == nil, modelFlag: f.model != "" || f.provider != ""})
	if err != nil {
		return err
	}
	defer rt.close()
	if err := f.fill(ctx, rt); err != nil {
		return err
	}
	s, err := f.find(ctx, rt)
	if err != nil {
		return asExit(err)
	}
	defer s.Close()
	show := &shower{std: std, json: f.json, session: s, screen: newScreen(std), person: person, unheard: make(chan error, 1)}
	show.screen.root = s.Workspace()
	return show.turn(ctx, session.PromptRequest{Input: input, Resume: f.resume})
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

// shower shows one turn to a person, or to a program. It belongs to the goroutine that runs turn, and owns one more, which reads the terminal
// from the first question on: it ends when the terminal is closed, or, where that does not interrupt a read, with the process.
type shower struct {
	std     *streams
	json    bool
	session *session.Session
	screen  *screen
	person  *os.File // the terminal; nil when nobody can be asked

	open    []*question // oldest first
	asked   *question   // the one that is shown
	askedAt time.Time
	typed   chan typed
	unheard chan error // why an answer was not taken
	took    time.Duration
}

// turn prompts, shows, and answers with the exit code.
func (sh *shower) turn(ctx context.Context, req session.PromptRequest) error {
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
		if live := v.Live(true); live != nil && req.Resume { // what was asked before is asked again
			sh.open = questionsOf(live)
		}
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
	if stop := heeded(); len(stop) > 0 { // Notify without signals takes all of them
		signal.Notify(sigs, stop...)
		defer signal.Stop(sigs)
	}
	stop := make(chan struct{})
	defer close(stop)
	var over *end
	cancelled := false
	for {
		var err error
		if at, err = sh.drain(ctx, at); err != nil {
			return err
		}
		if over != nil && at >= over.o.Seq {
			sh.screen.endLine()
			sh.screen.settle()
			return sh.result(over.o, over.err)
		}
		if len(sh.open) > 0 && sh.person == nil { // the turn outlives us
			return exitf(exitConsent, "the turn waits for an answer; it goes on with: rind chat --session %s", sh.session.ID)
		}
		sh.ask(stop)
		select {
		case <-wake:
		case e := <-ended:
			over = &e
		case in, ok := <-sh.typed:
			if !ok {
				sh.typed, sh.person = nil, nil
				continue
			}
			sh.answer(in)
		case err := <-sh.unheard: // answered elsewhere meanwhile, which the log tells; or it has to be given again
			sh.screen.fault(messageOf(err))
			if sh.asked != nil {
				sh.asked.sent = false
			}
		case <-sigs:
			if cancelled {
				return &exit{code: exitInterrupted}
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
	switch b := b.(type) {
	case *protocol.ApprovalRequested:
		sh.open = append(sh.open, approvalOf(b))
	case *protocol.UserQuestionRequested:
		sh.open = append(sh.open, questionOf(b))
	case *protocol.ApprovalResolved:
		sh.resolved(b.ActionID)
	case *protocol.UserQuestionAnswered:
		sh.resolved(b.ToolCallID)
	case *protocol.TurnCompleted:
		sh.took = time.Duration(b.DurationMS) * time.Millisecond
	case *protocol.ToolRequested, *protocol.ToolResult:
		if sh.json { // what was refused is named at the end
			sh.screen.remember(b)
		}
	}
	if !sh.json {
		sh.screen.entry(b)
		return sh.screen.err
	}
	if e.Event == nil {
		return nil
	}
	return writeLine(sh.std.out, e.Event)
}

// ask puts the oldest open question to the person at the terminal.
func (sh *shower) ask(stop <-chan struct{}) {
	if len(sh.open) == 0 || sh.asked != nil && (sh.asked.sent || sh.screen.asking) {
		return
	}
	if sh.typed == nil {
		forgetTyped(sh.person)
	}
	if sh.asked != sh.open[0] {
		sh.asked, sh.askedAt = sh.open[0], time.Now()
	}
	sh.screen.ask(sh.asked.show(sh.screen.colour))
	if sh.typed != nil {
		return
	}
	lines := make(chan typed)
	sh.typed = lines
	go func() {
		defer close(lines)
		_ = readTyped(sh.person, true, func(in typed) bool { // a terminal that cannot be read is one that is gone
			select {
			case lines <- in:
				return true
			case <-stop:
				return false
			}
		})
	}()
}

// answer gives what the person typed to the question that is shown.
func (sh *shower) answer(in typed) {
	sh.screen.answered()
	q := sh.asked
	if q == nil || q.sent || !in.at.After(sh.askedAt) { // typed before it was asked: no answer
		return
	}
	text, ok := q.answer(in.text)
	if !ok {
		sh.screen.line(q.again())
		return
	}
	q.sent = true
	done := func(err error) {
		if err != nil {
			sh.unheard <- err // one answer at a time is under way
		}
	}
	if q.consent {
		sh.session.ResolveApproval(q.id, text, done)
	} else {
		sh.session.AnswerQuestion(q.call, text, done)
	}
}

// resolved closes a question; when it was answered elsewhere the person is told.
func (sh *shower) resolved(id string) {
	for i, q := range sh.open {
		if q.id != id {
			continue
		}
		sh.open = append(sh.open[:i:i], sh.open[i+1:]...)
		if sh.asked == q {
			sh.asked = nil
			if !q.sent {
				sh.screen.line("(answered elsewhere, or withdrawn)")
			}
		}
		return
	}
}

// result ends the show: the usage line, or the result line of --json, and the exit code.
func (sh *shower) result(o session.Outcome, err error) error {
	if protocol.KindOf(err) == protocol.SessionBusy && err != nil {
		return exitf(exitFailed, "%s Watch it with: rind replay --follow %s", messageOf(err), sh.session.ID)
	}
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
		if err := writeLine(sh.std.out, line); err != nil {
			return err
		}
	} else if line := sh.screen.usage(sh.took, string(sh.session.ID)); line != "" {
		sh.screen.line(line)
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
	if missing := sh.screen.consentMissing(); missing != "" {
		return &exit{code: exitConsent, text: missing}
	}
	return nil
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
		if e.Kind == protocol.SessionNotFound {
			return exitf(exitFailed, "%s; 'rind sessions list' shows what there is", strings.TrimSuffix(e.Message, "."))
		}
		return &exit{exitFailed, e.Message}
	}
	return err
}

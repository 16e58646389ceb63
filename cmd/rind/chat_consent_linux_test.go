package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const bashOnce = `{"turns":[{"steps":[{"text":"Now I make it. "},{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}}]},{"steps":[{"text":"Done."}]}]}`

func TestPTYConsentInChat(t *testing.T) {
	t.Parallel()
	for answer, made := range map[string]bool{"y": true, "a": true, "n": false, "N": false} {
		t.Run(answer, func(t *testing.T) {
			root := folders(t, bashOnce)
			p := atPTY(t, root, nil, "chat", "make it")
			p.expect("touch made.txt")
			p.expect("[y]es once, [a]lways, [n]o, [N]ever: ")
			p.keys(answer + "\n")
			p.expect("• bash: touch made.txt")
			p.expect("Done.")
			p.expect("> ")
			p.keys("\x04")
			p.ends(exitOK)
			if got := exists(filepath.Join(root, "ws", "made.txt")); got != made {
				t.Errorf("the command ran: %v", got)
			}
		})
	}
}

func TestPTYConsentInPromptWhoseTextIsPiped(t *testing.T) {
	t.Parallel()
	root := folders(t, bashOnce)
	in, err := os.Open(filepath.Join(root, "ws", "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p := startPTY(t, root, nil, in, "prompt")
	p.expect("[y]es once, [a]lways, [n]o, [N]ever: ")
	p.keys("what?\n")
	p.expect("That is no answer to this")
	p.expect("[N]ever: ")
	p.keys("y\n")
	p.expect("Done.")
	p.ends(exitOK)
	if !exists(filepath.Join(root, "ws", "made.txt")) {
		t.Error("the command did not run")
	}
}

func TestPTYFullModeAsksNothing(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"prompt", "chat"} {
		root := folders(t, bashOnce)
		p := atPTY(t, root, nil, command, "--mode", "full", "make it")
		p.expect("Done.")
		if command == "chat" {
			p.expect("> ")
			p.keys("\x04")
		}
		p.ends(exitOK)
		if strings.Contains(p.all(), "[y]es") || !exists(filepath.Join(root, "ws", "made.txt")) {
			t.Errorf("%s: %q", command, p.all())
		}
	}
}

func TestPTYAQuestionOfTheAgent(t *testing.T) {
	t.Parallel()
	play := `{"turns":[{"steps":[{"call":{"name":"ask_user_question","arguments":{"question":"Which one?","options":[{"label":"left (Recommended)","description":"the near one"},{"label":"right","description":"the far one"}]}}}]},{"steps":[{"expect":{"toolResult":"right"}},{"text":"Right it is."}]}]}`
	for _, command := range []string{"prompt", "chat"} {
		p := atPTY(t, folders(t, play), nil, command, "choose")
		p.expect("Which one?\n  1. left (Recommended) - the near one\n  2. right - the far one\nnumber or text: ")
		p.keys("2\n")
		p.expect("Right it is.")
		if command == "chat" {
			p.expect("> ")
			p.keys("\x04")
		}
		p.ends(exitOK)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// withoutTerminal runs the program where there is no terminal at all.
func withoutTerminal(t *testing.T, root, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Dir = filepath.Join(root, "ws")
	cmd.Env = []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + filepath.Join(root, "data"), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestWithoutATerminalWhatNeedsConsentIsRefusedAndNamed(t *testing.T) {
	root := folders(t, bashOnce)
	for name, run := range map[string]func() (string, string, int){
		"prompt":        func() (string, string, int) { return withoutTerminal(t, root, "", "prompt", "make it") },
		"prompt --json": func() (string, string, int) { return withoutTerminal(t, root, "", "prompt", "--json", "make it") },
		"chat":          func() (string, string, int) { return withoutTerminal(t, root, "make it\ny\n", "chat", "--mode", "ask") },
	} {
		out, errs, code := run()
		if code != exitConsent && name != "chat" || !strings.Contains(out, "Done.") {
			t.Errorf("%s: code %d, %q, %q", name, code, out, errs)
		}
		if name != "chat" && !strings.Contains(errs, "rind: consent was needed and nobody could be asked (bash: touch made.txt); rind chat asks you, ") {
			t.Errorf("%s: what was refused is not named: %q", name, errs)
		}
		if exists(filepath.Join(root, "ws", "made.txt")) {
			t.Fatalf("%s: the command ran", name)
		}
	}
	if _, errs, code := withoutTerminal(t, root, "", "prompt", "--mode", "full", "make it"); code != exitOK || !exists(filepath.Join(root, "ws", "made.txt")) {
		t.Errorf("mode full: code %d, %q", code, errs)
	}
}

func TestPTYAlwaysIsAskedOnce(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}}]},{"steps":[{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}}]},{"steps":[{"text":"Done."}]}]}`)
	p := atPTY(t, root, nil, "chat", "make it twice")
	p.expect("[N]ever: ")
	p.keys("a\n")
	if between := p.expect("Done."); strings.Contains(between, "[N]ever") || strings.Count(between, "  ok") != 2 {
		t.Errorf("the second call: %q", between)
	}
	p.expect("> ")
	p.keys("/permissions\n")
	p.expect("touch")
	p.keys("\x04")
	p.ends(exitOK)
}

func TestPTYATurnThatWaitsOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"call":{"name":"ask_user_question","arguments":{"question":"Which one?"}}}]},{"steps":[{"expect":{"toolResult":"the left one"}},{"text":"Left it is."}]}]}`)
	p := atPTY(t, root, nil, "chat", "choose")
	p.expect("Which one?\nanswer: ")
	p.keys("\x04")
	p.expect("The turn waits for an answer; it goes on with: rind chat --session ")
	p.ends(exitConsent)

	if _, errs, code := withoutTerminal(t, root, "", "prompt", "-c", "--resume"); code != exitConsent || !strings.Contains(errs, "the turn waits for an answer") {
		t.Errorf("without a terminal: code %d, %q", code, errs)
	}

	p = atPTY(t, root, nil, "prompt", "-c", "--resume")
	p.expect("Which one?\nanswer: ")
	p.keys("the left one\n")
	p.expect("Left it is.")
	p.ends(exitOK)
}

func TestPTYWhatWasTypedBeforeAQuestionIsNoAnswerToIt(t *testing.T) {
	t.Parallel()
	root := folders(t, `{"turns":[{"steps":[{"text":"Working. "},`+callHeldUp+`]},{"steps":[{"call":{"name":"bash","arguments":{"command":"touch made.txt"}}}]},{"steps":[{"text":"Done."}]}]}`)
	letGo := holdUp(t, root)
	for _, command := range []string{"prompt", "chat"} {
		p := atPTY(t, root, nil, command, "make it")
		p.expect("Working.")
		p.keys("y\n")
		if command == "chat" { // it reads what is typed at any time
			p.expect("(queued: the agent is told at its next step)")
		}
		letGo()
		p.expect("[N]ever: ")
		p.keys("n\n")
		p.expect("Done.")
		if command == "chat" {
			p.expect("> ")
			p.keys("\x04")
		}
		p.ends(exitOK)
		if exists(filepath.Join(root, "ws", "made.txt")) {
			t.Errorf("%s: the command ran", command)
		}
	}
}

// TestAnAnswerThatNobodyTakesEndsTheTurn is `rind … | head`.
func TestAnAnswerThatNobodyTakesEndsTheTurn(t *testing.T) {
	for _, args := range [][]string{{"prompt", "talk"}, {"chat", "talk"}} {
		more := strings.Repeat("more than a pipe holds\n", 256<<10/20) // so that the program still writes when nobody reads any more
		root := folders(t, `{"turns":[{"steps":[{"text":`+string(mustJSON(more))+`,"chunk":4096},{"hang":true}]}]}`)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), acpPatience)
		cmd := exec.CommandContext(ctx, os.Args[0], args...)
		cmd.Dir = filepath.Join(root, "ws")
		cmd.Env = []string{"RIND_TEST_CHILD=1", "RIND_HOME=" + filepath.Join(root, "data"), "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		_ = r.Close()
		_ = cmd.Wait()
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != exitFailed {
			t.Errorf("%s: exit code %d", args[0], code)
		}
		out, _, _ := withoutTerminal(t, root, "", "sessions", "list", "--json")
		var row struct{ ID string }
		_ = json.Unmarshal([]byte(out), &row)
		log, _, _ := withoutTerminal(t, root, "", "replay", row.ID)
		if !strings.Contains(log, `"type":"turn_cancelled"`) {
			t.Errorf("%s: the turn has no end: %s", args[0], tail(log))
		}
	}
}

func TestASignalThatNobodyTakesForcesTheEnd(t *testing.T) {
	forced := make(chan struct{}, 8)
	_, stop := interrupts(func() { forced <- struct{}{} })
	defer stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-forced:
			return
		case <-time.After(50 * time.Millisecond): // signals that come at once are one
		}
	}
	t.Error("the end was not forced")
}

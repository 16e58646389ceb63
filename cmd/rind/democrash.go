package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/settings"
)

func demoCommand(std *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "demo", Short: "See the promises hold", Args: noArgs,
		RunE: withoutCommand(std),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "crash", Short: "Kill a running turn and count what was kept", Args: noArgs,
		Long: "Starts a child of this program that streams an answer, kills it with SIGKILL in the middle, and compares the characters it had\n" +
			"shown with those in the log; then goes on with the session. A scripted model answers, nothing leaves this machine. Exit code 1 if a\nnumber differs.",
		RunE: func(cmd *cobra.Command, _ []string) error { return demoCrash(cmd.Context(), std) },
	})
	return cmd
}

func demoCrash(ctx context.Context, std *streams) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	root, err := os.MkdirTemp("", "rind-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := crashSettings(root); err != nil {
		return err
	}
	child := func(seen *seenText, args ...string) (*proc.Process, error) {
		return proc.Start(proc.Spec{Path: self, Args: append([]string{"prompt", "--json"}, args...), Dir: root, Env: crashEnv(root), Stdout: seen})
	}
	killAfter := 1000 + rand.IntN(4000)
	fmt.Fprintf(std.out, "A child streams a long answer; it is killed once it has shown %d characters.\n", killAfter)
	seen := &seenText{enough: killAfter, reached: make(chan struct{})}
	p, err := child(seen, "tell me a story")
	if err != nil {
		return err
	}
	select {
	case <-seen.reached:
	case <-p.Done():
	case <-ctx.Done():
	}
	p.Kill()
	how, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	if how.Signal == "" {
		return exitf(exitFailed, "the child ended by itself (exit code %d) before it could be killed", how.Code)
	}
	shown, id := seen.result()
	fmt.Fprintf(std.out, "Child %d: killed (%s) in the middle of its answer.\n", p.PID(), how.Signal)

	fmt.Fprintln(std.out, "A second child goes on with the session.")
	again := &seenText{}
	if p, err = child(again, "--session", id, "go on"); err != nil {
		return err
	}
	if how, err = p.Wait(ctx); err != nil {
		return err
	}
	kept, message, terminals, err := crashLog(ctx, root, session.SessionID(id))
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "\n  characters shown before the kill   %7d\n  of those, in the log               %7d\n  in the log in all                  %7d\n  in the message kept of that turn   %7d\n  terminals of 2 turns               %7d\n",
		protocol.CharLen(shown), shared(shown, kept), protocol.CharLen(kept), protocol.CharLen(message), terminals)
	if !strings.HasPrefix(kept, shown) || kept != message || terminals != 2 || how.Code != 0 {
		return exitf(exitFailed, "something was lost: the numbers above differ (second child: exit code %d)", how.Code)
	}
	fmt.Fprintln(std.out, "\nNothing shown was lost.")
	return nil
}

// shared counts the characters two texts begin with in common.
func shared(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	n := 0
	for n < len(ra) && n < len(rb) && ra[n] == rb[n] {
		n++
	}
	return n
}

// crashEnv is the environment of the children: nothing of the user's settings or keys.
func crashEnv(root string) []string {
	env := []string{"RIND_HOME=" + root}
	for _, name := range []string{"PATH", "TMPDIR", "TEMP", "TMP", "SystemRoot"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// crashSettings describes a scripted model that tells a long story at a steady pace.
func crashSettings(root string) error {
	if err := settings.MakeRoot(root); err != nil {
		return err
	}
	story := strings.Repeat("The log is the queue; what was shown is kept. ", 400)
	script := map[string]any{"turns": []any{
		map[string]any{"match": "story", "steps": []any{map[string]any{"text": story, "chunk": 5, "delayMs": 1}}},
		map[string]any{"steps": []any{map[string]any{"text": "Going on."}}},
	}}
	set := map[string]any{"provider": "story", "providers": map[string]any{"story": map[string]any{"type": "script", "model": "script", "script": filepath.Join(root, "story.json")}}}
	for name, v := range map[string]any{"story.json": script, settings.FileName: set} {
		j, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, name), j, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// crashLog reads what was kept: the pieces and the message of the first turn, and the terminals of all.
func crashLog(ctx context.Context, root string, id session.SessionID) (pieces, message string, terminals int, err error) {
	store, err := openStore(filepath.Join(root, "sessions", "rind.db"))
	if err != nil {
		return "", "", 0, err
	}
	defer store.Close()
	var first session.TurnID
	for at := session.Seq(0); ; {
		page, err := store.Read(ctx, id, at, 512, protocol.ViewAll)
		if err != nil {
			return "", "", 0, err
		}
		for i := range page {
			at = page[i].Seq
			b, err := protocol.Decode(&page[i])
			if err != nil {
				return "", "", 0, err
			}
			if page[i].Kind.Info().Terminal {
				terminals++
			}
			if first == "" {
				first = page[i].Turn
			}
			if page[i].Turn != first {
				continue
			}
			switch b := b.(type) {
			case *protocol.AssistantDelta:
				pieces += b.Text
			case *protocol.AssistantMessageCompleted:
				message += b.Content
			}
		}
		if len(page) < 512 {
			return pieces, message, terminals, nil
		}
	}
}

// seenText reads the JSON lines of a child as its user would see them.
type seenText struct {
	enough  int
	reached chan struct{}

	mu      sync.Mutex
	rest    []byte
	text    strings.Builder
	chars   int
	session string
}

func (s *seenText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, b...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte{'\n'})
		if !ok {
			return len(b), nil
		}
		s.rest = rest
		var e struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, errors.New("child wrote a line that is no JSON")
		}
		if e.Session != "" {
			s.session = e.Session
		}
		if e.Type != "assistant_delta" {
			continue
		}
		s.text.WriteString(e.Text)
		before := s.chars
		s.chars += protocol.CharLen(e.Text)
		if s.reached != nil && before < s.enough && s.chars >= s.enough {
			close(s.reached)
		}
	}
}

func (s *seenText) result() (text, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.session
}

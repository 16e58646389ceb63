package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/protocol/transcript"
	"github.com/rind-dev/rind/session/proc"
	"github.com/rind-dev/rind/session/settings"
)

// fixtureWait bounds how long an answer, or the first line after a request that is not waited for, may take.
const fixtureWait = 30 * time.Second

func fixtureCommand(std *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fixture", Short: "Record and check golden transcripts of rind v2",
		Long: "A fixture is a txtar file: files of the workspace under ws/, settings.json and script.json of the data folder, and the section talk\n" +
			"with the client's lines and what the server wrote. docs/fixtures.md describes it in five lines.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprint(std.err, cmd.UsageString())
			return &exit{code: exitUsage}
		},
	}
	play := func(use, short string, f func(ctx context.Context, file string, command []string) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use + " FILE -- COMMAND [ARGS]", Short: short, Args: cobra.MinimumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				ctx, stop := signalContext(cmd.Context())
				defer stop()
				return f(ctx, args[0], args[1:])
			},
		})
	}
	play("record", "Run the client's lines of FILE against COMMAND and write down what it says", func(ctx context.Context, file string, command []string) error {
		ar, said, err := playFixture(ctx, file, command)
		if err != nil {
			return err
		}
		for i := range ar.Files {
			if ar.Files[i].Name == "talk" {
				ar.Files[i].Data = []byte(said)
			}
		}
		return os.WriteFile(file, txtar.Format(ar), 0o644)
	})
	play("check", "Run the client's lines of FILE against COMMAND and compare; exit code 1 where a line differs", func(ctx context.Context, file string, command []string) error {
		ar, said, err := playFixture(ctx, file, command)
		if err != nil {
			return err
		}
		return compareTalk(std.out, fixtureSection(ar, "talk"), said)
	})
	return cmd
}

func fixtureSection(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// compareTalk shows the first line that differs.
func compareTalk(out io.Writer, want, got string) error {
	w, g := strings.Split(strings.TrimRight(want, "\n"), "\n"), strings.Split(strings.TrimRight(got, "\n"), "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(nothing)", "(nothing)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			fmt.Fprintf(out, "line %d of the talk\nwant %s\ngot  %s\n", i+1, a, b)
			return exitf(exitFailed, "the transcript differs in line %d of its talk", i+1)
		}
	}
	return nil
}

// playFixture runs the client's lines of a fixture and returns the talk as it came out.
func playFixture(ctx context.Context, file string, command []string) (*txtar.Archive, string, error) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		return nil, "", err
	}
	talk := fixtureSection(ar, "talk")
	if talk == "" {
		return nil, "", exitf(exitUsage, "%s has no section talk", file)
	}
	root, err := os.MkdirTemp("", "rind-fixture-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(root)
	if err := unpackFixture(root, ar); err != nil {
		return nil, "", err
	}
	p := &player{ctx: ctx, root: root, command: command, talks: map[string]*talker{}}
	defer p.end()
	for _, row := range strings.Split(strings.TrimRight(talk, "\n"), "\n") {
		if err := p.row(row); err != nil {
			return nil, "", err
		}
	}
	p.end()
	return ar, p.said.String(), nil
}

// unpackFixture makes the data folder and the workspace of a run.
func unpackFixture(root string, ar *txtar.Archive) error {
	if err := settings.MakeRoot(filepath.Join(root, "home")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "ws"), 0o700); err != nil {
		return err
	}
	for _, f := range ar.Files {
		name := filepath.FromSlash(f.Name)
		switch {
		case !filepath.IsLocal(name):
			return exitf(exitUsage, "fixture names a file outside: %s", f.Name)
		case f.Name == "settings.json" || f.Name == "script.json":
			name = filepath.Join("home", name)
		case !strings.HasPrefix(f.Name, "ws/"):
			continue
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		data := bytes.ReplaceAll(f.Data, []byte("$HOME"), []byte(filepath.ToSlash(filepath.Join(root, "home"))))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// player plays one talk. Each letter is a process of its own on the same data folder.
type player struct {
	ctx     context.Context
	root    string
	command []string
	names   transcript.Names
	talks   map[string]*talker
	order   []string
	said    strings.Builder
}

// talker is one process and what it has said since it was last asked.
type talker struct {
	p     *proc.Process
	in    *io.PipeWriter
	lines chan []byte
}

// row plays one line of the talk: "A> 1 method {params}" waits for its answer, "A>> …" only for the next line, "! eof A" closes the input.
func (p *player) row(row string) error {
	switch {
	case len(row) > 2 && row[1] == '<':
		return nil
	case row == "" || row[0] == '#':
		p.said.WriteString(row + "\n")
		return nil
	case strings.HasPrefix(row, "! eof "):
		p.said.WriteString(row + "\n")
		t := p.talks[strings.TrimPrefix(row, "! eof ")]
		if t == nil {
			return exitf(exitUsage, "no connection for %q", row)
		}
		_ = t.in.Close()
		return p.listen(strings.TrimPrefix(row, "! eof "), func([]byte) bool { return false })
	}
	letter, rest, ok := strings.Cut(row, "> ")
	wait := true
	if strings.HasSuffix(letter, ">") {
		letter, wait = strings.TrimSuffix(letter, ">"), false
	}
	id, call, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || len(letter) != 1 {
		return exitf(exitUsage, "not a line of a talk: %q", row)
	}
	method, params, _ := strings.Cut(call, " ")
	t, err := p.talker(letter)
	if err != nil {
		return err
	}
	p.said.WriteString(row + "\n")
	line := `{"kind":"request","request_id":` + id + `,"method":"` + method + `"`
	if params != "" {
		line += `,"params":` + p.names.Real(params)
	}
	if _, err := io.WriteString(t.in, line+"}\n"); err != nil {
		return exitf(exitFailed, "the command does not read: %v", err)
	}
	return p.listen(letter, func(got []byte) bool {
		if !wait {
			return true
		}
		var r struct {
			Kind string          `json:"kind"`
			ID   json.RawMessage `json:"request_id"`
		}
		return json.Unmarshal(got, &r) == nil && r.Kind == "response" && string(r.ID) == id
	})
}

func (p *player) talker(letter string) (*talker, error) {
	if t := p.talks[letter]; t != nil {
		return t, nil
	}
	in, w := io.Pipe()
	out, sink := io.Pipe()
	child, err := proc.Start(proc.Spec{
		Path: p.command[0], Args: p.command[1:], Dir: filepath.Join(p.root, "ws"), Env: crashEnv(filepath.Join(p.root, "home")), Stdin: in, Stdout: sink, Stderr: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	t := &talker{p: child, in: w, lines: make(chan []byte, 1024)}
	go func() { // ends with the child
		<-child.Done()
		_ = in.Close()
		_ = sink.Close()
	}()
	go func() { // ends with the child's output
		defer close(t.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			t.lines <- bytes.TrimRight(line, "\n")
		}
	}()
	p.talks[letter] = t
	p.order = append(p.order, letter)
	return t, nil
}

// listen writes down what a process says up to the line that enough takes, or its end.
func (p *player) listen(letter string, enough func([]byte) bool) error {
	t := p.talks[letter]
	var last []byte
	flush := func() {
		if last != nil {
			p.said.WriteString(letter + "< " + p.names.Stable(strings.ReplaceAll(string(last), filepath.ToSlash(p.root), "$ROOT")) + "\n")
		}
		last = nil
	}
	defer flush()
	limit := time.NewTimer(fixtureWait)
	defer limit.Stop()
	for {
		select {
		case line, open := <-t.lines:
			if !open {
				return nil
			}
			if last != nil && transcript.Merges(last, line) {
				line = transcript.Joined(last, line)
			} else {
				flush()
			}
			last = line
			if enough(line) {
				return nil
			}
		case <-limit.C:
			return exitf(exitFailed, "no answer within %s", fixtureWait)
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	}
}

// end closes every input and waits for the processes, which are killed when they do not end by themselves.
func (p *player) end() {
	for _, letter := range p.order {
		t := p.talks[letter]
		_ = t.in.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		for open := true; open; {
			select {
			case _, open = <-t.lines:
			case <-ctx.Done():
				open = false
			}
		}
		if _, err := t.p.Wait(ctx); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			_ = err // how it ended is not part of the talk
		}
		cancel()
	}
	p.order = nil
}

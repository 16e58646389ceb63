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

// fixtureWait bounds how long the lines that belong behind one row of a talk may take.
const fixtureWait = 30 * time.Second

func fixtureCommand(std *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fixture", Short: "Record and check golden transcripts of rind v2",
		Long: "A fixture is a txtar file: files of the workspace under ws/, settings.json and script.json of the data folder, and the section talk\n" +
			"with the client's lines and what the server wrote. docs/fixtures.md describes it in five lines.",
		Args: noArgs,
		RunE: withoutCommand(std),
	}
	play := func(use, short string, f func(ctx context.Context, file string, command []string) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use + " FILE -- COMMAND [ARGS]", Short: short, Args: atLeastArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				ctx, stop := signalContext(cmd.Context())
				defer stop()
				return f(ctx, args[0], args[1:])
			},
		})
	}
	play("record", "Run the client's lines of FILE against COMMAND and write down what it says", func(ctx context.Context, file string, command []string) error {
		ar, said, err := playFixture(ctx, file, command, false)
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
		ar, said, err := playFixture(ctx, file, command, true)
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
			fmt.Fprintf(out, "line %d of the talk\nwant %s\ngot  %s\n", i+1, printable(a), printable(b))
			return exitf(exitFailed, "the transcript differs in line %d of its talk", i+1)
		}
	}
	return nil
}

// playFixture runs the client's lines of a fixture and returns the talk as it came out.
func playFixture(ctx context.Context, file string, command []string, check bool) (*txtar.Archive, string, error) {
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
	rows, err := transcript.Rows(talk)
	if err != nil {
		return nil, "", exitf(exitUsage, "%s: %v", file, err)
	}
	p := &player{
		ctx: ctx, root: root, command: command, check: check, talks: map[string]*talker{}, spoken: make(chan spoken, 64), over: make(chan struct{}),
	}
	defer p.end()
	if err := p.play(rows); err != nil && !errors.Is(err, errSilent) {
		return nil, "", err
	}
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
	check   bool // lines are waited for as the fixture has them; else until the command is quiet
	spoken  chan spoken
	over    chan struct{} // closed at the end of the talk: nobody listens
	names   transcript.Names
	talks   map[string]*talker
	order   []string
	said    strings.Builder
}

// talker is one process and what it has said since it was last asked.
type talker struct {
	p     *proc.Process
	in    *io.PipeWriter
	conn  transcript.Conn
	fresh [][]byte
	ended bool
}

// spoken is a line of a process, nil at its end.
type spoken struct {
	by   *talker
	line []byte
}

// play plays the client's rows and writes down what the server says to each.
func (p *player) play(rows []transcript.Row) error {
	for i, r := range rows {
		if r.Said != "" {
			continue
		}
		p.said.WriteString(r.Text + "\n")
		var err error
		switch {
		case r.Method != "":
			err = p.ask(r)
		case r.Words != nil:
			err = p.direct(r.Words)
		default:
			continue
		}
		if err == nil {
			err = p.listen(r, rows, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errSilent ends a talk whose due lines do not come; what came is compared.
var errSilent = errors.New("lines are missing")

func (p *player) ask(r transcript.Row) error {
	t, err := p.talker(r.Conn)
	if err != nil {
		return err
	}
	line := `{"kind":"request","request_id":` + r.ID + `,"method":"` + r.Method + `"`
	if r.Params != "" {
		line += `,"params":` + p.names.Real(r.Params)
	}
	t.conn.Asked(r.ID, r.Method)
	if _, err := io.WriteString(t.in, line+"}\n"); err != nil {
		return exitf(exitFailed, "the command does not read: %v", err)
	}
	return nil
}

// direct follows a directive: "eof A" closes an input, "kill A" kills a process, "sleep 50ms" waits; "process" says that the next letter is
// another process, as each is.
func (p *player) direct(words []string) error {
	bad := exitf(exitUsage, "not a directive of a talk: %q", strings.Join(words, " "))
	if len(words) == 1 && words[0] == "process" {
		return nil
	}
	if len(words) != 2 {
		return bad
	}
	t := p.talks[words[1]]
	switch {
	case words[0] == "sleep":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return bad
		}
		select {
		case <-time.After(d):
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	case t == nil || words[0] != "eof" && words[0] != "kill":
		return bad
	case words[0] == "kill":
		t.p.Kill()
		fallthrough
	default:
		_ = t.in.Close()
	}
	return nil
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
	t := &talker{p: child, in: w}
	go func() { // ends with the child
		<-child.Done()
		_ = in.Close()
		_ = sink.Close()
	}()
	go func() { // ends with the child's output, or with the talk
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				line = nil
			} else {
				line = bytes.TrimRight(line, "\n")
			}
			select {
			case p.spoken <- spoken{t, line}:
			case <-p.over: // nobody listens, but the child has to be able to end
			}
			if err != nil {
				return
			}
		}
	}()
	p.talks[letter] = t
	p.order = append(p.order, letter)
	return t, nil
}

// listen takes in what the processes say to row i, and writes it down in the order transcripts have.
func (p *player) listen(r transcript.Row, rows []transcript.Row, i int) error {
	limit := time.Now().Add(fixtureWait)
	var err error
	for !p.heard(r, rows, i) && err == nil {
		err = p.hear(r, limit)
	}
	if errors.Is(err, errQuiet) {
		err = nil
	}
	for _, letter := range p.order {
		t := p.talks[letter]
		lines, fault := t.conn.Order(t.fresh)
		t.fresh = nil
		for _, line := range lines {
			p.said.WriteString(letter + "< " + p.names.Stable(strings.ReplaceAll(string(line), filepath.ToSlash(p.root), "$ROOT")) + "\n")
		}
		if fault != nil {
			return exitf(exitFailed, "%v", fault)
		}
	}
	return err
}

// heard reports whether all lines that the fixture has behind row i have come.
func (p *player) heard(r transcript.Row, rows []transcript.Row, i int) bool {
	if !p.check {
		return false
	}
	due := transcript.Due(rows, i)
	for _, letter := range p.order {
		if t := p.talks[letter]; !t.ended && !t.conn.Said(t.fresh, due[letter]) {
			return false
		}
	}
	return !r.Waits || p.answered(r)
}

// answered reports whether a request is among what came.
func (p *player) answered(r transcript.Row) bool {
	t := p.talks[r.Conn]
	for _, line := range t.fresh {
		var l struct {
			Kind string          `json:"kind"`
			ID   json.RawMessage `json:"request_id"`
		}
		if json.Unmarshal(line, &l) == nil && l.Kind == "response" && string(l.ID) == r.ID {
			return true
		}
	}
	return t.ended
}

// fixtureQuiet is how long nothing must be said for a recording to go on.
const fixtureQuiet = 400 * time.Millisecond

// errQuiet ends the listening of a recording.
var errQuiet = errors.New("nothing more is said")

// hear waits for one more line of any process.
func (p *player) hear(r transcript.Row, limit time.Time) error {
	late := time.Until(limit)
	quiet := !p.check && (!r.Waits || p.answered(r))
	if quiet {
		late = min(late, fixtureQuiet)
	}
	timer := time.NewTimer(max(late, 0))
	defer timer.Stop()
	select {
	case s := <-p.spoken:
		if s.line == nil {
			s.by.ended = true
			return nil
		}
		s.by.fresh = append(s.by.fresh, s.line)
		return nil
	case <-timer.C:
		if quiet {
			return errQuiet
		}
		return errSilent
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
}

// end closes every input and waits for the processes, which are killed when they do not end by themselves.
func (p *player) end() {
	close(p.over)
	for _, letter := range p.order {
		_ = p.talks[letter].in.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, letter := range p.order {
		_, _ = p.talks[letter].p.Wait(ctx) // how it ended is not part of the talk
	}
}

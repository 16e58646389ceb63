package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/internal/testkit"
	"github.com/rind-dev/rind/protocol/transcript"
)

// TestTheProgramSpeaksTheTranscriptsOfOneConnectionAProcess checks them as a person does, with rind fixture check. Left out are talks that need
// what only a stage has: several connections to one process, gates that open, commands that end when they are told to, more than a flag.
func TestTheProgramSpeaksTheTranscriptsOfOneConnectionAProcess(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/transcripts/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	program := testkit.Build(t)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(program)) })
	tools := offered(t, program)
	played := 0
	t.Run("all", func(t *testing.T) { // so that they can run side by side
		for _, file := range files {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !alone(t, ar) {
				continue
			}
			played++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
				t.Parallel()
				for _, name := range called.FindAllStringSubmatch(fixtureSection(ar, "script.json"), -1) {
					if name[1] != "nothing" && !slices.Contains(tools, name[1]) {
						t.Skipf("the program offers no tool %s yet", name[1])
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
				defer cancel()
				var out, said bytes.Buffer
				args := append([]string{"fixture", "check", file, "--", program, "app-server", "--stdio"}, strings.Fields(fixtureSection(ar, "flags"))...)
				if code := run(ctx, args, strings.NewReader(""), &out, &said); code != 0 {
					t.Errorf("exit code %d: %s%s", code, out.String(), said.String())
				}
			})
		}
	})
	if played < 7 {
		t.Errorf("only %d transcripts were played", played)
	}
}

// called finds the tools a script calls.
var called = regexp.MustCompile(`"call": *\{[^}]*?"name": *"([a-z_]+)"`)

// alone reports whether a talk has one connection a process and no directive that only a stage follows.
func alone(t *testing.T, ar *txtar.Archive) bool {
	t.Helper()
	rows, err := transcript.Rows(fixtureSection(ar, "talk"))
	if err != nil {
		t.Fatal(err)
	}
	conn, past := "", map[string]bool{}
	for _, r := range rows {
		switch {
		case len(r.Words) > 0 && slices.Contains([]string{"open", "write", "exit"}, r.Words[0]):
			return false
		case len(r.Words) > 0 && r.Words[0] == "process":
			past[conn], conn = true, ""
		case r.Method != "" && (past[r.Conn] || conn != "" && r.Conn != conn):
			return false
		case r.Method != "":
			conn = r.Conn
		}
	}
	return true
}

// offered asks a program which tools it offers, by calling one it does not have.
func offered(t *testing.T, program string) []string {
	t.Helper()
	p := &player{
		ctx: t.Context(), root: t.TempDir(), command: []string{program, "app-server", "--stdio"}, talks: map[string]*talker{},
		spoken: make(chan spoken, 64), over: make(chan struct{}),
	}
	defer p.end()
	ar := txtar.Parse([]byte(`-- settings.json --
{"provider":"s","providers":{"s":{"type":"script","model":"m","script":"$HOME/script.json"}}}
-- script.json --
[{"call":{"id":"c","name":"nothing","arguments":{}}},{"finish":"tool_calls"},{"text":"x"}]
`))
	if err := unpackFixture(p.root, ar); err != nil {
		t.Fatal(err)
	}
	for _, ask := range []transcript.Row{{Conn: "A", ID: "1", Method: "initialize", Waits: true}, {Conn: "A", ID: "2", Method: "session/prompt", Params: `{"input":"?"}`, Waits: true}} {
		if err := p.ask(ask); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(fixtureWait); !p.answered(ask); {
			if err := p.hear(ask, limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range p.talks["A"].fresh {
		var l struct {
			Event struct{ Type, Result string } `json:"event"`
		}
		if json.Unmarshal(line, &l) == nil && l.Event.Type == "tool_result" {
			if _, names, ok := strings.Cut(l.Event.Result, "Tools: "); ok {
				names, _, _ = strings.Cut(names, ".")
				return strings.Split(names, ", ")
			}
		}
	}
	t.Fatalf("no tool result among %s", bytes.Join(p.talks["A"].fresh, []byte("\n")))
	return nil
}

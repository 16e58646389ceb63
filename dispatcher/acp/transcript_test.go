package acp_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/protocol/transcript"
)

var rewrite = flag.Bool("update", false, "rewrite the transcripts of fixtures/transcripts/acp")

var estimates = regexp.MustCompile(`"used":[0-9]+`)

// TestTranscriptsAreSpokenAsWritten plays fixtures/transcripts/acp/*.txtar: "> " is a line of the editor, "< " what the agent says before it
// falls silent, "# " a remark, "! process" a new process on the same sessions, "! kill" one after kill -9. Identifiers have names.
func TestTranscriptsAreSpokenAsWritten(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/transcripts/acp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var play, talk string
			for _, f := range ar.Files {
				switch f.Name {
				case "script.json":
					play = string(f.Data)
				case "talk":
					talk = string(f.Data)
				}
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = spoken(t, play, talk) })
			if *rewrite {
				for i := range ar.Files {
					if ar.Files[i].Name == "talk" {
						ar.Files[i].Data = []byte(got)
					}
				}
				if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(strings.Split(talk, "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("-want +got, -update rewrites:\n%s", d)
			}
		})
	}
}

// spoken plays a talk and returns it with what was said.
func spoken(t *testing.T, play, talk string) string {
	w := newWorld()
	names := &transcript.Names{}
	instance := "i1"
	p := w.launch(t, instance, play)
	c := p.connect()
	var out strings.Builder
	listen := func() {
		time.Sleep(5 * time.Second) // of the bubble: the agent has said all it has to say
		c.mu.Lock()
		defer c.mu.Unlock()
		for ; c.at < len(c.lines); c.at++ {
			out.WriteString("< " + estimates.ReplaceAllString(names.Stable(c.lines[c.at].raw), `"used":"<n>"`) + "\n")
		}
	}
	for _, line := range strings.Split(strings.TrimSuffix(talk, "\n"), "\n") {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		out.WriteString(line + "\n")
		switch {
		case strings.HasPrefix(line, "> "):
			c.send(names.Real(line[2:]))
			listen()
		case strings.HasPrefix(line, "! "):
			if line == "! kill" {
				p.store.Kill()
			}
			p.end()
			if line != "! kill" { // else nobody heard what it said
				listen()
			}
			instance += "+"
			p = w.launch(t, instance, play)
			c = p.connect()
		}
	}
	p.end()
	listen()
	return out.String()
}

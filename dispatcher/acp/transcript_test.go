package acp_test

import (
	"flag"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/rind-dev/rind/internal/peers"
	"github.com/rind-dev/rind/protocol/transcript"
)

var rewrite = flag.Bool("update", false, "rewrite the transcripts of fixtures/transcripts/acp")

var estimates = regexp.MustCompile(`"used":[0-9]+`)

// TestTranscriptsAreSpokenAsWritten plays fixtures/transcripts/acp/*.txtar: "> " is a line of the editor, "< " what the agent says before it
// falls silent, "# " a remark, "! process" a new process on the same sessions, "! kill" one after kill -9. Identifiers have names.
func TestTranscriptsAreSpokenAsWritten(t *testing.T) {
	peers.Talks(t, "../../fixtures/transcripts/acp/*.txtar", *rewrite, func(t *testing.T, ar *txtar.Archive) []peers.Spoken {
		var got string
		synctest.Test(t, func(t *testing.T) { got = spoken(t, peers.Section(ar, "script.json"), peers.Section(ar, "talk")) })
		return []peers.Spoken{{Section: "talk", By: "acp", Text: got}}
	})
}

// spoken plays a talk and returns it with what was said.
func spoken(t *testing.T, play, talk string) string {
	w := peers.NewWorld()
	names := &transcript.Names{}
	instance := "i1"
	p := launch(t, w, instance, play)
	c := p.connect()
	var out strings.Builder
	listen := func() {
		time.Sleep(5 * time.Second) // of the bubble: the agent has said all it has to say
		for _, h := range c.Got()[c.at:] {
			out.WriteString("< " + estimates.ReplaceAllString(names.Stable(h.raw), `"used":"<n>"`) + "\n")
			c.at++
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
				p.Store.Kill()
			}
			p.end()
			if line != "! kill" { // else nobody heard what it said
				listen()
			}
			instance += "+"
			p = launch(t, w, instance, play)
			c = p.connect()
		}
	}
	p.end()
	listen()
	return out.String()
}

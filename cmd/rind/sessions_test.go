package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

// TestAnExportWritesAllThatCanBeReadAndNamesWhatCannot: also where the session can no longer be opened, and where several entries lie on what
// is damaged.
func TestAnExportWritesAllThatCanBeReadAndNamesWhatCannot(t *testing.T) {
	long := func(word string) string { return strings.Repeat(word+" ", 1500) }
	var turns []string
	for i := range 8 {
		turns = append(turns, fmt.Sprintf(`{"match":"ask%d.","steps":[{"text":%q}]}`, i, long(fmt.Sprintf("word%d", i))))
	}
	root, ws := playing(t, `{"turns":[`+strings.Join(turns, ",")+`]}`)
	id := ""
	for i := range turns {
		args := []string{"prompt", fmt.Sprintf("ask%d.", i)}
		if id != "" {
			args = append(args, "--session", id)
		}
		if r := rind(t, root, ws, nil, args...); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
		if id == "" {
			var about struct{ ID string }
			if err := json.Unmarshal([]byte(rind(t, root, ws, nil, "sessions", "list", "--json").out), &about); err != nil {
				t.Fatal(err)
			}
			id = about.ID
		}
	}
	whole := rind(t, root, ws, nil, "sessions", "export", id)
	if whole.code != exitOK || whole.err != "" {
		t.Fatalf("before: %d %s", whole.code, whole.err)
	}
	path := filepath.Join(root, "sessions", "rind.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(file []byte) []byte{
		"one message is no JSON": func(file []byte) []byte {
			return bytes.ReplaceAll(file, []byte(`"content":"word3`), []byte(`"content":["word`))
		},
		"two messages are no JSON": func(file []byte) []byte {
			file = bytes.ReplaceAll(file, []byte(`"content":"word2`), []byte(`"content":["word`))
			return bytes.ReplaceAll(file, []byte(`"content":"word6`), []byte(`"content":["word`))
		},
		"its first entry is no JSON": func(file []byte) []byte {
			return bytes.ReplaceAll(file, []byte(`"workspace_root":`), []byte(`"workspace_root"=`))
		},
		"noise over pages of the file": func(file []byte) []byte {
			for at := 0; at+4096 <= len(file); at += 4096 {
				if page := file[at : at+4096]; bytes.Contains(page, []byte("word4 word4")) || bytes.Contains(page, []byte(`ask5.`)) && page[0] == 13 {
					copy(page, bytes.Repeat([]byte{0xA5, 0x5A, 0x99}, 1366))
				}
			}
			return file
		},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := damage(bytes.Clone(file))
			if bytes.Equal(spoiled, file) {
				t.Fatal("nothing was damaged")
			}
			if err := os.WriteFile(path, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}

			r := rind(t, root, ws, nil, "sessions", "export", id)
			before, after := strings.Split(strings.TrimSpace(whole.out), "\n"), strings.Split(strings.TrimSpace(r.out), "\n")
			var left leftOut
			for _, line := range before {
				var e struct{ Seq protocol.Seq }
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(after, line) {
					left.add(e.Seq)
				}
			}
			if len(left) == 0 || len(after) < len(before)/2 {
				t.Fatalf("%d of %d entries, without %s", len(after), len(before), left)
			}
			for _, line := range after {
				if !slices.Contains(before, line) {
					t.Errorf("a line that was not there before: %.200s", line)
				}
			}
			says := fmt.Sprintf("rind: %s of session %s cannot be read and %s left out\n", left, id, left.verb())
			if r.code != exitFailed || r.err != says {
				t.Errorf("exit %d, %q; want %q", r.code, r.err, says)
			}
		})
	}
}

// TestWhoFollowsASessionIsToldThatItWasDeleted, by another process.
func TestWhoFollowsASessionIsToldThatItWasDeleted(t *testing.T) {
	root, ws := playing(t, `{"turns":[{"steps":[{"text":"Hello."}]}]}`)
	if r := rind(t, root, ws, nil, "prompt", "hello"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	var about struct{ ID string }
	if err := json.Unmarshal([]byte(rind(t, root, ws, nil, "sessions", "list", "--json").out), &about); err != nil {
		t.Fatal(err)
	}
	p := launched(t, root, ws, nil, "replay", "--follow", about.ID)
	p.Until(acpPatience, func(line string) bool { return strings.Contains(line, "turn_completed") })
	if r := rind(t, root, ws, nil, "sessions", "delete", about.ID); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if code := p.Wait(acpPatience); code != exitFailed || p.Stderr() != "rind: the session was deleted\n" {
		t.Errorf("it ended with %d and says %q", code, p.Stderr())
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

// Kinds of calls of a job. What a call did is seen outside the log: a line of the ledger for a command, the file that appears or the line
// in it for a file tool.
const (
	callReads  = "reads"  // may run again
	callWrites = "writes" // w/ID.txt appears
	callEdits  = "edits"  // e/ID.txt has a line more
	callRuns   = "runs"   // a line of the ledger, and b/ID.txt
	callTask   = "task"   // a line of the ledger, by a command that goes on in the background
)

// effect is one call of a script, and what is to be seen of it.
type effect struct {
	id, kind string
	job      *chaosJob
}

// chaosJob is a prompt and the calls the model answers it with.
type chaosJob struct {
	n      int
	turns  string // of the script, as JSON
	effect []*effect
}

func (j *chaosJob) prompt() string { return fmt.Sprintf("please do job-%04d;", j.n) }

// path is the file in the workspace that only this call touches; "" for none.
func (e *effect) path() string {
	switch e.kind {
	case callWrites:
		return "w/" + e.id + ".txt"
	case callEdits:
		return "e/" + e.id + ".txt"
	case callRuns:
		return "b/" + e.id + ".txt"
	}
	return ""
}

// before is what is in that file before the call; "" for no file.
func (e *effect) before() string {
	if e.kind == callEdits {
		return "END\n"
	}
	return ""
}

// jobMaker draws jobs.
type jobMaker struct {
	rnd    *rand.Rand
	ledger string
	made   int
}

// call draws a call.
func (m *jobMaker) call(j *chaosJob) map[string]any {
	id := fmt.Sprintf("j%04dc%02d", j.n, len(j.effect))
	e := &effect{id: id, job: j, kind: callRuns}
	odd := fmt.Sprintf("%04d", m.rnd.IntN(10_000))
	line := fmt.Sprintf("echo %s >> %s", id, m.ledger)
	file := fmt.Sprintf("echo %s > b/%s.txt", id, id)
	name, args := "bash", map[string]any{}
	switch m.rnd.IntN(16) {
	case 0:
		e.kind, name, args = callReads, "read_file", map[string]any{"path": "a.txt"}
	case 1:
		e.kind, name, args = callReads, "grep", map[string]any{"pattern": "hel+o"}
	case 2:
		e.kind, name = callReads, "update_plan"
		args["plan"] = []map[string]string{{"step": "do " + id, "status": "in_progress"}, {"step": "be done", "status": "pending"}}
	case 3:
		e.kind, args["command"] = callReads, "cat a.txt"
	case 4:
		e.kind, name = callReads, "ask_user_question"
		args["question"] = "Go on with " + id + "?"
		args["options"] = []map[string]string{{"label": "Yes (Recommended)", "description": ""}, {"label": "No", "description": ""}}
	case 5, 6:
		e.kind, name, args = callWrites, "write_file", map[string]any{"path": e.fileOf(callWrites), "content": "written " + id + "\n"}
	case 7, 8:
		e.kind, name, args = callEdits, "edit_file", map[string]any{"path": e.fileOf(callEdits), "old_str": "END", "new_str": id + "\nEND"}
	case 9:
		e.kind, args["command"], args["yield_time_ms"] = callTask, line+"; sleep 0.1"+odd+"; echo end", 0
	case 10:
		e.kind, args["command"], args["yield_time_ms"], args["notify"] = callTask, line+"; sleep 600."+odd, 0, "manual"
	case 11:
		e.kind, args["command"], args["yield_time_ms"], args["notify"] = callTask, line+"; sleep 0.2"+odd, 30, "manual"
	case 12: // it leaves its process group, and outlives its call
		args["command"] = line + "; " + file + "; setsid sleep 601." + odd + " >/dev/null 2>&1 &"
	case 13:
		args["command"] = line + "; " + file + "; sleep 0.1" + odd
	case 14:
		args["command"] = line + "; " + file + "; exit 3"
	default:
		args["command"] = line + " && " + file
	}
	j.effect = append(j.effect, e)
	return map[string]any{"call": map[string]any{"id": id, "name": name, "arguments": args}}
}

func (e *effect) fileOf(kind string) string {
	return (&effect{id: e.id, kind: kind}).path()
}

// job draws a job: some steps of text and calls, and a last word.
func (m *jobMaker) job() *chaosJob {
	j := &chaosJob{n: m.made}
	m.made++
	var steps []map[string]any
	for range 2 + m.rnd.IntN(4) {
		if m.rnd.IntN(2) == 0 {
			steps = append(steps, map[string]any{"text": fmt.Sprintf("Step of job %d, said in pieces. ", j.n), "chunk": 3, "delayMs": 1})
		}
		for range 1 + m.rnd.IntN(4) {
			steps = append(steps, m.call(j))
		}
		steps = append(steps, map[string]any{"finish": "tool_calls"})
	}
	steps = append(steps, map[string]any{"text": fmt.Sprintf("Job %d is done.", j.n), "chunk": 4, "delayMs": 1})
	j.turns = string(protocol.MustMarshal(map[string]any{"match": j.prompt(), "steps": steps}))
	return j
}

// scriptOf is what the model answers: jobs to their prompts, and a word to everything else, as the notices of tasks that ended.
func scriptOf(jobs []*chaosJob) string {
	turns := make([]string, 0, len(jobs)+1)
	for _, j := range jobs {
		turns = append(turns, j.turns)
	}
	turns = append(turns, `{"match":"towards the goal","steps":[{"repeat":{"times":1000,"steps":[{"text":"A step towards the goal.","chunk":3,"delayMs":2},{"finish":"stop"}]}}]}`)
	turns = append(turns, `{"steps":[{"repeat":{"times":3000,"steps":[{"text":"Noted."},{"finish":"stop"}]}}]}`)
	return `{"turns":[` + strings.Join(turns, ",\n") + `]}`
}

// workspaceOf makes the folders and files that jobs work on.
func workspaceOf(t *testing.T, ws string, jobs []*chaosJob) {
	t.Helper()
	for _, dir := range []string{"w", "e", "b"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("a.txt", "hello\n")
	for _, j := range jobs {
		for _, e := range j.effect {
			if e.kind == callEdits {
				put(e.path(), e.before())
			}
		}
	}
}

// contentOf is the file's content, "" for none.
func contentOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostile is a model that tries to steer the terminal of whoever reads it, and an endpoint whose error does.
const hostile = `{"turns":[{"match":"fail","steps":[{"fail":"\u001b[31mbad\u009b2J key\u202e"}]},
{"steps":[{"text":"a\u001b[31mb\u009bc\u0007d\re"},{"call":{"id":"c1","name":"ev\u001b[31mil","arguments":{"path":"\u001b]0;title\u0007\u009bx\u202e"}}},{"finish":"tool_calls"},{"text":"Done."}]}]}`

// obeyed reports whether a terminal acts on a character instead of showing it.
func obeyed(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }

// steers finds what a terminal would obey, or what would turn the order of characters around.
func steers(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return obeyed(r) || turns(r) })
}

// TestNothingAModelSaysSteersTheTerminalOfACommand runs every command that shows a person what a session holds, or what went wrong.
func TestNothingAModelSaysSteersTheTerminalOfACommand(t *testing.T) {
	root, ws := playing(t, hostile)
	said := rind(t, root, ws, nil, "prompt", "--", "\x1b[1mask\u202e it\nnow")
	id := strings.TrimSuffix(said.err[strings.LastIndex(said.err, " ")+1:], "]\n")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"prompt", "again"}, exitOK, "Done."},
		{[]string{"prompt", "fail"}, exitFailed, "bad2J key"},
		{[]string{"sessions", "show", id}, exitOK, "ev[31mil"},
		{[]string{"sessions", "list"}, exitOK, id},
		{[]string{"sessions", "show", "\x1b[31mnone"}, exitUsage, "Invalid session id."},
		{[]string{"config", "get", "\x1b[31mnone"}, exitUsage, "none"},
		{[]string{"app-server", "\x1b[31mnone"}, exitUsage, "none"},
		{[]string{"acp", "\x1b[31mnone"}, exitUsage, "none"},
		{[]string{"prompt", "--cwd", filepath.Join(ws, "\x1b[31mnone"), "x"}, exitFailed, "does not exist"},
	} {
		r := rind(t, root, ws, nil, c.args...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.says) {
			t.Errorf("%q: exit code %d, %q, %q", c.args, r.code, r.out, r.err)
		}
		if strings.ContainsFunc(r.out, obeyed) || steers(r.err) {
			t.Errorf("%q: steers the terminal: %q, %q", c.args, r.out, r.err)
		}
	}
	if strings.ContainsFunc(said.out, obeyed) || steers(said.err) {
		t.Errorf("steers the terminal: %q, %q", said.out, said.err)
	}
}

// TestALineOfJSONOnATerminalIsTheSameValueAndSteersNothing: JSON lets characters stand raw in its strings that a terminal obeys.
func TestALineOfJSONOnATerminalIsTheSameValueAndSteersNothing(t *testing.T) {
	value := map[string]string{"text": "\x1b[31m\u009b2J\x7f \u202eabc\u2066 ü 日本 \U0001F600 \u2028 \n"}
	line, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if !steers(string(line)) {
		t.Fatal("the test tries nothing")
	}
	safe := escaped(line)
	var back map[string]string
	if err := json.Unmarshal(safe, &back); err != nil || back["text"] != value["text"] {
		t.Errorf("%v: %q became %q", err, value["text"], back["text"])
	}
	if steers(string(safe)) || !bytes.Contains(safe, []byte("日本 \U0001F600")) {
		t.Errorf("%s", safe)
	}
}

// TestMistakesInTheCommandLineEndWith2AndDoNothing: docs/cli.md, exit codes.
func TestMistakesInTheCommandLineEndWith2AndDoNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("RIND_HOME", home)
	for _, args := range [][]string{
		{},
		{"nothing"},
		{"--nothing"},
		{"sessions", "nothing"},
		{"sessions", "delete"},
		{"sessions", "delete", "../x"},
		{"sessions", "delete", ""},
		{"sessions", "show", "a", "b"},
		{"sessions", "list", "--limit", "0"},
		{"sessions", "list", "--limit", "-9223372036854775808"},
		{"sessions", "list", "--limit", "99999999999999999999"},
		{"sessions", "prune", "--older", "-48h"},
		{"replay", "a", "--after", "-1"},
		{"fixture"},
		{"fixture", "check"},
		{"fixture", "check", "file"},
		{"demo"},
		{"config"},
		{"config", "set", "model"},
		{"doctor", "--online", "--offline"},
		{"doctor", "--yes"},
		{"help", "nothing"},
		{"help", "sessions", "nothing"},
		{"completion"},
		{"completion", "nothing"},
		{"completion", "bash", "nothing"},
		{"undo", ""},
		{"undo", "a", "b"},
		{"prompt", " "},
		{"prompt", "--mode", "all", "x"},
		{"prompt", "--session", "a/b", "x"},
		{"chat", "--session", ".."},
		{"schema", "nothing"},
		{"serve", "nothing"},
		{"acp", "nothing"},
		{"app-server", "nothing"},
		{"login", "a", "b"},
		{"logout", "a", "b"},
		{"models", "nothing"},
		{"trust", "--show", "--revoke"},
		{"version", "nothing"},
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &out, &said)
		if code != exitUsage || out.Len() > 0 || strings.TrimSpace(said.String()) == "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out.String(), said.String())
		}
	}
	if left, err := os.ReadDir(home); err == nil && len(left) > 0 {
		t.Errorf("a mistake left %v", left)
	}
}

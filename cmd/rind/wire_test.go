package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// eventful is a turn with a command, a call that fails and text, and one that does not end by itself.
const eventful = `{"turns":[{"match":"work","steps":[{"call":{"id":"c1","name":"bash","arguments":{"command":"ls; echo noise >&2"}}},{"call":{"id":"c2","name":"read_file","arguments":{"path":"none"}}},
{"finish":"tool_calls"},{"text":"All is done."}]},{"match":"stay","steps":[{"text":"It goes on. "},{"hang":true}]}]}`

// TestStandardOutputHoldsLinesOfTheProtocolOnlyWhateverIsSetForDebugging holds a session with all that makes programs talk, from the first
// byte to the last one behind the end of the input.
func TestStandardOutputHoldsLinesOfTheProtocolOnlyWhateverIsSetForDebugging(t *testing.T) {
	noise := []string{"RIND_TRACE_LLM=1", "DEBUG=*", "VERBOSE=1", "TRACE=1", "LOG_LEVEL=trace", "GODEBUG=http2debug=2,gctrace=1", "OTEL_LOG_LEVEL=debug", "OPENAI_LOG=debug", "ANTHROPIC_LOG=debug", "GIT_TRACE=1"}
	for _, c := range []struct {
		name  string
		args  []string
		hello string
		ask   func(input, session string) string
		stop  func(session string) string
		line  string // how every line begins
	}{
		{
			"acp",
			[]string{"acp", "--debug"},
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
			func(input, id string) string {
				return `{"jsonrpc":"2.0","id":"` + input + `","method":"session/prompt","params":{"sessionId":"` + id + `","prompt":[{"type":"text","text":"` + input + `"}]}}`
			},
			func(id string) string {
				return `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + id + `"}}`
			},
			`{"jsonrpc":"2.0",`,
		},
		{
			"rind v2",
			[]string{"app-server", "--stdio", "--debug", "--trace-llm"},
			`{"kind":"request","request_id":1,"method":"initialize","params":{}}`,
			func(input, _ string) string {
				return `{"kind":"request","request_id":"` + input + `","method":"session/prompt","params":{"input":"` + input + `"}}`
			},
			func(string) string { return `{"kind":"request","request_id":"stop","method":"session/cancel"}` },
			`{"kind":"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, eventful)
			if err := os.Mkdir(filepath.Join(filepath.Dir(root), ".gitconfig"), 0o000); err != nil { // git cannot read it
				t.Fatal(err)
			}
			p := launched(t, root, ws, noise, c.args...)
			send := func(line string) {
				t.Helper()
				if err := p.WriteLine(line); err != nil {
					t.Fatal(err)
				}
			}
			var all []string
			until := func(parts ...string) string {
				t.Helper()
				got := p.Until(acpPatience, func(line string) bool {
					for _, part := range parts {
						if !strings.Contains(line, part) {
							return false
						}
					}
					return true
				})
				all = append(all, got...)
				return got[len(got)-1]
			}
			send(c.hello)
			until(`"result":{`)
			id := ""
			if c.name == "acp" {
				send(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"mcpServers":[],"cwd":` + quoted(ws) + `}}`)
				answer := until(`"id":2`, `"sessionId"`)
				var l struct {
					Result struct{ SessionID string }
				}
				_ = json.Unmarshal([]byte(answer), &l)
				id = l.Result.SessionID
			}
			send(c.ask("work", id))
			until(`d":"work"`, `"result"`)
			send(c.ask("stay", id))
			until("It goes on")
			send(c.stop(id))
			until(`d":"stay"`, `"result"`)
			send(c.ask("stay", id)) // open when the input ends
			until("It goes on")
			p.CloseStdin()
			all = append(all, p.Rest(acpPatience)...)
			if code := p.Wait(acpPatience); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if len(all) < 10 {
				t.Errorf("only %d lines", len(all))
			}
			for _, line := range all {
				if !strings.HasPrefix(line, c.line) || !json.Valid([]byte(line)) {
					t.Errorf("no line of the protocol: %q", line)
				}
			}
			if last := all[len(all)-1]; !strings.Contains(last, `d":"stay"`) {
				t.Errorf("the last line is %s", last)
			}
			if p.Stderr() == "" {
				t.Error("nothing was said on standard error: the test tries nothing")
			}
		})
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// TestSignalsEndAppServerAsTheContractSays: docs/protocol/rind-v2.md section 1.4, with a command that runs.
func TestSignalsEndAppServerAsTheContractSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []os.Signal
		ends    bool
	}{
		{"SIGTERM", []os.Signal{syscall.SIGTERM}, true},
		{"SIGHUP", []os.Signal{syscall.SIGHUP}, true},
		{"SIGTERM twice", []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, true},
		{"SIGINT twice", []os.Signal{syscall.SIGINT, syscall.SIGINT}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root, ws := playing(t, `{"turns":[{"steps":[{"call":{"id":"c1","name":"bash","arguments":{"command":"echo on; sleep 307"}}}]}]}`)
			p := launched(t, root, ws, nil, "app-server", "--stdio")
			for _, line := range []string{
				`{"kind":"request","request_id":1,"method":"initialize","params":{}}`, `{"kind":"request","request_id":9,"method":"rind/session/set_mode","params":{"mode":"full"}}`,
				`{"kind":"request","request_id":2,"method":"session/prompt","params":{"input":"go"}}`,
			} {
				if err := p.WriteLine(line); err != nil {
					t.Fatal(err)
				}
			}
			p.Until(acpPatience, func(line string) bool { return strings.Contains(line, `"type":"tool_call_started"`) })
			began := time.Now()
			for _, s := range c.signals {
				if err := p.Signal(s); err != nil && c.ends { // a second one may come too late
					break
				}
				time.Sleep(time.Millisecond) // signals that come at once are one
			}
			if !c.ends {
				if err := p.WriteLine(`{"kind":"request","request_id":3,"method":"ping"}`); err != nil {
					t.Fatal(err)
				}
				p.Until(acpPatience, func(line string) bool { return strings.Contains(line, `"request_id":3,"result"`) })
				p.CloseStdin()
			}
			rest := p.Rest(acpPatience)
			code := p.Wait(acpPatience)
			if took := time.Since(began); took > 20*time.Second { // the command takes 307 s
				t.Errorf("the end took %v", took)
			}
			for _, line := range rest {
				if !json.Valid([]byte(line)) {
					t.Errorf("half a line: %q", line)
				}
			}
			if len(c.signals) == 2 && c.ends {
				return // it ends at once, with whatever is stored: the next process closes the turn
			}
			if last := rest[len(rest)-1]; code != exitOK || !strings.Contains(last, `"request_id":2,"result"`) || !strings.Contains(last, `"stop_reason":"shutdown"`) {
				t.Errorf("exit code %d, the last line is %s", code, last)
			}
		})
	}
}

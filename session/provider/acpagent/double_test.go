package acpagent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
)

// TestMain is also the agent that tests host: with ACP_DOUBLE set, this binary speaks the protocol on its standard streams.
func TestMain(m *testing.M) {
	if mode := os.Getenv("ACP_DOUBLE"); mode != "" {
		(&double{
			modes: strings.Split(mode, ","), out: bufio.NewWriter(os.Stdout), answers: map[string]chan json.RawMessage{}, steered: make(chan string, 8),
			set: map[string]string{"mode": "edit", "model": "small", "effort": "low"},
		}).serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// double is an agent that does what the words of a prompt say, and misbehaves as its modes say.
type double struct {
	modes []string

	mu      sync.Mutex // guards what follows
	out     *bufio.Writer
	last    int
	answers map[string]chan json.RawMessage
	cancel  chan struct{}
	session string
	opened  string // how
	logins  []string
	further string // folders, as it was told
	servers string // of the Model Context Protocol, as it was told
	steered chan string
	set     map[string]string // its settings
}

func (d *double) is(mode string) bool { return slices.Contains(d.modes, mode) }

func (d *double) line(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.WriteString(s + "\n")
	_ = d.out.Flush()
}

func (d *double) write(m object) {
	m["jsonrpc"] = "2.0"
	d.line(string(protocol.MustMarshal(m)))
}

func (d *double) update(u object) {
	d.write(object{"method": "session/update", "params": object{"sessionId": d.session, "update": u}})
}

func (d *double) say(text string) {
	d.update(object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": text}})
}

func (d *double) ask(method string, params object) json.RawMessage { return <-d.begin(method, params) }

// begin is ask without waiting.
func (d *double) begin(method string, params object) chan json.RawMessage {
	d.mu.Lock()
	d.last++
	id := fmt.Sprintf("d%d", d.last)
	ch := make(chan json.RawMessage, 1)
	d.answers[id] = ch
	d.mu.Unlock()
	d.write(object{"id": id, "method": method, "params": params})
	return ch
}

type wire struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (d *double) serve() {
	if d.is("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	switch {
	case d.is("dies"):
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, "no key: "+os.Getenv("DOUBLE_SECRET"))
		os.Exit(7)
	case d.is("chatter"): // not an agent
		for range 1200 {
			d.line("Welcome!")
		}
	case d.is("mute"):
		time.Sleep(time.Hour)
	case d.is("noise"):
		d.line("Welcome!\r")
		d.line("\x1b[31mwarning\x1b[0m")
		d.line("")
		d.line(`[1,2]`)
		d.line(`{"jsonrpc":"2.0","id":"never","result":{}}`)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			if d.is("stubborn") {
				time.Sleep(time.Hour)
			}
			return
		}
		var m wire
		if json.Unmarshal(raw, &m) != nil {
			fmt.Fprintln(os.Stderr, "bad message")
			os.Exit(9)
		}
		d.take(m)
	}
}

func (d *double) take(m wire) {
	switch m.Method {
	case "":
		var id string
		_ = json.Unmarshal(m.ID, &id)
		d.mu.Lock()
		ch := d.answers[id]
		delete(d.answers, id)
		d.mu.Unlock()
		if ch != nil {
			if m.Error != nil {
				ch <- m.Error
			} else {
				ch <- m.Result
			}
		}
	case "initialize":
		caps := object{"loadSession": d.is("load"), "promptCapabilities": object{}, "sessionCapabilities": object{}}
		if d.is("resume") {
			caps["sessionCapabilities"] = object{"resume": object{}}
		}
		if d.is("closes") {
			caps["sessionCapabilities"] = object{"resume": object{}, "close": object{}}
		}
		if d.is("roots") {
			caps["sessionCapabilities"] = object{"additionalDirectories": object{}}
		}
		methods := []any{object{"id": "key", "name": "Key", "type": "env_var"}}
		if d.is("login") {
			methods = append(methods, object{"id": "own", "name": "Its own"}, object{"id": "other", "name": "Another", "type": "agent"})
		}
		if d.is("http") {
			caps["mcpCapabilities"] = object{"http": true}
		}
		if d.is("steer") {
			caps["_meta"] = object{"rind/extensions": object{"version": 1, "methods": []string{"_rind/session/steer"}}}
		}
		version := 1
		if d.is("v9") {
			version = 9
		}
		d.write(object{"id": m.ID, "result": object{
			"protocolVersion": version, "agentCapabilities": caps, "agentInfo": object{"name": "double", "version": "1"},
			"authMethods": methods,
		}})
	case "authenticate":
		var p struct{ MethodID string }
		_ = json.Unmarshal(m.Params, &p)
		d.logins = append(d.logins, p.MethodID)
		d.write(object{"id": m.ID, "result": object{}})
	case "session/new":
		d.told(m.Params)
		if d.is("login") && (len(d.logins) == 0 || d.is("locked")) {
			d.write(object{"id": m.ID, "error": object{"code": -32000, "message": "Authentication required"}})
			return
		}
		if d.is("poor") {
			if d.is("early") {
				d.say("early ")
			}
			d.write(object{"id": m.ID, "error": object{"code": -32000, "message": "Authentication required"}})
			return
		}
		d.session, d.opened = fmt.Sprintf("child-%d", os.Getpid()), "new"
		if d.is("early") {
			d.say("early ")
		}
		if d.is("torrent") {
			for range maxBacklog + 500 {
				d.say("x")
			}
		}
		opened := object{"sessionId": d.session, "configOptions": d.options()}
		if d.is("modes") { // and no option for them
			opened["modes"] = object{"currentModeId": d.set["mode"], "availableModes": []any{object{"id": "ask", "name": "Ask"}, object{"id": "edit", "name": "Edit"}}}
		}
		d.write(object{"id": m.ID, "result": opened})
		if d.is("unread") { // reads nothing more
			time.Sleep(time.Hour)
		}
	case "session/load", "session/resume":
		d.told(m.Params)
		var p struct {
			ID string `json:"sessionId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		if d.is("forgetful") {
			d.write(object{"id": m.ID, "error": object{"code": -32002, "message": "No such session"}})
			return
		}
		d.session, d.opened = p.ID, strings.TrimPrefix(m.Method, "session/")
		if d.opened == "load" {
			d.update(object{"sessionUpdate": "user_message_chunk", "content": object{"type": "text", "text": "REPLAYED"}})
			d.say("REPLAYED")
		}
		d.write(object{"id": m.ID, "result": nil})
		if d.opened == "load" {
			d.say("REPLAYED LATE")
		}
	case "session/prompt":
		var p struct {
			Prompt []struct{ Text string } `json:"prompt"`
		}
		_ = json.Unmarshal(m.Params, &p)
		d.mu.Lock()
		d.cancel = make(chan struct{})
		d.mu.Unlock()
		go d.prompt(m.ID, p.Prompt[len(p.Prompt)-1].Text, p.Prompt[0].Text)
	case "session/cancel":
		d.mu.Lock()
		if d.cancel != nil && !d.is("deaf") {
			close(d.cancel)
			d.cancel = nil
		}
		d.mu.Unlock()
	case "session/set_config_option":
		var p struct{ ConfigID, Value string }
		_ = json.Unmarshal(m.Params, &p)
		d.mu.Lock()
		d.set[p.ConfigID] = p.Value
		d.mu.Unlock()
		if d.is("eager") {
			d.say("set ")
		}
		d.write(object{"id": m.ID, "result": object{"configOptions": d.options()}})
	case "session/set_mode":
		var p struct{ ModeID string }
		_ = json.Unmarshal(m.Params, &p)
		d.mu.Lock()
		d.set["mode"] = p.ModeID
		d.mu.Unlock()
		d.write(object{"id": m.ID, "result": object{}})
	case "_rind/session/steer":
		var p struct {
			Prompt []struct{ Text string } `json:"prompt"`
		}
		_ = json.Unmarshal(m.Params, &p)
		if d.is("closed") {
			d.write(object{"id": m.ID, "error": object{"code": -32052, "message": "No active turn"}})
			return
		}
		d.write(object{"id": m.ID, "result": object{"inputId": "theirs-1", "mode": "steering", "pending": 1}})
		d.steered <- p.Prompt[0].Text
	case "session/close":
		at := os.Getenv("HOME") + "/closed"
		_ = os.WriteFile(at+".new", []byte(d.session), 0o600)
		_ = os.Rename(at+".new", at) // whoever sees it reads all of it
		d.write(object{"id": m.ID, "result": object{}})
	}
}

// options are its settings, in the mode of that name.
func (d *double) options() []any {
	if !d.is("options") {
		return []any{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []any
	for _, o := range []struct {
		id, category string
		values       []string
	}{{"mode", "mode", []string{"read", "ask", "edit", "full"}}, {"model", "model", []string{"small", "large"}}, {"effort", "thought_level", []string{"low", "high"}}, {"colour", "_colour", []string{"red", "blue"}}} {
		var values []any
		for _, v := range o.values {
			values = append(values, object{"value": v, "name": v})
		}
		all = append(all, object{"id": o.id, "name": o.id, "type": "select", "category": o.category, "currentValue": d.set[o.id], "options": values})
	}
	return all
}

// told keeps which servers a session was opened with.
func (d *double) told(params json.RawMessage) {
	var p struct{ MCPServers, AdditionalDirectories json.RawMessage }
	_ = json.Unmarshal(params, &p)
	d.servers, d.further = string(p.MCPServers), string(p.AdditionalDirectories)
}

func (d *double) end(id json.RawMessage, reason string) {
	d.write(object{"id": id, "result": object{"stopReason": reason}})
}

// awaitFile waits for a file that the test makes.
func (d *double) awaitFile(name string) {
	for at := os.Getenv("HOME") + "/" + name; ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(at); err == nil {
			return
		}
	}
}

// prompt does what the words say; every word is one deed.
func (d *double) prompt(id json.RawMessage, text, first string) {
	d.mu.Lock()
	cancelled := d.cancel
	d.mu.Unlock()
	for _, word := range strings.Fields(text) {
		name, arg, _ := strings.Cut(word, "=")
		switch name {
		case "hello":
			d.say("Hello ")
			d.say("there.")
		case "say":
			d.say(arg)
		case "update": // as it stands
			d.line(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + d.session + `","update":` + arg + `}}`)
		case "set": // its own setting
			id, value, _ := strings.Cut(arg, ":")
			d.mu.Lock()
			d.set[id] = value
			d.mu.Unlock()
			d.update(object{"sessionUpdate": "config_option_update", "configOptions": d.options()})
		case "settings":
			d.mu.Lock()
			said := fmt.Sprint(d.set)
			d.mu.Unlock()
			d.say(said)
		case "steered": // what the person says meanwhile
			text := <-d.steered
			d.update(object{"sessionUpdate": "user_message_chunk", "messageId": "theirs-1", "content": object{"type": "text", "text": text}})
			d.say("heard:" + text)
		case "unheard": // takes it, and never shows it
			<-d.steered
		case "first":
			d.say(first)
		case "logins":
			d.say(strings.Join(d.logins, ","))
		case "further":
			d.say("further:" + d.further)
		case "part": // from line 2, one line
			d.say(string(d.ask("fs/read_text_file", object{"sessionId": d.session, "path": arg, "line": 2, "limit": 1})))
		case "servers":
			d.say(d.servers)
		case "leak":
			fmt.Fprintln(os.Stderr, "started with "+d.servers)
			os.Exit(4)
		case "opened":
			d.say(d.opened)
		case "pid":
			d.say(fmt.Sprint(os.Getpid()))
		case "env":
			d.say(strings.Join(os.Environ(), "\n"))
		case "bench":
			n, _ := strconv.Atoi(arg)
			for range n {
				d.say("0123456789")
			}
		case "many":
			for range 2000 {
				d.say("0123456789")
			}
		case "think":
			d.update(object{"sessionUpdate": "agent_thought_chunk", "content": object{"type": "text", "text": "Hm."}})
		case "plan":
			d.update(object{"sessionUpdate": "plan", "entries": []any{object{"content": "one", "priority": "high", "status": "in_progress"}}})
		case "unknown":
			d.update(object{"sessionUpdate": "from_the_future", "x": 1})
		case "stranger":
			d.write(object{"method": "session/update", "params": object{"sessionId": "other", "update": object{"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": "STRANGE"}}}})
		case "tool":
			d.update(object{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit a.txt", "kind": "edit", "status": "pending", "rawInput": object{"path": "a.txt"}})
			d.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress"})
			d.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "content": []any{object{"type": "diff", "path": "/w/a.txt", "oldText": "a\n", "newText": "b\n"}}})
		case "orphan":
			d.update(object{"sessionUpdate": "tool_call_update", "toolCallId": "lost", "status": "in_progress", "title": "Nobody announced this"})
		case "ask":
			r := d.ask("session/request_permission", object{
				"sessionId": d.session, "toolCall": object{"toolCallId": "p1", "title": "Run it", "kind": "execute", "status": "pending"},
				"options": []any{object{"optionId": "yes", "name": "Do it", "kind": "allow_once"}, object{"optionId": "ever", "name": "Always", "kind": "allow_always"}, object{"optionId": "no", "name": "Leave it", "kind": "reject_once"}},
			})
			d.say(string(r))
		case "asks": // many at once, and says what each was answered with
			n, _ := strconv.Atoi(arg)
			var all []chan json.RawMessage
			for i := range n {
				all = append(all, d.begin("session/request_permission", object{
					"sessionId": d.session, "toolCall": object{"toolCallId": fmt.Sprint("p", i), "title": fmt.Sprint("Number ", i), "kind": "execute"},
					"options": []any{object{"optionId": "yes", "name": "Do it", "kind": "allow_once"}},
				}))
			}
			d.say("sent")
			for _, ch := range all {
				d.say(string(<-ch))
			}
		case "read":
			d.say(string(d.ask("fs/read_text_file", object{"sessionId": d.session, "path": arg})))
		case "write":
			d.say(string(d.ask("fs/write_text_file", object{"sessionId": d.session, "path": arg, "content": "written\n"})))
		case "run":
			var t struct {
				ID string `json:"terminalId"`
			}
			raw := d.ask("terminal/create", object{"sessionId": d.session, "command": "echo", "args": []any{"from", "terminal"}})
			if json.Unmarshal(raw, &t) != nil || t.ID == "" {
				d.say(string(raw))
				continue
			}
			d.say(string(d.ask("terminal/wait_for_exit", object{"sessionId": d.session, "terminalId": t.ID})))
			d.say(string(d.ask("terminal/output", object{"sessionId": d.session, "terminalId": t.ID})))
			d.ask("terminal/release", object{"sessionId": d.session, "terminalId": t.ID})
			d.say(string(d.ask("terminal/output", object{"sessionId": d.session, "terminalId": t.ID})))
		case "running": // starts a command, and waits for what it says
			var t struct {
				ID string `json:"terminalId"`
			}
			_ = json.Unmarshal(d.ask("terminal/create", object{"sessionId": d.session, "command": "echo " + arg + "; exec sleep 60"}), &t)
			for !strings.Contains(string(d.ask("terminal/output", object{"sessionId": d.session, "terminalId": t.ID})), arg+`\n`) {
				time.Sleep(5 * time.Millisecond)
			}
		case "furnished": // a command with a folder and variables of its own
			raw := d.ask("terminal/create", object{
				"sessionId": d.session, "command": "sh", "args": []any{"-c", "echo $PAGER $PWD"}, "cwd": arg,
				"env": []any{object{"name": "HOME", "value": os.Getenv("HOME")}, object{"name": "PAGER", "value": "rm it"}, object{"name": "a b", "value": "c"}},
			})
			var t struct {
				ID string `json:"terminalId"`
			}
			_ = json.Unmarshal(raw, &t)
			d.ask("terminal/wait_for_exit", object{"sessionId": d.session, "terminalId": t.ID})
			d.say(string(d.ask("terminal/output", object{"sessionId": d.session, "terminalId": t.ID})))
		case "withdraw": // asks for consent and to write a file, and takes both back
			r := d.begin("session/request_permission", object{
				"sessionId": d.session, "toolCall": object{"toolCallId": "p1", "title": "Run it", "kind": "execute"},
				"options": []any{object{"optionId": "yes", "name": "Do it", "kind": "allow_once"}},
			})
			w := d.begin("fs/write_text_file", object{"sessionId": d.session, "path": arg, "content": "x"})
			d.awaitFile("asked")
			d.write(object{"method": "$/cancel_request", "params": object{"requestId": fmt.Sprint("d", d.last-1)}})
			d.write(object{"method": "$/cancel_request", "params": object{"requestId": fmt.Sprint("d", d.last)}})
			d.say(string(<-r) + string(<-w))
		case "used": // says what it used with its answer
			d.write(object{"id": id, "result": object{"stopReason": "end_turn", "usage": object{"inputTokens": 10, "outputTokens": 3, "totalTokens": 13}}})
			return
		case "aside": // says how things stand behind its answer
			d.end(id, "end_turn")
			d.awaitFile("over")
			d.set["effort"] = "high"
			d.update(object{"sessionUpdate": "config_option_update", "configOptions": d.options()})
			d.update(object{"sessionUpdate": "available_commands_update", "availableCommands": []any{}})
			d.update(object{"sessionUpdate": "session_info_update", "title": "Named"})
			d.update(object{"sessionUpdate": "notice", "severity": "warning", "title": "Mind this"})
			d.update(object{"sessionUpdate": "usage_update", "used": 1, "size": 2})
			return
		case "absent": // a command that is not there
			d.say(string(d.ask("terminal/create", object{"sessionId": d.session, "command": arg, "args": []any{"x"}})))
		case "output": // "limit:line", the line escaped: what is kept of a command's output
			limit, line, _ := strings.Cut(arg, ":")
			line, _ = url.QueryUnescape(line)
			var t struct {
				ID string `json:"terminalId"`
			}
			_ = json.Unmarshal(d.ask("terminal/create", object{"sessionId": d.session, "command": line, "outputByteLimit": json.RawMessage(limit)}), &t)
			at := object{"sessionId": d.session, "terminalId": t.ID}
			d.ask("terminal/wait_for_exit", at)
			d.say(string(d.ask("terminal/output", at)))
			d.ask("terminal/release", at)
		case "terminal": // one it never got, in every request
			for _, method := range []string{"output", "wait_for_exit", "kill", "release"} {
				d.say(string(d.ask("terminal/"+method, object{"sessionId": d.session, "terminalId": "term_1"})))
			}
		case "elsewhere": // another session's
			d.say(string(d.ask("fs/read_text_file", object{"sessionId": "other", "path": arg})))
			d.say(string(d.ask("terminal/create", object{"sessionId": "other", "command": "true"})))
		case "wide": // a message in one line of 10 MB
			d.say(strings.Repeat("0123456789", 1<<20))
		case "latter": // asks when it was told to stop
			<-cancelled
			r := d.ask("session/request_permission", object{"sessionId": d.session, "toolCall": object{"toolCallId": "p9", "title": "Late"}, "options": []any{object{"optionId": "yes", "name": "Y", "kind": "allow_once"}}})
			d.say("late:" + string(r))
			d.end(id, "cancelled")
			return
		case "form":
			d.say(string(d.ask("elicitation/create", object{
				"sessionId": d.session, "mode": "form", "message": "Which one?",
				"requestedSchema": object{"type": "object", "properties": object{"pick": object{"type": "string", "oneOf": []any{object{"const": "a", "title": "The first"}, object{"const": "b", "title": "The second"}}}}, "required": []any{"pick"}},
			})))
		case "crash":
			fmt.Fprintln(os.Stderr, "panic: it broke with "+os.Getenv("DOUBLE_SECRET"))
			os.Exit(3)
		case "flood":
			for range 3000 {
				fmt.Fprintln(os.Stderr, strings.Repeat("e", 1000))
			}
		case "long":
			d.line(`{"jsonrpc":"2.0","method":"x","params":{"a":"` + strings.Repeat("x", 20<<20) + `"}}`)
		case "endless":
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("y", 1<<16)); err != nil {
					return
				}
			}
		case "hang":
			<-cancelled
			d.end(id, "cancelled")
			return
		case "await": // a file that the test makes
			d.awaitFile(arg)
		case "refuse":
			d.end(id, "refusal")
			return
		case "odd":
			d.end(id, "from_the_future")
			return
		case "fail":
			d.write(object{"id": id, "error": object{"code": -32603, "message": "It cannot be done"}})
			return
		case "twice":
			d.end(id, "end_turn")
		case "babble": // after its answer, until it is told to stop, and a while longer
			d.end(id, "end_turn")
			for end := os.Getenv("HOME") + "/enough"; ; time.Sleep(5 * time.Millisecond) {
				d.say("la ")
				if _, err := os.Stat(end); err == nil {
					break
				}
			}
			for range 20 {
				d.say("la ")
			}
			_ = os.WriteFile(os.Getenv("HOME")+"/silent", nil, 0o600)
			return
		case "late":
			d.end(id, "end_turn")
			d.awaitFile("over")
			d.say("Later on.")
			return
		}
	}
	d.end(id, "end_turn")
}

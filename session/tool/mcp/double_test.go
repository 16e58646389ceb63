package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rind-dev/rind/protocol"
)

// TestMain is also the server that tests start: with MCP_DOUBLE set, this binary speaks the protocol on its standard streams.
func TestMain(m *testing.M) {
	if mode := os.Getenv("MCP_DOUBLE"); mode != "" {
		(&double{mode: mode, out: bufio.NewWriter(os.Stdout)}).serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// double is a server whose tools misbehave in one way each.
type double struct {
	mode string
	mu   sync.Mutex // guards out and what follows
	out  *bufio.Writer
	more bool // the list of tools has grown
	got  []string
	ids  map[string]chan json.RawMessage
}

// testMessage bounds a message in tests, so that they need not write 16 MiB.
const testMessage = 1 << 20

type object = map[string]any

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

// has reports whether a message of that method came.
func (d *double) has(method string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.got, method)
}

func (d *double) say(text string, id json.RawMessage) {
	d.write(object{"id": id, "result": object{"content": []any{object{"type": "text", "text": text}}}})
}

// start does what the mode asks for before a message is read; false ends the server.
func (d *double) start() bool {
	switch d.mode {
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot find module 'left-pad' with key "+os.Getenv("DOUBLE_KEY"))
		os.Exit(3)
	case "mute":
		_, _ = os.Stdin.Read(make([]byte, 1))
		select {}
	case "deaf": // never reads
		select {}
	case "late":
		for {
			if _, err := os.Stat(os.Getenv("DOUBLE_GATE")); err == nil {
				return true
			}
			time.Sleep(5 * time.Millisecond)
		}
	case "noise":
		d.line("Server listening on stdio")
		d.line("")
		d.line("{not json")
		d.line(`{"jsonrpc":"2.0","id":99,"result":{}}`)
		d.line("\x00\xff\xfe{}")
		d.line(`[1,2`)
		d.line(strings.Repeat("x", testMessage+10))
	case "echoes":
		d.line("listening with " + os.Getenv("DOUBLE_SAYS"))
		fmt.Fprintln(os.Stderr, "listening with "+os.Getenv("DOUBLE_SAYS"))
		d.write(object{"method": "notifications/message", "params": object{"level": "info", "data": os.Getenv("DOUBLE_SAYS")}})
	case "flood":
		text := strings.Repeat("e", 1000) + "\n"
		for range 5000 {
			_, _ = os.Stderr.WriteString(text)
		}
	}
	return true
}

func (d *double) serve() {
	d.ids = map[string]chan json.RawMessage{}
	if !d.start() {
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if d.mode == "stubborn" {
				select {}
			}
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			fmt.Fprintln(os.Stderr, "bad message")
			os.Exit(9)
		}
		d.mu.Lock()
		d.got = append(d.got, m.Method)
		d.mu.Unlock()
		if m.Method == "" {
			d.mu.Lock()
			ch := d.ids[string(m.ID)]
			d.mu.Unlock()
			if ch != nil {
				ch <- json.RawMessage(line)
			}
			continue
		}
		d.handle(&m)
	}
}

func (d *double) handle(m *message) {
	switch m.Method {
	case "initialize":
		d.write(object{"id": m.ID, "result": object{
			"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{"listChanged": true}},
			"serverInfo": object{"name": "double", "version": "1"},
		}})
	case "tools/list":
		d.list(m)
	case "tools/call":
		go d.call(m)
	}
}

func item(name, about string) object {
	return object{"name": name, "description": about, "inputSchema": object{"type": "object"}}
}

var doubleTools = []string{
	"echo", "structured", "fail", "error", "crash", "hang", "forever", "image", "env", "huge", "grow", "ask", "cancelled", "unknown", "cwd", "pid", "twice", "tardy", "spam", "big", "torn", "nothing", "scalar",
}

func (d *double) list(m *message) {
	var all []any
	for _, name := range doubleTools {
		all = append(all, item(name, "does "+name))
	}
	d.mu.Lock()
	if d.more && d.mode == "sulky" {
		d.mu.Unlock()
		d.write(object{"id": m.ID, "error": object{"code": -32603, "message": "not again"}})
		return
	}
	if d.more {
		all = append(all, item("grown", "new"))
	}
	d.mu.Unlock()
	if d.mode == "many" {
		for i := range 300 {
			all = append(all, item(fmt.Sprint("n", i), ""))
		}
	}
	if d.mode == "liar" {
		all = append(all,
			object{"name": "banana", "inputSchema": object{"type": "object", "properties": object{"a": object{"type": "banana"}}}},
			object{"name": "nowhere", "inputSchema": object{"type": "object", "properties": object{"a": object{"$ref": "#/definitions/none"}}}},
			object{"name": "five", "inputSchema": object{"type": "object", "properties": object{"a": 5}}},
			object{"name": "pattern", "inputSchema": object{"type": "object", "properties": object{"a": object{"type": "string", "pattern": "(?<=x)["}}}},
			object{"name": "safe", "inputSchema": object{"type": "object"}, "annotations": object{"readOnlyHint": true, "destructiveHint": false, "title": "trust me"}},
		)
	}
	if d.mode == "odd" {
		all = []any{
			object{"name": "git.status", "description": "a\u202eb\x1b[31m\tc\nd\U000E0041", "inputSchema": object{"type": "object", "oneOf": []any{object{}}, "$schema": "http://json-schema.org/draft-07/schema#"}, "annotations": object{"readOnlyHint": true}},
			object{"name": "git_status", "description": strings.Repeat("ä", 5000), "inputSchema": object{"properties": object{"q": object{"type": "string", "description": "x\x07y"}}}},
			object{"name": "big", "inputSchema": object{"type": "object", "description": strings.Repeat("x", maxSchema)}},
			object{"name": "list", "inputSchema": []any{}},
			object{"name": "text", "inputSchema": object{"type": "string"}},
			object{"name": ""},
			object{"name": "param", "inputSchema": object{"properties": object{"a b": object{}}}},
			object{"name": "deep", "inputSchema": json.RawMessage(strings.Repeat(`{"items":`, 40) + "{}" + strings.Repeat("}", 40))},
			7,
			object{"name": "bare"},
			object{"name": "bare"},
			object{"name": strings.Repeat("long", 30)},
		}
	}
	var p struct{ Cursor string }
	_ = json.Unmarshal(m.Params, &p)
	at := 0
	_, _ = fmt.Sscan(p.Cursor, &at)
	end := min(at+3, len(all))
	r := object{"tools": all[at:end]}
	if end < len(all) || d.mode == "endless" {
		r["nextCursor"] = fmt.Sprint(end)
	}
	d.write(object{"id": m.ID, "result": r})
}

func (d *double) call(m *message) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	progress := func(n int) {
		d.write(object{"method": "notifications/progress", "params": object{"progressToken": p.Meta.Token, "progress": n, "total": 10, "message": fmt.Sprintf("step %d", n)}})
	}
	switch p.Name {
	case "echo":
		d.say(string(p.Arguments), m.ID)
	case "structured":
		d.write(object{"id": string(m.ID), "result": object{"content": []any{object{"type": "text", "text": "see\x1b data"}}, "structuredContent": json.RawMessage(`{"n":9007199254740993,"t":"a\u0007b"}`)}})
	case "fail":
		d.write(object{"id": m.ID, "result": object{"isError": true, "content": []any{object{"type": "text", "text": "no such\nrow"}}}})
	case "error":
		d.write(object{"id": m.ID, "error": object{"code": -32602, "message": "city is needed"}})
	case "crash":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
	case "hang":
	case "forever":
		for i := range 10000 {
			progress(i)
			time.Sleep(10 * time.Millisecond)
		}
	case "image":
		d.write(object{"id": m.ID, "result": object{"content": []any{
			object{"type": "image", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==", "mimeType": "image/jpeg"},
			object{"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
			object{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
			object{"type": "audio", "data": strings.Repeat("AAAA", 190<<10), "mimeType": "audio/wav"},
			object{"type": "resource", "resource": object{"uri": "file:///a/b.txt", "mimeType": "text/plain", "text": "hello"}},
			object{"type": "resource_link", "uri": "https://x.example/y", "name": "why"},
			object{"type": "image", "data": "!!"},
		}}})
	case "unknown":
		d.write(object{"id": m.ID, "result": object{"content": []any{object{"type": "hologram"}, 5, object{"type": "text", "text": "rest"}}}})
	case "env":
		d.say(strings.Join(os.Environ(), "\n"), m.ID)
	case "pid":
		d.say(fmt.Sprint(os.Getpid()), m.ID)
	case "cwd":
		wd, _ := os.Getwd()
		d.say(wd, m.ID)
	case "twice":
		d.write(object{"id": 999999, "result": object{"content": []any{object{"type": "text", "text": "of a call nobody made"}}}})
		d.write(object{"id": 1.5, "result": object{}})
		d.write(object{"id": nil, "error": object{"code": -32700, "message": "no JSON"}})
		d.line(`{"jsonrpc":"2.0","id":{"a":1},"result":{}}`)
		d.say("first", m.ID)
		d.say("second", m.ID)
		d.write(object{"id": m.ID, "error": object{"code": 1, "message": "third"}})
	case "tardy": // answers once nobody waits for it
		for !d.has("notifications/cancelled") {
			time.Sleep(5 * time.Millisecond)
		}
		d.say("too late", m.ID)
		d.mu.Lock()
		d.got = append(d.got, "answered late")
		d.mu.Unlock()
	case "spam":
		text := strings.Repeat("s", 500)
		for i := range 5000 {
			d.write(object{"method": "notifications/progress", "params": object{"progressToken": i, "progress": 1, "message": text}})
			d.line("not a message " + text)
		}
		for range 100 {
			d.write(object{"method": "notifications/tools/list_changed"})
		}
		d.say("at last", m.ID)
	case "big":
		d.say(strings.Repeat("line of many\n", 30<<10), m.ID)
	case "torn":
		d.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"ty`)
		os.Exit(4)
	case "nothing":
		d.write(object{"id": m.ID})
	case "scalar":
		d.write(object{"id": m.ID, "result": 7})
	case "huge":
		d.say(strings.Repeat("h", testMessage), m.ID)
	case "grow":
		d.mu.Lock()
		d.more = true
		d.mu.Unlock()
		d.write(object{"method": "notifications/tools/list_changed"})
		d.say("grown", m.ID)
	case "ask":
		var answers []string
		for _, method := range []string{"ping", "roots/list", "sampling/createMessage", "elicitation/create"} {
			ch := make(chan json.RawMessage, 1)
			d.mu.Lock()
			d.ids[`"`+method+`"`] = ch
			d.mu.Unlock()
			d.write(object{"id": method, "method": method, "params": object{}})
			answers = append(answers, strings.TrimSpace(string(<-ch)))
		}
		d.say(strings.Join(answers, "\n"), m.ID)
	case "cancelled":
		d.mu.Lock()
		text := strings.Join(d.got, " ")
		d.mu.Unlock()
		d.say(text, m.ID)
	default:
		d.write(object{"id": m.ID, "error": object{"code": -32602, "message": "Unknown tool"}})
	}
}

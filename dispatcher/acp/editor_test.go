package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rind-dev/rind/dispatcher/acp"
	"github.com/rind-dev/rind/internal/peers"
)

const editing = `{"turns":[{"match":"read","steps":[{"call":{"id":"r1","name":"read_file","arguments":{"path":"f"}}},{"finish":"tool_calls"},{"text":"Read."}]},
{"match":"edit","steps":[{"call":{"id":"e1","name":"edit_file","arguments":{"path":"f","old_str":"word","new_str":"term"}}},{"finish":"tool_calls"},{"text":"Done."}]}]}`

const withFiles = `{"fs":{"readTextFile":true,"writeTextFile":true}}`

func yes() bool { return true }

// atFolder makes a session in a folder with the file f.
func (c *client) atFolder(t *testing.T, text string) (id, dir string) {
	c.T.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600)
	}
	if err != nil {
		c.T.Fatal(err)
	}
	h, _ := c.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, dir))
	return between(h.raw, `"sessionId":"`, `"`), dir
}

// asked waits for a call of the agent.
func (c *client) asked(method string) *heard {
	c.T.Helper()
	h, _ := c.until(method, func(h *heard) bool { return h.Method == method })
	return h
}

func (c *client) result(h *heard, result string) {
	c.T.Helper()
	c.send(`{"jsonrpc":"2.0","id":` + string(h.ID) + `,"result":` + result + `}`)
}

func TestFilesAreReadAndWrittenThroughTheEditorUnderTheNamesItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var link, real string
		p := launchWith(t, peers.NewWorld(), "i1", editing, acp.Config{ClientFiles: yes, Resolve: func(path string) (string, error) {
			if path == link {
				return real, nil
			}
			return path, nil
		}})
		c := p.start(withFiles)
		_, real = c.atFolder(t, "on disk\n")
		link = filepath.Join(filepath.Dir(real), "as-the-editor-says")
		h, _ := c.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, link))
		id := between(h.raw, `"sessionId":"`, `"`)
		ask := c.ask("session/prompt", prompting(id, "read"))
		read := c.asked("fs/read_text_file")
		if want := fmt.Sprintf(`"params":{"sessionId":%q,"path":%q}`, id, filepath.Join(link, "f")); !strings.Contains(read.raw, want) {
			t.Errorf("asked %s, want %s", read.raw, want)
		}
		c.result(read, `{"content":"unsaved word\n"}`)
		if _, told := c.answer(ask); !strings.Contains(told[len(told)-1].raw+c.heardSince(0), "unsaved word") {
			t.Errorf("%s", c.heardSince(0))
		}
		ask = c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission() // consent as always
		c.choose(req, "allow_once")
		c.result(c.asked("fs/read_text_file"), `{"content":"unsaved word\n"}`)
		write := c.asked("fs/write_text_file")
		if !strings.Contains(write.raw, `"content":"unsaved term\n"`) {
			t.Errorf("asked %s", write.raw)
		}
		c.result(write, `{}`)
		_, told := c.answer(ask)
		diff := false
		for _, h := range told {
			diff = diff || strings.Contains(h.raw, `"oldText":"unsaved word\n","newText":"unsaved term\n"`)
		}
		if data, _ := os.ReadFile(filepath.Join(real, "f")); string(data) != "on disk\n" || !diff {
			t.Errorf("on disk %q\n%s", data, c.heardSince(0))
		}
		p.end()
	})
}

func TestAfterTwoFaultsTheEditorsFilesAreLeftAloneOnThatConnection(t *testing.T) {
	for name, fault := range map[string]func(c *client, h *heard){
		"silence": func(*client, *heard) {},
		"an error": func(c *client, h *heard) {
			c.send(`{"jsonrpc":"2.0","id":` + string(h.ID) + `,"error":{"code":-32603,"message":"no"}}`)
		},
		"nonsense": func(c *client, h *heard) { c.result(h, `{"content":7}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := launchWith(t, peers.NewWorld(), "i1", editing, acp.Config{ClientFiles: yes})
				c := p.start(withFiles)
				id, _ := c.atFolder(t, "on disk\n")
				for range 2 {
					ask := c.ask("session/prompt", prompting(id, "read"))
					begun := time.Now()
					fault(c, c.asked("fs/read_text_file"))
					h, told := c.answer(ask)
					if took := time.Since(begun); stopOf(h) != "end_turn" || took > 6*time.Second || !strings.Contains(raws(told), "on disk") {
						t.Errorf("after %v: %s", took, h.raw)
					}
				}
				at := c.at
				c.call("session/prompt", prompting(id, "read"))
				if strings.Contains(c.heardSince(at), "fs/") {
					t.Errorf("asked again:\n%s", c.heardSince(at))
				}
				p.end()
			})
		})
	}
}

func raws(lines []*heard) string {
	var out []string
	for _, h := range lines {
		out = append(out, h.raw)
	}
	return strings.Join(out, "\n")
}

func TestTheEditorsFilesAreUsedOnlyWhereBothMethodsAreOfferedAndWanted(t *testing.T) {
	for _, c := range []struct {
		name, caps string
		cfg        acp.Config
		version    int
	}{
		{"only reading", `{"fs":{"readTextFile":true}}`, acp.Config{ClientFiles: yes}, 1},
		{"only writing", `{"fs":{"writeTextFile":true}}`, acp.Config{ClientFiles: yes}, 1},
		{"switched off", withFiles, acp.Config{}, 1},
		{"the draft", withFiles, acp.Config{ClientFiles: yes, Draft: true}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := launchWith(t, peers.NewWorld(), "i1", editing, c.cfg)
				e := p.connect()
				e.call("initialize", fmt.Sprintf(`{"protocolVersion":%d,"clientCapabilities":%s}`, c.version, c.caps))
				id, _ := e.atFolder(t, "on disk\n")
				if _, told := e.call("session/prompt", prompting(id, "read")); !strings.Contains(raws(told), "on disk") || strings.Contains(raws(told), `"fs/`) {
					t.Errorf("%s", raws(told))
				}
				p.end()
			})
		})
	}
}

func TestACancelTakesBackWhatTheEditorIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", editing, acp.Config{ClientFiles: yes})
		c := p.start(withFiles)
		id, dir := c.atFolder(t, "a word\n")
		ask := c.ask("session/prompt", prompting(id, "edit"))
		req, _ := c.permission()
		c.choose(req, "allow_once")
		c.result(c.asked("fs/read_text_file"), `{"content":"a word\n"}`)
		write := c.asked("fs/write_text_file")
		c.tell("session/cancel", named(id))
		h, told := c.answer(ask)
		time.Sleep(time.Second) // of the bubble: the withdrawal may come right behind the answer
		taken := false
		for _, l := range append(told[:len(told):len(told)], c.Got()[c.at:]...) {
			taken = taken || l.Method == "$/cancel_request" && string(l.Params.RequestID) == string(write.ID)
		}
		if data, _ := os.ReadFile(filepath.Join(dir, "f")); stopOf(h) != "cancelled" || !taken || string(data) != "a word\n" {
			t.Errorf("%s; withdrawn %v, on disk %q", h.raw, taken, data)
		}
		p.end()
	})
}

// Another connection's prompt works on the disk, whatever the first offers.
func TestFilesGoToTheConnectionThatPromptsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := launchWith(t, peers.NewWorld(), "i1", editing, acp.Config{ClientFiles: yes})
		with, without := p.start(withFiles), p.start(`{}`)
		id, dir := with.atFolder(t, "on disk\n")
		without.call("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, dir))
		at := with.at
		if _, told := without.call("session/prompt", prompting(id, "read")); !strings.Contains(raws(told), "on disk") {
			t.Errorf("%s", raws(told))
		}
		time.Sleep(time.Second)
		if strings.Contains(with.heardSince(at), `"fs/`) {
			t.Errorf("asked:\n%s", with.heardSince(at))
		}
		p.end()
	})
}

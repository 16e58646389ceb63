//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// TestTenMegabytesInOneLineAreKeptWholeAndToldShort sends a prompt of ten megabytes and lets a command print as much without a line break:
// both are answered, the connection is told a bounded part, the log keeps the prompt to its last character, and what is longer than a
// line may be is refused without ending the connection.
func TestTenMegabytesInOneLineAreKeptWholeAndToldShort(t *testing.T) {
	const size = 10_000_000
	root := chaosRoot(t, fmt.Sprintf(`{"turns":[
		{"match":"print","steps":[{"call":{"name":"bash","arguments":{"command":"head -c %d /dev/zero | tr '\\0' x"}}},{"finish":"tool_calls"},{"text":"printed"},{"finish":"stop"}]},
		{"steps":[{"repeat":{"times":2,"steps":[{"text":"heard"},{"finish":"stop"}]}}]}]}`, size))
	s := serve(t, root, "")
	s.send(1, "initialize", map[string]any{})
	if _, ok := s.reply(1); !ok {
		t.Fatal("initialize was not answered")
	}
	long := strings.Repeat("0123456789", size/10)
	for id, input := range []string{2: long, 3: "print", 4: "again"} {
		if input == "" {
			continue
		}
		if input == "again" {
			s.send(99, "session/prompt", map[string]any{"input": long + long}) // beyond a line's bound: answered without its id
			if !s.until(time.Minute, func(l wireLine) bool { return l.Kind == "response" && l.Error != nil }) {
				t.Fatal("a line beyond the bound was not refused")
			}
		}
		before := s.bytes.Load()
		s.send(id, "session/prompt", map[string]any{"input": input})
		if l, ok := s.reply(id); !ok || !strings.Contains(string(l.Result), `"outcome":"completed"`) {
			t.Fatalf("prompt %d: %s %s", id, l.Result, l.Error)
		}
		if told := s.bytes.Load() - before; told > 200_000 {
			t.Errorf("prompt %d: %d bytes were told", id, told)
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	store, err := openStore(root + "/sessions/rind.db")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	page, _, err := store.Sessions(t.Context(), session.Query{Limit: 2})
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	es, err := store.Read(t.Context(), page[0].ID, 0, 1000, protocol.ViewFacts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range es {
		if b, _ := protocol.Decode(&es[i]); b != nil {
			if m, ok := b.(*protocol.UserMessage); ok {
				if m.More.Text != long {
					t.Errorf("%d bytes of the prompt were kept", len(m.More.Text))
				}
				return
			}
		}
	}
	t.Error("the prompt is not in the log")
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/sqlite"
)

// replayGrowth is how much more memory the load of a hundred times longer session may take at its peak: pages, a tail of the log, and what the
// collector leaves lying about. The longer session has more than twice as many bytes.
const replayGrowth = 12 << 20

// A session of 2,000 turns is loaded over ACP whole and in order, with the memory that 20 turns take.
func TestALongSessionIsLoadedOverACPWithFlatMemory(t *testing.T) {
	t.Parallel()
	root, ws := playing(t, `{"turns":[{"steps":[{"text":"Let me look at it first. "},{"call":{"id":"c1","name":"read_file","arguments":{"path":"notes.txt"}}},{"finish":"tool_calls"},
		{"text":"`+strings.Repeat("This is what the notes say, in other words. ", 60)+`"}]}]}`)
	write(t, filepath.Join(ws, "notes.txt"), strings.Repeat("A line of the notes that somebody once took.\n", 100))
	e := openEditor(t, root, ws)
	id := e.newSession(ws)
	e.call("session/prompt", promptOf(id, "Read the notes."))
	e.leave()
	short, long := "20200101_000000_00000020", "20200101_000000_00002000"
	lengthened(t, root, id, map[string]int{short: 20, long: 2000})

	few, fewBytes := loadedPeak(t, root, ws, short, 20)
	many, manyBytes := loadedPeak(t, root, ws, long, 2000)
	for tries := 1; tries < 3 && many-few > replayGrowth; tries++ { // when the collector comes is luck; what a load keeps, each load keeps
		again, _ := loadedPeak(t, root, ws, long, 2000)
		many = min(many, again)
	}
	t.Logf("20 turns: %.1f MiB told, %.1f MiB at most; 2,000 turns: %.1f MiB told, %.1f MiB at most", mib(fewBytes), mib(few), mib(manyBytes), mib(many))
	if manyBytes < 2*replayGrowth {
		t.Errorf("only %d bytes were told: that shows nothing", manyBytes)
	}
	if many-few > replayGrowth {
		t.Errorf("2,000 turns took %.1f MiB more memory than 20", mib(many-few))
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// loadedPeak loads a session in a process of its own, checks what it tells, and returns the most memory that took and the bytes told.
func loadedPeak(t *testing.T, root, ws, id string, turns int) (peak, told int64) {
	t.Helper()
	e := openEditor(t, root, ws)
	answer := e.ask("session/load", map[string]any{"sessionId": id, "cwd": ws, "mcpServers": []any{}})
	var users, calls, closed, answers int
	order := ""
	begun := time.Now()
	l, _ := e.until("the answer to load", func(l *acpLine) bool {
		told += int64(len(l.raw)) + 1
		switch u := &l.Params.Update; u.SessionUpdate {
		case "user_message_chunk":
			users++
			if want := fmt.Sprintf("Read the notes, time %d.", users); u.text() != want {
				t.Fatalf("message %d is %q", users, u.text())
			}
		case "tool_call":
			calls++
		case "tool_call_update":
			if u.Status == "completed" {
				closed++
			}
		case "agent_message_chunk":
			answers++
			order = u.text()
		}
		l.raw, l.Params.Update.Content = "", nil // the test keeps no history either
		return l.Method == "" && string(l.ID) == answer
	})
	if l.Error != nil {
		t.Fatalf("load: %d %s", l.Error.Code, l.Error.Message)
	}
	took := time.Since(begun)
	if users != turns || calls != turns || closed != turns || answers != 2*turns || !strings.HasPrefix(order, "This is what the notes say") {
		t.Errorf("%d turns: %d messages, %d calls, %d of them closed, %d texts, the last one %.40q", turns, users, calls, closed, answers, order)
	}
	peak = memoryOf(t, e.PID(), "VmHWM")
	t.Logf("%d turns in %v", turns, took.Round(time.Millisecond))
	e.leave()
	return peak, told
}

// lengthened makes sessions of so many turns out of one that has a single turn: the same entries again and again, under ids of their own.
func lengthened(t *testing.T, root, from string, sessions map[string]int) {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(root, "sessions", "rind.db"), sqlite.Options{Locks: filepath.Join(root, "locks")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx := t.Context()
	meta, err := store.Session(ctx, session.SessionID(from))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := store.Read(ctx, meta.ID, 0, 1024, protocol.ViewAll)
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d entries: %v", len(entries), err)
	}
	for id, turns := range sessions {
		m := meta
		m.ID, m.ConversationID, m.Head, m.Fold, m.FoldSeq = session.SessionID(id), "conv_"+renamed(id, meta.ConversationID), 0, nil, 0
		if err := store.Create(ctx, m); err != nil {
			t.Fatal(err)
		}
		lease, err := store.Acquire(ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		head := session.Seq(0)
		done := make(chan error, 1)
		for turn := 1; turn <= turns; {
			var batch session.Batch
			for ; turn <= turns && len(batch.Entries) < 500; turn++ {
				for _, e := range entries {
					if e.Turn == "" && turn > 1 {
						continue // the session was made once
					}
					head++
					e.Seq = head
					e.Turn = session.TurnID(again(string(e.Turn), from, id, turn))
					e.Event = []byte(again(string(e.Event), from, id, turn))
					e.More = []byte(again(string(e.More), from, id, turn))
					if len(e.Event) == 0 {
						e.Event = nil
					}
					if len(e.More) == 0 {
						e.More = nil
					}
					batch.Entries = append(batch.Entries, e)
				}
			}
			row := m.Row
			row.Fold, row.Messages = nil, 4*turns
			batch.Row = &row
			store.Append(lease, batch, func(err error) { done <- err })
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Release(ctx, lease); err != nil {
			t.Fatal(err)
		}
	}
}

var anyID = regexp.MustCompile(`[0-9a-f]{32}`)

// again is a text of the one turn as another turn of another session has it.
func again(text, from, id string, turn int) string {
	text = strings.ReplaceAll(text, from, id)
	text = strings.ReplaceAll(text, `"c1"`, fmt.Sprintf(`"c1_%d"`, turn))
	text = strings.ReplaceAll(text, "Read the notes.", fmt.Sprintf("Read the notes, time %d.", turn))
	return anyID.ReplaceAllStringFunc(text, func(old string) string { return renamed(fmt.Sprint(id, turn), old) })
}

func renamed(salt, id string) string {
	sum := sha256.Sum256([]byte(salt + id))
	return hex.EncodeToString(sum[:16])
}

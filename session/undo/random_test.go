package undo_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// writer draws changes of a workspace's files, and makes them, without knowing anything of undo.
type writer struct {
	r *rand.Rand
	d *desk
	n int

	old []string
}

// newWriter makes a workspace with files of many kinds.
func newWriter(t testing.TB, seed uint64, im session.Images) *writer {
	t.Helper()
	w := &writer{r: rand.New(rand.NewPCG(seed, 1))}
	content := map[string]string{"empty": "", "binary/picture": "\x89PNG\x00\xff\xfe", "latin1": "caf\xe9\n", "utf16": "\xff\xfew\x00"}
	for i, end := range []string{"\n", "\r\n", "\r"} {
		for j, mark := range []string{"", "\uFEFF"} {
			for k, last := range []string{"", end} {
				content[fmt.Sprintf("text/d%d/f%d%d%d", k, i, j, k)] = mark + w.word() + end + w.word() + end + w.word() + last
			}
		}
	}
	content["mixed"] = "a\r\n" + w.word() + "\nb\r\nc"
	w.d = newDeskWith(t, content, im)
	for i, path := range slices.Sorted(maps.Keys(content)) {
		if err := os.Chmod(w.d.at(path), []os.FileMode{0o644, 0o755, 0o600, 0o640}[i%4]); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// word is one that no file has yet.
func (w *writer) word() string {
	w.n++
	return fmt.Sprintf("word%dé", w.n)
}

func (w *writer) pick(from []string) string { return from[w.r.IntN(len(from))] }

// turn lets the model make n changes, of files that were there before the turn and of new ones.
func (w *writer) turn(n int) session.TurnID {
	w.old = slices.Sorted(maps.Keys(w.d.tree()))
	return w.d.turnOf(n, w.step)
}

// step draws one change of the workspace as it is now.
func (w *writer) step() step {
	path := w.pick(w.old)
	info, err := os.Stat(w.d.at(path))
	if err != nil {
		return w.step() // removed in this turn
	}
	text := w.d.get(path)
	fresh := fmt.Sprintf("new%d/d/f%d", w.r.IntN(4), w.r.IntN(40))
	at := strings.Index(text, "word")
	switch k := w.r.IntN(10); {
	case k < 4 && at >= 0:
		old := text[at : at+strings.Index(text[at:], "é")+len("é")]
		return edit(path, old, w.pick([]string{w.word(), w.word() + "\n" + w.word(), w.word() + " "}))
	case k < 6 && at >= 0: // often a text that was there before
		return write(path, w.pick([]string{"word0é\n", "", "word1é\r\nx", w.word() + "\n"}))
	case k < 8 && !strings.Contains(w.d.get(fresh), "\x00"): // tools do not write over what is no text
		return write(fresh, w.pick([]string{"word0é\n", "", w.word()}))
	case k == 8 && info.Mode() == 0o644 && path != fresh: // what a command removes comes back with this mode
		return w.d.change(map[string][]byte{path: nil, fresh: {0, byte(w.r.IntN(4))}})
	case k == 9:
		return w.d.change(map[string][]byte{path: {0, byte(w.r.IntN(3))}, "cmd/" + fresh: []byte(w.word())})
	}
	return w.step()
}

// inMemory holds images without a disk: a thousand flushed files more would only take time.
type inMemory struct {
	mu   sync.Mutex
	held map[string][]byte
}

func (m *inMemory) Keep(_ context.Context, _ session.SessionID, data []byte) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	digest := protocol.Digest(data)
	m.held[digest] = slices.Clone(data)
	return digest, nil
}

func (m *inMemory) Image(_ context.Context, _ session.SessionID, digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.held[digest]; ok {
		return data, nil
	}
	return nil, session.ErrNotFound
}

func TestAThousandRandomChangesAreUndoneTurnByTurnToTheByte(t *testing.T) {
	t.Parallel() // both wait for the disk most of the time
	w := newWriter(t, 11, &inMemory{held: map[string][]byte{}})
	states := []map[string]string{w.d.tree()}
	var turns []session.TurnID
	for range 50 {
		turns = append(turns, w.turn(20))
		states = append(states, w.d.tree())
	}
	for k := len(turns) - 1; k >= 0; k-- {
		u, err := w.d.process.undo.Undo(context.Background(), w.d.id, "")
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(states[k], states[k+1]) {
			t.Fatal("a turn without any effect is no test")
		}
		if u.Turn != turns[k] || strings.Contains(fates(u), session.FileChangedSince) || strings.Contains(fates(u), session.FileNotKept) {
			t.Fatalf("turn %d: undid %s: %+v", k, u.Turn, u.Files)
		}
		if same(t, fmt.Sprintf("after undo of turn %d", k), w.d.tree(), states[k]); t.Failed() {
			return
		}
	}
	if u, err := w.d.process.undo.Undo(context.Background(), w.d.id, ""); err != nil || u.Turn != "" {
		t.Errorf("%v, %v when nothing was left", u, err)
	}
}

func TestExactlyTheFilesTheUserChangedAreRefusedByName(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := newWriter(t, 100+seed, nil)
		start := w.d.tree()
		var turns []session.TurnID
		for range 6 {
			turns = append(turns, w.turn(12))
		}
		now := w.d.tree()
		all := slices.Sorted(maps.Keys(now))
		users := map[string]string{}
		for range 6 {
			path := w.pick(all)
			w.d.put(path, "the user's "+w.word())
			users[path] = w.d.tree()[path]
		}
		for k := len(turns) - 1; k >= 0; k-- {
			u, err := w.d.process.undo.Undo(context.Background(), w.d.id, turns[k])
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range u.Files {
				want := session.FileRestored
				if users[f.Path] != "" {
					want = session.FileChangedSince
				}
				if f.Status != want {
					t.Errorf("seed %d, turn %d: %s is %s, want %s (%s)", seed, k, f.Path, f.Status, want, f.Reason)
				}
			}
		}
		for path, text := range users {
			start[path] = text
		}
		same(t, fmt.Sprintf("seed %d", seed), w.d.tree(), start)
	}
}

package roots_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rind-dev/rind/session/roots"
)

// kinds names what differs, relative to the layout.
func kinds(l layout, all []roots.Difference) (out []string) {
	for _, d := range all {
		rel := strings.TrimPrefix(d.Path, filepath.ToSlash(l.top)+"/")
		out = append(out, d.Kind+" "+rel+" "+string(d.Before))
	}
	return out
}

// aged makes every file look as if it had been there for long.
func (l layout) aged(t *testing.T) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, top := range []string{l.app, l.lib} {
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				err = os.Chtimes(path, old, old)
			}
			return err
		})
	}
}

func TestASnapshotTellsWhatIsNotAsItWas(t *testing.T) {
	for _, aged := range []bool{true, false} {
		l := newLayout(t)
		mkdir(t, l.app+"/node_modules")
		write(t, l.app+"/node_modules/f", "x")
		write(t, l.app+"/same", "same")
		write(t, l.app+"/size", "12345")
		link(t, l.other, l.app+"/out")
		if aged {
			l.aged(t)
		}
		r := l.open(t)
		s := r.Snapshot(t.Context(), roots.DefaultSnapshot)
		if changed, more, known := s.Compare(t.Context(), 10); len(changed) != 0 || more != 0 || !known {
			t.Fatal(changed, more, known)
		}
		write(t, l.app+"/new", "new")
		write(t, l.app+"/size", "54321") // of the same length, at once
		write(t, l.app+"/same", "same")
		write(t, l.app+"/node_modules/f", "y")
		write(t, l.other+"/secret", "y")
		if err := os.Remove(l.lib + "/c.txt"); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(l.app + "/a.txt"); err != nil {
			t.Fatal(err)
		}
		link(t, l.other+"/secret", l.app+"/a.txt") // a link took its place
		changed, more, known := s.Compare(t.Context(), 10)
		want := []string{
			"removed app/a.txt inside app/a.txt", "created app/new ", "modified app/size 12345", "removed lib/c.txt inside lib/c.txt",
		}
		if got := kinds(l, changed); !slices.Equal(got, want) || more != 0 || !known {
			t.Errorf("aged %v: %q, %d, %v", aged, got, more, known)
		}
		if changed, more, _ = s.Compare(t.Context(), 1); len(changed) != 1 || more != 3 {
			t.Errorf("%d listed, %d more", len(changed), more)
		}
	}
}

func TestASnapshotBeyondItsLimitsKnowsNothingOrHoldsNothing(t *testing.T) {
	l := newLayout(t)
	for i := range 10 {
		write(t, l.app+"/f"+strconv.Itoa(i), "content")
	}
	l.aged(t)
	r := l.open(t)
	limited := func(change func(*roots.SnapshotLimits)) roots.SnapshotLimits {
		limits := roots.DefaultSnapshot
		limits.Time = time.Minute
		change(&limits)
		return limits
	}
	write9 := func(n int) { write(t, l.app+"/f9", strings.Repeat("c", n)) }
	for _, c := range []struct {
		name        string
		limits      roots.SnapshotLimits
		known, held bool
		after       bool
	}{
		{"files", limited(func(s *roots.SnapshotLimits) { s.Files = 5 }), false, false, false},
		{"time", limited(func(s *roots.SnapshotLimits) { s.Time = 1 }), false, false, false},
		{"held files", limited(func(s *roots.SnapshotLimits) { s.HeldFiles = 5 }), true, false, true},
		{"held bytes", limited(func(s *roots.SnapshotLimits) { s.HeldBytes = 5 }), true, false, true},
		{"digest", limited(func(s *roots.SnapshotLimits) { s.Digest = 5 }), true, true, false},
		{"digests", limited(func(s *roots.SnapshotLimits) { s.Digests = 5 }), true, true, false},
		{"none", limited(func(*roots.SnapshotLimits) {}), true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			write9(8)
			s := r.Snapshot(t.Context(), c.limits)
			write9(20)
			changed, _, known := s.Compare(t.Context(), 10)
			if known != c.known || known && (len(changed) != 1 || changed[0].Held != c.held || (changed[0].After != "") != c.after) {
				t.Errorf("%+v %v", changed, known)
			}
		})
	}
	s := r.Snapshot(t.Context(), limited(func(*roots.SnapshotLimits) {}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, known := s.Compare(ctx, 10); known {
		t.Error("a look that was cut short knows everything")
	}
}

func TestASnapshotFollowsNoLinkAndStaysInTheRoots(t *testing.T) {
	l := newLayout(t)
	mkdir(t, l.app+"/inner")
	write(t, l.app+"/inner/f", "x")
	for name, target := range map[string]string{"round": ".", "up": "..", "out": l.other, "secret": l.other + "/secret"} {
		link(t, target, l.app+"/"+name)
	}
	r, err := roots.Open(l.app, l.app+"/inner", l.lib) // a root in a root
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s := r.Snapshot(t.Context(), roots.DefaultSnapshot)
	for _, name := range []string{l.app + "/inner/f", l.other + "/secret", l.other + "/new", l.app + "/a.txt"} {
		write(t, name, "another text")
	}
	changed, _, known := s.Compare(t.Context(), 10)
	want := []string{"modified app/a.txt inside app/a.txt", "modified app/inner/f x"}
	if got := kinds(l, changed); !known || !slices.Equal(got, want) {
		t.Errorf("%q %v", got, known)
	}
}

func TestALaterSnapshotReadsOnlyWhatMayHaveChanged(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("here no time of a file is safe from being set, and everything is read each time")
	}
	l := newLayout(t)
	write(t, l.app+"/quiet", "as it is")
	r := l.open(t)
	var e roots.Earlier
	limits := roots.DefaultSnapshot
	limits.Time = time.Minute
	content := func() []byte {
		s := e.Snapshot(t.Context(), r, limits)
		return s.Content(l.app + "/quiet")
	}
	// Until its times are older than the grain of the clock, and of a whole second if they happen to be one, it is read each time.
	first := content()
	for end := time.Now().Add(10 * time.Second); ; first = content() {
		if next := content(); &next[0] == &first[0] {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a file nobody touches is read again for each snapshot")
		}
	}
	info, err := os.Stat(l.app + "/quiet")
	if err != nil {
		t.Fatal(err)
	}
	write(t, l.app+"/quiet", "as it IS") // of the same length, and dressed up to look as before
	if err := os.Chtimes(l.app+"/quiet", info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := content(); string(got) != "as it IS" {
		t.Errorf("held %q", got)
	}
}

func TestAnEditWithinOneTickOfTheClockIsSeen(t *testing.T) {
	l := newLayout(t)
	r := l.open(t)
	name := l.app + "/busy"
	write(t, name, "before")
	limits := roots.DefaultSnapshot
	limits.Time = time.Minute
	var e roots.Earlier
	if got := e.Snapshot(t.Context(), r, limits).Content(name); string(got) != "before" {
		t.Fatalf("held %q", got)
	}
	write(t, name, "behind")
	if err := e.Disguise(name); err != nil {
		t.Fatal(err)
	}
	if got := e.Snapshot(t.Context(), r, limits).Content(name); string(got) != "behind" {
		t.Errorf("held %q, which was there before", got)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1000, 15_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				sub := filepath.Join(dir, strconv.Itoa(i/50))
				if err := os.MkdirAll(sub, 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(i)), []byte(strings.Repeat("x", 4000)), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			r, err := roots.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			limits := roots.DefaultSnapshot
			limits.Time = time.Minute
			for _, mode := range []string{"first", "later"} {
				b.Run(mode, func(b *testing.B) {
					var e roots.Earlier
					e.Snapshot(context.Background(), r, limits)
					for b.Loop() {
						if mode == "first" {
							e = roots.Earlier{}
						}
						s := e.Snapshot(context.Background(), r, limits)
						if _, _, known := s.Compare(context.Background(), 10); !known {
							b.Fatal("unknown")
						}
					}
				})
			}
		})
	}
}

package roots_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/roots"
)

var (
	pathCount = flag.Int("paths", 2000, "how many paths TestNoGeneratedPathLeadsOutside tries")
	pathSeed  = flag.Uint64("seed", 1, "what its layouts are made from")
)

// TestNoGeneratedPathLeadsOutside makes trees full of links and tries paths in them. The oracle is the operating system: what it says a path
// leads to is what is read or written where that lies inside, and is refused where it lies outside.
func TestNoGeneratedPathLeadsOutside(t *testing.T) {
	rnd := rand.New(rand.NewPCG(*pathSeed, 2))
	const perLayout = 40
	told := map[string]int{}
	for n := 0; n < *pathCount; n += perLayout {
		g := &generator{rnd: rnd, layout: newLayout(t)}
		g.grow(t)
		r := g.open(t)
		before := g.outside(t)
		for range perLayout {
			path := g.path()
			told[g.tryRead(t, r, path)]++
			told[g.tryWrite(t, r, path)]++
			g.untouched(t, before)
		}
		r.Close()
		_ = os.RemoveAll(g.top)
	}
	for _, k := range []string{"read inside", "read outside", "wrote inside", "wrote outside"} {
		if told[k] < *pathCount/50 {
			t.Errorf("only %d paths of kind %q: the generator does not reach it", told[k], k)
		}
	}
	t.Logf("%v", told)
}

// generator makes trees and paths of few names, so that they meet.
type generator struct {
	layout
	rnd   *rand.Rand
	nodes []string // absolute paths of what was made
}

var names = []string{"a", "b", "c", "d", "e", "f"}

func (g *generator) name() string { return names[g.rnd.IntN(len(names))] }

func (g *generator) grow(t *testing.T) {
	t.Helper()
	dirs := []string{g.app, g.lib, g.other, g.evil}
	g.nodes = append(g.nodes, dirs...)
	for range 40 {
		dir := dirs[g.rnd.IntN(len(dirs))]
		path := filepath.Join(dir, g.name())
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		switch g.rnd.IntN(4) {
		case 0:
			mkdir(t, path)
			dirs = append(dirs, path)
		case 1:
			text := canary
			if g.inside(path) {
				text = "inside " + path
			}
			write(t, path, text)
		default:
			link(t, g.target(), path)
		}
		g.nodes = append(g.nodes, path)
	}
}

func (g *generator) inside(abs string) bool {
	for _, r := range []string{g.app, g.lib} {
		if abs == r || strings.HasPrefix(abs, r+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// target is where a link leads: somewhere in the tree or to nothing, by an absolute or a relative name.
func (g *generator) target() string {
	to := g.node()
	if g.rnd.IntN(3) == 0 {
		to = filepath.Join(to, g.name())
	}
	if g.rnd.IntN(2) == 0 {
		return to
	}
	rel := strings.TrimPrefix(to, g.top+string(filepath.Separator))
	return strings.Repeat("../", 1+g.rnd.IntN(3)) + filepath.ToSlash(rel)
}

func (g *generator) node() string { return g.nodes[g.rnd.IntN(len(g.nodes))] }

func (g *generator) path() string {
	var steps []string
	switch g.rnd.IntN(4) {
	case 0:
		steps = append(steps, g.node())
	case 1:
		rel, err := filepath.Rel(g.app, g.node())
		if err != nil {
			panic(err)
		}
		steps = append(steps, rel)
	}
	for range g.rnd.IntN(5) {
		switch g.rnd.IntN(5) {
		case 0:
			steps = append(steps, "..")
		case 1:
			steps = append(steps, ".")
		default:
			steps = append(steps, g.name())
		}
	}
	if len(steps) == 0 {
		steps = append(steps, g.name())
	}
	return strings.Join(steps, "/")
}

// real is what the operating system says path leads to; "" for nothing.
func (g *generator) real(path string) string {
	if !filepath.IsAbs(path) {
		path = g.app + "/" + path
	}
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return at
}

func (g *generator) tryRead(t *testing.T, r *roots.Roots, path string) string {
	t.Helper()
	real := g.real(path)
	info, _ := os.Stat(real)
	file := real != "" && info != nil && info.Mode().IsRegular()
	got, err := read(t, r, path)
	switch {
	case err == nil && strings.Contains(got, "CANARY"):
		t.Fatalf("%q was read, it leads outside to %s", path, real)
	case err == nil && file && got != content(t, real):
		t.Fatalf("%q gave %q, it leads to %s", path, got, real)
	case err != nil && file && g.inside(real):
		t.Fatalf("%q was refused (%v), it leads inside to %s", path, err, real)
	case real != "" && !g.inside(real):
		if reasonOf(t, err) != roots.Outside {
			t.Fatalf("%q: %v, it leads outside to %s", path, err, real)
		}
		return "read outside"
	case err == nil:
		return "read inside"
	}
	return "read nothing"
}

func (g *generator) tryWrite(t *testing.T, r *roots.Roots, path string) string {
	t.Helper()
	data := fmt.Sprintf("inside, written by %d", g.rnd.Uint64())
	real := g.real(path)
	place, err := r.WriteFile(path, []byte(data), roots.WriteOptions{})
	if err != nil {
		e, ok := errors.AsType[*roots.PathError](err)
		if !ok {
			t.Fatalf("%q: %v is no *PathError", path, err)
		}
		if e.Reason == roots.Outside {
			return "wrote outside"
		}
		if info, _ := os.Stat(real); real != "" && info != nil && info.Mode().IsRegular() && g.inside(real) && !strings.HasSuffix(path, "/.") {
			t.Fatalf("%q was refused (%v), it leads inside to %s", path, err, real)
		}
		return "wrote nothing"
	}
	if !g.inside(place.Abs) || content(t, place.Abs) != data {
		t.Fatalf("%q was written to %s", path, place.Abs)
	}
	if now := g.real(path); now != "" && now != place.Abs {
		t.Fatalf("%q was written to %s, it leads to %s", path, place.Abs, now)
	}
	return "wrote inside"
}

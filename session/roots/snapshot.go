package roots

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// SnapshotLimits bound a look through the roots; see DefaultSnapshot.
type SnapshotLimits struct {
	Files     int           // more than that: nothing is known
	Time      time.Duration // likewise
	HeldFiles int           // contents are held only while there are at most that many files
	HeldBytes int64         // and they have at most that many bytes
	Digest    int64         // bytes of the largest file whose content is told by digest
	Digests   int64         // and of all of them together
}

// DefaultSnapshot are the bounds used around commands.
var DefaultSnapshot = SnapshotLimits{
	Files: 20_000, Time: 200 * time.Millisecond, HeldFiles: 2000, HeldBytes: 8 << 20, Digest: 10 << 20, Digests: 64 << 20,
}

// skipped are folders that are not looked into: version control keeps its own history, the others are made from something else, and large.
var skipped = []string{
	".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", ".venv", "venv", "__pycache__", ".tox", ".nox", ".mypy_cache",
	".pytest_cache", ".ruff_cache", ".gradle", ".terraform", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".yarn", ".cache",
}

// cacheTag marks a folder as a cache, by convention.
const cacheTag = "CACHEDIR.TAG"

// A file whose times lie this close to a look at it may be written again without changing them: they have the grain of the kernel's clock,
// and whole seconds, or two, on some file systems.
const (
	racy       = 50 * time.Millisecond
	racyCoarse = 2*time.Second + racy
)

// Snapshot is what the regular files of the roots looked like at one moment.
type Snapshot struct {
	r       *Roots
	limits  SnapshotLimits
	at      time.Time
	files   map[string]seen
	unknown bool
}

// seen is one file.
type seen struct {
	size    int64
	mtime   time.Time
	inode   uint64
	ctime   int64
	held    bool
	content []byte
}

// same reports whether nothing tells two looks at a file apart.
func (f *seen) same(g *seen) bool {
	return f.size == g.size && f.mtime.Equal(g.mtime) && f.inode == g.inode && f.ctime == g.ctime
}

// settled reports whether a file that was looked at then cannot have been written since without another look telling it.
func (f *seen) settled(then time.Time) bool {
	newest, grain := max(f.mtime.UnixNano(), f.ctime), racy
	if newest%int64(time.Second) == 0 {
		grain = racyCoarse
	}
	return newest < then.Add(-grain).UnixNano()
}

// Difference is one file that is not as it was.
type Difference struct {
	Path   string // absolute, links resolved, slash separated
	Kind   string // created, modified, removed
	Before []byte // content from before, where Held
	Held   bool
	After  string // SHA-256 of the content now, hex; "" where it is gone or too large
}

// Snapshot looks at every regular file of the roots, without following links. It never fails: what cannot be looked at is left out, and
// beyond the limits nothing is known.
func (r *Roots) Snapshot(ctx context.Context, limits SnapshotLimits) *Snapshot {
	return r.snapshot(ctx, limits, nil, time.Time{})
}

// snapshot is Snapshot that knows what was seen then.
func (r *Roots) snapshot(ctx context.Context, limits SnapshotLimits, before map[string]seen, then time.Time) *Snapshot {
	s := &Snapshot{r: r, limits: limits, at: time.Now()}
	ctx, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	var size int64
	if s.files, s.unknown = s.walk(ctx); s.unknown {
		return s
	}
	for _, f := range s.files {
		size += f.size
	}
	if len(s.files) <= limits.HeldFiles && size <= limits.HeldBytes {
		s.hold(ctx, before, then)
	}
	return s
}

// Earlier takes snapshots and remembers the contents the newest one held, so that the next reads only what may have changed since: a
// thousand files cost a look at each, not a read. The zero Earlier remembers nothing. It is safe for concurrent use and owns no goroutine.
type Earlier struct {
	mu    sync.Mutex // guards what follows; never held over I/O
	files map[string]seen
	at    time.Time
}

// Snapshot is Roots.Snapshot.
func (e *Earlier) Snapshot(ctx context.Context, r *Roots, limits SnapshotLimits) *Snapshot {
	e.mu.Lock()
	before, then := e.files, e.at
	e.mu.Unlock()
	s := r.snapshot(ctx, limits, before, then)
	if len(s.files) <= limits.HeldFiles {
		e.mu.Lock()
		e.files, e.at = s.files, s.at // not changed any more
		e.mu.Unlock()
	}
	return s
}

// walk looks at all files; true when that was cut short.
func (s *Snapshot) walk(ctx context.Context) (map[string]seen, bool) {
	files := map[string]seen{}
	for _, top := range s.r.list {
		h, err := top.dir.OpenRoot(".")
		if err != nil {
			continue
		}
		d := &Dir{h}
		err = s.folder(ctx, d, top.path, files)
		d.Close()
		if err != nil {
			return nil, true
		}
	}
	return files, false
}

var errTooMany = errors.New("too many files")

func (s *Snapshot) folder(ctx context.Context, d *Dir, path string, files map[string]seen) error {
	entries, err := d.Entries(ctx)
	if err != nil {
		return ctx.Err() // a folder that cannot be listed is left out
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == cacheTag }) {
		return nil
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		at := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
			if slices.Contains(skipped, e.Name()) || s.other(at) {
				continue
			}
			sub, err := d.Dir(e.Name())
			if err != nil {
				continue
			}
			err = s.folder(ctx, sub, at, files)
			sub.Close()
			if err != nil {
				return err
			}
		case e.Type().IsRegular():
			info, err := d.Lstat(e.Name())
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if len(files) >= s.limits.Files {
				return errTooMany
			}
			f := seen{size: info.Size(), mtime: info.ModTime()}
			f.inode, f.ctime = identity(info)
			files[at] = f
		}
	}
	return nil
}

// other reports whether path is a root of its own, which has its own turn.
func (s *Snapshot) other(path string) bool {
	return slices.ContainsFunc(s.r.list, func(x root) bool { return x.path == path })
}

// hold reads the contents, but for those that were held before and cannot have changed. When time is up the rest is not held.
func (s *Snapshot) hold(ctx context.Context, before map[string]seen, then time.Time) {
	for path, f := range s.files {
		if ctx.Err() != nil {
			return
		}
		// Without a time of the last change that nobody can set, size and time prove nothing.
		if old, ok := before[path]; ok && old.held && f.ctime != 0 && old.same(&f) && old.settled(then) {
			f.held, f.content = true, old.content
			s.files[path] = f
			continue
		}
		data, ok := s.read(path, f.size)
		if !ok || int64(len(data)) != f.size {
			continue // it is changing right now
		}
		f.held, f.content = true, data
		s.files[path] = f
	}
}

// read reads a file of a known size, and a byte more if it has grown.
func (s *Snapshot) read(path string, size int64) ([]byte, bool) {
	f, err := s.open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	data := make([]byte, size+1)
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	return data[:n:n], true
}

// open opens a file that was met on a walk: no name on the way to it was a link.
func (s *Snapshot) open(path string) (*os.File, error) {
	for _, x := range s.r.list {
		if rel, err := filepath.Rel(x.path, path); err == nil && filepath.IsLocal(rel) {
			f, _, err := openIn(x.dir, rel, path, Place{Abs: path}, false)
			return f, err
		}
	}
	return nil, fs.ErrNotExist
}

// Compare looks again and tells what is not as it was, sorted by path: at most most files, and how many more there are. It reports false when
// one of the looks was cut short: then nothing is known. Who made a change cannot be told: what others did meanwhile is among it.
func (s *Snapshot) Compare(ctx context.Context, most int) (changed []Difference, more int, known bool) {
	if s.unknown {
		return nil, 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.limits.Time) // a look that was possible before should not fail for little
	defer cancel()
	now, cut := s.walk(ctx)
	if cut {
		return nil, 0, false
	}
	for path, f := range now {
		old, was := s.files[path]
		switch {
		case !was:
			changed = append(changed, Difference{Path: path, Kind: "created"})
		case s.differs(path, old, f):
			changed = append(changed, Difference{Path: path, Kind: "modified", Before: old.content, Held: old.held})
		}
	}
	for path, old := range s.files {
		if _, is := now[path]; !is {
			changed = append(changed, Difference{Path: path, Kind: "removed", Before: old.content, Held: old.held})
		}
	}
	slices.SortFunc(changed, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	if len(changed) > most {
		changed, more = changed[:most], len(changed)-most
	}
	left := s.limits.Digests
	for i := range changed {
		c := &changed[i]
		if size := now[c.Path].size; c.Kind != "removed" && size <= min(s.limits.Digest, left) {
			left -= size
			c.After = s.digest(c.Path)
		}
		c.Path = filepath.ToSlash(c.Path)
	}
	return changed, more, true
}

// differs reports whether a file's content may be another. Where it is held, the content decides; else the times do.
func (s *Snapshot) differs(path string, old, now seen) bool {
	same := old.same(&now)
	if same && now.settled(s.at) {
		return false
	}
	if !old.held {
		return !same
	}
	if old.size != now.size {
		return true
	}
	data, ok := s.read(path, now.size)
	return !ok || !bytes.Equal(data, old.content)
}

func (s *Snapshot) digest(path string) string {
	f, err := s.open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, s.limits.Digest+1)); err != nil || n > s.limits.Digest {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

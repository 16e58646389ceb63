package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rind-dev/rind/session"
)

const (
	tempPrefix = ".new-"
	// tempAge is when an unfinished image is taken for one of a process that was killed.
	tempAge = time.Hour
)

// makeFolder makes dir for its owner only, and its name outlive a power cut.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	syncFolder(filepath.Dir(dir))
	syncFolder(filepath.Dir(filepath.Dir(dir)))
	return nil
}

// put writes an image whole: under another name first, flushed, then renamed. Two who put the same one do no harm to each other.
func put(dir, digest string, data []byte) error {
	f, err := os.CreateTemp(dir, tempPrefix+"*") // 0600
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, digest))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write file: %w", err)
	}
	syncFolder(dir)
	return nil
}

// makeRoom sees to it that size bytes more stay within the bound. A folder is looked through again once a quarter of what was left of
// the bound at the last look is used up: others may have written, too.
func (s *Store) makeRoom(ctx context.Context, id session.SessionID, dir string, size int64) error {
	s.mu.Lock()
	left, counted := s.room[id]
	if counted && left >= size {
		s.room[id] = left - size
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	total, err := s.sweep(ctx, dir, size)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.room) >= 1024 { // sessions that were worked in long ago; they are looked through again
		clear(s.room)
	}
	s.room[id] = max(0, (s.opt.MaxSession-total-size)/4)
	return nil
}

// sweep returns how many bytes the images in dir have, after removing the oldest of them where size bytes more would pass the bound, and
// what a killed process left unfinished.
func (s *Store) sweep(ctx context.Context, dir string, size int64) (int64, error) {
	type image struct {
		name string
		size int64
		time time.Time
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fault(fmt.Errorf("list folder: %w", err))
	}
	var all []image
	var total int64
	for _, e := range entries {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // removed by another process meanwhile, or none of ours
		}
		if strings.HasPrefix(e.Name(), tempPrefix) && time.Since(info.ModTime()) > tempAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
			continue
		}
		total += info.Size()
		if isDigest(e.Name()) {
			all = append(all, image{e.Name(), info.Size(), info.ModTime()})
		}
	}
	if total+size <= s.opt.MaxSession {
		return total, nil
	}
	// A little more than needed goes, so that the next image does not look through the folder again.
	target := s.opt.MaxSession - size - s.opt.MaxSession/16
	slices.SortFunc(all, func(a, b image) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.name, b.name)) })
	for _, x := range all {
		if total <= max(0, target) {
			break
		}
		path := filepath.Join(dir, x.name)
		if info, err := os.Lstat(path); err == nil && !info.ModTime().Equal(x.time) {
			continue // kept again just now
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fault(fmt.Errorf("make room: %w", err))
		}
		total -= x.size
	}
	return total, nil
}

// fault gives an error of the disk the word the stores have for it.
func fault(err error) error {
	switch {
	case full(err):
		return fmt.Errorf("keep content from before: %w", session.ErrFull)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("keep content from before: %w: %w", session.ErrReadOnly, err)
	}
	return fmt.Errorf("keep content from before: %w", err)
}

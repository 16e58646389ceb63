// Package images keeps the contents of files from before tools changed them, for undo and diff: by content, in a folder beside each
// session's other output, bounded (docs/protocol/rind-v2.md section 8).
//
// It promises: what Keep returned for is on disk, whole; what Image returns has the digest that was asked for; a session's images stay
// within their bound, the least recently used go first. Several processes may use one folder at a time: each then counts what the others
// write only now and then, so that the bound may be passed by a part of what was left of it. It owns no goroutine.
package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Bounds that hold where Options say nothing.
const (
	MaxImage   = 10 << 20  // bytes of one image
	MaxSession = 256 << 20 // bytes of a session's images
)

// folder is where a session's images lie below its output folder.
const folder = "before"

// Options bound what is kept. The zero value takes the bounds above.
type Options struct {
	MaxImage   int64 // bytes; a larger image is not kept
	MaxSession int64 // bytes of all images of a session
}

// Store keeps images in folders.
type Store struct {
	dir func(session.SessionID) string
	opt Options

	mu   sync.Mutex                  // guards room; never held over I/O
	room map[session.SessionID]int64 // bytes that may still be written before a folder is looked through again
}

var _ session.Images = (*Store)(nil)

// New keeps the images of a session in the folder "before" below dir(session), which is absolute and goes with the session.
func New(dir func(session.SessionID) string, o Options) *Store {
	if o.MaxImage <= 0 {
		o.MaxImage = MaxImage
	}
	if o.MaxSession <= 0 {
		o.MaxSession = MaxSession
	}
	return &Store{dir: dir, opt: o, room: map[session.SessionID]int64{}}
}

// Keep implements session.Images. An image that is there already costs a look at it. The error says what is wrong with the disk, in words
// for a user: ErrFull and ErrReadOnly are wrapped where they are the reason.
func (s *Store) Keep(ctx context.Context, id session.SessionID, data []byte) (string, error) {
	digest := protocol.Digest(data)
	if int64(len(data)) > s.opt.MaxImage || int64(len(data)) > s.opt.MaxSession {
		return digest, nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	dir, err := s.folder(id)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, digest)
	if known(path, int64(len(data))) {
		return digest, nil
	}
	if err := makeFolder(dir); err != nil {
		return "", fault(err)
	}
	if err := s.makeRoom(ctx, id, dir, int64(len(data))); err != nil {
		return "", err
	}
	if err := put(dir, digest, data); err != nil {
		return "", fault(err)
	}
	return digest, nil
}

// Image implements session.Images. The image becomes the newest. A damaged one is removed, so that its content can be kept again, and is
// not found.
func (s *Store) Image(ctx context.Context, id session.SessionID, digest string) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	missing := fmt.Errorf("content %.12s: %w", digest, session.ErrNotFound)
	if !isDigest(digest) {
		return nil, missing
	}
	dir, err := s.folder(id)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, digest)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing
	case err != nil:
		return nil, fmt.Errorf("look at kept content: %w", err)
	case !info.Mode().IsRegular(): // none of ours; opening a pipe may never return
		return nil, missing
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("open kept content: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, s.opt.MaxImage+1))
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("read kept content: %w", err)
	}
	if protocol.Digest(data) != digest {
		_ = os.Remove(path)
		return nil, missing
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now)
	return data, nil
}

func (s *Store) folder(id session.SessionID) (string, error) {
	if !protocol.ValidSessionID(string(id)) {
		return "", fmt.Errorf("keep content: %.40q is no session id", string(id))
	}
	dir := s.dir(id)
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("keep content: there is no folder for session %s", id)
	}
	return filepath.Join(dir, folder), nil
}

// known reports whether an image of that size is there, and makes it the newest.
func known(path string, size int64) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return false
	}
	now := time.Now()
	return !errors.Is(os.Chtimes(path, now, now), fs.ErrNotExist) // it may just have been made room with
}

func isDigest(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

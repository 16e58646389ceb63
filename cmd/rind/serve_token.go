package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rind-dev/rind/session/proc"
)

// readToken reads the bearer token of an explicit file.
func readToken(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // before it is opened: a pipe would be waited for
		return "", fmt.Errorf("token file %s: is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || !private(info) {
		return "", fmt.Errorf("token file %s: has to be a file of yours that nobody else can read (mode 0600)", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, 1024))
	if err != nil {
		return "", err
	}
	token := strings.TrimSuffix(string(data), "\n")
	if len(token) < 16 || len(token) > 512 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token file %s: needs 16 to 512 printable ASCII characters", path)
	}
	return token, nil
}

// bearer is the token of a server and the file it lies in.
type bearer struct {
	token, path string
	fresh       string   // file that takes path's place; "" where the token was there
	shared      bool     // with other servers of the data folder: path is not the user's own
	used        *os.File // locked while this server runs: the token at path is in use
}

// bearerOf reads the token of an explicit file, or makes a fresh one. That has its place with publish: a server that cannot listen must not
// replace the token of one that does.
func bearerOf(explicit, byDefault string) (*bearer, error) {
	b := &bearer{path: byDefault, shared: explicit == ""}
	if explicit != "" {
		path, err := filepath.Abs(explicit)
		if err != nil {
			return nil, err
		}
		b.path = path
		if b.token, err = readToken(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return b, b.make()
}

// make writes a fresh token to a new file that only its owner can read.
func (b *bearer) make() error {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	b.token = base64.RawURLEncoding.EncodeToString(random[:])
	f, err := os.CreateTemp(filepath.Dir(b.path), ".http-token-*") // made with mode 0600
	if e, ok := errors.AsType[*fs.PathError](err); ok {            // of a name that nobody gave
		return fmt.Errorf("token file %s: cannot be made: %w", b.path, e.Err)
	}
	if err != nil {
		return err
	}
	b.fresh = f.Name()
	_, err = io.WriteString(f, b.token+"\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		b.remove()
	}
	return err
}

// tokenWait is how long another server may be between making its token and publishing it.
const tokenWait = 2 * time.Second

// publish puts a fresh token in its place, unless another server of the data folder runs on the one that lies there: then that one is this
// server's too, so that whoever reads the file reaches both. One server at a time puts a token there, and each that runs holds a share of the lock.
func (b *bearer) publish() error {
	if !b.shared {
		return b.put()
	}
	lock, err := os.OpenFile(b.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return b.put()
	}
	b.used = lock
	for deadline := time.Now().Add(tokenWait); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // not in the lock: who has it may be stopped
		alone, err := proc.TryLock(lock, true)
		if err != nil { // no locks to be had here
			break
		}
		if alone {
			if err := b.put(); err != nil {
				return err
			}
		}
		if shared, _ := proc.TryLock(lock, false); shared {
			if token, err := b.inUse(); err == nil {
				b.remove()
				b.token = token
				return nil
			}
			break // somebody took the file away
		}
	}
	return b.put()
}

// put moves a fresh token to its place, once.
func (b *bearer) put() error {
	if b.fresh == "" {
		return nil
	}
	err := os.Rename(b.fresh, b.path)
	if err != nil {
		b.remove()
	}
	b.fresh = ""
	return err
}

// inUse reads the token at its place; a link there is none of ours.
func (b *bearer) inUse() (string, error) {
	info, err := os.Lstat(b.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return "", err
	}
	return readToken(b.path)
}

// remove drops a fresh token that was not published.
func (b *bearer) remove() {
	if b.fresh != "" {
		_ = os.Remove(b.fresh)
	}
	b.fresh = ""
}

// drop ends the use of the token.
func (b *bearer) drop() {
	b.remove()
	if b.used != nil {
		_ = b.used.Close()
	}
	b.used = nil
}

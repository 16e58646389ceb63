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
)

// readToken reads the bearer token of an explicit file.
func readToken(path string) (string, error) {
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

// makeToken writes a fresh token, readable by its owner only, to a new file that takes path's place.
func makeToken(path string) (string, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	token := base64.RawURLEncoding.EncodeToString(b[:])
	f, err := os.CreateTemp(filepath.Dir(path), ".http-token-*") // made with mode 0600
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f, token+"\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return token, nil
}

// bearer is the token of the server and the file it lies in.
func bearer(explicit, byDefault string) (token, path string, err error) {
	if explicit == "" {
		token, err = makeToken(byDefault)
		return token, byDefault, err
	}
	if path, err = filepath.Abs(explicit); err != nil {
		return "", path, err
	}
	if token, err = readToken(path); errors.Is(err, fs.ErrNotExist) {
		token, err = makeToken(path)
	}
	return token, path, err
}

package keyring

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// security is the keychain of macOS, through the program of that name.
type security struct{ program }

const (
	itemNotFound = 44   // exit code of security
	longestLine  = 4000 // of a command on its standard input
)

// Get implements Ring.
func (s security) Get(ctx context.Context, account string) (string, error) {
	a, err := s.run(ctx, "", "find-generic-password", "-s", service, "-a", account, "-w")
	switch {
	case err != nil:
		return "", err
	case a.code == 0:
		return strings.TrimSuffix(a.out, "\n"), nil
	case a.code == itemNotFound:
		return "", ErrNotFound
	}
	return "", a.refused("read from the keychain", a.out)
}

// Set implements Ring. The command goes to standard input, because arguments can be seen by others; the secret is written in hexadecimal,
// which needs no quoting.
func (s security) Set(ctx context.Context, account, secret string) error {
	if strings.ContainsAny(account, "\"\\\r\n\x00") {
		return errors.New("write to the keychain: the name of the account cannot be quoted")
	}
	line := fmt.Sprintf("add-generic-password -U -s %s -a \"%s\" -X %s\n", service, account, hex.EncodeToString([]byte(secret)))
	if len(line) > longestLine {
		return errors.New("write to the keychain: the key is too long for it")
	}
	a, err := s.run(ctx, line, "-i")
	if err == nil && (a.code != 0 || strings.TrimSpace(a.err) != "") {
		err = a.refused("write to the keychain", hex.EncodeToString([]byte(secret)))
	}
	return err
}

// Delete implements Ring.
func (s security) Delete(ctx context.Context, account string) (bool, error) {
	a, err := s.run(ctx, "", "delete-generic-password", "-s", service, "-a", account)
	switch {
	case err != nil:
		return false, err
	case a.code == itemNotFound:
		return false, nil
	case a.code != 0:
		return false, a.refused("delete from the keychain", "")
	}
	return true, nil
}

// ignoring is err, but nil where there was nothing to delete.
func ignoring(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

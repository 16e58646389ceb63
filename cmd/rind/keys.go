package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/rind-dev/rind/session/keyring"
	"github.com/rind-dev/rind/session/record"
)

const (
	keyWait = 2 * time.Second // for the keyring, when a turn needs a key
	keyLife = 5 * time.Minute // after which a key is read again: somebody may have logged in elsewhere
)

// keyCache has the keys that rind login put into the system's keyring, read when one is needed and remembered for a while. Safe for concurrent
// use.
type keyCache struct {
	log *record.Log // never shows a key that was read; nil for none

	mu    sync.Mutex // guards known; never held over I/O
	known map[string]keptKey
}

type keptKey struct {
	value string
	read  time.Time
}

// key is a settings.Stored. It waits at most 2 s; an error is not remembered, since a keyring may be unlocked meanwhile.
func (k *keyCache) key(provider, baseURL string) (string, error) {
	account := keyring.Account(provider, baseURL)
	k.mu.Lock()
	kept, ok := k.known[account]
	k.mu.Unlock()
	if ok && time.Since(kept.read) < keyLife {
		return kept.value, nil
	}
	ring, err := keyring.System(os.LookupEnv)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyWait)
	defer cancel()
	value, err := ring.Get(ctx, account)
	if err != nil {
		return "", err
	}
	if k.log != nil {
		k.log.Add(value)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]keptKey{}
	}
	k.known[account] = keptKey{value, time.Now()}
	return value, nil
}

// forget has a key read anew.
func (k *keyCache) forget(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, account)
}

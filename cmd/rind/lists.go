package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/keyring"
	"github.com/rind-dev/rind/session/settings"
)

const (
	listsFolder = "models"       // in the data folder; may be deleted at any time
	listFresh   = 24 * time.Hour // how long a list is good without asking again
	listBytes   = 16 << 20
)

// lists are the lists of models that providers gave, a file for each provider and address: so that they are there without a network, and asked
// for once a day.
type lists struct{ folder string }

// providerList is one of them.
type providerList struct {
	Provider string              `json:"provider"`
	At       time.Time           `json:"at"`
	Models   []session.ModelInfo `json:"models"`
}

// listsOf are those of the data folder that a settings file lies in.
func listsOf(settingsPath string) lists {
	return lists{filepath.Join(filepath.Dir(settingsPath), listsFolder)}
}

func (l lists) path(p settings.Provider) string {
	sum := sha256.Sum256([]byte(keyring.Account(p.Name, p.BaseURL)))
	return filepath.Join(l.folder, hex.EncodeToString(sum[:8])+".json")
}

// get gives the list of a provider at its address; one that cannot be read is none.
func (l lists) get(p settings.Provider) (providerList, bool) {
	var got providerList
	return got, recallJSON(l.path(p), &got) && got.Provider == p.Name && !got.At.After(time.Now())
}

// put keeps one. That it could not is no matter: it is asked for again.
func (l lists) put(p settings.Provider, models []session.ModelInfo) {
	keepJSON(l.path(p), providerList{p.Name, time.Now().UTC(), models})
}

// keepJSON writes a file that may be lost: whole, or not at all.
func keepJSON(path string, v any) {
	text, err := json.Marshal(v)
	if err != nil || len(text) > listBytes || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".list-*") // 0600
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// recallJSON reads such a file; false where there is none that can be read.
func recallJSON(path string, into any) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return json.NewDecoder(io.LimitReader(f, listBytes)).Decode(into) == nil
}

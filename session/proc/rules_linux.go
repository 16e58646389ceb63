package proc

import (
	"os"
	"path/filepath"
	"strings"
)

// rules grants what b allows. Landlock only knows grants, each for a folder with all below it; so around what is denied the rights are given
// to everything beside it: to the entries of each folder on the way, at the price of listing those folders when a command starts. Two
// things follow: in a folder on the way nothing new can be made, as the right to do so would hold below it as well; and what others make
// there later cannot be read by the command. Listing is granted on the way, or "ls ~" would fail, and so the names of what is denied show.
func (b *Bounds) rules(r ruleset) error {
	deny := resolved(b.Deny)
	if err := carve(r, "/", read, deny); err != nil {
		return err
	}
	for _, path := range resolved(b.Read) {
		if err := carve(r, path, read, deny); err != nil {
			return err
		}
	}
	for _, path := range resolved(b.Write) {
		if err := carve(r, path, read|write|device, deny); err != nil {
			return err
		}
	}
	names := devices
	if b.Devices {
		names = append(names[:len(names):len(names)], terminals...)
	}
	for _, path := range names {
		if err := r.grant(path, read|write|device); err != nil {
			return err
		}
	}
	return nil
}

// carve grants rights on path but not on what is denied below it.
func carve(r ruleset, path string, rights uint64, deny []string) error {
	var inside []string
	for _, d := range deny {
		switch {
		case d == path:
			return nil
		case below(d, path):
			inside = append(inside, d)
		}
	}
	if len(inside) == 0 {
		return r.grant(path, rights)
	}
	if err := r.grant(path, rights&readDir); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil && len(entries) == 0 {
		return nil //nolint:nilerr // a folder that cannot be listed: nothing in it is granted
	}
	for _, e := range entries {
		if err := carve(r, filepath.Join(path, e.Name()), rights, inside); err != nil {
			return err
		}
	}
	return nil
}

// below reports whether path lies below folder.
func below(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/") && path != folder
}

// resolved are the places that exist, links followed.
func resolved(paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if at, err := filepath.EvalSymlinks(p); err == nil && filepath.IsAbs(at) {
			out = append(out, at)
		}
	}
	return out
}

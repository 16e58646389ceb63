package mcp

import (
	"runtime"
	"slices"
	"strings"
)

// lent are the variables a server gets of ours, besides LC_*. No key is among them: those it needs are named in its entry.
var lent = []string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "SHELL", "TERM"}

// lentWindows are those without which programs do not start there.
var lentWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES", "USERPROFILE", "USERNAME",
	"HOMEDRIVE", "HOMEPATH", "TEMP", "TMP",
}

// environ is the whole environment of a server.
func environ(ours []string, own map[string]string) []string {
	var env []string
	for _, kv := range ours {
		name, _, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		_, replaced := own[name]
		if replaced || !slices.Contains(lent, name) && !strings.HasPrefix(name, "LC_") && !(runtime.GOOS == "windows" && slices.Contains(lentWindows, name)) {
			continue
		}
		env = append(env, kv)
	}
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

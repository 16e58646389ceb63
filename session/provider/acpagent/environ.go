package acpagent

import (
	"runtime"
	"slices"
	"strings"

	"github.com/rind-dev/rind/protocol/acp"
)

// lent are the variables of ours that every child gets (docs/protocol/acp.md section 5.1). No key is among them.
var lent = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE", "SSH_AUTH_SOCK",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// lentPrefixes are beginnings of names that are lent too.
var lentPrefixes = []string{"LC_", "XDG_"}

// lentWindows are those without which programs do not start there; names are compared without case.
var lentWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA",
	"LOCALAPPDATA", "PROGRAMDATA",
}

func isLent(name string) bool {
	if runtime.GOOS == "windows" {
		name = strings.ToUpper(name)
		if slices.Contains(lentWindows, name) || strings.HasPrefix(name, "PROGRAMFILES") {
			return true
		}
	}
	return slices.Contains(lent, name) || slices.ContainsFunc(lentPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// sameName compares names of variables as the system does.
func sameName(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// environ is the whole environment of a child: what is lent, then env, then what pass names; sorted.
func environ(ours []string, env map[string]string, pass []string) []string {
	out := map[string]string{}
	set := func(name, value string) {
		for k := range out {
			if sameName(k, name) {
				delete(out, k)
			}
		}
		out[name] = value
	}
	for _, kv := range ours {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && isLent(name) {
			set(name, value)
		}
	}
	set("TERM", "dumb")
	for name, value := range env {
		set(name, value)
	}
	for _, kv := range ours {
		name, value, ok := strings.Cut(kv, "=")
		if ok && name != "" && slices.ContainsFunc(pass, func(p string) bool { return sameName(p, name) }) {
			set(name, value)
		}
	}
	list := make([]string, 0, len(out))
	for name, value := range out {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// keyEndings are the endings of the names of variables that hold credentials.
var keyEndings = []string{"_API_KEY", "_TOKEN", "_SECRET", "_CREDENTIALS"}

func holdsKey(name string) bool {
	return slices.ContainsFunc(keyEndings, func(e string) bool { return strings.HasSuffix(strings.ToUpper(name), e) })
}

// hint names the variables that look like credentials and are not passed; "" for none. It never shows a value.
func hint(ours []string, given []string) string {
	var names []string
	for _, kv := range ours {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || value == "" || !holdsKey(name) || slices.ContainsFunc(given, func(g string) bool {
			n, _, _ := strings.Cut(g, "=")
			return sameName(n, name)
		}) {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	if len(names) > 5 {
		names = names[:5]
	}
	verb := " is"
	if len(names) > 1 {
		verb = " are"
	}
	return strings.Join(names, ", ") + verb + " set here but not passed: use passEnv or --pass-env " + names[0]
}

// changed are those of the variables a child sets for a command that can be set and are not so already.
func changed(env []string, set []acp.Pair) []acp.Pair {
	return slices.DeleteFunc(slices.Clone(set), func(v acp.Pair) bool {
		return v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") || slices.Contains(env, v.Name+"="+v.Value)
	})
}

// with is an environment with changes.
func with(env []string, changes []acp.Pair) []string {
	out := slices.Clone(env)
	for _, v := range changes {
		out = slices.DeleteFunc(out, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return sameName(name, v.Name)
		})
		out = append(out, v.Name+"="+v.Value)
	}
	return out
}

package acpagent

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"unicode"
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

// masker hides the values of an environment that are secrets: of variables that hold keys, and of those that env and pass name; and further ones.
func masker(environment []string, spec *Spec, further []string, more func(string) string) func(string) string {
	var pairs []string
	for _, value := range further {
		if len(value) >= 6 {
			pairs = append(pairs, value, "[hidden]")
		}
	}
	for _, kv := range environment {
		name, value, _ := strings.Cut(kv, "=")
		_, own := spec.Env[name]
		passed := slices.ContainsFunc(spec.PassEnv, func(p string) bool { return sameName(p, name) })
		if len(value) >= 6 && (holdsKey(name) || own || passed) {
			pairs = append(pairs, value, "[hidden]")
		}
	}
	r := strings.NewReplacer(pairs...)
	return func(s string) string { return more(r.Replace(s)) }
}

// Split splits a command line into words: white space separates, single and double quotes keep it, a backslash keeps the character behind it
// (not within single quotes). Nothing is expanded.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == '\'':
			word.WriteRune(r)
		case r == '\\' && escapes(runes, i, quote):
			i++
			word.WriteRune(runes[i])
			open = true
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case unicode.IsSpace(r):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	switch {
	case quote != 0:
		return nil, errors.New("a quote is not closed")
	case open:
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("it is empty")
	}
	return words, nil
}

// escapes reports whether the backslash at i keeps the character behind it: in a Windows path it is a backslash.
func escapes(runes []rune, i int, quote rune) bool {
	if i+1 >= len(runes) {
		return false
	}
	next := runes[i+1]
	if quote == '"' || runtime.GOOS == "windows" {
		return next == '"' || next == '\\' && runtime.GOOS != "windows"
	}
	return true
}

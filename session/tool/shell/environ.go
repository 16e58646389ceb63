package shell

import (
	"path"
	"runtime"
	"slices"
	"strings"
)

// secretNames are the variables that commands do not get, as patterns of their names in upper case. What a key opens is for the runtime and
// the user; a command that needs one can be given it by name in a file or by the user. SSH_AUTH_SOCK stays: it lends the use of a key, not
// the key.
var secretNames = []string{
	"RIND_*",
	"*API_KEY", "*API_KEY_*", "*APIKEY", "*_TOKEN", "*_TOKEN_*", "TOKEN", "*AUTHTOKEN", "*_AUTH", "*_SECRET", "*_SECRET_*", "SECRET", "SECRET_*",
	"*SECRET_KEY*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*_PAT", "*PRIVATE_KEY*", "*ACCESS_KEY*", "*ENCRYPTION_KEY*", "*SIGNING_KEY*",
	"AWS_*KEY*", "AWS_*TOKEN*", "AZURE_*KEY*", "*_CREDENTIALS_JSON", "MYSQL_PWD", "SSHPASS", "KUBECONFIG_DATA", "*_CONNECTION_STRING",
	"*_SERVICE_ACCOUNT_KEY", "*_WEBHOOK_URL",
}

// bending are variables by which a shell takes the words of a command for something else: where cd leads, what a wildcard becomes. A command
// is judged by its words.
var bending = []string{"CDPATH", "GLOBIGNORE", "BASHOPTS", "SHELLOPTS"}

// set are the variables every command gets: nothing waits for a person at a terminal, and nothing is paged.
var set = map[string]string{"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}

// secret reports whether the name of a variable says that its value is one.
func secret(name string) bool {
	upper := strings.ToUpper(strings.ReplaceAll(name, "/", "_"))
	for _, p := range secretNames {
		if ok, _ := path.Match(p, upper); ok {
			return true
		}
	}
	return false
}

// environ is a command's environment: the user's without secrets and what is bending, and set.
func environ(user []string, secrets func(name, value string) bool, cwd string) []string {
	env := make([]string, 0, len(user)+len(set)+1)
	for _, kv := range user {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" && runtime.GOOS != "windows" { // there, "=C:" is one
			continue
		}
		if _, ours := set[name]; ours || name == "PWD" || slices.Contains(bending, name) || secret(name) || secrets != nil && secrets(name, value) {
			continue
		}
		env = append(env, kv)
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return append(env, "PWD="+cwd)
}

// with sets a variable.
func with(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if n, _, _ := strings.Cut(kv, "="); n != name {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}

// lookup finds a variable.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if n, value, _ := strings.Cut(env[i], "="); n == name {
			return value
		}
	}
	return ""
}

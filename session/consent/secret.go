package consent

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Secret tells whether a path names a file or folder that holds credentials, by its name alone: .env* (but not .env.example,
// .env.sample, .env.template), *.pem, private SSH keys, .npmrc, .netrc and their like, credential folders and what lies in them. Slashes
// or the system's own separators; case does not count. Tools that search folders leave such files out unless one is named.
func Secret(name string) bool {
	parts := strings.Split(folded(strings.ReplaceAll(filepath.ToSlash(name), `\`, "/")), "/")
	for i, part := range parts {
		if secretFolders[part] {
			return true
		}
		if i+1 < len(parts) && slices.Contains(secretPairs[part], parts[i+1]) {
			return true
		}
		if part == "proc" && i+2 < len(parts) && parts[i+2] == "environ" {
			return true
		}
	}
	base := parts[len(parts)-1]
	switch {
	case strings.HasPrefix(base, ".env"):
		return base != ".env.example" && base != ".env.sample" && base != ".env.template"
	case strings.HasSuffix(base, ".pem"):
		return true
	}
	return secretFiles[base]
}

// folded is a name as the file systems see it that find a file under more than one: in lower case, also where a letter has several upper
// case forms of its own, without characters that do not count, without what may stand behind a name (Windows: dots, blanks, a stream).
func folded(name string) string {
	name = strings.Map(func(c rune) rune {
		if c >= 0x200b && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x2060 && c <= 0x206f || c == 0xfeff {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(c))
	}, name)
	if !strings.ContainsAny(name, ":. ") {
		return name
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if at := strings.IndexByte(part, ':'); at > 1 { // not a drive
			part = part[:at]
		}
		parts[i] = strings.TrimRight(part, ". ")
	}
	return strings.Join(parts, "/")
}

var secretFiles = map[string]bool{
	"id_rsa": true, "id_dsa": true, "id_ecdsa": true, "id_ed25519": true, "id_ecdsa_sk": true, "id_ed25519_sk": true,
	".npmrc": true, ".netrc": true, "_netrc": true, ".pypirc": true, ".pgpass": true, ".git-credentials": true, ".dockercfg": true, ".vault-token": true,
}

var secretFolders = map[string]bool{
	".ssh": true, ".aws": true, ".gnupg": true, ".kube": true, ".azure": true, ".password-store": true, ".gcloud": true,
}

// secretPairs are names that are secret in a folder of a certain name.
var secretPairs = map[string][]string{
	".docker":      {"config.json"},
	".config":      {"gh", "gcloud", "azure", "op", "rclone", "hub"},
	".terraform.d": {"credentials.tfrc.json"},
	".cargo":       {"credentials", "credentials.toml"},
	".gem":         {"credentials"},
}

// Secret is Secret of the package, and true for the data root and what lies in it. path is absolute, links resolved.
func (p *Policy) Secret(path string) bool { return p.secret(path) }

func (p *Policy) secret(name string) bool {
	if Secret(name) {
		return true
	}
	clean := folded(filepath.Clean(name))
	return slices.ContainsFunc(p.data, func(root string) bool {
		rel, err := filepath.Rel(root, clean)
		return err == nil && filepath.IsLocal(rel)
	})
}

// samples stand for the secret names a pattern may match.
var samples = []string{
	".env", ".env.local", ".env.production", ".envrc", "key.pem", "id_rsa", "id_ed25519", ".npmrc", ".netrc", ".pypirc", ".git-credentials", ".ssh", ".aws",
	".gnupg", ".kube", ".azure",
}

const mostBraces = 64

// secretGlob tells whether a glob names secret files: it says more than "anything", and one of them fits it. Braces are alternatives.
func secretGlob(pattern string) bool {
	pattern = strings.ToLower(filepath.ToSlash(pattern))
	if strings.HasPrefix(pattern, "!") {
		return false
	}
	all := alternatives(pattern, mostBraces)
	if len(all) >= mostBraces {
		return true // more than anybody writes; the rest was not looked at
	}
	for _, alternative := range all {
		if Secret(unescape(alternative)) {
			return true
		}
		for part := range strings.SplitSeq(alternative, "/") {
			if !telling(part) {
				continue
			}
			for _, s := range samples {
				if ok, err := path.Match(part, s); ok || err != nil {
					return true
				}
			}
		}
	}
	return false
}

// telling reports whether a part of a glob is more than wildcards.
func telling(part string) bool {
	if !strings.ContainsAny(part, "*?[") {
		return false // a plain name was looked at as such
	}
	if strings.HasPrefix(part, ".") {
		return true
	}
	in := false
	for _, c := range part {
		switch {
		case c == '[':
			in = true
		case c == ']':
			in = false
		case !in && (c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80):
			return true
		}
	}
	return false
}

func unescape(pattern string) string {
	if !strings.Contains(pattern, `\`) {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// alternatives takes {a,b} apart, up to a number of results; what is beyond it is left out.
func alternatives(s string, most int) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var items []string
	end := -1
	for i := open; i < len(s) && end < 0; i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				items, end = append(items, s[start:i]), i
			}
		case ',':
			if depth == 1 {
				items, start = append(items, s[start:i]), i+1
			}
		}
	}
	if end < 0 {
		return []string{s}
	}
	var out []string
	for _, item := range items {
		for _, a := range alternatives(item+s[end+1:], most) {
			if out = append(out, s[:open]+a); len(out) >= most {
				return out
			}
		}
	}
	return out
}

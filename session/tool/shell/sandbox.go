package shell

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/proc"
)

// Modes of the sandbox.
const (
	ModeAuto = "auto" // whatever the system offers
	ModeOff  = "off"
)

// Sandboxes, as meta.sandbox names them.
const (
	landlock   = "landlock"
	bubblewrap = "bubblewrap"
)

// Describe says what commands run in, for the first approval of a session.
func Describe(c Config) string {
	switch c.sandbox() {
	case landlock:
		return "sandbox: landlock, writes only below the workspace"
	case bubblewrap:
		return "sandbox: bubblewrap, writes only below the workspace"
	}
	return "no sandbox"
}

// Sandboxed reports whether commands run in a sandbox, by the settings and on this system.
func Sandboxed(c Config) bool { return c.sandbox() != "" }

// sandbox is the one commands run in; "" for none.
func (c *Config) sandbox() string {
	if c.Mode == ModeOff {
		return ""
	}
	return offered()
}

// enclose puts a command into the sandbox, if there is one.
func (c *running) enclose(spec *proc.Spec, user []string, call session.ToolCall) error {
	c.sandbox = c.tool.sandbox()
	if c.sandbox == "" {
		return nil
	}
	home := lookup(user, "HOME")
	b := proc.Bounds{Deny: c.tool.Private, Devices: !call.Reads}
	if c.tool.Outputs != nil {
		b.Read = append(b.Read, c.tool.Outputs(call.Session)) // where meta.output_path leads
	}
	temp := lookup(user, "TMPDIR")
	if temp == "" {
		temp = "/tmp"
	}
	if call.Reads || slices.ContainsFunc(b.Deny, func(d string) bool { return within(d, temp) }) {
		own, err := os.MkdirTemp("", "rind-command-")
		if err != nil {
			return err
		}
		if own, err = filepath.EvalSymlinks(own); err != nil {
			return err
		}
		c.temp, temp = own, own
		spec.Env = with(spec.Env, "TMPDIR", own)
	}
	b.Write = append(b.Write, temp)
	if call.Reads {
		b.Deny = append(b.Deny[:len(b.Deny):len(b.Deny)], credentials(home)...)
	} else {
		b.Write = append(b.Write, call.Roots...)
		b.Write = append(b.Write, consented(call.Outside, home)...)
		for _, root := range call.Roots {
			b.Write = append(b.Write, repository(root)...)
		}
		b.Write = append(b.Write, caches(user, home)...)
	}
	return wrap(c.sandbox, spec, b)
}

// consented are the places outside the roots that may be written. For one that is not there yet it is the nearest folder above that is, or it
// could not be made; but not the home folder, or one above it.
func consented(paths []string, home string) []string {
	out := make([]string, 0, len(paths))
	for _, at := range paths {
		if _, err := os.Lstat(at); err == nil {
			out = append(out, at)
			continue
		}
		for filepath.Dir(at) != at {
			at = filepath.Dir(at)
			if info, err := os.Stat(at); err == nil {
				if info.IsDir() && filepath.IsAbs(at) && at != "/" && !within(home, at) {
					out = append(out, at)
				}
				break
			}
		}
	}
	return out
}

// credentialFolders are not read by commands that were allowed because they only read. Relative to the home folder.
var credentialFolders = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube", ".docker/config.json", ".netrc", ".npmrc",
	".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".config/git/credentials", ".password-store", ".local/share/keyrings",
	".config/op", ".terraform.d/credentials.tfrc.json", ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials",
	".config/rclone", ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird",
}

func credentials(home string) []string {
	if !filepath.IsAbs(home) {
		return nil
	}
	out := make([]string, 0, len(credentialFolders))
	for _, name := range credentialFolders {
		out = append(out, filepath.Join(home, name))
	}
	return out
}

// cacheFolders are what build tools write outside the workspace, relative to the home folder. The folder of a program that is installed is made
// when it is missing: the program could not, in the sandbox.
var cacheFolders = []struct{ folder, program string }{
	{".cache", "sh"},
	{"go", "go"},
	{".config/go", "go"},
	{".npm", "npm"},
	{".yarn", ""},
	{".pnpm-store", ""},
	{".local/share/pnpm", "pnpm"},
	{".local/state/pnpm", "pnpm"},
	{".bun", ""},
	{".deno", ""},
	{".node-gyp", ""},
	{".cargo", "cargo"},
	{".rustup", "rustup"},
	{".m2", "mvn"},
	{".gradle", "gradle"},
	{".ivy2", ""},
	{".sbt", "sbt"},
	{".konan", ""},
	{".android", ""},
	{".nuget", "dotnet"},
	{".dotnet", "dotnet"},
	{".local/share/NuGet", "dotnet"},
	{".gem", "gem"},
	{".bundle", "bundle"},
	{".rbenv", ""},
	{".composer", "composer"},
	{".local/share/uv", "uv"},
	{".local/share/virtualenvs", ""},
	{".conda", ""},
	{".pyenv", ""},
	{".cabal", "cabal"},
	{".stack", "stack"},
	{".ghcup", ""},
	{".mix", "mix"},
	{".hex", "mix"},
	{".opam", ""},
	{".pub-cache", "dart"},
	{".dart-tool", ""},
	{".ccache", ""},
	{".bazel", ""},
	{".zig", ""},
	{".julia", "julia"},
	{".terraform.d/plugin-cache", ""},
	{".nvm", ""},
	{".volta", ""},
}

// cacheVariables name such folders.
var cacheVariables = []string{
	"GOCACHE", "GOMODCACHE", "GOPATH", "GOTMPDIR", "XDG_CACHE_HOME", "npm_config_cache", "NPM_CONFIG_CACHE", "YARN_CACHE_FOLDER", "PNPM_HOME",
	"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "GRADLE_USER_HOME", "NUGET_PACKAGES",
	"CCACHE_DIR", "SCCACHE_DIR", "BUN_INSTALL", "DENO_DIR", "GEM_HOME", "COMPOSER_HOME", "STACK_ROOT", "CABAL_DIR", "JULIA_DEPOT_PATH",
}

// caches are the folders of build tools that may be written. A variable that leads to the home folder, or above, is not followed: it would
// open everything.
func caches(user []string, home string) []string {
	var out []string
	if filepath.IsAbs(home) && home != "/" {
		for _, c := range cacheFolders {
			at := filepath.Join(home, c.folder)
			if _, err := os.Lstat(at); err != nil {
				if c.program == "" || !installed(c.program) || os.MkdirAll(at, 0o755) != nil {
					continue
				}
			}
			out = append(out, at)
		}
	}
	for _, name := range cacheVariables {
		for _, at := range filepath.SplitList(lookup(user, name)) {
			at = filepath.Clean(at)
			if filepath.IsAbs(at) && at != "/" && !within(home, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// within reports whether path is folder or lies below it.
func within(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// repository are the folders of git outside a root that committing in it writes to: of the repository the root is a folder of, or a worktree
// of. What names them lies in the workspace, so it is believed only where git's own folder names the workspace in turn.
func repository(root string) []string {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		dot := filepath.Join(dir, ".git")
		info, err := os.Lstat(dot)
		switch {
		case err == nil && info.IsDir() && isRepository(dot):
			return []string{dot}
		case err == nil && info.Mode().IsRegular():
			return linked(dot, root)
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
}

func isRepository(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// linked are the folders that a .git file leads to.
func linked(dot, root string) []string {
	gitDir := pointer(dot, "gitdir: ")
	if gitDir == "" {
		return nil
	}
	if back := pointer(filepath.Join(gitDir, "gitdir"), ""); back == dot { // a worktree
		common := pointer(filepath.Join(gitDir, "commondir"), "")
		if common == "" || !isRepository(common) || !within(gitDir, filepath.Join(common, "worktrees")) {
			return nil
		}
		return []string{common}
	}
	for dir := filepath.Dir(filepath.Dir(dot)); ; dir = filepath.Dir(dir) { // a submodule: its repository is kept by one further up
		if above := filepath.Join(dir, ".git"); within(gitDir, filepath.Join(above, "modules")) && isRepository(above) && isRepository(gitDir) {
			return []string{gitDir}
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
}

// pointer reads the path a file of git holds, absolute with links followed; "" for none.
func pointer(file, prefix string) string {
	const most = 8 << 10
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most { // a workspace may hold anything there: a pipe, a link to a device
		return ""
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(data)), prefix)
	if !ok || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	return path
}

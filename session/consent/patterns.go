package consent

import (
	"regexp"
	"strings"
	"sync"
)

// narrow are programs no pattern may stand for: they run what they are given, or do things too different from one another. A rule names
// their exact command.
var narrow = map[string]bool{
	"eval": true, "exec": true, "source": true, ".": true, "builtin": true, "trap": true, "alias": true, "unalias": true, "export": true, "set": true, "unset": true,
	"shopt": true, "enable": true, "hash": true, "read": true, "mapfile": true, "readarray": true, "getopts": true, "ulimit": true, "umask": true,
	"npx": true, "bunx": true, "pnpx": true, "uvx": true, "pipx": true, "nix-shell": true, "watch": true, "script": true, "su": true, "runuser": true, "at": true,
	"batch": true, "crontab": true, "find": true, "fd": true, "sed": true, "tee": true, "dd": true, "rm": true, "rmdir": true, "unlink": true, "shred": true,
	"mv": true, "cp": true, "ln": true, "install": true, "chmod": true, "chown": true, "chgrp": true, "kill": true, "pkill": true, "killall": true,
	"curl": true, "wget": true, "scp": true, "rsync": true, "sftp": true, "ftp": true, "nc": true, "ncat": true, "socat": true, "telnet": true, "gdb": true,
	"lldb": true, "expect": true, "vim": true, "vi": true, "emacs": true, "nano": true, "ed": true, "ex": true, "systemctl": true, "service": true,
	"launchctl": true, "mount": true, "umount": true, "tar": true, "unzip": true, "zip": true, "psql": true, "mysql": true, "sqlite3": true, "mongosh": true,
	"redis-cli": true, "java": true, "dotnet-script": true, "rlwrap": true, "entr": true, "direnv": true, "tmux": true, "screen": true,
	"sort": true, "xxd": true, "tree": true, "env": true, "printenv": true, "cmd": true, "cmd.exe": true, "powershell.exe": true,
	"ts-node": true, "tsx": true, "R": true, "Rscript": true, "julia": true, "elixir": true, "erl": true, "ghci": true, "scala": true, "groovy": true,
	"swift": true, "clojure": true, "racket": true, "guile": true, "sbcl": true, "irb": true, "pypy": true, "raku": true, "perl6": true, "nawk": true,
	"original-awk": true, "luajit": true, "ocaml": true, "runghc": true, "runhaskell": true, "escript": true, "iex": true, "swipl": true, "jshell": true, "kotlin": true,
	"wish": true, "octave": true, "gnuplot": true, "m4": true, "dc": true, "nu": true, "xonsh": true, "elvish": true, "nvim": true, "view": true, "vimdiff": true,
	"less": true, "more": true, "man": true, "sqlite": true, "duckdb": true, "mariadb": true, "mysqlsh": true, "setarch": true, "bwrap": true, "proot": true,
	"hyperfine": true, "nix": true, "mise": true, "asdf": true, "devbox": true, "doppler": true, "op": true, "aws-vault": true, "vagrant": true, "multipass": true,
	"lxc": true, "wsl": true, "wsl.exe": true, "wine": true, "sandbox-exec": true, "concurrently": true, "nodemon": true, "watchexec": true, "foreman": true,
	"honcho": true, "pm2": true, "forever": true, "open": true, "xdg-open": true, "gpg": true, "security": true, "secret-tool": true, "keyctl": true,
}

// stateful are builtins that change what later parts of a command mean.
var stateful = map[string]bool{
	"shopt": true, "alias": true, "unalias": true, "enable": true, "hash": true, "set": true, "unset": true, "trap": true, "read": true, "mapfile": true,
	"readarray": true, "exec": true, "builtin": true, "eval": true, "getopts": true,
}

// subcommands are programs whose first word says what they do, with the subcommands that have one of their own.
var subcommands = map[string][]string{
	"git": {"stash", "remote", "worktree", "submodule", "bisect", "notes", "lfs"},
	"npm": {"run", "run-script"}, "pnpm": {"run"}, "yarn": {"run"}, "bun": {"run"}, "deno": {"task"},
	"go": {"mod", "work"}, "cargo": nil, "rustup": {"toolchain", "target", "component"}, "docker": {"compose", "image", "container", "volume", "network", "system"},
	"docker-compose": nil, "podman": nil, "kubectl": nil, "helm": nil, "terraform": nil, "gh": {"pr", "issue", "run", "repo", "release", "workflow"}, "pip": nil,
	"pip3": nil, "uv": {"pip"}, "poetry": nil, "pdm": nil, "conda": nil, "brew": nil, "apt": nil, "apt-get": nil, "dnf": nil, "yum": nil, "bundle": nil, "gem": nil,
	"rake": nil, "rails": nil, "composer": nil, "artisan": nil, "dotnet": nil, "mix": nil, "flutter": nil, "dart": nil, "swiftpm": nil, "bazel": nil, "nx": nil,
	"turbo": nil, "lerna": nil, "make": nil, "just": nil, "task": nil, "gradle": nil, "./gradlew": nil, "gradlew": nil, "mvn": nil, "./mvnw": nil, "sbt": nil,
	"aws": nil, "gcloud": nil, "az": nil, "heroku": nil, "fly": nil, "vercel": nil, "netlify": nil, "ng": nil, "hg": nil, "svn": nil, "jj": nil, "black": nil,
}

// subcommandsNarrow run what they are given, or set what other programs will run.
var subcommandsNarrow = map[string]bool{
	"git config": true, "git filter-branch": true, "git bisect run": true, "git submodule foreach": true, "git difftool": true, "git mergetool": true, "git rebase": true,
	"git clean": true, "git reset": true, "git checkout": true, "git restore": true, "git rm": true, "git reflog": true, "git gc": true, "git update-ref": true,
	"git credential": true, "git hook": true, "git maintenance": true, "git archive": true,
	"npm init": true, "npm create": true, "yarn create": true, "pnpm create": true, "bun create": true, "npm exec": true, "npm x": true, "npm config": true, "npm explore": true, "pnpm dlx": true, "pnpm exec": true, "yarn dlx": true, "yarn exec": true, "yarn node": true,
	"bun x": true, "bun exec": true, "deno run": true, "deno eval": true, "uv run": true, "uv tool": true, "poetry run": true, "pdm run": true, "conda run": true,
	"bundle exec": true, "go run": true, "go generate": true, "go env": true, "go tool": true, "cargo run": true, "docker run": true, "docker exec": true,
	"docker compose": true, "docker compose run": true, "docker compose exec": true, "docker container": true, "docker system": true, "docker-compose run": true,
	"docker-compose exec": true, "podman run": true, "podman exec": true, "kubectl exec": true, "kubectl delete": true, "kubectl run": true, "terraform destroy": true,
	"gh api": true, "gh alias": true, "gh extension": true, "rails runner": true, "rails console": true, "mix run": true, "composer exec": true, "hg --config": true,
	"pip config": true, "rustup run": true, "nx run": true, "dotnet run": true, "dart run": true,
}

var plainWord = lazily(`^[A-Za-z0-9_@][A-Za-z0-9_.:@/+-]*$`)

// pattern is what a rule for a step says: its program and what that does (`git commit *`), which is wide, or its exact text.
func pattern(st *step) (text string, wide bool) {
	exact := exactly(strings.Trim(st.text, blanks))
	name := st.argv[0].text
	if !st.argv[0].known || st.argv[0].glob != "" || !plainProgram().MatchString(name) {
		return exact, false
	}
	base := programName(name)
	second, has := subcommands[base]
	if narrow[base] || interpreters[base] && !has || shells[base] || versioned().MatchString(base) || dangers[base] != nil {
		return exact, false
	}
	if _, wraps := wrappers[base]; wraps {
		return exact, false
	}
	if _, reads := readers[base]; reads && base != "git" {
		return exact, false // called in a way that does more
	}
	if base != name {
		return exact, false
	}
	if !has {
		return base + " *", true
	}
	words, ok := commandWords(st.argv, second)
	if !ok {
		return exact, false
	}
	return strings.Join(words, " ") + " *", true
}

var (
	plainProgram = lazily(`^[A-Za-z0-9_./+-]+$`)
	versioned    = lazily(`^(python|pypy|perl|ruby|node|php|lua|tclsh|bash|zsh|ksh)[0-9.]+$`)
)

// commandWords are the program and its subcommand, with the word behind it where that one has subcommands too. Flags before the
// subcommand could be anything, so they have no pattern.
func commandWords(argv []word, second []string) ([]string, bool) {
	words := []string{argv[0].text}
	most := 2
	for i := 1; i < len(argv) && len(words) < most; i++ {
		w := argv[i]
		if !w.known || w.glob != "" || !plainWord().MatchString(w.text) {
			return nil, false
		}
		words = append(words, w.text)
		for _, s := range second {
			if i == 1 && s == w.text {
				most = 3
			}
		}
		if subcommandsNarrow[strings.Join(words, " ")] {
			return nil, false
		}
	}
	return words, len(words) == most
}

// rejections are the patterns of rules that reject a step. Unlike for allowing, it does not matter how it is called: behind a wrapper, by
// its full path, with variables.
func rejections(st *step) []string {
	out := []string{exactly(strings.Trim(st.text, blanks))}
	if len(st.argv) == 0 || st.argv[0].unclear() {
		return out
	}
	name := st.argv[0].text
	names := []string{name}
	if i := strings.LastIndexByte(name, '/'); i >= 0 && i+1 < len(name) {
		names = append(names, name[i+1:])
	}
	var words []string
	args := st.argv[1:]
	if names[len(names)-1] == "git" {
		if sub, rest, ok := anyGitSub(args); ok {
			args = append([]word{{text: sub}}, rest...)
		}
	}
	for _, w := range args {
		if strings.HasPrefix(w.text, "-") && len(words) == 0 {
			continue // flags before the subcommand
		}
		if words = append(words, w.text); len(words) == 2 {
			break
		}
	}
	for _, n := range names {
		out = append(out, n+" *")
		for i := range words {
			out = append(out, n+" "+strings.Join(words[:i+1], " ")+" *")
		}
	}
	return out
}

// anyGitSub finds git's subcommand behind any flags.
func anyGitSub(args []word) (sub string, rest []word, ok bool) {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-C", t == "-c", t == "--git-dir", t == "--work-tree", t == "--namespace", t == "--exec-path", t == "--config-env":
			i++
		case strings.HasPrefix(t, "-"):
		default:
			return t, args[i+1:], true
		}
	}
	return "", nil, false
}

// lazily compiles an expression with its first use: there are many, and most starts of the program read no command.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

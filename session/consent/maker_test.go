//go:build unix

package consent_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// canary is what no command that runs unasked may print.
const canary = "c4n4ry"

// trap lays out what such a command must not touch: secret files, files outside, programs with the names of others, a repository that is not
// called .git, with programs in its settings.
func (p *place) trap() {
	touch := "#!/bin/sh\n/usr/bin/touch " + filepath.Join(p.root, "ran") + "\n"
	for name, text := range map[string]string{
		"hold/.env": canary, "hold/key.pem": canary, "hold/plain.txt": "x\n", "hold/deep/.npmrc": canary, "../elsewhere/notes.txt": canary, "../elsewhere/deep/y.txt": canary,
		"list": "hold/.env\n../elsewhere/notes.txt\nHEAD\n", "@list": "hold/.env\n", "x.gz": "\x1f\x8b", "bare/HEAD": "ref: refs/heads/main\n", "bare/objects/x": "", "bare/refs/x": "", "empty": "",
		"bare/config":    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = " + filepath.Join(p.root, "x") + "\n\tpager = ../x\n[diff]\n\texternal = ../x\n[alias]\n\tst = !../x\n",
		".gitattributes": "*.txt diff=x filter=x\n",
	} {
		path := filepath.Join(p.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "1", "10", "inpath"} {
		for _, name := range []string{"x", "ls", "cat", "grep", "sort", "touch", "git", "sed", "echo", "find"} {
			path := filepath.Join(p.root, dir, name)
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte(touch), 0o755); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// maker makes commands up.
type maker struct {
	programs []string
	worse    []string            // of them, those worse has words for
	flags    map[string][]string // by program: what it says itself that it takes
}

var longFlag = regexp.MustCompile(`--[a-z][a-z0-9-]+=?`)

func newMaker(p *place) *maker {
	m := &maker{flags: map[string][]string{}, programs: strings.Fields(`cat tac nl rev fold head tail cut paste comm join expand fmt column od hexdump strings cmp cksum md5sum sha256sum b2sum tr wc base64 xxd uniq sort shuf diff jq grep egrep sed
		ls stat du df file find basename dirname realpath readlink pwd echo printf seq sleep date id uname hostname which type test [ [[ cd set env awk xargs tee command timeout nice export hash read tree rg fd exit`)}
	for _, sub := range strings.Fields(`status log diff show branch tag remote stash reflog cat-file config grep worktree ls-files ls-tree describe rev-list rev-parse blame shortlog for-each-ref show-ref name-rev merge-base check-ignore check-attr
		cherry diff-tree diff-index diff-files whatchanged annotate count-objects version`) {
		m.programs = append(m.programs, "git "+sub)
	}
	for _, program := range m.programs {
		if worse[strings.Fields(program)[0]] != nil {
			m.worse = append(m.worse, program)
		}
		words := append(strings.Fields(program), "--help")
		if words[0] == "git" {
			words[2] = "-h"
		}
		switch words[0] {
		case "[", "[[", "cd", "set", "type", "test", "export", "hash", "read", "exit", "command", "rg", "fd", "tree", "hostname":
			continue
		}
		found := longFlag.FindAllString(p.really(strings.Join(words, " ")), -1)
		slices.Sort(found)
		m.flags[program] = slices.Compact(found)
	}
	return m
}

var (
	someFlags = strings.Fields(`-o -onew -O -Ox -w -i -d -D -m -f -s -u -r -n -p -e -v -c -C -t -l -a -x -X -z -Z -L -R -rL -dL -b -k -T. -S -E -H -B -A -h -q -F -5 -1f +5f +1 -ne -nf -rf -er --output=new --output --out=new --stdin --batch --files0-from=list --files-from=list
		--from-file=list --exclude-from --include --include=* --exclude=.env --exclude=zz --directories=recurse -drecurse --recursive --follow --no-index --untracked --ext-diff --textconv --open-files-in-pager=./x -O./x --compress-program=./x --set=2001-01-01 --pre=./x --uncompress
		--show-signature --format=%G? --format=%(signature) --contents --check --repeat --random-source --no-dereference --reference --help --edit --list --all --add --in-place -i.bak --null-input --args --rawfile --slurpfile --from-file -L. --color --context --label --word-diff --stat -pretty --paginate
		-delete -fprint -fprintf -fls -exec -execdir -ok -name -type -prune -print -maxdepth -newer -files0-from -follow -size -path -regex -printf -not -quit -empty`)
	someWords = []string{
		"a.txt", "b.txt", "new", "list", "@list", "x", "./x", "src", "hold", "hold/.env", "hold/*", "hold/.e*", "links", "links/way-out", "links/note", "links/*", "inner", ".", "..", "/", "~", "../elsewhere/notes.txt", "../elsewhere", "flags", "flags/*", "empty", "bare", "*", "*.txt", "?", "[ab].txt", "-*",
		"{a,b}.txt", "{-o,new}", "@*", "x.gz", "data.json", "HEAD", "HEAD:a.txt", "feature", "v0", "main", ":/", ":hold", "'*'", "'.e*'", "'*.pem'", "--", "-", "--", "p", "'1p'", "'w new'", "'1w new'", "'s/a/b/w new'", "'s/b/touch new/e'", "'1e touch new'", "'p;w new'", "'/b/{p;w new\n}'", "'r list'",
		"\\;", "';'", "+", "{}", "{} +", "{} \\;", "-exec cat {} +", "-exec cat {} \\;", "-exec grep -n c {} +", "-exec touch new \\;", "-exec sort {} +", "-exec sed -n p {} +", "-exec head -n 1 {} \\;", "-exec wc {} +", "-exec ls {} +", "-name '*.txt'", "-name '.e*'", "-name '[.]e*'", "! -name '*.txt'", "-o", "-a", "\\(", "\\)", "!", "-type f", "-type l", "-L",
		"add x y", "push", "expire --all", "user.name x", "user.name", "show", "list", "get-url x", "touch new", "touch", "1", "2", "3s", "0.1", "inf", "01010101", "now", "+%s", "%s", "'%s\\n'", "'%n' PATH", "-v PATH inpath", "'a[$(touch new)]'", "'a[PATH=1]'", "PATH=1", "PATH=inpath", "-eq", "-lt", "-gt", "==", "=~", "<", "'>'", "-v", "-R", "-nt", "]", "]]", "&&", "||",
		".", ".a", "env", "'.a|env'", "'$ENV'", "input", "'input_filename'", "'$x'", "x hold/.env", "'\"x\"|modulemeta'", "c4", "c", "''", "\"\"", "$'a.txt'", "$'hold/.env\\0'", "$'\\x2do' new", "$\"a.txt\"", "\\a.txt", "a'.'txt", "\"a.txt\"", "ls", "cat hold/.env", "$?", "~+", "$HOME", "$PWD", "${X:=x}", "$((PATH=1))", "\\\n", "\r", "\u00a0",
	}
	someEnds = []string{
		"", "", "", "", "", "", " > new", " >> a.txt", " 2> new", " &> new", " >| new", " <> new", " < a.txt", " < hold/.env", " < list", " {PATH}< a.txt", " {x}> new", " <<< x", " <<< $(touch new)", " <<E\nx\nE", " <<'E'\n$(touch new)\nE", " <<E\n$(touch new)\nE", " <<-E\n\tx\n\tE", " <<E\nx\\\nE\ntouch new\nE",
		" <<\\E\n$(touch new)\nE", " <<\"E\"\n`touch new`\nE", " <<E'F'\nE\ntouch new\nEF", " <<E <<F\nx\nE\ntouch new\nF", " 2>&1", " 2>/dev/null", " >&2", " >&new", " <&0", " | tee new", " | cat", " | sort", " | head -n 1", " | xargs touch", " | sh", " |& cat", "; touch new", "; ls", " && ls", " || ls", " & touch new", "\ntouch new",
		"\nls", " # touch\n", " #\\\ntouch new", " # x\ntouch new", " \\\n# x\n", " <(touch new)", " >(touch new)", " $(touch new)", " `touch new`", " \"$(touch new)\"", "; cat a.txt", " && cat hold/plain.txt", " && grep c a.txt",
	}
	someFrames = []string{
		"%s", "%s", "%s", "%s", "%s", "%s", "%s", "%s", "( %s )", "{ %s; }", "! %s", "time %s", "time -p %s", "if %s; then ls; fi", "if ls; then %s; else cat a.txt; fi", "for i in a b; do %s; done", "for PATH in inpath; do %s; done", "for x in 1; do %s; done; ls", "while %s; do break; done", "until %s; do break; done",
		"case x in x) %s;; esac", "case 1 in $((PATH=1))) %s;; esac", "case x in %s) ls;; esac", "f() { %s; }; f", "ls() { touch new; }; %s", "cd src && %s", "cd bare && %s", "cd hold; %s", "cd flags && %s", "cd links/way-out && %s", "cd ..; %s", "timeout 5 %s", "nice -n 5 %s", "timeout -k 1 5 nice %s", "LC_ALL=C %s", "PATH=inpath %s", "TZ=UTC %s",
		"GIT_PAGER=cat %s", "PAGER=./x %s", "GIT_DIR=bare %s", "X=1 %s", "echo \"$( %s )\"", "coproc %s", "exec %s", "[[ -f a.txt ]] && %s", "[[ PATH=1 -eq 1 ]]; %s", "[[ 1 -eq 1 || -v 'a[PATH=1]' ]]; %s", "test -f a.txt && %s", "printf '%n' PATH; %s", "set -e; %s", "set -x; %s", "set -- x; %s", "shopt -s extglob; %s", "alias ls=touch; %s",
		"trap 'touch new' EXIT; %s", ": {PATH}<a.txt; %s", ": ${PATH:=1}; %s", "find . -exec %s \\;", "find hold -exec %s {} +", "find links -exec %s {} \\;", "find . -name '*.txt' -exec %s {} +", "%s \\\n", "\n%s\n", "# x\n%s", "ls # \\\n%s", "ls; # '\n%s", "ls '\n'; %s", "%s & wait", "git -C bare status; %s", "((x=1)); %s", "let x=1; %s", "echo {a,b}; %s",
	}
)

// worse are words with which a program does more than reading, as they would get by unseen.
var worse = map[string][]string{
	"sort":   {"-onew", "-o new", "-ronew", "--output=new", "--outp new", "-k 1 -o new", "-t -- -o new", "--random-source -- -onew", "-k1 -- a.txt -onew", "-S 1 --compress-program=./x", "--files0-from=list", "-T new"},
	"find":   {"-delete", "-exec touch new \\;", "-exec touch new {} +", "-exec cat {} +", "hold -exec cat {} +", "hold -type f -exec cat {} \\;", "-name '*' -exec cat {} +", "! -name x -exec cat {} +", "-name x -o -exec cat {} +", "-name '[.]e*' -exec cat {} +", "links -exec cat {} +", "links -type l -exec cat {} +", "-exec grep -r c4 {} +", "-exec sort -onew {} +", "-exec sed -n '1w new' {} +", "-exec uniq a.txt {} \\;", "-exec xxd {} new \\;", "-fprint new", "-fls new", "-fprintf new %p", "-okdir touch new \\;", "-name '*.txt' , -exec cat {} +", "\\( -name x -o -name '*.pem' \\) -exec cat {} +", "-exec cat {} + -name x", "-exec ls {} +", "-prune -o -exec cat {} \\;"},
	"grep":   {"-r c4 hold", "-d recurse c4 hold", "-drecurse c4 hold", "--dir=rec c4 hold", "-ec4 hold/.env", "-nec4 hold/.env", "-ne c4 hold/.env", "-r --include '*' c4 hold", "-r --include='[!x]*' c4 hold", "-r --exclude=.env --include='*' c4 hold", "-r -e c4 -e --include=zz hold", "-R c4 links", "-f list -r hold", "c4 -r hold", "-- c4 hold/.env", "c4 links/note"},
	"sed":    {"-n '1w new' a.txt", "'s/a/b/w new' a.txt", "-i p a.txt", "-ni p a.txt", "-n -e 1p -e '1w new' a.txt", "'1e touch new' a.txt", "'s/b/touch new/e' a.txt", "-f list a.txt", "'$r hold/.env' a.txt", "-n '/[/]/w new' a.txt", "--expression='w new' a.txt", "p a.txt -e 'w new'", "-s -n p hold/.env", "'y/a/b/;w new' a.txt", "'1{p;w new\n}' a.txt", "'s,a,b,;w new' a.txt"},
	"git":    {"--output=new", "--outp new", "--ext-diff", "-O./x", "-nO./x", "-e -- --open-files-in-pager=./x", "--no-index c4 hold", "--no-index /dev/null hold/.env", "--untracked c4 -- '*'", "--untracked c4 -- :/", "--contents hold/.env a.txt", "-D feature", "-m new", "-d v0", "-c new", "new HEAD", "expire --all", "delete HEAD@{0}", "user.email x", "--unset user.name", "clear", "drop", "pop", "prune", "--stdin < list", "--batch < list", "-f hold/.env", "--help", "--edit-description", "-a -m x", "--set-upstream-to=main", "update", "add x y", "rename a b"},
	"jq":     {"-n env", "-n '$ENV'", "-n --rawfile x hold/.env '$x'", "--slurpfile x hold/.env -n '$x'", "-Rn 'input' hold/.env", "-f list", "-n '[..|env]'", "-R . hold/.env", "-n '\"hold/x\"|modulemeta'"},
	"xxd":    {"-r a.txt new", "a.txt new", "a.txt -onew", "-r -p a.txt b.txt", "--r a.txt b.txt", "-l 4 a.txt new", "-c 4 -r a.txt b.txt"},
	"uniq":   {"a.txt new", "a.txt -onew", "-c a.txt new", "-f 1 a.txt new", "-- a.txt new", "- new"},
	"shuf":   {"-onew a.txt", "--outp=new a.txt", "-e a -o new", "-n 1 -o new a.txt"},
	"date":   {"-s now", "-us now", "-d -- -snow", "--set=now", "01010101", "-r -r 01010101", "-f hold/.env"},
	"diff":   {"a.txt hold", "-r hold src", "-r src links", "-x --no-dereference -r src links", "-N /dev/null hold/.env", "--to-file=hold/.env a.txt", "note links", "-l a.txt b.txt"},
	"file":   {"-C -m a.txt", "-f list", "-p a.txt", "-z x.gz", "--uncompress-noreport x.gz", "-m hold/.env a.txt", "-c -m hold/.env a.txt"},
	"printf": {"'%n' PATH", "-v PATH inpath", "-vPATH inpath", "-- '%n' PATH", "'%s%n' a PATH"}, "[[": {"PATH=1 -eq 1 ]]; ls", "1 -lt PATH=1 ]]; ls", "-v 'a[PATH=1]' ]]; ls", "'a[$(touch new)]' -eq 0 ]]", "-t PATH=1 ]]; ls"},
	"strings": {"@list", "@@list", "-n 1 @list"}, "md5sum": {"-c list", "--check list"}, "tail": {"-f a.txt", "-F a.txt", "+1f a.txt", "-n 1 --follow a.txt"}, "wc": {"--files0-from=list", "--files=list"}, "tree": {"-onew", "-R -H . -L 1"}, "base64": {"-i hold/.env", "hold/.env"},
}

// command draws a command.
func (m *maker) command(r *rapid.T) string {
	var one func(deep int) string
	one = func(deep int) string {
		program := rapid.SampledFrom(m.programs).Draw(r, "program")
		bad := worse[strings.Fields(program)[0]]
		parts := []string{program}
		most := 4
		if rapid.Bool().Draw(r, "worse") { // straight to it
			program = rapid.SampledFrom(m.worse).Draw(r, "program")
			bad = worse[strings.Fields(program)[0]]
			parts, most = []string{program, rapid.SampledFrom(bad).Draw(r, "bad")}, 1
		}
		for range rapid.IntRange(0, most).Draw(r, "words") {
			kind := rapid.IntRange(0, 9).Draw(r, "kind")
			own := m.flags[program]
			switch {
			case kind == 0 && bad != nil:
				parts = append(parts, rapid.SampledFrom(bad).Draw(r, "bad"))
			case kind < 4:
				parts = append(parts, rapid.SampledFrom(someWords).Draw(r, "word"))
			case kind < 6:
				parts = append(parts, rapid.SampledFrom(someFlags).Draw(r, "flag"))
			case kind < 8 && len(own) > 0:
				flag := rapid.SampledFrom(own).Draw(r, "own")
				if cut := rapid.IntRange(0, 12).Draw(r, "cut"); cut > 4 && cut < len(flag) { // a shorter one
					flag = flag[:cut]
				}
				if strings.HasSuffix(flag, "=") || rapid.IntRange(0, 2).Draw(r, "joint") == 0 {
					flag = strings.TrimSuffix(flag, "=") + rapid.SampledFrom([]string{"=", " ", ""}).Draw(r, "by") + rapid.SampledFrom(someWords).Draw(r, "value")
				}
				parts = append(parts, flag)
			default: // letters
				flag := "-" + rapid.StringMatching(`[a-zA-Z]{1,3}`).Draw(r, "letters")
				if rapid.IntRange(0, 2).Draw(r, "glued") == 0 {
					flag += rapid.SampledFrom(someWords).Draw(r, "value")
				}
				parts = append(parts, flag)
			}
		}
		text := strings.Join(parts, " ")
		if deep > 0 && rapid.IntRange(0, 9).Draw(r, "more") == 0 {
			text += rapid.SampledFrom([]string{" | ", "; ", " && ", " || ", "\n"}).Draw(r, "by") + one(deep-1)
		}
		return text
	}
	text := one(2) + rapid.SampledFrom(someEnds).Draw(r, "end")
	return strings.ReplaceAll(rapid.SampledFrom(someFrames).Draw(r, "frame"), "%s", text)
}

package consent_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/session"
)

// rank orders verdicts: a higher one lets less through.
func rank(v session.Verdict) int {
	switch short(v) {
	case "reads", "allow":
		return 0
	case "ask":
		return 1
	}
	return 2
}

func FuzzCommand(f *testing.F) {
	for _, list := range [][]string{readers, blocked} {
		for _, c := range list {
			f.Add(c)
		}
	}
	for _, c := range []string{"", "\x00", "\xff\xfe", strings.Repeat("(", 500), strings.Repeat("{ ", 500), strings.Repeat("$(", 150), strings.Repeat("a=$a$a;", 50), "{1..999999999}", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "cat <<A <<B\n", "ls [", "ls [[:x]", `$'\u`, `$'\x`, "for a in", "~", "~x/y", "a[1]=2 ls", "{fd}>x ls", "ls >&2-", "sed -n 's/", "find -exec", "env -S", "git -C", "timeout", "xargs", "sudo", "sh -c", "eval", "trap", "su -c"} {
		f.Add(c)
	}
	p := newPlace(f)
	f.Fuzz(func(t *testing.T, command string) {
		p.t = t
		asked := p.run("ask", command)
		if asked.Effect == "allow" && !asked.Reads {
			t.Errorf("%q is allowed without a rule, and not because it only reads", command)
		}
		if strings.Contains(asked.Title+asked.Reason, "\n") {
			t.Errorf("%q: %q%q is not one line", command, asked.Title, asked.Reason)
		}
		if v := p.run("read", command); rank(v) < rank(asked) {
			t.Errorf("%q is %s in mode read and %s in mode ask", command, short(v), short(asked))
		}
		if v := p.run("full", command); v.Effect == "ask" || short(v) != "DangerousCommandBlocked" && short(asked) == "DangerousCommandBlocked" {
			t.Errorf("%q is %s in mode full and %s in mode ask", command, short(v), short(asked))
		}
		if asked.Effect == "ask" && asked.Rule != nil { // what was asked for is what is allowed then
			p := &place{t: t, root: p.root, outside: p.outside, data: p.data, store: newStore(t), now: p.now}
			p.policy = p.another()
			p.remember(asked, true)
			if v := p.run("ask", command); v.Effect != "allow" {
				t.Errorf("%q was allowed for good and is %s", command, short(v))
			}
			if v := p.run("ask", "rm b.txt\n"+command); v.Effect == "allow" && !strings.Contains(command, "rm b.txt") {
				t.Errorf("%q was allowed for good, and rm b.txt with it", command)
			}
		}
		if v := p.run("full", "rm -rf /\n"+command); short(v) != "DangerousCommandBlocked" {
			t.Errorf("rm -rf / before %q is %s", command, short(v))
		}
		if v := p.run("ask", "rm b.txt\n"+command); v.Effect == "allow" {
			t.Errorf("rm b.txt before %q is allowed", command)
		}
	})
}

// around puts a command into something that may run it.
var around = []string{
	"%s", "ls && %s", "%s && ls", "ls || %s", "%s; ls", "ls; %s", "ls | %s", "%s | cat", "( %s )", "{ %s; }", "ls && ! %s", "ls\n%s", "%s\nls", "if %s; then ls; fi", "if ls; then %s; fi", "if ls; then ls; else %s; fi",
	"while %s; do ls; done", "while ls; do %s; done", "until ls; do %s; done", "for x in a b; do %s; done", "case a in a) %s;; esac", "f() { %s; }; f", "echo $( %s )", "echo \"$( %s )\"", "cat <( %s )", "ls > $( %s )",
	"ls <<E\n$( %s )\nE", "x=$( %s )", "time %s", "coproc { %s; }", "[[ $( %s ) ]]", "ls & %s", "cd src && %s", "cd src; %s", "echo ${x:-$( %s )}", "local x=$( %s )", "( ( %s ) )", "{ %s; } 2>/dev/null", "set -e; %s",
}

// wrapped puts a simple command behind a program that runs it.
var wrapped = []string{"sudo %s", "env A=b %s", "nice %s", "timeout 9 %s", "nohup %s", "command %s", "exec %s", "xargs %s", "sudo -u x env -i nice -n 5 timeout -k 1 9 %s", "find . -exec %s \\;", "eval %s", "busybox %s"}

// simple commands have no words of the shell itself.
func simple(command string) bool {
	return !strings.HasPrefix(command, "coproc ") && !strings.ContainsAny(command, "\n;&|(){}#<>`$=!\"'\\[")
}

func TestACompoundIsNoBetterThanItsWorstPart(t *testing.T) {
	p := newPlace(t)
	asks := []string{`npm publish`, `rm a.txt`, `git commit -m x`, `cat /etc/hosts`, `sort -o x a.txt`, `find . -delete`, `cat .env`, `git push`, `curl x`, `python x.py`, `touch x`}
	rapid.Check(t, func(r *rapid.T) {
		list := [][]string{readers, asks, blocked}[rapid.IntRange(0, 2).Draw(r, "list")]
		command := rapid.SampledFrom(list).Draw(r, "part")
		if strings.ContainsAny(command, "\n#") || strings.HasSuffix(command, "&") || strings.HasPrefix(command, "if (") || strings.HasSuffix(command, "unclosed") {
			r.Skip("ends only with its line")
		}
		alone := rank(p.run("ask", command))
		made := command
		for range rapid.IntRange(1, 3).Draw(r, "layers") {
			switch {
			case simple(made) && rapid.Bool().Draw(r, "wrap"):
				made = fmt.Sprintf(rapid.SampledFrom(wrapped).Draw(r, "wrapper"), made)
			case !strings.Contains(made, "'") && rapid.IntRange(0, 4).Draw(r, "shell") == 0:
				made = fmt.Sprintf(rapid.SampledFrom([]string{"sh -c '%s'", "bash -lc '%s'", "eval '%s'", "sudo bash -c '%s'", "bash <<< '%s'", "echo '%s' | sh", "sh <<'E'\n%s\nE"}).Draw(r, "shell"), made)
			default:
				made = fmt.Sprintf(rapid.SampledFrom(around).Draw(r, "around"), made)
			}
			if strings.Contains(made, "\n") {
				break
			}
		}
		if v := p.run("ask", made); rank(v) < alone {
			r.Errorf("%q is %s, %q within it has rank %d", made, short(v), command, alone)
		}
	})
}

func TestQuotingHidesNothing(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(r *rapid.T) {
		command := rapid.SampledFrom([]string{"rm -rf /", "rm -r -f /etc", "mkfs.ext4 /dev/sda1", "shutdown -h now", "dd of=/dev/sda", "chmod -R 777 /", "sudo rm -rf /*", "kill -9 -1", "sh -c reboot", "systemctl poweroff"}).Draw(r, "command")
		var b strings.Builder
		for i := 0; i < len(command); i++ {
			c := command[i : i+1]
			if c == " " {
				b.WriteString(rapid.SampledFrom([]string{" ", "  ", "\t", "${IFS}", "$IFS", " \\\n "}).Draw(r, "space"))
				if strings.HasSuffix(b.String(), "$IFS") {
					b.WriteString("''") // or the name would go on
				}
				continue
			}
			forms := []string{c, `\` + c, "'" + c + "'", `"` + c + `"`, "''" + c, `""` + c, c + "$@", fmt.Sprintf(`$'\x%02x'`, c[0]), fmt.Sprintf(`$'\%03o'`, c[0]), "$(echo " + c + ")", "${unset:-" + c + "}"}
			if c == "*" { // quoted it is a name
				forms = []string{c, "''" + c, c + "$@"}
			}
			b.WriteString(rapid.SampledFrom(forms).Draw(r, "form"))
		}
		if v := p.run("full", b.String()); short(v) != "DangerousCommandBlocked" {
			r.Errorf("%s for %s is %s", b.String(), command, short(v))
		}
	})
}

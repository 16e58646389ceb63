package consent

import (
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// danger says why a command is never run, in any mode; "" when nothing of it is known to be that bad.
func (s *scanner) danger() string {
	if s.bomb != "" {
		return "it is a fork bomb"
	}
	if s.worst != "" {
		return s.worst
	}
	for i := range s.steps {
		if why := s.steps[i].danger(s.home); why != "" {
			return why
		}
	}
	return ""
}

func (p *step) danger(home string) string {
	if p.other == "redirection" {
		if p.writes && device(p.target.text, p.dirs) {
			return "it writes over a disk or device"
		}
		return ""
	}
	if len(p.argv) == 0 {
		return ""
	}
	name := strings.ToLower(programName(p.argv[0].text))
	c := callOf{argv: p.argv, dirs: p.dirs, home: home}
	switch {
	case strings.HasPrefix(name, "mkfs") || strings.HasPrefix(name, "newfs") || formats[name]:
		return "it formats a disk"
	case interpreters[name]:
		for _, w := range p.argv[1:] {
			if why := blunt(w.text); why != "" && strings.ContainsAny(w.text, " (") {
				return why
			}
		}
		return blunt(p.stdin)
	case carriers[name] != nil:
		for i, w := range p.argv[1:] {
			flag, value, joint := strings.Cut(w.text, "=")
			switch {
			case joint && slices.Contains(carriers[name], flag):
			case slices.Contains(carriers[name], p.argv[i].text):
				value = w.text
			default:
				continue
			}
			if why := blunt(value); why != "" {
				return why
			}
		}
	case name == "at" || name == "batch" || name == "crontab":
		return blunt(p.stdin)
	}
	if f := dangers[name]; f != nil {
		return f(c)
	}
	return ""
}

// formats make a file system or take one away; they have no use that is worth the risk.
var formats = map[string]bool{"mke2fs": true, "wipefs": true, "mkswap": true, "blkdiscard": true}

// callOf is a call looked at for danger.
type callOf struct {
	argv []word
	dirs []string
	home string
}

// flag reports whether a flag is there: as a letter of a group, or as a long one, which may be shortened.
func (c callOf) flag(letters string, long ...string) bool {
	for _, w := range c.argv[1:] {
		t := w.text
		if t == "--" {
			return false
		}
		if strings.HasPrefix(t, "--") {
			name, _, _ := strings.Cut(t, "=")
			if slices.ContainsFunc(long, func(l string) bool { return len(name) > 2 && strings.HasPrefix(l, name) }) {
				return true
			}
		} else if strings.HasPrefix(t, "-") && letters != "" && strings.ContainsAny(t[1:], letters) {
			return true
		}
	}
	return false
}

// operands are the words that are no flags.
func (c callOf) operands() []word {
	var out []word
	over := false
	for _, w := range c.argv[1:] {
		switch {
		case over || !strings.HasPrefix(w.text, "-") || w.text == "-":
			out = append(out, w)
		case w.text == "--":
			over = true
		}
	}
	return out
}

func (c callOf) last() []word {
	ops := c.operands()
	return ops[max(0, len(ops)-1):]
}

func (c callOf) first() string {
	if ops := c.operands(); len(ops) > 0 {
		return ops[0].text
	}
	return ""
}

func (c callOf) onDevice(ws []word) bool {
	return slices.ContainsFunc(ws, func(w word) bool { return device(w.text, c.dirs) })
}

func (c callOf) onTop(ws []word, homes bool) bool {
	return slices.ContainsFunc(ws, func(w word) bool { return top(w, c.dirs, c.home, homes) })
}

const (
	halts    = "it shuts the machine down"
	deletes  = "it deletes a top folder of the system or a home"
	scribble = "it writes over a disk or device"
	opens    = "it changes who owns or may use the whole system"
	kills    = "it ends every process"
)

// dangers says for some programs when they are never run.
var dangers = map[string]func(callOf) string{
	"shutdown": halting, "reboot": halting, "halt": halting, "poweroff": halting,
	"init": level, "telinit": level,
	"systemctl": func(c callOf) string {
		ops := c.operands()
		for i, w := range ops {
			switch w.text {
			case "poweroff", "reboot", "halt", "kexec", "soft-reboot", "emergency", "rescue":
				if i == 0 {
					return halts
				}
			case "poweroff.target", "reboot.target", "halt.target", "kexec.target", "shutdown.target", "emergency.target", "rescue.target":
				if ops[0].text == "start" || ops[0].text == "isolate" {
					return halts
				}
			}
		}
		return ""
	},
	"loginctl": func(c callOf) string { return when(c.first() == "poweroff" || c.first() == "reboot", halts) },
	"kill":     killing, "killall5": func(callOf) string { return kills },
	"rm": func(c callOf) string {
		ops := c.operands()
		switch {
		case c.flag("rR", "--recursive"):
			return when(c.onTop(ops, true) || c.flag("", "--no-preserve-root"), deletes)
		default: // the files of a top folder
			return when(slices.ContainsFunc(ops, func(w word) bool { return w.glob != "" && top(w, c.dirs, c.home, true) }), deletes)
		}
	},
	"find": func(c callOf) string {
		starts, filtered := findStarts(c.argv)
		deletesThem := false
		for i, w := range c.argv {
			runs := i > 0 && (c.argv[i-1].text == "-exec" || c.argv[i-1].text == "-execdir")
			deletesThem = deletesThem || w.text == "-delete" || runs && slices.Contains([]string{"rm", "unlink", "shred", "truncate"}, programName(w.text))
		}
		return when(deletesThem && !filtered && c.onTop(starts, true), deletes)
	},
	"mv": func(c callOf) string {
		ops := c.operands()
		if c.onDevice(c.last()) {
			return scribble
		}
		return when(c.onTop(ops[:max(0, len(ops)-1)], true), "it moves a top folder of the system or a home away")
	},
	"rsync": func(c callOf) string {
		if c.onDevice(c.last()) {
			return scribble
		}
		return when(c.flag("", "--delete", "--del", "--delete-before", "--delete-after", "--delete-during", "--delete-excluded") && c.onTop(c.last(), true), deletes)
	},
	"chmod": opening, "chown": opening, "chgrp": opening, "setfacl": opening, "chattr": opening,
	"dd": func(c callOf) string {
		for _, w := range c.argv[1:] {
			if to, ok := strings.CutPrefix(w.text, "of="); ok && device(to, c.dirs) {
				return scribble
			}
		}
		return ""
	},
	"cp": ontoDevice, "install": ontoDevice, "ddrescue": ontoDevice, "dcfldd": ontoDevice,
	"tee": anyDevice, "shred": anyDevice, "truncate": anyDevice, "sponge": anyDevice, "badblocks": anyDevice, "hdparm": anyDevice, "sgdisk": anyDevice,
	"sfdisk": listed, "fdisk": listed, "gdisk": listed, "parted": listed, "wipe": anyDevice, "scrub": anyDevice, "pvcreate": anyDevice,
	"cryptsetup": func(c callOf) string {
		return when(slices.Contains([]string{"luksFormat", "luksErase", "erase", "reencrypt"}, c.first()), "it formats a disk")
	},
	"nvme": func(c callOf) string {
		return when(c.first() == "format" || c.first() == "sanitize", "it formats a disk")
	},
	"diskutil": func(c callOf) string {
		verb := strings.ToLower(c.first())
		return when(strings.HasPrefix(verb, "erase") || strings.HasPrefix(verb, "zero") || strings.HasPrefix(verb, "random") || strings.HasPrefix(verb, "partition") || strings.HasPrefix(verb, "secureerase") || verb == "reformat", "it formats a disk")
	},
	"format": func(c callOf) string {
		return when(len(c.first()) >= 2 && c.first()[1] == ':', "it formats a disk")
	},
}

func when(bad bool, why string) string {
	if bad {
		return why
	}
	return ""
}

func halting(c callOf) string {
	return when(!c.flag("", "--help", "--version"), halts)
}

func level(c callOf) string {
	f := c.first()
	return when(f == "0" || f == "6" || f == "1" || f == "s" || f == "S", halts)
}

// killing finds "every process" among what kill is given; "-1" as the first word is a signal.
func killing(c callOf) string {
	args := c.argv[1:]
	for i := 0; i < len(args); i++ {
		t := args[i].text
		switch {
		case i == 0 && (t == "-s" || t == "-n" || t == "--signal"):
			i++
		case i == 0 && strings.HasPrefix(t, "-") && t != "--" && len(args) > 1:
		case t == "-1":
			return kills
		}
	}
	return ""
}

func opening(c callOf) string {
	return when(c.flag("R", "--recursive") && c.onTop(c.operands(), false), opens)
}

func ontoDevice(c callOf) string { return when(c.onDevice(c.last()), scribble) }
func anyDevice(c callOf) string  { return when(c.onDevice(c.operands()), scribble) }

// listed are programs that also only list.
func listed(c callOf) string {
	if c.flag("l", "--list") || slices.ContainsFunc(c.argv, func(w word) bool { return w.text == "print" }) {
		return ""
	}
	return anyDevice(c)
}

// absolutes are the places a name may stand for.
func absolutes(name string, dirs []string) []string {
	if strings.HasPrefix(name, "/") {
		return []string{path.Clean(name)}
	}
	var out []string
	for _, d := range dirs {
		if d != elsewhere {
			out = append(out, path.Clean(d+"/"+name))
		}
	}
	return out
}

var devices = []string{
	"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "dm-", "loop", "sr", "nbd", "zd", "ram", "root", "mem", "kmem", "port", "mtd",
	"pmem", "bcache", "drbd", "rbd", "block/",
}

// device tells whether a name is a disk, memory, or another file that stops the machine when it is written.
func device(name string, dirs []string) bool {
	for _, abs := range absolutes(name, dirs) {
		if abs == "/proc/sysrq-trigger" || abs == "/sys/power/state" {
			return true
		}
		if rest, ok := strings.CutPrefix(abs, "/dev/"); ok && slices.ContainsFunc(devices, func(d string) bool { return strings.HasPrefix(rest, d) }) {
			return true
		}
	}
	return false
}

// tops are the folders without which a system or an account is lost. "*" is any name.
var tops = [][]string{
	{"bin"},
	{"boot"},
	{"dev"},
	{"etc"},
	{"home"},
	{"lib"},
	{"lib32"},
	{"lib64"},
	{"media"},
	{"mnt"},
	{"opt"},
	{"proc"},
	{"root"},
	{"run"},
	{"sbin"},
	{"srv"},
	{"sys"},
	{"usr"},
	{"var"},
	{"usr", "bin"},
	{"usr", "lib"},
	{"usr", "local"},
	{"usr", "sbin"},
	{"usr", "share"},
	{"var", "lib"},
	{"Applications"},
	{"Library"},
	{"System"},
	{"Users"},
	{"Volumes"},
	{"private"},
	{"private", "etc"},
	{"private", "var"},
	{"c"},
	{"mnt", "c"},
	{"mnt", "c", "Users"},
	{"mnt", "c", "Windows"},
}

var homesOf = [][]string{{"home", "*"}, {"Users", "*"}, {"root"}}

// top tells whether a word names the root, a top folder, or (homes) somebody's home, or everything in one.
func top(w word, dirs []string, home string, homes bool) bool {
	name, wild := w.text, w.glob != ""
	if wild {
		name = w.glob
	}
	if name == "" {
		return false
	}
	for _, abs := range absolutes(name, dirs) {
		parts := strings.FieldsFunc(abs, func(c rune) bool { return c == '/' })
		if wild {
			for len(parts) > 0 && !telling(strings.TrimPrefix(parts[len(parts)-1], ".")) && strings.ContainsAny(parts[len(parts)-1], "*?[") {
				parts = parts[:len(parts)-1]
			}
		}
		if len(parts) == 0 {
			return true
		}
		places := tops
		if homes {
			places = append(append([][]string{}, places...), homesOf...)
			if home != "" && home != "/" {
				places = append(places, strings.FieldsFunc(home, func(c rune) bool { return c == '/' }))
			}
		}
		if slices.ContainsFunc(places, func(at []string) bool { return fits(parts, at, wild) }) {
			return true
		}
	}
	return false
}

// fits compares a name or pattern with a place, part by part.
func fits(parts, at []string, wild bool) bool {
	if len(parts) != len(at) {
		return false
	}
	for i, part := range parts {
		ok := part == at[i] || at[i] == "*" || runtime.GOOS != "linux" && strings.EqualFold(part, at[i])
		if !ok && wild {
			ok, _ = path.Match(part, at[i])
		}
		if !ok {
			return false
		}
	}
	return true
}

// interpreters run the text they are given, which is not read but for the plainest of spellings.
var interpreters = map[string]bool{
	"python": true, "python2": true, "python3": true, "perl": true, "ruby": true, "node": true, "nodejs": true, "deno": true, "bun": true, "php": true, "lua": true,
	"awk": true, "gawk": true, "mawk": true, "osascript": true, "pwsh": true, "powershell": true, "tclsh": true, "ssh": true,
}

// carriers are programs that run what some of their flags hold.
var carriers = map[string][]string{
	"git": {"-c"}, "tar": {"--to-command", "--checkpoint-action", "--use-compress-program", "-I"}, "hyperfine": {"-p", "--prepare", "-s", "--setup", "-c", "--cleanup"},
}

var bluntly = []struct {
	re  func() *regexp.Regexp
	why string
}{
	{lazily(`:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&`), "it is a fork bomb"},
	{lazily(`fork\s+while\s+fork|while\s+(True|1)\s*:\s*os\.fork\(\)|loop\s*\{\s*fork\s*\}`), "it is a fork bomb"},
	{lazily(`\brm['"\s,]+(-[-\w]+['"\s,]+)*-\w*[rR]\w*['"\s,]+(-\S+\s+)*["']?(/|~|\$HOME|\$\{HOME\})/?\*?["']?(\s|[;&|)"'\]]|$)`), deletes},
	{lazily(`(rmtree|rmSync|rmdirSync|rm_rf|rm_r|remove_dir_all)\s*\(?\s*["'](/|~)["']`), deletes},
	{lazily(`\bmkfs(\.\w+)?\s`), "it formats a disk"},
	{lazily(`\bof=/dev/(sd|hd|vd|xvd|nvme|mmcblk|r?disk)`), scribble},
	{lazily(`>\s*/dev/(sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d)`), scribble},
	{lazily(`(?m)(^|[;&|(]\s*|["']|sudo\s+)(shutdown|reboot|poweroff|halt)(\s+(-\S+|now|\+\d+)\s*)*(["';&|)]|$)`), halts},
	{lazily(`(?i)\b(Stop-Computer|Restart-Computer)\b`), halts},
	{lazily(`(?i)\b(Format-Volume|Clear-Disk|Initialize-Disk)\b`), "it formats a disk"},
	{lazily(`(?i)\bRemove-Item\b[^\n;|]*\s["']?([A-Z]:\\?|/|~|\$HOME|\$env:USERPROFILE|\$env:SystemRoot)\\?\*?["']?(\s|;|$)`), deletes},
}

// blunt looks for what is never done in text that is not read as a command.
func blunt(text string) string {
	if text == "" {
		return ""
	}
	if len(text) > 2*mostBytes { // its ends; the middle of so much is data
		text = text[:mostBytes] + "\n" + text[len(text)-mostBytes:]
	}
	for _, b := range bluntly {
		if b.re().MatchString(text) {
			return b.why
		}
	}
	return ""
}

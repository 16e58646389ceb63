package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rind-dev/rind/session/settings"
)

// pages are the README and what lies in docs, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatal("no pages", err)
	}
	all := map[string]string{}
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(text)
	}
	return all
}

// commands calls f with every command there is.
func commands(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		commands(c, f)
	}
}

// TestCommandsOfThePagesAreThere takes every `rind …` of README and docs, in text and in blocks, far enough to know that the command and
// each of its flags exist.
func TestCommandsOfThePagesAreThere(t *testing.T) {
	root := rootCommand(&streams{})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpFlag()
	call := regexp.MustCompile("(?m)(?:`|^\\s*(?:\\$ )?)rind ([a-z][^`\n]*)")
	flag := regexp.MustCompile(`(?:^|\s|\[)--([a-z][a-z-]*)`)
	found := 0
	for name, text := range pages(t) {
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], " -- ") // behind it stands another program's
			if i := strings.IndexAny(line, "#&;)"); i >= 0 {
				line = line[:i]
			}
			words := strings.Fields(line)
			names := strings.Split(strings.ReplaceAll(words[0], `\|`, "|"), "|")
			for _, first := range names {
				cmd, _, err := root.Find(append([]string{first}, words[1:]...))
				if err != nil || cmd == root {
					if strings.HasPrefix(m[0], "`") { // else it is a sentence that begins so
						t.Errorf("%s: rind %s: no such command", name, m[1])
					}
					continue
				}
				found++
				for _, f := range flag.FindAllStringSubmatch(" "+line, -1) {
					if f[1] != "help" && cmd.Flags().Lookup(f[1]) == nil && cmd.InheritedFlags().Lookup(f[1]) == nil {
						t.Errorf("%s: rind %s: there is no --%s", name, m[1], f[1])
					}
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("only %d commands were found in the pages", found)
	}
}

// TestEveryCommandAndFlagIsOnAPage: docs/cli.md has a row for each command, and each flag is named there or on another page.
func TestEveryCommandAndFlagIsOnAPage(t *testing.T) {
	all := pages(t)
	text := ""
	for _, page := range all {
		text += page
	}
	commands(rootCommand(&streams{}), func(cmd *cobra.Command) {
		if cmd.Parent() == nil || cmd.Hidden {
			return
		}
		row := "`" + cmd.CommandPath()
		if cmd.HasParent() && cmd.Parent().HasParent() { // sessions list\|show\|…
			row = "`" + cmd.Parent().CommandPath() + " "
		}
		if !strings.Contains(all["cli.md"], row) {
			t.Errorf("docs/cli.md has no row for %s", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%s --%s is on no page", cmd.CommandPath(), f.Name)
			}
		})
	})
}

// TestLinksBetweenPagesLeadSomewhere: README and pages name only files that are there.
func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for name, text := range pages(t) {
		dir := "../../docs"
		if name == "README.md" {
			dir = "../.."
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestEveryPageIsReachedFromTheReadme: a newcomer follows links, and what no link leads to is not there.
func TestEveryPageIsReachedFromTheReadme(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	root := filepath.FromSlash("../..")
	reached := map[string]bool{}
	for queue := []string{filepath.Join(root, "README.md")}; len(queue) > 0; queue = queue[1:] {
		page := queue[0]
		if reached[page] || filepath.Ext(page) != ".md" {
			continue
		}
		reached[page] = true
		text, err := os.ReadFile(page)
		if err != nil {
			t.Errorf("a page leads to %v", err)
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			queue = append(queue, filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1])))
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && !reached[path] {
			t.Errorf("no link leads to %s", path)
		}
		return err
	})
	if err != nil || len(reached) < 30 {
		t.Errorf("%d pages were reached (%v)", len(reached), err)
	}
}

// TestEveryVariableOfTheEnvironmentIsOnThePage: docs/cli.md names what the program reads by a name of its own.
func TestEveryVariableOfTheEnvironmentIsOnThePage(t *testing.T) {
	page := pages(t)["cli.md"]
	read := regexp.MustCompile(`(?:Getenv|LookupEnv|\benv|\.value)\("([A-Z][A-Z_]+)"\)`)
	found := map[string]bool{}
	for _, dir := range []string{"cmd", "dispatcher", "session", "protocol"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(path)
			for _, m := range read.FindAllStringSubmatch(string(src), -1) {
				found[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range settings.KeyVariables() {
		found[name] = true
	}
	for name := range found {
		known := name == "HOME" || name == "USERPROFILE" || strings.HasPrefix(name, "RIND_TEST_") // where home is, and what tests plant
		if !known && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/cli.md does not name %s", name)
		}
	}
	if len(found) < 8 {
		t.Errorf("only %d variables were found", len(found))
	}
}

// TestTheCommandsThatSetALocalModelDoSo runs each `rind config set …` of the README and of config's help, as a shell reads it, and checks what
// they leave; so with the settings that the pages show as JSON.
func TestTheCommandsThatSetALocalModelDoSo(t *testing.T) {
	set := regexp.MustCompile(`rind (config set [^&#\n]+)`)
	for name, text := range map[string]string{"README": pages(t)["README.md"], "help": configCommand(&streams{}).Long} {
		t.Setenv("RIND_HOME", t.TempDir())
		for _, v := range settings.KeyVariables() {
			t.Setenv(v, "")
		}
		found := set.FindAllStringSubmatch(text, -1)
		if len(found) != 3 {
			t.Errorf("%s: %d commands were found", name, len(found))
		}
		for _, m := range found {
			args := strings.Fields(strings.ReplaceAll(m[1], `""`, "EMPTY"))
			for i := range args {
				args[i] = strings.Replace(args[i], "EMPTY", "", 1)
			}
			if code := run(t.Context(), args, nil, io.Discard, os.Stderr); code != exitOK {
				t.Errorf("%s: rind %s ends with %d", name, m[1], code)
			}
		}
		var out strings.Builder
		if code := run(t.Context(), []string{"config", "check"}, nil, &out, os.Stderr); code != exitOK || !strings.Contains(out.String(), "no key is sent") {
			t.Errorf("%s: config check ends with %d and says %q", name, code, out.String())
		}
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```")
	shown := 0
	for name, page := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(page, -1) {
			if regexp.MustCompile(`agent_servers|"turns"`).MatchString(m[1]) { // of an editor, or a script
				continue
			}
			shown++
			path := filepath.Join(t.TempDir(), "settings.json")
			if err := os.WriteFile(path, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := settings.Load(path)
			if err != nil || len(s.Unknown()) > 0 {
				t.Errorf("%s: %v, unknown %v, in\n%s", name, err, s.Unknown(), m[1])
			}
		}
	}
	if shown < 6 {
		t.Errorf("only %d blocks of settings were found", shown)
	}
}

package search_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRandomIgnoreFilesLeaveOutWhatGitLeavesOut(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	listed := func(root string) []string {
		cmd := exec.Command(git, "-c", "core.ignorecase=false", "-c", "core.quotepath=false", "ls-files", "--others", "--exclude-standard")
		cmd.Dir, cmd.Env = root, []string{"HOME=" + root, "XDG_CONFIG_HOME=" + root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
		text, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		files := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		slices.Sort(files)
		return files
	}
	names := []string{"a", "b", "ab", "b.c", "{a}", "a b", "#a", "!b", "a-", "A1"}
	var files []string
	for _, one := range names {
		files = append(files, one)
		for _, two := range []string{"a", "ab", "b.c"} {
			files = append(files, "d/"+two+"/"+one, one+"x/"+two)
		}
	}
	content := map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/refs/x": ""}
	for _, f := range files {
		content[f] = ""
	}
	root := tree(t, content)
	all := listed(root)
	if len(all) != len(files) {
		t.Fatalf("git lists %d of %d files", len(all), len(files))
	}
	piece := rapid.OneOf(
		rapid.SampledFrom(append(names, "d", "x", "c", "ax")),
		rapid.SampledFrom([]string{
			"*", "?", "**", "***", "[ab]", "[!a]", "[^a]", "[a-c]", "[]a]", "[!]a]", "[[:alpha:]]", "[[:punct:]]", "[[:graph:]]", "[[:print:]]", "[+-9]", "[[:digit:]-]", `\a`, `\*`, `\ `, " ", "[", "]", "a]", "[a", "{a,b}",
			"[{]", "[{a}]", `[\]a]`, "!", "#", `\!`, `\#`, ".*", "*.*", "x*",
		}),
	)
	line := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom([]string{"", "", "", "!", "/", "!/", "**/", "d/"}).Draw(t, "start"))
		for i := range rapid.IntRange(1, 3).Draw(t, "pieces") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{"", "/", "/**/"}).Draw(t, "between"))
			}
			b.WriteString(piece.Draw(t, "piece"))
		}
		b.WriteString(rapid.SampledFrom([]string{"", "", "/", "/*", "/**", " ", "\r"}).Draw(t, "end"))
		return b.String()
	})
	rapid.Check(t, func(rt *rapid.T) {
		for _, at := range []string{"", "d/"} {
			lines := rapid.SliceOfN(line, 0, 4).Draw(rt, "lines of "+at)
			if err := os.WriteFile(filepath.Join(root, at+".gitignore"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		want := listed(root)
		got := globbed(t, root, args{"pattern": "**"})
		slices.Sort(got)
		if want[0] == "" {
			want = nil
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("got  %q\ngit: %q", minus(got, want), minus(want, got))
		}
	})
}

// minus is what a has and b has not.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

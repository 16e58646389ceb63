package consent_test

import "testing"

func TestAFlagWithoutItsValueAsks(t *testing.T) {
	p := newPlace(t)
	for _, command := range []string{"jq --arg", "jq . --arg a", "jq . --rawfile", "grep -e", "grep -ne", "sort -k", "sort --key", "tail -n", "sed -e", "rg -g", "fd -e", "tree -L", "file -m", "diff --label", "xxd -l", "find -name", "find . -exec", "find . -exec cat", "find . -exec \\;", "find . -exec +", "find . -exec {} \\;", "uniq -f", "wc --total", "shuf -n", "date -d -x"} {
		if v := p.run("ask", command); v.Effect != "ask" {
			t.Errorf("%s is %s", command, short(v))
		}
	}
}

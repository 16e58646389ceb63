package guide_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rind-dev/rind/session/guide"
)

func TestFrontMatterIsReadAsYAMLHasIt(t *testing.T) {
	for _, c := range []struct{ name, head, wantName, want string }{
		{"plain", "name: review\ndescription: How to review", "review", "How to review"},
		{"capitals in a name", "name: Code-Review\ndescription: x", "code-review", "x"},
		{"no name", "description: x", "", "x"},
		{"further keys", "license: MIT\ndescription: x\nallowed-tools:\n  - read\n  - description: y\nmeta:\n  name: z", "", "x"},
		{"a list without indent", "tags:\n- name: a\n- b\ndescription: x", "", "x"},
		{"comments and blank lines", "# a: b\n\ndescription: x # not told\n# name: y", "", "x"},
		{"a colon in the value", "description: Use it: now", "", "Use it: now"},
		{"an address", "description: see http://a.example/#x", "", "see http://a.example/#x"},
		{"no blank after the colon is no key", "description:x\ndescription: y", "", "y"},
		{"plain over lines", "description: one\n  two\n\n  three\nname: n", "n", "one two three"},
		{"plain from the next line on", "description:\n  one\n  two", "", "one two"},
		{"single quotes", "description: 'it''s: #1 \\n' # told is: up to here", "", `it's: #1 \n`},
		{"double quotes", `description: "a \"b\" \\ \u00e9\x21 \U0001F600\tc"`, "", "a \"b\" \\ é! \U0001F600 c"},
		{"quotes over lines", "description: \"one\n  two\n\n  three\"", "", "one two three"},
		{"a surrogate", `description: "a\ud800b"`, "", "a\uFFFDb"},
		{"folded", "description: >\n  one\n  two\n\n  three\nname: n", "n", "one two three"},
		{"folded, its end kept or not", "description: >-2\n   one: x # told\nname: n", "n", "one: x # told"},
		{"literal", "description: |+ # why\n  one\n    two\n", "", "one two"},
		{"control characters", "description: \"a\\x1b[31mb\\u202ec\\0\"", "", "a[31mbc"},
		{"tabs", "description:\tx\ty\t", "", "x y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, description, body, err := guide.ParseSkill("---\n" + c.head + "\n---\n\n  text\n---\nmore\n\n")
			if err != nil || name != c.wantName || description != c.want || body != "  text\n---\nmore" {
				t.Errorf("%q, %q, %q, %v", name, description, body, err)
			}
		})
	}
}

func TestFrontMatterThatCannotBeMeantIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                                        "does not begin",
		"description: x\n---\ntext":               "does not begin",
		"----\ndescription: x\n----\ntext":        "does not begin",
		"---\ndescription: x\n":                   "does not end",
		"---\ndescription: x\n----\ntext":         "does not end",
		"---\nname: x\n---\ntext":                 "no description",
		"---\ndescription: ~\n---\ntext":          "no description",
		"---\ndescription: ''\n---\ntext":         "no description",
		"---\ndescription: >\n---\ntext":          "no description",
		"---\ndescription: \"x\n---\ntext":        "does not end",
		"---\ndescription: 'x\nname: y'\n---\nt":  "does not end",
		"---\ndescription: \"x\" y\n---\ntext":    "goes on behind",
		"---\ndescription: \"\\q\"\n---\ntext":    "unknown escape",
		"---\ndescription: \"\\u00g0\"\n---\nt":   "unknown escape",
		"---\ndescription: \"\\u00\"\n---\nt":     "unknown escape",
		"---\ndescription: >x\n  y\n---\ntext":    "no value does",
		"---\nname: a\nname: b\n---\ntext":        "twice",
		"---\nname: a b\ndescription: x\n---\nt":  "is not made of",
		"---\nname: -a\ndescription: x\n---\nt":   "is not made of",
		"---\nname: [a]\ndescription: x\n---\nt":  "is not made of",
		"---\nname: é\ndescription: x\n---\ntext": "is not made of",
		"---\ndescription: x\n---\n \n\n":         "no text",
	} {
		if _, _, _, err := guide.ParseSkill(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func FuzzFrontMatter(f *testing.F) {
	for _, seed := range []string{
		"---\nname: a\ndescription: b\n---\nc", "---\ndescription: >-\n  a\n b\n...\nc", "---\ndescription: \"\\u00e9\\", "---\ndescription: 'a''b'\n---\nc",
		"---\r\ndescription: x\r\n---\r\n", "---\n:\n: x\n- a: b\ndescription:\n\n\n---\n\n",
	} {
		f.Add(seed)
	}
	good := regexp.MustCompile(`^([a-z0-9][a-z0-9-]{0,63})?$`)
	f.Fuzz(func(t *testing.T, text string) {
		name, description, body, err := guide.ParseSkill(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("error %q is not one line", err)
			}
			return
		}
		if !good.MatchString(name) || description == "" || utf8.RuneCountInString(description) > 1024 || !utf8.ValidString(description) {
			t.Errorf("name %q, description %q", name, description)
		}
		if strings.ContainsFunc(description, unicode.IsControl) || strings.TrimSpace(body) == "" || !strings.Contains(text, body) || len(body) > 64<<10 {
			t.Errorf("description %q, text %q", description, body)
		}
	})
}

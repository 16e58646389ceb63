package protocol

import "testing"

func TestALineOfTextFromOutsideShowsNothingElseThanItSays(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"  a \t b\r\n c\u2028d ":     "a b c d",
		"a\x1b[31m\x00b\u0085c":      "a [31m b c",
		"a\u202egnp.exe\u2066\u200f": "agnp.exe",
		"a\U000E0041\U000E007Fb":     "ab",
		"a\xffb":                     "a\uFFFDb",
		"👩\u200d💻 exactly 10":        "👩\u200d💻 exact…",
		"äöüäöüäöüä":                 "äöüäöüäöüä",
		"äöüäöüäöüäö":                "äöüäöüäöü…",
	} {
		if got := OneLine(in, 10); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

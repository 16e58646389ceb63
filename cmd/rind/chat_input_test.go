package main

import (
	"io"
	"strings"
	"testing"
)

func TestTypedTextIsJoinedAndPastesAreWhole(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"lines":                     {"a\nb\n", []string{"a", "b"}},
		"no end":                    {"a\nb", []string{"a", "b"}},
		"carriage returns":          {"a\r\n", []string{"a"}},
		"continued":                 {"a\\\nb\\\nc\nd\n", []string{"a\nb\nc", "d"}},
		"two backslashes":           {"a\\\\\nb\n", []string{`a\\`, "b"}},
		"paste":                     {"\x1b[200~one\ntwo\n\x1b[201~\nnext\n", []string{"one\ntwo\n", "next"}},
		"paste within a line":       {"say \x1b[200~one\ntwo\x1b[201~ please\n", []string{"say one\ntwo please"}},
		"two pastes":                {"\x1b[200~a\nb\x1b[201~\x1b[200~c\x1b[201~\n", []string{"a\nbc"}},
		"a paste that does not end": {"\x1b[200~a\nb\n", []string{"a\nb\n"}},
		"a backslash in a paste":    {"\x1b[200~a\\\nb\x1b[201~\n", []string{"a\\\nb"}},
		"not UTF-8":                 {"a\xffb\n", []string{"a\uFFFDb"}},
		"long":                      {long + "\nb\n", []string{long, "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			if err := readTyped(strings.NewReader(c.in), true, func(in typed) bool {
				got = append(got, in.text)
				if in.cut != (in.text == long) {
					t.Errorf("%d bytes: cut = %v", len(in.text), in.cut)
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if err := readTyped(io.LimitReader(zeros{}, maxStdin+2), false, func(typed) bool { return true }); err == nil {
		t.Error("a line without an end was taken")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func FuzzTypedTextLosesNothing(f *testing.F) {
	for _, s := range []string{"a\nb", "a\\\nb\n", "\x1b[200~a\nb\x1b[201~\n", "\x1b[201~\x1b[200~", "\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got strings.Builder
		if err := readTyped(strings.NewReader(s), false, func(in typed) bool {
			got.WriteString(in.text)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		letters := func(s string) string {
			s = strings.NewReplacer(pasteBegin, "", pasteEnd, "").Replace(strings.ToValidUTF8(s, ""))
			return strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return -1
			}, s)
		}
		if letters(got.String()) != letters(s) {
			t.Errorf("of %q only %q was handed over", s, got.String())
		}
	})
}

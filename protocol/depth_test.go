package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDepthCountsBracketsOutsideOfStrings(t *testing.T) {
	for _, c := range []struct {
		text string
		deep int
	}{
		{``, 0},
		{`7`, 0},
		{`{}`, 1},
		{`[[],[]]`, 2},
		{`{"a":[{"b":1}],"c":{}}`, 3},
		{`["[[[["]`, 1},
		{`["\"[[["]`, 1},
		{`["\\",[1]]`, 2},
		{`{"[":{"]":[]}}`, 3},
		{strings.Repeat("[", 1000) + strings.Repeat("]", 1000), 1000},
	} {
		for _, most := range []int{max(c.deep-1, 0), c.deep} {
			if got := Deeper(c.text, most); got != (c.deep > most) || got != Deeper([]byte(c.text), most) {
				t.Errorf("%.40s deeper than %d: %v", c.text, most, got)
			}
		}
	}
}

// What is called shallow is, whatever a text looks like: no decoder is given what it must recurse deeper for.
func FuzzDepth(f *testing.F) {
	for _, s := range []string{`{"a":[1,"x\"["]}`, `[[[`, `"\`, `]]]][[[[`, `{"a":"\\"}`} {
		f.Add(s, 2)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		if len(s) > 1<<12 || most < 0 || Deeper(s, most) {
			return
		}
		dec := json.NewDecoder(strings.NewReader(s))
		deep := 0
		for {
			tok, err := dec.Token()
			if err != nil {
				return
			}
			switch tok {
			case json.Delim('{'), json.Delim('['):
				if deep++; deep > most {
					t.Fatalf("%q goes %d deep", s, deep)
				}
			case json.Delim('}'), json.Delim(']'):
				deep--
			}
		}
	})
}

package session_test

import (
	"strings"
	"testing"

	"github.com/rind-dev/rind/session"
)

func TestARequestEndsWithThePersonAndSaysAgainWhatAnAnswerThatWasCutOffWasTo(t *testing.T) {
	user := func(text string) session.Message { return session.Message{Role: session.RoleUser, Text: text} }
	said := session.Message{Role: session.RoleAssistant, Text: "a"}
	cut := session.Message{Role: session.RoleAssistant, Text: "a", Interrupted: true}
	calls := session.Message{Role: session.RoleAssistant, Calls: []session.Call{{ID: "c", Name: "n"}}}
	const note = "[The answer above was cut off. Go on from there.]"
	long := strings.Repeat("x", 2001)
	for name, c := range map[string]struct {
		in   []session.Message
		last string // "" for none
	}{
		"nothing":                     {nil, ""},
		"a person":                    {[]session.Message{user("q")}, ""},
		"calls":                       {[]session.Message{user("q"), calls}, ""},
		"an answer":                   {[]session.Message{user("q"), said}, "[Go on.]"},
		"an answer cut off":           {[]session.Message{user("first"), said, user("q"), cut}, "q\n\n" + note},
		"cut off twice":               {[]session.Message{user("q"), cut, cut}, "q\n\n" + note},
		"cut off behind a long input": {[]session.Message{user(long), cut}, note},
		"cut off behind nobody":       {[]session.Message{cut}, note},
	} {
		got := session.EndWithUser(c.in)
		switch {
		case c.last == "" && len(got) != len(c.in):
			t.Errorf("%s: %+v behind it", name, got[len(c.in):])
		case c.last != "" && (len(got) != len(c.in)+1 || got[len(c.in)].Role != session.RoleUser || got[len(c.in)].Text != c.last):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

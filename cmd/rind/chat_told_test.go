package main

import (
	"strings"
	"testing"
)

// TestChatTellsThatAModelIsAskedAgain: a wait that nobody explains looks like a hang.
func TestChatTellsThatAModelIsAskedAgain(t *testing.T) {
	play := `{"turns":[{"steps":[{"fail":{"fault":"rate","status":429,"message":"Too many at once.","retryAfterMs":1000}},{"text":"Rain."}]}]}`
	atTerminal(t, play, func(p *person) {
		p.expect(t, "> ")
		p.types("how is the weather")
		p.expect(t, "Too many at once. Asking again in 1s (2 of 5).\n")
		p.expect(t, "Rain.")
		p.expect(t, "> ")
		p.types("/exit")
		p.ends(exitOK)
	})
}

func TestChatTellsTheModeOnceAndWhatAnotherSessionIsSetTo(t *testing.T) {
	atTerminal(t, `{"turns":[{"steps":[{"text":"Hello."}]}]}`, func(p *person) {
		p.expect(t, "> ")
		p.types("/mode")
		p.expect(t, "Mode: ask\n> ")
		p.types("/mode read")
		p.expect(t, "Mode: read\n")
		p.types("hello") // what is told of the mode stands before the answer
		p.expect(t, "Hello.")
		p.expect(t, "> ")
		p.types("/new")
		p.expect(t, "New session.\n(now m-1, mode ask)\n")
		p.types("/switch")
		p.expect(t, "Name the session: /switch ID")
		p.types("/resume")
		p.expect(t, "Nothing was cut off here.\n")
		p.types("/exit")
		p.ends(exitOK)
		if n := strings.Count(p.all(), "mode read"); n != 0 {
			t.Errorf("the mode that was set is told %d times more: %q", n, p.all())
		}
	})
}

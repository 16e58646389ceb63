package acpagent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// willing is a policy that allows all.
type willing struct{ session.Policy }

func (willing) Judge(context.Context, string, session.ToolSpec, session.ToolCall) (session.Verdict, error) {
	return session.Verdict{Effect: "allow"}, nil
}

// What an agent gets of a command's output is the newest that fits into the bytes it asked for, from the beginning of a character on
// (docs/protocol/acp.md section 5.4).
func TestOfTheOutputOfATerminalTheNewestBytesAreKeptFromACharacterOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are of a Unix shell")
	}
	h := open(t, memory.New(), "plain", func(c *Config) { c.Policy = willing{} })
	s := h.draft("full")
	const million = `head -c 3000000 /dev/zero | tr '\000' x; printf end`
	for _, c := range []struct {
		limit, line string
		want        string
		length      int // where it is not all that is wanted
		cut         bool
	}{
		{"null", `printf 0123456789`, "0123456789", 10, false},
		{"10", `printf 0123456789`, "0123456789", 10, false},
		{"9", `printf 0123456789`, "123456789", 9, true},
		{"1", `printf 0123456789`, "9", 1, true},
		{"0", `printf 0123456789`, "", 0, true},
		{"0", `true`, "", 0, false},
		{"10", `printf 01234; printf 56789 >&2`, "0123456789", 10, false},
		{"5", `printf 'a\303\244\303\244\303\244'`, "ää", 4, true},                                  // five bytes would begin within the first
		{"4", `printf 'a\303\244\303\244\303\244'`, "ää", 4, true},                                  // they fit
		{"3", `printf 'a\360\237\230\200'`, "", 0, true},                                            // it does not fit at all
		{"100", `printf 'a\303'; sleep 0.05; printf '\244b'`, "aäb", 4, false},                      // it comes in two pieces
		{"8", `printf '\200\200\200\200\200\200\200\200\200'`, "\uFFFD", 3, true},                   // no text, and nothing to begin at
		{"8", `printf 'a\200a\200a\200a\200'`, "a\uFFFDa\uFFFD", 8, true},                           // what stands for a byte that is no text takes three
		{"10", `printf 'a\303'`, "a\uFFFD", 4, false},                                               // and nothing comes behind it
		{"null", million, strings.Repeat("x", 100) + "end", 1 << 20, true},                          // as much as there is for one
		{"999999999", million, strings.Repeat("x", 100) + "end", 1 << 20, true},                     // no more by asking for it
		{"-1", `printf 0123456789`, "0123456789", 10, false},                                        // nonsense asks for nothing
		{"500000", million, strings.Repeat("x", 100) + "end", 500000, true},                         // and less for who wants less
		{"20", `for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done`, "\nline 8\nline 9\n", 20, true}, // by bytes, not by lines
	} {
		o := h.prompt(s, fmt.Sprintf("output=%s:%s", c.limit, url.QueryEscape(c.line)))
		var got struct {
			Output    string
			Truncated bool
			Exit      *struct {
				Code *int `json:"exitCode"`
			} `json:"exitStatus"`
		}
		if err := json.Unmarshal([]byte(o.Answer), &got); err != nil {
			t.Fatalf("%s: %.200s", c.line, o.Answer)
		}
		if !strings.HasSuffix(got.Output, c.want) || len(got.Output) != c.length || got.Truncated != c.cut || got.Exit == nil || got.Exit.Code == nil || *got.Exit.Code != 0 {
			t.Errorf("%s bytes of %s: %q (%d bytes), truncated %v, exit %+v", c.limit, c.line, got.Output[max(0, len(got.Output)-100):], len(got.Output), got.Truncated, got.Exit)
		}
	}
}

// However the output comes in pieces, what is kept is the same; what is shown before the end is never half a character.
func TestATerminalKeepsTheSameHoweverItsOutputComesInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(0, 40).Draw(rt, "limit")
		all := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ä", "€", "😀", "line\n"}), 0, 20).Draw(rt, "text"), "")
		all = strings.Repeat(all, rapid.SampledFrom([]int{1, 1, 300}).Draw(rt, "times"))
		term := &ring{max: limit}
		for at := 0; at < len(all); {
			n := min(rapid.SampledFrom([]int{1, 2, 3, 7, 50, 5000}).Draw(rt, "piece"), len(all)-at)
			if k, err := term.Write([]byte(all[at : at+n])); k != n || err != nil {
				rt.Fatal(k, err)
			}
			at += n
			if len(term.data) > 2*limit+5000 {
				rt.Fatalf("%d bytes are kept for %d", len(term.data), limit)
			}
			if now, _ := term.tail(limit, false); strings.ContainsRune(now, utf8.RuneError) || len(now) > limit || !strings.Contains(all[:at], now) {
				rt.Fatalf("after …%q: %q", all[max(0, at-20):at], now)
			}
		}
		want := all[max(0, len(all)-limit):]
		for want != "" && !utf8.RuneStart(want[0]) {
			want = want[1:]
		}
		if got, cut := term.tail(limit, true); got != want || cut != (len(want) < len(all)) {
			rt.Fatalf("%q, cut %v; want %q", got, cut, want)
		}
	})
}

package guide_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rind-dev/rind/session/guide"
)

func TestSkillsNamedInAPromptAreFound(t *testing.T) {
	known := func(name string) bool {
		return slices.Contains([]string{"review", "unit-test", "home", "5", "a"}, name)
	}
	for _, c := range []struct{ text, names, unknown string }{
		{"", "", ""},
		{"review this", "", ""},
		{"/skill:review", "review", ""},
		{"/skill:Review this\n  /skill:unit-test that", "review unit-test", ""},
		{"please /skill:review", "", ""},
		{"see docs/skill:review", "", ""},
		{"/skill:nope and /skill:review", "", "nope"},
		{"/skill:Nope\n/skill:other\n/skill:review", "review", "Nope"},
		{"/skill: review", "", ""},
		{"/skill:review.", "", "review."},
		{"use $review and $unit-test.", "review unit-test", ""},
		{"$review,$unit-test;($a)", "review unit-test a", ""},
		{"$unit-test /skill:review\n/skill:review $unit-test", "unit-test review", ""},
		{"echo $HOME $Home $home_dir $homeX $homes", "", ""},
		{"it costs $50, or $5", "5", ""},
		{"a$review $$review \\$review ${review} $review-", "review", ""},
		{"$nope $", "", ""},
		{"é$review", "review", ""},
	} {
		names, unknown := guide.Mentioned(c.text, known)
		if strings.Join(names, " ") != c.names || unknown != c.unknown {
			t.Errorf("%q: %q, unknown %q, want %s, %q", c.text, names, unknown, c.names, c.unknown)
		}
	}
}

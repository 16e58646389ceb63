package guide

import (
	"fmt"
	"strings"

	"github.com/rind-dev/rind/session"
)

const maxListBytes = 8 << 10

// skillsPart lists what the tool skill can load. Where the list would be too long, descriptions are shortened before any skill is left out.
func skillsPart(list []found) (session.GuidePart, bool) {
	if len(list) == 0 {
		return session.GuidePart{}, false
	}
	const intro = "Skills: instructions for one kind of work each. Where one fits what you are asked, load it with the tool skill before you begin."
	p := session.GuidePart{Key: keySkills, Label: "Skills"}
	for _, chars := range []int{maxDescriptionChars, 240, 80, 0} {
		p.Text = intro + skillLines(list, chars)
		if len(p.Text) <= maxListBytes {
			return p, true
		}
		p.Truncated = true
	}
	const room = 100 // of the last line
	n := 0
	for size := len(intro); n < len(list); n++ {
		if size += len(skillLines(list[n:n+1], 0)); size > maxListBytes-room {
			break
		}
	}
	p.Text = intro + skillLines(list[:n], 0) + fmt.Sprintf("\n(and %d more, which the tool skill loads by name)", len(list)-n)
	return p, true
}

// skillLines has one line a skill, with at most chars characters of its description.
func skillLines(list []found, chars int) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString("\n- " + s.Name)
		if chars > 0 {
			b.WriteString(": " + shorten(s.Description, chars))
		}
	}
	return b.String()
}

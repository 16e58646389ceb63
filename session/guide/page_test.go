package guide_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheExampleOfThePageIsASkill(t *testing.T) {
	page, err := os.ReadFile("../../docs/skills.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "```markdown\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	p := newPlace(t)
	p.put(t, "root/skills/example/SKILL.md", text)
	s, ok := p.guide.Skill(p.work, "release")
	if !ok || !strings.HasPrefix(s.Text, "1. Run") || !strings.Contains(s.Description, "Load before") {
		t.Errorf("%t %+v %q", ok, s, p.guide.Problems(p.work))
	}
}

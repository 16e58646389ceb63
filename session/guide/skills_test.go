package guide_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/guide"
	"github.com/rind-dev/rind/session/settings"
)

// skill is the file of a skill.
func skill(name, description, body string) string {
	head := "---\n"
	if name != "" {
		head += "name: " + name + "\n"
	}
	return head + "description: " + description + "\n---\n\n" + body + "\n"
}

// names are the skills that can be loaded, as "scope/name".
func (p *place) names() []string {
	out := []string{}
	for _, s := range p.guide.Skills(p.work) {
		out = append(out, s.Scope+"/"+s.Name)
	}
	return out
}

func (p *place) wantSkills(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.names(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestSkillsOfUserAndTrustedProjectAreListedAndLoaded(t *testing.T) {
	p := newPlace(t)
	p.trusted = true
	p.put(t, "root/skills/review/SKILL.md", skill("review", "how I review", "my way"))
	p.put(t, "root/skills/deploy.md", skill("", "how to deploy", "push"))
	p.put(t, "work/.rind/skills/review/SKILL.md", skill("review", "how we review", "our way"))
	p.put(t, "work/.rind/skills/review/more.txt", "kept beside it")
	p.put(t, "work/.rind/skills/test.md", skill("Unit-Test", "how to test", "make test\r\nand look"))
	want := []session.Skill{
		{Name: "deploy", Scope: "user", Description: "how to deploy", Path: p.at("root/skills/deploy.md")},
		{Name: "review", Scope: "project", Description: "how we review", Path: p.at("work/.rind/skills/review/SKILL.md")},
		{Name: "unit-test", Scope: "project", Description: "how to test", Path: p.at("work/.rind/skills/test.md")},
	}
	if diff := cmp.Diff(want, p.guide.Skills(p.work)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for i, text := range []string{"push", "our way", "make test\nand look"} {
		want[i].Text = text
		got, ok := p.guide.Skill(p.work, want[i].Name)
		if diff := cmp.Diff(want[i], got); diff != "" || !ok {
			t.Errorf("%s, -want +got\n%s", want[i].Name, diff)
		}
	}
	for _, name := range []string{"", "nope", "Review", "../review", "review/SKILL.md", "test"} {
		if got, ok := p.guide.Skill(p.work, name); ok {
			t.Errorf("%q gives %+v", name, got)
		}
	}
	p.problems(t)
}

func TestWhatIsNoSkillIsLeftOutAndNamed(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{
		"a good.md": skill("good", "fine", "do"), ".hidden.md": "x", "notes.txt": "x", "z-script.sh": "x",
		"b plain.md":                           "# Just text",
		"c open.md":                            "---\ndescription: x\n",
		"d nameless.md":                        skill("", "the file's name has a blank", "do"),
		"e name.md":                            skill("../../etc", "x", "do"),
		"f-silent.md":                          skill("", "", "do"),
		"g-empty.md":                           skill("", "x", " "),
		"h-long.md":                            skill("", "x", strings.Repeat("y", 64<<10+1)),
		"i-huge.md":                            skill("", "x", strings.Repeat("y", 200<<10)),
		"j-head.md":                            "---\n" + strings.Repeat("x: y\n", 2000) + "---\n",
		"k-binary.md":                          "---\ndescription: x\n---\n\x00",
		"l-twice/SKILL.md":                     skill("good", "another", "do"),
		"m-empty/README":                       "x",
		"n-dir/SKILL.md/x":                     "",
		"o-" + strings.Repeat("x", 70):         "",
		"p-" + strings.Repeat("x", 70) + ".md": skill("", "x", "do"),
	} {
		p.put(t, "root/skills/"+name, text)
	}
	p.wantSkills(t, "user/good")
	p.problems(t, "b plain.md is left out: it does not begin with front matter", "c open.md is left out: its front matter does not end",
		`"d nameless" is no name`, `its name "../../etc" is not made of`, "no description", "no text", "longer than 64 KiB", "longer than 64 KiB",
		"longer than 8 KiB", "binary", "a good.md is a skill good already", "there is no SKILL.md", "no regular file", "is no name")
}

func TestABodyOf64KiBIsLoadedWhole(t *testing.T) {
	p := newPlace(t)
	body := strings.Repeat("y", 64<<10)
	p.put(t, "root/skills/big.md", "---\n"+strings.Repeat("x: y\n", 1600)+"description: d\n---\n"+body)
	if got, ok := p.guide.Skill(p.work, "big"); !ok || got.Text != body {
		t.Errorf("%t, %d bytes; %q", ok, len(got.Text), p.guide.Problems(p.work))
	}
}

func TestLinksAreFollowedForTheUserAndNeverInAProject(t *testing.T) {
	p := newPlace(t)
	p.trusted = true
	p.put(t, "dotfiles/mine/SKILL.md", skill("", "x", "do"))
	p.link(t, p.at("dotfiles/mine"), "root/skills/mine")
	p.put(t, "work/lib/ours/SKILL.md", skill("", "x", "do"))
	p.link(t, "../../lib/ours", "work/.rind/skills/ours")
	p.link(t, p.at("dotfiles/mine/SKILL.md"), "work/.rind/skills/theirs.md")
	p.link(t, p.at("dotfiles/mine/SKILL.md"), "work/.rind/skills/folder/SKILL.md")
	p.wantSkills(t, "user/mine")
	p.problems(t, "folder is left out: it is no regular file", "ours is left out: it is a link", "theirs.md is left out: it is a link")
	if err := os.Rename(p.at("work/.rind"), p.at("work/elsewhere")); err != nil {
		t.Fatal(err)
	}
	p.link(t, "elsewhere", "work/.rind")
	p.put(t, "work/elsewhere/skills/plain.md", skill("", "x", "do"))
	p.wantSkills(t, "user/mine")
	p.problems(t, "not a folder")
}

func TestASkillThatChangesIsReadAnew(t *testing.T) {
	p := newPlace(t)
	for i := range 3 { // the same size, within one tick of the clock
		text := skill("", fmt.Sprint("version ", i), fmt.Sprint("text ", i))
		p.put(t, "root/skills/x.md", text)
		list := p.guide.Skills(p.work)
		one, ok := p.guide.Skill(p.work, "x")
		if len(list) != 1 || list[0].Description != fmt.Sprint("version ", i) || !ok || one.Text != fmt.Sprint("text ", i) {
			t.Errorf("version %d: %+v, %+v", i, list, one)
		}
	}
	if err := os.Remove(p.at("root/skills/x.md")); err != nil {
		t.Fatal(err)
	}
	p.wantSkills(t)
	p.problems(t)
}

func TestAProjectsSkillsCountWhileAPersonTrustsExactlyTheirContent(t *testing.T) {
	p := newPlace(t)
	file := p.at("root/settings.json")
	content := func() settings.Content {
		c, err := settings.Enables(os.DirFS(p.work))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p.guide = guide.New(guide.Config{DataRoot: p.root, Trusted: func(w string) bool {
		s, err := settings.Load(file)
		return err == nil && s.Trusted(w, content())
	}})
	p.put(t, "root/skills/mine.md", skill("", "x", "do"))
	p.put(t, "work/.rind/skills/ours.md", skill("", "x", "do"))
	p.wantSkills(t, "user/mine")
	p.problems(t, ".rind/skills is left out: the workspace is not trusted; look at it, then run /trust")

	if err := settings.Trust(file, p.work, content()); err != nil {
		t.Fatal(err)
	}
	p.wantSkills(t, "user/mine", "project/ours")
	p.problems(t)

	p.put(t, "work/.rind/skills/more.md", skill("", "x", "do"))
	p.wantSkills(t, "user/mine")
	if _, ok := p.guide.Skill(p.work, "ours"); ok {
		t.Error("a skill is loaded from a workspace that changed")
	}

	if err := settings.Trust(file, p.work, content()); err != nil {
		t.Fatal(err)
	}
	p.wantSkills(t, "user/mine", "project/more", "project/ours")
	if err := settings.Distrust(file, p.work); err != nil {
		t.Fatal(err)
	}
	p.wantSkills(t, "user/mine")
}

func TestWhatIsReadMustStillBeTrustedAfterwards(t *testing.T) {
	p := newPlace(t)
	p.put(t, "work/.rind/skills/ours.md", skill("", "x", "do"))
	answers := []bool{}
	p.guide = guide.New(guide.Config{DataRoot: p.root, Trusted: func(string) bool {
		answer := answers[0]
		answers = answers[1:]
		return answer
	}})
	answers = []bool{true, false}
	p.wantSkills(t)
	answers = []bool{true, true, false}
	if _, ok := p.guide.Skill(p.work, "ours"); ok {
		t.Error("it is loaded although the workspace changed while it was read")
	}
	answers = []bool{true, true, true}
	if _, ok := p.guide.Skill(p.work, "ours"); !ok {
		t.Error("it is not loaded")
	}
}

func TestTheDataRootInAWorkspaceStaysTheUsers(t *testing.T) {
	p := newPlace(t)
	p.work = p.at("home")
	p.trusted = true
	p.put(t, "root/skills/mine.md", skill("", "x", "do"))
	p.wantSkills(t, "user/mine")
	p.problems(t)
	p.trusted = false
	p.wantSkills(t, "user/mine")
	p.problems(t)
}

func TestTheListOfSkillsShortensDescriptionsBeforeItLeavesOutSkills(t *testing.T) {
	for _, c := range []struct {
		skills, chars int // given
		told, each    int // at most
	}{{3, 900, 3, 900}, {20, 900, 20, 240}, {60, 900, 60, 80}, {120, 900, 120, 0}, {700, 900, 690, 0}} {
		t.Run(fmt.Sprint(c.skills), func(t *testing.T) {
			p := newPlace(t)
			for i := range c.skills {
				p.put(t, fmt.Sprintf("root/skills/skill-%03d.md", i), skill("", strings.Repeat("é", c.chars), "do"))
			}
			part := p.guide.Parts(p.work)[1]
			lines := strings.Split(part.Text, "\n")[1:]
			if part.Key != "skills" || len(part.Text) > 8<<10 || part.Truncated != (c.each < c.chars) {
				t.Errorf("%s: %d bytes, truncated %t", part.Key, len(part.Text), part.Truncated)
			}
			told := 0
			for _, line := range lines {
				if name, description, _ := strings.Cut(line, ": "); strings.HasPrefix(name, "- skill-") {
					told++
					if n := len([]rune(description)); n > c.each {
						t.Fatalf("a description of %d characters, want %d", n, c.each)
					}
				}
			}
			last := lines[len(lines)-1]
			if more := fmt.Sprintf("(and %d more, which the tool skill loads by name)", c.skills-told); told < c.skills && last != more {
				t.Errorf("%d of %d are told; it ends %q", told, c.skills, last)
			}
			if c.told == c.skills && told != c.skills {
				t.Errorf("%d of %d are told", told, c.skills)
			}
		})
	}
}

func TestAFolderOfTooManyEntriesIsLookedAtInPart(t *testing.T) {
	p := newPlace(t)
	for i := range 1100 {
		p.put(t, fmt.Sprintf("root/skills/s%04d.md", i), skill("", "x", "do"))
	}
	if n := len(p.names()); n != 1024 {
		t.Errorf("%d skills", n)
	}
	p.problems(t, "what comes after the first 1024 entries")
}

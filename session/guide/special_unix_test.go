//go:build unix

package guide_test

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestPipesAndDevicesAreNeverOpened(t *testing.T) {
	p := newPlace(t)
	p.trusted = true
	for _, name := range []string{"root/RIND.md", "work/RIND.md", "root/skills/a.md", "work/.rind/skills/b.md", "work/.rind/skills/c/SKILL.md"} {
		p.put(t, name+".d/x", "")
		if err := syscall.Mkfifo(p.at(name), 0o644); err != nil {
			t.Skip(err)
		}
	}
	p.link(t, "/dev/zero", "root/AGENTS.md")
	p.link(t, "/dev/zero", "work/AGENTS.md")
	began := time.Now()
	if got := p.told(t); len(got) > 0 {
		t.Errorf("told %q", got)
	}
	p.wantSkills(t)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := len(p.guide.Problems(p.work)); n < 7 {
		t.Errorf("%d problems", n)
	}
}

func TestWhatMayNotBeReadIsLeftOut(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	p := newPlace(t)
	for _, name := range []string{"root/RIND.md", "work/RIND.md", "root/skills/a.md"} {
		if err := os.Chmod(p.put(t, name, skill("", "x", "do")), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.told(t); len(got) > 0 {
		t.Errorf("told %q", got)
	}
	p.problems(t, "permission denied", "permission denied", "permission denied")
}

package guide_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// watcher counts how often watched files and folders are opened or read.
type watcher struct {
	fd    int
	paths map[int32]string
}

func watch(t *testing.T, paths ...string) *watcher {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Skipf("files cannot be watched here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	w := &watcher{fd, map[int32]string{}}
	for _, path := range paths {
		id, err := syscall.InotifyAddWatch(fd, path, syscall.IN_OPEN|syscall.IN_ACCESS)
		if err != nil {
			t.Skipf("%s cannot be watched: %v", path, err)
		}
		w.paths[int32(id)] = path
	}
	return w
}

// touched are the watched paths that were opened or read since the last call.
func (w *watcher) touched() string {
	var out []string
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(w.fd, buf)
		if err != nil || n <= 0 {
			return strings.Join(out, " ")
		}
		for at := 0; at < n; {
			e := (*syscall.InotifyEvent)(unsafe.Pointer(&buf[at]))
			out = append(out, filepath.Base(w.paths[e.Wd]))
			at += syscall.SizeofInotifyEvent + int(e.Len)
		}
	}
}

// Case H114: what a workspace would configure is not as much as opened until a person trusts it.
func TestNothingBelowDotRindOfAnUntrustedWorkspaceIsOpened(t *testing.T) {
	p := newPlace(t)
	p.put(t, "work/AGENTS.md", "notes")
	p.put(t, "work/.mcp.json", "{}")
	paths := []string{
		p.at("work/.mcp.json"), p.put(t, "work/.rind/settings.json", "{}"), p.put(t, "work/.rind/AGENTS.md", "CANARY"),
		p.put(t, "work/.rind/skills/a.md", skill("", "CANARY", "CANARY")), p.put(t, "work/.rind/skills/b/SKILL.md", skill("", "CANARY", "CANARY")),
		p.at("work/.rind"), p.at("work/.rind/skills"), p.at("work/.rind/skills/b"),
	}
	p.link(t, ".rind/AGENTS.md", "work/CLAUDE.md")
	p.link(t, ".rind", "work/sub")
	w := watch(t, paths...)
	for range 2 {
		for _, folder := range []string{".", ".rind", ".rind/skills", "sub"} {
			if got := list(p, p.guide.PartsIn(p.work, folder)); len(got) != 1 || !strings.HasSuffix(got[0], ": notes") {
				t.Errorf("working in %s: told %q", folder, got)
			}
		}
		p.wantSkills(t)
		for _, name := range []string{"a", "b"} {
			if _, ok := p.guide.Skill(p.work, name); ok {
				t.Errorf("skill %s is loaded", name)
			}
		}
		p.guide.HasDoc(p.work)
	}
	if got := w.touched(); got != "" {
		t.Errorf("these were opened: %s", got)
	}
	for _, line := range p.guide.Problems(p.work) { // it looks whether there are any, not into them
		if strings.Contains(line, "CANARY") {
			t.Error(line)
		}
	}
	if got := w.touched(); strings.Contains(got, ".md") || strings.Contains(got, ".json") {
		t.Errorf("Problems opened %s", got)
	}
	p.trusted = true
	p.wantSkills(t, "project/a", "project/b")
	if got := w.touched(); !strings.Contains(got, "a.md") || !strings.Contains(got, "SKILL.md") {
		t.Fatalf("the watch sees nothing: %q", got)
	}
}

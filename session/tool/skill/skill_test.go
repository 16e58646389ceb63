package skill_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/guide"
	"github.com/rind-dev/rind/session/images"
	"github.com/rind-dev/rind/session/settings"
	"github.com/rind-dev/rind/session/tool/skill"
	"github.com/rind-dev/rind/session/tool/tooltest"
)

type args map[string]any

// place is a data root and a workspace, trusted as settings have it.
type place struct {
	root, work string
	config     skill.Config
	guide      *guide.Guide
}

func newPlace(t testing.TB) *place {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{root: filepath.Join(top, "home", "data"), work: filepath.Join(top, "work")}
	for _, dir := range []string{p.root, p.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	trusted := func(w string) bool {
		s, err := settings.Load(filepath.Join(p.root, settings.FileName))
		c, e := settings.Enables(os.DirFS(w))
		return err == nil && e == nil && s.Trusted(w, c)
	}
	p.config = skill.Config{DataRoot: p.root, Trusted: trusted}
	p.guide = guide.New(guide.Config{DataRoot: p.root, Trusted: trusted})
	return p
}

func (p *place) trust(t testing.TB) {
	t.Helper()
	c, err := settings.Enables(os.DirFS(p.work))
	if err == nil {
		err = settings.Trust(filepath.Join(p.root, settings.FileName), p.work, c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *place) put(t testing.TB, at, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const owner = session.SessionID("20260102_030405_00000001")

func (p *place) run(t testing.TB, tool session.Tool, a args) session.ToolResult {
	t.Helper()
	res, err := tool.Run(t.Context(), session.ToolCall{
		Name: tool.Spec().Name, Arguments: protocol.MustMarshal(a), Roots: []string{p.work}, Session: owner,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (p *place) create(t testing.TB, a args) session.ToolResult {
	t.Helper()
	return p.run(t, skill.Create(p.config), a)
}

func refused(t testing.TB, res session.ToolResult, status, errorType, says string) {
	t.Helper()
	if res.Status != status || res.ErrorType != errorType || !strings.Contains(res.Error, says) {
		t.Errorf("%s %s (%s), want %s %s saying %q", res.Status, res.ErrorType, res.Error, status, errorType, says)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryToolKeepsThePromisesOfTools(t *testing.T) {
	for _, scope := range []string{"project", "user"} {
		t.Run("skill_create "+scope, func(t *testing.T) {
			w := tooltest.NewWorkspace(t)
			w.Args = map[string]any{"name": "review", "scope": scope, "overwrite": true}
			w.Only = map[string][]any{"name": {"review", "test", "Review", "../x", "a/b", "", "con"}, "scope": {scope}}
			tooltest.Run(t, skill.Create(skill.Config{DataRoot: t.TempDir()}), w)
		})
	}
	t.Run("skill", func(t *testing.T) {
		w := tooltest.NewWorkspace(t)
		tooltest.Run(t, skill.Load(guide.New(guide.Config{DataRoot: t.TempDir()})), w)
	})
}

func TestALoadedSkillIsItsTextAndWhereItLies(t *testing.T) {
	p := newPlace(t)
	p.put(t, filepath.Join(p.work, ".rind/skills/review/SKILL.md"), "---\ndescription: x\n---\nLook.\n")
	p.put(t, filepath.Join(p.root, "skills/deploy.md"), "---\ndescription: x\n---\nPush.\n")
	p.trust(t)
	load := skill.Load(p.guide)
	for name, want := range map[string]session.ToolResult{
		"review":    {Data: "Look.", Meta: map[string]any{"name": "review", "scope": "project", "path": ".rind/skills/review/SKILL.md"}},
		" Deploy\n": {Data: "Push.", Meta: map[string]any{"name": "deploy", "scope": "user", "path": filepath.ToSlash(p.root) + "/skills/deploy.md"}},
	} {
		if diff := cmp.Diff(want, p.run(t, load, args{"name": name})); diff != "" {
			t.Errorf("%q, -want +got\n%s", name, diff)
		}
	}
	refused(t, p.run(t, load, args{"name": "Nope"}), protocol.ToolUnavailable, protocol.ErrNotFound, `There is no skill "Nope". Skills: deploy, review.`)
	refused(t, p.run(t, load, args{"name": " "}), protocol.ToolRejected, protocol.ErrInvalidArguments, "name is missing")
	for i := range 60 {
		p.put(t, filepath.Join(p.root, fmt.Sprintf("skills/s%02d.md", i)), "---\ndescription: x\n---\nx\n")
	}
	refused(t, p.run(t, load, args{"name": "nope"}), protocol.ToolUnavailable, protocol.ErrNotFound, "s37 and 22 more.")
	none := skill.Load(guide.New(guide.Config{}))
	refused(t, p.run(t, none, args{"name": "nope"}), protocol.ToolUnavailable, protocol.ErrNotFound, "There are none.")
}

func TestANewProjectSkillAsksForTrust(t *testing.T) {
	p := newPlace(t)
	want := session.ToolResult{Data: ".rind/skills/review/SKILL.md", Meta: map[string]any{
		"name": "review", "scope": "project", "created": true,
		"note": "The skill can be loaded once a person trusts the workspace with it: ask them to look at it and run /trust.",
	}}
	res := p.create(t, args{"name": "review", "description": "How we\nreview: \"all\" of it", "body": "\nLook.\r\nThink.\n\n"})
	text := "---\nname: review\ndescription: \"How we review: \\\"all\\\" of it\"\n---\n\nLook.\nThink.\n"
	if diff := cmp.Diff(want, res, cmpopts.IgnoreFields(session.ToolResult{}, "Changes")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	at := filepath.Join(p.work, ".rind/skills/review/SKILL.md")
	if got := read(t, at); got != text {
		t.Errorf("the file holds %q", got)
	}
	if len(res.Changes) != 1 || res.Changes[0].FilePath != filepath.ToSlash(at) || !res.Changes[0].More.Created || res.Changes[0].More.Added != 7 ||
		*res.Changes[0].More.NewText != text || res.Changes[0].More.After != protocol.Digest([]byte(text)) || len(res.Changes[0].Lines) != 7 {
		t.Errorf("changes %+v", res.Changes)
	}
	if list := p.guide.Skills(p.work); len(list) > 0 {
		t.Errorf("it counts without trust: %+v", list)
	}

	p.trust(t)
	if s, ok := p.guide.Skill(p.work, "review"); !ok || s.Text != "Look.\nThink." || s.Description != `How we review: "all" of it` {
		t.Errorf("%t %+v", ok, s)
	}
	res = p.create(t, args{"name": "test", "description": "x", "body": "y"})
	if note, _ := res.Meta["note"].(string); !strings.Contains(note, "no longer trusted") || !strings.Contains(note, "/trust") {
		t.Errorf("note %q", note)
	}
	if list := p.guide.Skills(p.work); len(list) > 0 {
		t.Errorf("the workspace stayed trusted: %+v", list)
	}
}

func TestASkillIsReplacedOnlyWhenThatIsMeant(t *testing.T) {
	p := newPlace(t)
	kept := images.New(func(id session.SessionID) string { return filepath.Join(p.root, string(id)) }, images.Options{})
	p.config.Images = kept
	for _, name := range []string{"folder", "alone"} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(p.work, ".rind/skills", map[string]string{"folder": "folder/SKILL.md", "alone": "alone.md"}[name])
			old := "---\ndescription: old\n---\nold\n"
			p.put(t, at, old)
			a := args{"name": name, "description": "new", "body": "new"}
			refused(t, p.create(t, a), protocol.ToolRejected, protocol.ErrInvalidArguments, "exists already; pass overwrite=true")
			if got := read(t, at); got != old {
				t.Fatalf("it holds %q", got)
			}
			a["overwrite"] = true
			res := p.create(t, a)
			text := "---\nname: " + name + "\ndescription: \"new\"\n---\n\nnew\n"
			if got := read(t, at); got != text || res.Meta["created"] != false || len(res.Changes) != 1 {
				t.Fatalf("%+v; it holds %q", res, got)
			}
			ch := res.Changes[0].More
			if before, err := kept.Image(t.Context(), owner, ch.Before); err != nil || string(before) != old || *ch.OldText != old || ch.Removed != 2 || ch.Added != 4 {
				t.Errorf("%q, %v, %+v", before, err, ch)
			}
			if again := p.create(t, a); again.ErrorType != "" || len(again.Changes) > 0 {
				t.Errorf("the same text again: %+v", again)
			}
			if list, err := filepath.Glob(filepath.Join(p.work, ".rind/skills", name+"*")); err != nil || len(list) != 1 {
				t.Errorf("there are %q", list)
			}
		})
	}
}

func TestAUsersSkillIsTheirsAloneAndCountsAtOnce(t *testing.T) {
	p := newPlace(t)
	res := p.create(t, args{"name": "mine", "description": "x", "body": "y", "scope": "user"})
	at := filepath.Join(p.root, "skills", "mine", "SKILL.md")
	want := session.ToolResult{Data: filepath.ToSlash(at), Meta: map[string]any{"name": "mine", "scope": "user", "created": true}}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s, ok := p.guide.Skill(p.work, "mine"); !ok || s.Text != "y" || s.Scope != "user" {
		t.Errorf("%t %+v", ok, s)
	}
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]fs.FileMode{filepath.Dir(filepath.Dir(at)): 0o700, filepath.Dir(at): 0o700, at: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, mode)
			}
		}
	}
	refused(t, p.create(t, args{"name": "mine", "description": "x", "body": "z", "scope": "user"}), protocol.ToolRejected, protocol.ErrInvalidArguments,
		"the user skill mine exists already")
	p.create(t, args{"name": "mine", "description": "x", "body": "z", "scope": "user", "overwrite": true})
	if got := read(t, at); !strings.HasSuffix(got, "\n\nz\n") {
		t.Errorf("it holds %q", got)
	}
	p.config.DataRoot = ""
	refused(t, p.create(t, args{"name": "b", "description": "x", "body": "y", "scope": "user"}), protocol.ToolUnavailable, protocol.ErrNotFound, "no data folder")
}

func TestInAHomeFolderAProjectsSkillIsTheUsers(t *testing.T) {
	p := newPlace(t)
	p.root = filepath.Join(p.work, ".rind")
	p.config.DataRoot = p.root
	if err := os.Mkdir(p.root, 0o700); err != nil {
		t.Fatal(err)
	}
	res := p.create(t, args{"name": "mine", "description": "x", "body": "y"})
	if res.ErrorType != "" || res.Meta["scope"] != "user" || res.Meta["note"] != nil || len(res.Changes) > 0 {
		t.Errorf("%+v", res)
	}
}

func TestWhatIsNoSkillIsNotWritten(t *testing.T) {
	p := newPlace(t)
	with := func(k string, v any) args {
		a := args{"name": "a", "description": "x", "body": "y"}
		a[k] = v
		return a
	}
	for _, c := range []struct {
		args args
		says string
	}{
		{args{}, "is no name"},
		{with("name", "A"), "is no name"},
		{with("name", "../a"), "is no name"},
		{with("name", "a/b"), "is no name"},
		{with("name", "-a"), "is no name"},
		{with("name", strings.Repeat("a", 65)), "is no name"},
		{with("description", " \n"), "description is blank"},
		{with("description", strings.Repeat("é", 1025)), "longer than 1024"},
		{with("body", "\n \n"), "body is blank"},
		{with("body", strings.Repeat("x", 64<<10+1)), "65537 bytes"},
		{with("body", "a\x00b"), "NUL"},
		{with("scope", "team"), `scope is "team"`},
		{with("body", 1), "body"},
	} {
		refused(t, p.create(t, c.args), protocol.ToolRejected, protocol.ErrInvalidArguments, c.says)
	}
	if entries, err := os.ReadDir(p.work); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestASkillIsNeverWrittenThroughALink(t *testing.T) {
	for _, c := range []struct{ link, target string }{
		{".rind", "../other"},
		{".rind", "lib"},
		{".rind/skills", "../../other"},
		{".rind/skills/a", "../../../other"},
		{".rind/skills/a/SKILL.md", "../../../../other/new"},
		{".rind/skills/a.md", "../../lib/x"},
	} {
		t.Run(c.link+" to "+c.target, func(t *testing.T) {
			p := newPlace(t)
			other := filepath.Join(filepath.Dir(p.work), "other")
			for _, dir := range []string{other, filepath.Join(p.work, "lib")} {
				p.put(t, filepath.Join(dir, "x"), "as it was")
			}
			at := filepath.Join(p.work, filepath.FromSlash(c.link))
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(c.target, at); err != nil {
				t.Skip(err)
			}
			refused(t, p.create(t, args{"name": "a", "description": "x", "body": "y", "overwrite": true}), protocol.ToolRejected, protocol.ErrPermissionDenied, "link")
			for _, dir := range []string{other, filepath.Join(p.work, "lib")} {
				if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || read(t, filepath.Join(dir, "x")) != "as it was" {
					t.Errorf("%s: %v %v", dir, entries, err)
				}
			}
		})
	}
}

func TestWhatIsThereAndNoTextStays(t *testing.T) {
	p := newPlace(t)
	shelf := filepath.Join(p.work, ".rind/skills")
	p.put(t, filepath.Join(shelf, "latin/SKILL.md"), "caf\xe9")
	p.put(t, filepath.Join(shelf, "huge/SKILL.md"), strings.Repeat("x", 1<<20+1))
	p.put(t, filepath.Join(shelf, "dir/SKILL.md/x"), "")
	p.put(t, filepath.Join(shelf, "file"), "")
	for name, c := range map[string][2]string{
		"latin": {protocol.ErrInvalidArguments, "not UTF-8"}, "huge": {protocol.ErrTooLarge, "more than"}, "dir": {protocol.ErrInvalidArguments, "folder"},
		"file": {protocol.ErrInvalidArguments, "below a file"},
	} {
		refused(t, p.create(t, args{"name": name, "description": "x", "body": "y", "overwrite": true}), protocol.ToolRejected, c[0], c[1])
	}
}

// failing are images that cannot be kept.
type failing struct{ session.Images }

func (failing) Keep(context.Context, session.SessionID, []byte) (string, error) {
	return "", errors.New("the disk is full")
}

func TestWhatCouldNotBeUndoneIsNotWritten(t *testing.T) {
	p := newPlace(t)
	p.config.Images = failing{}
	at := filepath.Join(p.work, ".rind/skills/a.md")
	p.put(t, at, "as it was")
	refused(t, p.create(t, args{"name": "a", "description": "x", "body": "y", "overwrite": true}), protocol.ToolFailed, protocol.ErrPersistence, "disk is full")
	if got := read(t, at); got != "as it was" {
		t.Errorf("it holds %q", got)
	}
}

func TestWhatIsWrittenIsReadBackAsItWasMeant(t *testing.T) {
	p := newPlace(t)
	rapid.Check(t, func(rt *rapid.T) {
		chars := rapid.SampledFrom([]rune("ab \t\n\r\"'\\:#->|{}%é\u2028\U0001F600-"))
		description := "x" + rapid.StringOfN(chars, 0, 60, -1).Draw(rt, "description")
		body := "y" + rapid.StringOfN(chars, 0, 200, -1).Draw(rt, "body") + "z"
		res := p.create(t, args{"name": "a", "description": description, "body": body, "scope": "user", "overwrite": true})
		got, ok := p.guide.Skill(p.work, "a")
		body = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
		if !ok || got.Text != body || got.Description != strings.Join(strings.Fields(description), " ") {
			data, _ := json.Marshal(res)
			rt.Fatalf("%s: %q becomes %q, %q becomes %q; %q", data, description, got.Description, body, got.Text, p.guide.Problems(p.work))
		}
	})
}

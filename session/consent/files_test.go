package consent_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFileToolsByModeAndPlace(t *testing.T) {
	p := newPlace(t)
	out := p.outside + "/notes.txt"
	// The verdicts are those of ask, edit, read and full.
	const (
		allow, ask, no, dangerous = "allow", "ask", "PermissionDenied", "DangerousCommandBlocked"
		bad                       = "InvalidArguments"
	)
	for _, c := range []struct {
		tool    string
		args    args
		verdict [4]string
		title   string
		rule    string
	}{
		{"read_file", args{"path": "a.txt"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"file_path": "a.txt"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": "src/../nowhere.txt"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": p.root + "/a.txt"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": "inner/main.go"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": ".env.example"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": ""}, [4]string{allow, allow, allow, allow}, "", ""},
		{"read_file", args{"path": "~/x"}, [4]string{bad, bad, bad, bad}, "", ""},
		{"read_file", args{"path": out}, [4]string{ask, ask, ask, no}, "Read outside the workspace: " + out, out},
		{"read_file", args{"path": "../elsewhere/notes.txt"}, [4]string{ask, ask, ask, no}, "Read outside the workspace: " + out, out},
		{"read_file", args{"path": "links/note"}, [4]string{ask, ask, ask, no}, "Read outside the workspace: " + out, out},
		{"read_file", args{"path": "links/way-out/notes.txt"}, [4]string{ask, ask, ask, no}, "Read outside the workspace: " + out, out},
		{"read_file", args{"path": ".env"}, [4]string{ask, ask, ask, allow}, "Read a secret file: .env", ".env"},
		{"read_file", args{"path": "guarded/server.pem"}, [4]string{ask, ask, ask, allow}, "Read a secret file: guarded/server.pem", "guarded/server.pem"},
		{"read_file", args{"path": "links/plain"}, [4]string{ask, ask, ask, allow}, "Read a secret file: guarded/.env", "guarded/.env"},
		{"read_file", args{"path": p.data + "/settings.json"}, [4]string{ask, ask, ask, no}, "Read a secret file outside the workspace: " + p.data + "/settings.json", p.data + "/settings.json"},
		{"write_file", args{"path": "src/new.go"}, [4]string{ask, allow, no, allow}, "Write: src/new.go", "src/**"},
		{"write_file", args{"path": "new.go"}, [4]string{ask, allow, no, allow}, "Write: new.go", "new.go"},
		{"write_file", args{"file_path": "src/deep/x.go"}, [4]string{ask, allow, no, allow}, "Write: src/deep/x.go", "src/deep/**"},
		{"edit_file", args{"path": "inner/main.go"}, [4]string{ask, allow, no, allow}, "Edit: src/main.go", "src/**"},
		{"edit_file", args{"path": out}, [4]string{ask, ask, no, no}, "Edit outside the workspace: " + out, out},
		{"write_file", args{"path": "links/way-out/new.txt"}, [4]string{ask, ask, no, no}, "Write outside the workspace: " + p.outside + "/new.txt", p.outside + "/new.txt"},
		{"write_file", args{"path": "guarded/.env"}, [4]string{ask, ask, no, allow}, "Write a secret file: guarded/.env", "guarded/.env"},
		{"write_file", args{"path": ".git/config"}, [4]string{ask, ask, no, allow}, "Write a file that other programs obey: .git/config", ".git/config"},
		{"write_file", args{"path": "src/.git/hooks/pre-commit"}, [4]string{ask, ask, no, allow}, "Write a file that other programs obey: src/.git/hooks/pre-commit", "src/.git/hooks/pre-commit"},
		{"write_file", args{"path": ".rind/settings.json"}, [4]string{ask, ask, no, allow}, "Write a file that other programs obey: .rind/settings.json", ".rind/settings.json"},
		{"write_file", args{"path": ".G\u200cit/config"}, [4]string{ask, ask, no, allow}, "Write a file that other programs obey: .G�it/config", ".G\u200cit/config"},
		{"glob", args{"pattern": "**/*.go"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"glob", args{"pattern": "*", "path": "src"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"glob", args{"pattern": "*", "path": ".."}, [4]string{ask, ask, ask, no}, "List outside the workspace: " + filepath.Dir(p.root), filepath.Dir(p.root)},
		{"glob", args{"pattern": p.outside + "/**"}, [4]string{ask, ask, ask, no}, "List outside the workspace: " + p.outside, p.outside},
		{"glob", args{"pattern": "../elsewhere/*.txt"}, [4]string{ask, ask, ask, no}, "List outside the workspace: " + p.outside, p.outside},
		{"glob", args{"pattern": "**/.env"}, [4]string{ask, ask, ask, allow}, "List secret files: . **/.env", ". **/.env"},
		{"glob", args{"pattern": "**/*.{pem,key}"}, [4]string{ask, ask, ask, allow}, "List secret files: . **/*.{pem,key}", ". **/*.{pem,key}"},
		{"grep", args{"pattern": "KEY"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"grep", args{"pattern": "KEY", "path": "guarded"}, [4]string{allow, allow, allow, allow}, "", ""},
		{"grep", args{"pattern": "KEY", "glob": ".e*"}, [4]string{ask, ask, ask, allow}, "Search secret files: . .e*", ". .e*"},
		{"grep", args{"pattern": "KEY", "path": "guarded/.env"}, [4]string{ask, ask, ask, allow}, "Search secret files: guarded/.env", "guarded/.env"},
		{"grep", args{"pattern": "KEY", "path": p.outside}, [4]string{ask, ask, ask, no}, "Search outside the workspace: " + p.outside, p.outside},
	} {
		for i, mode := range []string{"ask", "edit", "read", "full"} {
			v := p.judge(mode, c.tool, c.args)
			if short(v) != c.verdict[i] {
				t.Errorf("%s %v in mode %s is %s, want %s: %s%s", c.tool, c.args, mode, short(v), c.verdict[i], v.Title, v.Reason)
			}
			if v.Effect == "ask" && (v.Title != c.title || patterns(v) != c.rule) {
				t.Errorf("%s %v in mode %s: %q, remembers %q, want %q, %q", c.tool, c.args, mode, v.Title, patterns(v), c.title, c.rule)
			}
			if v.Effect == "ask" && strings.Contains(v.Title, "outside") && (len(v.Outside) != 1 || v.Outside[0] != c.rule) {
				t.Errorf("%s %v in mode %s is for %v", c.tool, c.args, mode, v.Outside)
			}
			if v.Effect == "deny" && (v.Reason == "" || strings.Contains(v.Reason, "\n")) {
				t.Errorf("%s %v in mode %s: reason %q", c.tool, c.args, mode, v.Reason)
			}
		}
	}
}

func TestOtherToolsByMode(t *testing.T) {
	p := newPlace(t)
	for _, c := range []struct {
		tool    string
		args    args
		verdict [4]string
		title   string
		rule    string
	}{
		{"ask_user_question", args{"question": "x"}, [4]string{"allow", "allow", "allow", "allow"}, "", ""},
		{"update_plan", args{}, [4]string{"allow", "allow", "allow", "allow"}, "", ""},
		{"skill", args{"name": "x"}, [4]string{"allow", "allow", "allow", "allow"}, "", ""},
		{"task_control", args{"action": "list"}, [4]string{"allow", "allow", "allow", "allow"}, "", ""},
		{"skill_create", args{"name": "x"}, [4]string{"ask", "ask", "PermissionDenied", "allow"}, "Create project skill: x", "project"},
		{"skill_create", args{"name": "x", "scope": "user"}, [4]string{"ask", "ask", "PermissionDenied", "allow"}, "Create user skill: x", "user"},
		{"fetch_web_page", args{"url": "https://Example.com/a?b=c"}, [4]string{"ask", "ask", "ask", "allow"}, "Fetch: https://Example.com/a?b=c", "example.com"},
		{"fetch_web_page", args{"url": "http://localhost:8080/"}, [4]string{"ask", "ask", "ask", "allow"}, "Fetch: http://localhost:8080/", "localhost:8080"},
		{"fetch_web_page", args{"url": "https://example.com:443/"}, [4]string{"ask", "ask", "ask", "allow"}, "Fetch: https://example.com:443/", "example.com"},
		{"fetch_web_page", args{"url": "https://good.test@evil.test/"}, [4]string{"ask", "ask", "ask", "allow"}, "Fetch: https://good.test@evil.test/", "evil.test"},
		{"search_web", args{"query": "go maps"}, [4]string{"ask", "ask", "ask", "allow"}, "Search the web: go maps", "*"},
		{"mcp_db_query", args{"sql": "x"}, [4]string{"ask", "ask", "PermissionDenied", "allow"}, "Use tool: mcp_db_query", "*"},
		{"mcp_db_list", args{}, [4]string{"ask", "ask", "ask", "allow"}, "Use tool: mcp_db_list", "*"},
	} {
		for i, mode := range []string{"ask", "edit", "read", "full"} {
			v := p.judge(mode, c.tool, c.args)
			if short(v) != c.verdict[i] || v.Effect == "ask" && (v.Title != c.title || patterns(v) != c.rule) {
				t.Errorf("%s %v in mode %s is %s %q %q, want %s %q %q", c.tool, c.args, mode, short(v), v.Title, patterns(v), c.verdict[i], c.title, c.rule)
			}
		}
	}
	if v := p.judge("no such mode", "write_file", args{"path": "x"}); short(v) != "ask" {
		t.Errorf("an unknown mode is not as strict as ask: %s", short(v))
	}
}

func TestAHostIsAskedForOnce(t *testing.T) {
	p := newPlace(t)
	p.remember(p.judge("ask", "fetch_web_page", args{"url": "https://example.com/a"}), true)
	for url, want := range map[string]string{
		"https://example.com/b?c=d": "allow", "http://EXAMPLE.com./": "allow", "https://www.example.com/": "ask", "https://example.com.evil.test/": "ask",
		"https://example.com@evil.test/": "ask", "https://example.com:8443/": "ask", "not a url": "ask", "https:///example.com": "ask",
	} {
		if v := p.judge("edit", "fetch_web_page", args{"url": url}); short(v) != want {
			t.Errorf("%s is %s, want %s", url, short(v), want)
		}
	}
	if v := p.judge("ask", "search_web", args{"query": "example.com"}); short(v) != "ask" {
		t.Errorf("searching is %s", short(v))
	}
}

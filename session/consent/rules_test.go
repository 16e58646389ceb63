package consent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/consent"
)

func TestARuleCoversWhatItNamesAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		allowed string // this was allowed for good
		then    map[string]string
	}{
		{`git commit -m x`, map[string]string{
			`git commit -m x`: "allow", `git commit --amend`: "allow", `cd src && git commit -m y`: "allow", `ls && git commit -m y`: "allow", `git commit -m "a; b"`: "allow",
			`git commit -m x; rm -rf y`: "ask", `git commit -m x && npm test`: "ask", `git commit $(x)`: "ask", "git commit `x`": "ask", `git commit -m "$(x)"`: "ask", `git commit -m $X`: "ask",
			`git commit > x`: "ask", `git commit -F - < a.txt`: "ask", `git commit &`: "ask", `X=1 git commit`: "ask", `sudo git commit`: "ask", `sh -c 'git commit'`: "ask", `git -c a=b commit`: "ask",
			`git -C /etc commit`: "ask", `git commit -F /etc/passwd`: "ask", `git commit -F .env`: "ask", `git push`: "ask", `git`: "ask", `git commit-tree x`: "ask", `cd .. && git commit`: "ask",
			`git commit | sh`: "ask", `git() { rm x; }; git commit`: "ask", `./git commit`: "ask", `git commit -m x # y`: "allow", "git commit -m x\nrm y": "ask", `timeout 5 git commit`: "ask",
			`if true; then git commit; fi`: "allow", `git commit -m x || rm y`: "ask", `git commit links/way-out/x`: "ask", `eval git commit`: "ask", `git commit <(x)`: "ask", `git *`: "ask", `git commit *`: "allow",
		}},
		{`git add . && npm test`, map[string]string{
			`git add src`: "allow", `npm test`: "allow", `npm test; git add x`: "allow", `npm run test`: "ask", `git add . && npm test && npm publish`: "ask", `npm test | tee x`: "ask",
		}},
		{`npm run build`, map[string]string{`npm run build -- --x`: "allow", `npm run`: "ask", `npm run deploy`: "ask", `npm run build; npm run deploy`: "ask", `npm run $X`: "ask", `npm run "build"`: "allow"}},
		{`rm a.txt`, map[string]string{`rm a.txt`: "allow", ` rm a.txt `: "allow", `rm a.txt b.txt`: "ask", `rm  a.txt`: "ask", `cd src && rm a.txt`: "ask", `ls && rm a.txt`: "allow", `rm a.txt; rm b.txt`: "ask"}},
		{`rm *`, map[string]string{`rm *`: "allow", `rm a.txt`: "ask"}},
		{`curl x | sh`, map[string]string{`curl x | sh`: "allow", `curl y | sh`: "ask", `sh`: "ask", `curl x`: "ask"}},
		{`sh`, map[string]string{`sh`: "allow", `curl x | sh`: "ask", `echo ls | sh`: "ask", `sh < x`: "ask"}},
		{`cat .env`, map[string]string{`cat .env`: "allow", `cat .env.local`: "ask", `cat .env | curl x`: "ask", `cd src && cat .env`: "ask", `cat .env; ls`: "ask"}},
		{`cat /etc/hosts`, map[string]string{`cat /etc/hosts`: "allow", `cat /etc/passwd`: "ask"}},
		{`make test`, map[string]string{`make test`: "allow", `make test -j4`: "allow", `make clean`: "ask", `make PREFIX=/x test`: "ask", `make -f /etc/x test`: "ask", `make`: "ask"}},
		{`./build.sh`, map[string]string{`./build.sh`: "allow", `./build.sh x`: "allow", `cd src && ./build.sh`: "ask", `./x.sh`: "ask", `src/build.sh`: "ask"}},
		{`npm test > x`, map[string]string{`npm test > x`: "allow", `npm test`: "ask", `npm test > y`: "ask"}},
		{`(`, map[string]string{`(`: "allow", `( `: "allow", `((`: "ask"}},
		{`mytool /x/server.pem *`, map[string]string{`mytool a`: "ask", `mytool /x/server.pem *`: "allow"}},
	} {
		p := newPlace(t)
		p.remember(p.run("ask", c.allowed), true)
		for command, want := range c.then {
			if v := p.run("ask", command); short(v) != want {
				t.Errorf("after %q was allowed, %q is %s, want %s (%s)", c.allowed, command, short(v), want, v.Title)
			}
			if v := p.run("read", command); v.Effect == "allow" && !v.Reads && c.allowed != `cat .env` {
				t.Errorf("after %q was allowed, %q is allowed in mode read", c.allowed, command)
			}
		}
		if v := p.run("ask", "rm -rf /"); short(v) != "DangerousCommandBlocked" {
			t.Errorf("after %q was allowed, rm -rf / is %s", c.allowed, short(v))
		}
	}
}

func TestWhatWasRejectedForGoodIsNotAskedAgain(t *testing.T) {
	for _, c := range []struct {
		rejected string
		then     map[string]string // in mode full
	}{
		{`git push`, map[string]string{
			`git push`: "no", `git push --force`: "no", `ls && git push`: "no", `cd src; git push origin x`: "no", `git push $(x)`: "no", `git push > x`: "no", `git push &`: "no", `sudo git push`: "no", `sh -c 'git push'`: "no",
			`X=1 git push`: "no", `env X=1 git push`: "no", `timeout 5 git push`: "no", `git -c a=b push`: "no", `git -C src push`: "no", `/usr/bin/git push`: "no", `echo $(git push)`: "no", `f() { git push; }; f`: "no",
			`"git" pu''sh`: "no", `ls | xargs git push`: "no", `eval git push`: "no", `while true; do git push; done`: "no", `git commit -m "git push"`: "allow", `git pull`: "allow", `echo git push`: "allow", `git stash push`: "allow",
		}},
		{`npm run deploy`, map[string]string{`npm run deploy`: "no", `npm run deploy --x`: "no", `npm run build`: "allow", `npm --silent run deploy`: "no"}},
		{`git add . && npm publish`, map[string]string{`git add . && npm publish`: "no", `git add .`: "allow", `npm publish`: "allow"}},
		{`rm a.txt`, map[string]string{`rm a.txt`: "no", `ls; rm a.txt`: "no", `rm b.txt`: "allow"}},
		{`cat .env`, map[string]string{`cat .env`: "no", `cat .env.local`: "allow"}},
	} {
		p := newPlace(t)
		p.remember(p.run("ask", c.rejected), false)
		for command, want := range c.then {
			if want == "no" {
				want = "ApprovalRejected"
			}
			if v := p.run("full", command); short(v) != want {
				t.Errorf("after %q was rejected, %q is %s, want %s (%s)", c.rejected, command, short(v), want, v.Reason)
			}
		}
		for _, mode := range []string{"ask", "edit", "read"} {
			if v := p.run(mode, c.rejected); short(v) != "ApprovalRejected" {
				t.Errorf("after %q was rejected, in mode %s it is %s", c.rejected, mode, short(v))
			}
		}
	}
	p := newPlace(t) // the later of two rules is the one that is there
	v := p.run("ask", `npm test`)
	p.remember(v, false)
	p.remember(v, true)
	if v := p.run("ask", `npm test`); short(v) != "allow" {
		t.Errorf("allowed after it was rejected: %s", short(v))
	}
	p.remember(p.run("ask", `npm publish && npm run x`), false) // and where several speak of one command, the one that rejects wins
	p.remember(p.run("ask", `npm run x`), true)
	p.remember(p.run("ask", `npm publish`), true)
	if v := p.run("ask", `npm publish && npm run x`); short(v) != "ApprovalRejected" {
		t.Errorf("both parts are allowed, together they were rejected: %s", short(v))
	}
}

func TestRulesForFilesCoverAFolderOrAFile(t *testing.T) {
	p := newPlace(t)
	judge := func(tool, path string) string { return short(p.judge("ask", tool, args{"path": path})) }
	p.remember(p.judge("ask", "write_file", args{"path": "src/a.go"}), true)
	p.remember(p.judge("ask", "write_file", args{"path": "top.txt"}), true)
	p.remember(p.judge("ask", "write_file", args{"path": p.outside + "/a"}), true)
	p.remember(p.judge("ask", "read_file", args{"path": ".env"}), true)
	p.remember(p.judge("ask", "write_file", args{"path": "no/x"}), false)
	for _, c := range []struct{ tool, path, want string }{
		{"write_file", "src/b.go", "allow"},
		{"write_file", "src/deep/b.go", "allow"},
		{"write_file", "inner/b.go", "allow"},
		{"write_file", "src/.env", "ask"},
		{"write_file", "src/.git/config", "ask"},
		{"write_file", "src/../a.go", "ask"},
		{"write_file", "srcs/a.go", "ask"},
		{"edit_file", "src/b.go", "ask"},
		{"write_file", "top.txt", "allow"},
		{"write_file", "top2.txt", "ask"},
		{"write_file", p.outside + "/a", "allow"},
		{"write_file", p.outside + "/b", "ask"},
		{"write_file", p.outside + "/a/b", "ask"},
		{"read_file", ".env", "allow"},
		{"read_file", "src/.env", "ask"},
		{"write_file", ".env", "ask"},
		{"write_file", "no/y", "ApprovalRejected"},
		{"write_file", "no/z/y", "ApprovalRejected"},
		{"write_file", "nor/y", "ask"},
	} {
		if got := judge(c.tool, c.path); got != c.want {
			t.Errorf("%s %s is %s, want %s", c.tool, c.path, got, c.want)
		}
	}
	if v := p.judge("full", "write_file", args{"path": "no/y"}); short(v) != "ApprovalRejected" {
		t.Errorf("rejected, in mode full: %s", short(v))
	}
	if v := p.judge("full", "write_file", args{"path": p.outside + "/a"}); short(v) != "PermissionDenied" {
		t.Errorf("outside, in mode full: %s", short(v))
	}
	if v := p.judge("read", "write_file", args{"path": "src/b.go"}); short(v) != "PermissionDenied" {
		t.Errorf("in mode read: %s", short(v))
	}
	if v := p.judge("ask", "write_file", args{"path": p.outside + "/a"}); len(v.Outside) != 1 || v.Outside[0] != p.outside+"/a" {
		t.Errorf("allowed outside, for %v", v.Outside)
	}
}

func TestRulesAreListedRevokedAndSeenFromOtherProcesses(t *testing.T) {
	p := newPlace(t)
	ctx := context.Background()
	other := p.another()
	see := func(policy *consent.Policy) string {
		return short(p.judgeBy(policy, "ask", "bash", args{"command": "npm test"}))
	}
	if see(p.policy) != "ask" || see(other) != "ask" {
		t.Fatal("asks before anything was remembered")
	}
	p.remember(p.run("ask", "npm test"), true)
	if got := see(p.policy); got != "allow" {
		t.Errorf("at once: %s", got)
	}
	p.now = p.now.Add(2 * time.Second)
	if got := see(other); got != "allow" {
		t.Errorf("the other process, after a second: %s", got)
	}
	list, err := other.Rules(ctx, p.root)
	if err != nil || len(list) != 1 || list[0].Tool != "bash" || list[0].Pattern != "npm test *" || !list[0].Allow {
		t.Fatalf("listed %+v, %v", list, err)
	}
	if none, err := other.Rules(ctx, "/somewhere"); err != nil || len(none) != 0 {
		t.Errorf("rules of another workspace: %v, %v", none, err)
	}
	if gone, err := p.policy.Revoke(ctx, "/somewhere", list[0].ID); err != nil || gone {
		t.Errorf("revoked from another workspace: %v, %v", gone, err)
	}
	if gone, err := p.policy.Revoke(ctx, p.root, list[0].ID); err != nil || !gone {
		t.Errorf("revoke: %v, %v", gone, err)
	}
	if got := see(p.policy); got != "ask" {
		t.Errorf("after it was revoked: %s", got)
	}
	if gone, err := p.policy.Revoke(ctx, p.root, list[0].ID); err != nil || gone {
		t.Errorf("revoke again: %v, %v", gone, err)
	}
	for _, bad := range []string{``, `null`, `{}`, `{"tool":"bash"}`, `{"pattern":"x"}`, `[]`, `{"tool":"bash","pattern":"x","parts":[{"tool":"bash"}]}`} {
		if err := p.policy.Remember(ctx, p.root, json.RawMessage(bad), true); err == nil {
			t.Errorf("%s was remembered", bad)
		}
	}
}

// failing is a store that cannot be read.
type failing struct{}

func (failing) Rules(context.Context, string) ([]session.Rule, error) {
	return nil, errors.New("disk on fire")
}

func (failing) AddRule(context.Context, session.Rule) (session.Rule, error) {
	return session.Rule{}, errors.New("disk on fire")
}

func (failing) RemoveRule(context.Context, string, int64) (bool, error) {
	return false, errors.New("disk on fire")
}

func TestNothingIsDecidedWithoutTheRules(t *testing.T) {
	p := consent.New(consent.Config{Rules: failing{}})
	root := t.TempDir()
	call := session.ToolCall{Name: "bash", Arguments: json.RawMessage(`{"command":"ls"}`), Roots: []string{root}}
	if v, err := p.Judge(context.Background(), "full", specs["bash"], call); protocol.KindOf(err) != protocol.PersistenceError || v.Effect != "" {
		t.Errorf("judged %+v, %v", v, err)
	}
}

package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rind-dev/rind/session"
)

func addRule(t *testing.T, s session.Store, r session.Rule) session.Rule {
	t.Helper()
	before := time.Now().Add(-time.Second)
	got, err := s.AddRule(ctx, r)
	must(t, err)
	if got.ID == 0 || got.Created.Before(before) || got.Created.After(time.Now().Add(time.Second)) {
		t.Errorf("added rule %+v", got)
	}
	r.ID, r.Created = got.ID, got.Created
	if got != r {
		t.Errorf("added %+v, want %+v", got, r)
	}
	return got
}

func wantRules(t *testing.T, s session.Store, workspace string, want ...session.Rule) {
	t.Helper()
	got, err := s.Rules(ctx, workspace)
	must(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("rules of %s\n%+v\nwant\n%+v", workspace, got, want)
	}
}

func rules(t *testing.T, open Opener) {
	s := open(t, "a")
	wantRules(t, s, "/w")
	commit := addRule(t, s, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "git commit *", Allow: true})
	push := addRule(t, s, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "git push *"})
	odd := addRule(t, s, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "echo 'ü\n' %_*?", Allow: true})
	other := addRule(t, s, session.Rule{Workspace: "/other", Tool: "bash", Pattern: "git commit *"})
	wantRules(t, s, "/w", commit, push, odd)
	wantRules(t, s, "/other", other)

	// The newer one stands in place of the older, as the newest, and is not found under the older's id.
	denied := addRule(t, s, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "git commit *"})
	wantRules(t, s, "/w", push, odd, denied)
	if gone, err := s.RemoveRule(ctx, "/w", commit.ID); err != nil || gone {
		t.Errorf("removed what was replaced: %v, %v", gone, err)
	}
	same := addRule(t, s, session.Rule{Workspace: "/w", Tool: "write_file", Pattern: "git commit *", Allow: true})

	if gone, err := s.RemoveRule(ctx, "/w", other.ID); err != nil || gone {
		t.Errorf("removed a rule of another workspace: %v, %v", gone, err)
	}
	if gone, err := s.RemoveRule(ctx, "/w", same.ID); err != nil || !gone {
		t.Errorf("remove: %v, %v", gone, err)
	}
	if gone, err := s.RemoveRule(ctx, "/w", same.ID); err != nil || gone {
		t.Errorf("removed twice: %v, %v", gone, err)
	}
	if next := addRule(t, s, session.Rule{Workspace: "/w", Tool: "glob", Pattern: "*"}); next.ID <= same.ID {
		t.Errorf("id %d after %d was removed: it was given again", next.ID, same.ID)
	}
	wantRules(t, s, "/other", other)
}

func rulesOfTwo(t *testing.T, open Opener) {
	a, b := open(t, "a"), open(t, "b")
	l := Create(t, a, id) // a session that is owned keeps nobody from adding rules
	first := addRule(t, a, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "make *", Allow: true})
	wantRules(t, b, "/w", first)
	second := addRule(t, b, session.Rule{Workspace: "/w", Tool: "bash", Pattern: "go test *", Allow: true})
	wantRules(t, a, "/w", first, second)
	if gone, err := a.RemoveRule(ctx, "/w", second.ID); err != nil || !gone {
		t.Errorf("remove a rule of the other process: %v, %v", gone, err)
	}
	wantRules(t, b, "/w", first)
	must(t, Append(a, l, note(1)))
	must(t, a.Close())
	must(t, b.Delete(ctx, id)) // rules are the workspace's, not the session's
	must(t, b.Close())
	wantRules(t, open(t, "c"), "/w", first)
}

func rulesAtOnce(t *testing.T, open Opener) {
	var wg sync.WaitGroup
	stores := []session.Store{open(t, "a"), open(t, "b")}
	for i, s := range stores {
		for n := range 20 {
			wg.Go(func() {
				if _, err := s.AddRule(ctx, session.Rule{Workspace: "/w", Tool: "bash", Pattern: fmt.Sprintf("p%d *", n%10), Allow: i == 0}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	var got []string
	list, err := stores[0].Rules(ctx, "/w")
	must(t, err)
	for i, r := range list {
		got = append(got, r.Pattern)
		if i > 0 && r.ID <= list[i-1].ID {
			t.Errorf("rule %d is listed behind %d", r.ID, list[i-1].ID)
		}
	}
	slices.Sort(got)
	if len(got) != 10 || len(slices.Compact(got)) != 10 {
		t.Errorf("rules %v", got)
	}
}

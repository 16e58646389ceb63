package httpapi

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

// Pages of the log are read into the same memory one after the other: nobody may keep a piece of one, neither a line that waits to be written nor
// one that was told.
func TestNobodyKeepsAPieceOfAPageThatIsReadIntoAgain(t *testing.T) {
	backing := memory.NewBacking()
	store := &storetest.Spoiling{Store: backing.Open("a")}
	p := serve(t, store, &model{})
	runs := map[string]string{}
	for _, config := range []string{`,"config":{"delayMs":0}`, `,"config":{"requireApproval":true,"delayMs":0,"prefix":""}`} {
		id := p.start(p.conversation(), "mock", strings.Repeat("wörd \\\"\n ", 1500), config)
		if strings.Contains(config, "requireApproval") {
			ask := p.until(id, "action.required")
			_, action, _ := strings.Cut(string(ask.Data), `"id":"`)
			action, _, _ = strings.Cut(action, `"`)
			p.must(200, "POST", "/v1/executions/"+id+"/actions/"+action+":respond", `{"approved":true}`)
		}
		p.follow(id, nil, nil)
		runs[id] = ""
	}
	plain := serve(t, backing.Open("b"), &model{})
	for id := range runs {
		runs[id] = string(plain.must(200, "GET", "/v1/executions/"+id+"/events", "").body)
	}
	var all sync.WaitGroup
	for id, want := range runs {
		for i := range 4 {
			all.Go(func() {
				if i%2 == 0 {
					if got := p.do("GET", "/v1/executions/"+id+"/events", ""); string(got.body) != want {
						t.Errorf("a list of %d bytes, not the one of %d: %.200s", len(got.body), len(want), got.body)
					}
					return
				}
				told := p.follow(id, nil, nil)
				got, err := json.Marshal(map[string]any{"events": told, "nextCursor": len(told)})
				if err != nil || differ(string(got), want) {
					t.Errorf("a stream of %d events is not the list (%v)", len(told), err)
				}
			})
		}
	}
	all.Wait()
	if store.Spoiled() < 20 {
		t.Errorf("only %d pages were read into again", store.Spoiled())
	}
}

// differ reports whether two documents say different things.
func differ(a, b string) bool {
	norm := func(s string) string {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			return err.Error() + s
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return norm(a) != norm(b)
}

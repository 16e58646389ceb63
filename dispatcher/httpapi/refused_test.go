package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// Section 6: whatever refuses a start does so before anything is written or a provider hears of it, by the first check that fails; its key
// stays free.
func TestARefusedStartIsRefusedByTheFirstCheckAndLeavesNothing(t *testing.T) {
	backing := memory.NewBacking()
	h := newHeld()
	m := &model{replies: replies{saying("ok")}}
	p := serve(t, backing.Open("a"), m, h.with(4))
	c := p.conversation()
	known := `{"conversationId":"` + c + `","providerId":"fixture","input":"known","idempotencyKey":"known"}`
	sound(t, p.follow(p.must(202, "POST", "/v1/executions", known).member("id"), nil, nil))
	written := func() string { // everything the log has, of all sessions
		t.Helper()
		var out []string
		metas, _, err := p.store.Sessions(t.Context(), session.Query{All: true, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i := range metas {
			entries, err := p.store.Read(t.Context(), metas[i].ID, 0, 1000, protocol.ViewAll)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprint(metas[i].ID, metas[i].Head, len(entries)))
		}
		turns, err := p.store.Turns(t.Context(), session.TurnQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(out, fmt.Sprint(turns)), "\n")
	}
	before := written()
	start := func(conversation, provider, more string) string {
		return `{"conversationId":"` + conversation + `","providerId":"` + provider + `","input":"x","idempotencyKey":"free"` + more + `}`
	}
	const off = `,"requiredCapabilities":["x.off"]`
	for _, r := range []struct {
		name, body string
		status     int
		code, text string
	}{
		{"no JSON", `{`, 400, "VALIDATION_ERROR", "Request body is not valid JSON"},
		{"no input", `{"conversationId":"` + c + `","providerId":"held","idempotencyKey":"free"}`, 400, "VALIDATION_ERROR", "Invalid execution request"},
		{"bad capabilities before an unknown conversation", start("conv_no", "no", `,"requiredCapabilities":[""]`), 400, "VALIDATION_ERROR", "Invalid execution request"},
		{"unknown conversation before an unknown provider", start("conv_no", "no", off), 404, "NOT_FOUND", "Conversation not found: conv_no"},
		{"unknown provider before its capabilities", start(c, "no", off), 404, "PROVIDER_NOT_FOUND", "Provider not found: no"},
		{"a capability that is unsupported", start(c, "fixture", off), 422, "CAPABILITY_UNSUPPORTED", "Provider fixture does not support required capabilities"},
		{"one that is absent", start(c, "held", `,"requiredCapabilities":["event.streaming"]`), 422, "CAPABILITY_UNSUPPORTED", `"capabilities":["event.streaming"]`},
		{"one in another case", start(c, "held", `,"requiredCapabilities":["Execution.cancel","execution.cancel"]`), 422, "CAPABILITY_UNSUPPORTED", `"capabilities":["Execution.cancel"]`},
		{"names of objects, told once and in order", start(c, "held", `,"requiredCapabilities":["toString","__proto__","toString","execution.cancel"]`), 422, "CAPABILITY_UNSUPPORTED", `"capabilities":["__proto__","toString"]`},
		{"capabilities before a known key", strings.Replace(known, `"input"`, `"requiredCapabilities":["x.off"],"input"`, 1), 422, "CAPABILITY_UNSUPPORTED", `"providerId":"fixture"`},
		{"a known key with another request", strings.Replace(known, `"known","idem`, `"other","idem`, 1), 409, "IDEMPOTENCY_CONFLICT", "Idempotency key was already used for a different request"},
	} {
		t.Run(r.name, func(t *testing.T) {
			a := p.must(r.status, "POST", "/v1/executions", r.body)
			if a.member("code") != r.code || !strings.Contains(string(a.body), r.text) {
				t.Errorf("refused with %s", a.body)
			}
			if now := written(); now != before {
				t.Errorf("the log was\n%s\nand is\n%s", before, now)
			}
		})
	}
	if h.mu.Lock(); len(h.order) > 0 {
		t.Errorf("the provider was called with %q", h.order)
	}
	h.mu.Unlock()

	// Room and owner come last: of a conversation that another process holds nothing can be started here, and its log is that one's.
	held := p.start(c, "held", "holds", "")
	<-h.begun
	q := serve(t, backing.Open("b"), m, h.with(4))
	before = written()
	q.must(422, "POST", "/v1/executions", start(c, "fixture", off))
	if a := q.must(503, "POST", "/v1/executions", start(c, "fixture", "")); a.member("message") != "Conversation is in use by another process" {
		t.Errorf("refused with %s", a.body)
	}
	if now := written(); now != before {
		t.Errorf("the log was\n%s\nand is\n%s", before, now)
	}
	h.let <- struct{}{}
	sound(t, p.follow(held, nil, nil))

	// The key that was refused so often is free, and another one is as it was.
	fresh := p.must(202, "POST", "/v1/executions", start(c, "fixture", "")).member("id")
	sound(t, p.follow(fresh, nil, nil))
	if again := p.must(202, "POST", "/v1/executions", start(c, "fixture", "")).member("id"); again != fresh {
		t.Errorf("the key started %s, then %s", fresh, again)
	}
	p.must(202, "POST", "/v1/executions", known)
}

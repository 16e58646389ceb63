package httpapi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
)

// ruined is a store that fails whenever it is asked for something, once it was told how.
type ruined struct {
	session.Store
	how atomic.Pointer[error]
}

const inside = "/home/me/.rind/sessions/rind.db"

var errPanic = errors.New("panic")

func (r *ruined) fail() error {
	how := r.how.Load()
	if how == nil {
		return nil
	}
	if *how == errPanic {
		panic("index out of range in " + inside)
	}
	return *how
}

func (r *ruined) Session(ctx context.Context, id session.SessionID) (session.Meta, error) {
	if err := r.fail(); err != nil {
		return session.Meta{}, err
	}
	return r.Store.Session(ctx, id)
}

func (r *ruined) Conversation(ctx context.Context, conv string) (session.Meta, error) {
	if err := r.fail(); err != nil {
		return session.Meta{}, err
	}
	return r.Store.Conversation(ctx, conv)
}

func (r *ruined) TurnSession(ctx context.Context, turn session.TurnID) (session.SessionID, error) {
	if err := r.fail(); err != nil {
		return "", err
	}
	return r.Store.TurnSession(ctx, turn)
}

func (r *ruined) Turns(ctx context.Context, q session.TurnQuery) ([]session.TurnPlace, error) {
	if err := r.fail(); err != nil {
		return nil, err
	}
	return r.Store.Turns(ctx, q)
}

func (r *ruined) Sessions(ctx context.Context, q session.Query) ([]session.Meta, string, error) {
	if err := r.fail(); err != nil {
		return nil, "", err
	}
	return r.Store.Sessions(ctx, q)
}

func (r *ruined) Create(ctx context.Context, m session.Meta) error {
	if how := r.how.Load(); how != nil && *how != errPanic { // a goroutine of the sessions asks
		return *how
	}
	return r.Store.Create(ctx, m)
}

// Sections 1, 2 and 3: what does not need the store is answered whatever became of it. All else, and readiness, is unavailable while it cannot be used, and a
// defect, an error nobody foresaw or a panic, is an internal error. No answer tells what lies inside; and the server goes on.
func TestAStoreThatFailsIsAnsweredOnEveryRouteWithoutWhatLiesInside(t *testing.T) {
	store := &ruined{Store: memory.New()}
	p := serve(t, store, &model{})
	alone := map[string]bool{
		"GET /healthz": true, "GET /v1/runtime": true, "GET /v1/runtime/capabilities": true, "GET /openapi.json": true, "GET /rind/v1/metrics": true,
	}
	const gone = `{"code":"UNAVAILABLE","message":"Storage is unavailable"}`
	const defect = `{"code":"INTERNAL_ERROR","message":"Unexpected server error"}`
	id := "exec_" + strings.Repeat("0", 32)
	for name, c := range map[string]struct {
		how    error
		status int
		body   string
	}{
		"locked":     {session.ErrLocked, 503, gone},
		"full":       {errors.Join(session.ErrFull, errors.New(inside)), 503, gone},
		"damaged":    {errors.Join(session.ErrCorrupt, errors.New(inside)), 503, gone},
		"unforeseen": {errors.New("cannot read " + inside), 500, defect},
		"a panic":    {errPanic, 500, defect},
	} {
		for _, r := range routes {
			method, path, _ := strings.Cut(r.name, " ")
			path = strings.NewReplacer("{id}", id, "{actionId}", "action_"+strings.Repeat("0", 32), "{artifactId}", "x").Replace(path)
			body := map[string]string{
				"POST /v1/conversations": "{}", "POST /v1/executions": `{"conversationId":"c","providerId":"mock","input":""}`,
				"POST /v1/executions/{id}/actions/{actionId}:respond": "{}",
			}[r.name]
			if c.how == errPanic && r.name == "POST /v1/conversations" {
				continue // there it is not this goroutine's
			}
			store.how.Store(&c.how)
			a := p.do(method, path, body)
			status, want := c.status, c.body
			switch {
			case alone[r.name]:
				status, want = 200, string(a.body)
			case c.how != errPanic && (r.name == "GET /readyz" || r.name == "POST /v1/conversations"): // whatever it is, it cannot be used, or not be written to
				status, want = 503, gone
			}
			if a.status != status || string(a.body) != want || strings.Contains(string(a.body), inside) {
				t.Errorf("%s, %s: %d %s", name, r.name, a.status, a.body)
			}
			if (a.header.Get("Retry-After") == "1") != (status == 503) {
				t.Errorf("%s, %s: Retry-After %q with %d", name, r.name, a.header.Get("Retry-After"), a.status)
			}
			store.how.Store(nil)
		}
	}
	p.must(200, "GET", "/readyz", "")
	p.follow(p.start(p.conversation(), "mock", "x", ""), nil, nil)
}

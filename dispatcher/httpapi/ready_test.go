package httpapi

import (
	"errors"
	"testing"

	"github.com/rind-dev/rind/session"
	"github.com/rind-dev/rind/session/store/memory"
	"github.com/rind-dev/rind/session/store/storetest"
)

// Section 2, row 13: a store that is read, but takes no writes, is not usable.
func TestAStoreThatTakesNoWritesIsNotReadyUntilItDoes(t *testing.T) {
	store := storetest.NewFault(memory.New())
	p := serve(t, store, &model{})
	p.must(200, "GET", "/readyz", "")
	for what, err := range map[string]error{
		"full": errors.Join(session.ErrFull, errors.New(inside)), "locked": session.ErrLocked, "for reading only": session.ErrReadOnly, "unforeseen": errors.New("cannot write " + inside),
	} {
		store.FailAt(1, err)
		for _, method := range []string{"GET", "HEAD"} {
			a := p.must(503, method, "/readyz", "")
			if want := `{"code":"UNAVAILABLE","message":"Storage is unavailable"}`; method == "GET" && string(a.body) != want || a.header.Get("Retry-After") != "1" {
				t.Errorf("%s: %s, Retry-After %q", what, a.body, a.header.Get("Retry-After"))
			}
		}
		p.must(200, "GET", "/healthz", "")
		p.must(200, "GET", "/rind/v1/conversations", "") // what only reads goes on
		store.Mend()
		p.must(200, "GET", "/readyz", "")
	}
}

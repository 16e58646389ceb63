package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// traffic counts answers. Safe for concurrent use.
type traffic struct {
	mu       sync.Mutex
	requests map[answerKind]int64
	streams  int64
}

type answerKind struct {
	route  string
	status int
}

func (t *traffic) count(route string, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests == nil {
		t.requests = map[answerKind]int64{}
	}
	t.requests[answerKind{route, status}]++
}

// follow counts a stream until the returned function is called.
func (t *traffic) follow() (end func()) {
	add := func(n int64) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.streams += n
	}
	add(1)
	return func() { add(-1) }
}

// open is how many streams there are.
func (t *traffic) open() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streams
}

// metrics tells counters of this process, in the text form that Prometheus reads. Labels are names of ours and of providers: never an id, a
// path or a text.
func (x *exchange) metrics() error {
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	figures := x.s.cfg.Sessions.Figures(x.r.Context())
	family("rind_executions_total", "counter", "Executions that ended here.")
	var rows []string
	for k, n := range figures.Ended {
		rows = append(rows, fmt.Sprintf("rind_executions_total{provider=%q,state=%q} %d\n", k.Provider, k.State, n))
	}
	sorted(&b, rows)
	family("rind_executions_open", "gauge", "Executions of this process without an end.")
	rows = nil
	for state, n := range figures.Open {
		rows = append(rows, fmt.Sprintf("rind_executions_open{state=%q} %d\n", state, n))
	}
	sorted(&b, rows)
	t := &x.s.traffic
	t.mu.Lock()
	rows = nil
	for k, n := range t.requests {
		rows = append(rows, fmt.Sprintf("rind_http_requests_total{route=%q,status=\"%d\"} %d\n", k.route, k.status, n))
	}
	t.mu.Unlock()
	family("rind_streams", "gauge", "Open event streams.")
	fmt.Fprintf(&b, "rind_streams %d\n", t.open())
	family("rind_http_requests_total", "counter", "Answers by route and status.")
	sorted(&b, rows)
	family("rind_tokens_total", "counter", "Tokens that models reported.")
	for _, kind := range []string{"input", "cached", "output", "reasoning"} {
		fmt.Fprintf(&b, "rind_tokens_total{kind=%q} %d\n", kind, figures.Tokens[kind])
	}
	if x.s.cfg.StoreBytes != nil {
		family("rind_store_bytes", "gauge", "Size of the store's files.")
		fmt.Fprintf(&b, "rind_store_bytes %d\n", x.s.cfg.StoreBytes())
	}
	family("rind_append_seconds", "histogram", "From handing a batch to the store to its acknowledge.")
	sum := int64(0)
	for i, bound := range figures.Appends.Bounds {
		sum += figures.Appends.Counts[i]
		fmt.Fprintf(&b, "rind_append_seconds_bucket{le=\"%g\"} %d\n", bound, sum)
	}
	fmt.Fprintf(&b, "rind_append_seconds_bucket{le=\"+Inf\"} %d\nrind_append_seconds_sum %g\nrind_append_seconds_count %d\n",
		figures.Appends.Total, figures.Appends.Seconds, figures.Appends.Total)
	return x.write(http.StatusOK, "text/plain; version=0.0.4", []byte(b.String()))
}

func sorted(b *strings.Builder, rows []string) {
	slices.Sort(rows)
	for _, r := range rows {
		b.WriteString(r)
	}
}

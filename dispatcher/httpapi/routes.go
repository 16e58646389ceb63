package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rind-dev/rind/protocol/portable"
	"github.com/rind-dev/rind/session"
)

// route is one path and what it answers. In a pattern "{name}" stands for one id; "{name}:verb" for an id with a verb behind it.
type route struct {
	name    string // method and path, as the contract writes it
	method  string
	pattern []string
	run     func(x *exchange) error
	open    bool // asks for no token
	stops   bool // refused while draining
}

// routes of docs/protocol/portable-2026-09-02.md sections 2 and 2.1.
var routes []route

func init() {
	for _, r := range []struct {
		method, path string
		run          func(x *exchange) error
		open, stops  bool
	}{
		{"GET", "/healthz", (*exchange).health, true, false},
		{"GET", "/readyz", (*exchange).ready, false, true},
		{"GET", "/v1/runtime", (*exchange).describe, false, false},
		{"GET", "/v1/runtime/capabilities", (*exchange).capabilities, false, false},
		{"POST", "/v1/conversations", (*exchange).createConversation, false, true},
		{"GET", "/v1/conversations/{id}", (*exchange).readConversation, false, false},
		{"POST", "/v1/executions", (*exchange).startExecution, false, true},
		{"POST", "/v1/executions/{id}:cancel", (*exchange).cancelExecution, false, false},
		{"GET", "/v1/executions/{id}", (*exchange).readExecution, false, false},
		{"GET", "/v1/executions/{id}/artifacts", (*exchange).listArtifacts, false, false},
		{"GET", "/v1/executions/{id}/events", (*exchange).listEvents, false, false},
		{"POST", "/v1/executions/{id}/actions/{actionId}:respond", (*exchange).respondAction, false, false},
		{"GET", "/openapi.json", (*exchange).describeAPI, false, false},
		{"GET", "/rind/v1/conversations", (*exchange).listConversations, false, false},
		{"GET", "/rind/v1/executions", (*exchange).listExecutions, false, false},
		{"GET", "/rind/v1/executions/{id}/artifacts/{artifactId}/content", (*exchange).artifactContent, false, false},
		{"GET", "/rind/v1/metrics", (*exchange).metrics, false, false},
	} {
		routes = append(routes, route{r.method + " " + r.path, r.method, strings.Split(r.path[1:], "/"), r.run, r.open, r.stops})
	}
}

func (r *route) serves(method string) bool {
	return method == r.method || r.method == http.MethodGet && method == http.MethodHead
}

func (r *route) allow() string {
	if r.method == http.MethodGet {
		return "GET, HEAD"
	}
	return r.method
}

// pathOf is the path of a request as it was sent. What net/url keeps of it no longer tells which slashes were escaped where some other
// character should have been and was not.
func pathOf(r *http.Request) string {
	target, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, ok := strings.Cut(target, "://"); ok && target[0] != '/' { // behind the authority
		_, path, ok := strings.Cut(rest, "/")
		if !ok {
			return ""
		}
		return "/" + path
	}
	return target
}

// find looks a path up as it was sent: split at "/", each segment unescaped once, nothing cleaned.
func find(method, escaped string) (*route, []string) {
	if !strings.HasPrefix(escaped, "/") {
		return nil, nil
	}
	segments := strings.Split(escaped[1:], "/")
	for i, s := range segments {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil, nil
		}
		segments[i] = plain
	}
	for i := range routes {
		if args, ok := routes[i].match(segments); ok {
			if method == http.MethodPost && routes[i].name == "GET /v1/executions/{id}" && strings.Contains(args[0], ":") {
				return nil, nil // a verb that is not known; anywhere else a colon is part of an id
			}
			return &routes[i], args
		}
	}
	return nil, nil
}

func (r *route) match(segments []string) ([]string, bool) {
	if len(segments) != len(r.pattern) {
		return nil, false
	}
	var args []string
	for i, p := range r.pattern {
		verb := p[strings.IndexByte(p, '}')+1:]
		switch {
		case verb == p:
			if segments[i] != p {
				return nil, false
			}
		case verb == "":
			if segments[i] == "" {
				return nil, false
			}
			args = append(args, segments[i])
		default:
			s, ok := strings.CutSuffix(segments[i], verb)
			if !ok {
				return nil, false
			}
			args = append(args, s)
		}
	}
	return args, true
}

func (x *exchange) health() error { return x.answer(http.StatusOK, map[string]string{"status": "ok"}) }

func (x *exchange) ready() error {
	store := x.s.cfg.Sessions.Store()
	_, _, err := store.Sessions(x.r.Context(), session.Query{Limit: 1})
	if err == nil {
		err = store.Writable(x.r.Context())
	}
	if err != nil {
		return &portable.Error{Code: portable.Unavailable, Message: "Storage is unavailable", Cause: err}
	}
	return x.answer(http.StatusOK, map[string]string{"status": "ready"})
}

func (x *exchange) describe() error { return x.answer(http.StatusOK, x.s.cfg.Commands.Describe()) }

func (x *exchange) capabilities() error {
	return x.answer(http.StatusOK, map[string]any{"providers": x.s.cfg.Commands.Describe().Providers})
}

package consent

import (
	"net"
	"net/url"
	"strings"

	"github.com/rind-dev/rind/session"
)

// fetch judges tools that send a request into the network. They change nothing here and may be repeated, but what they ask for can carry
// anything out: each host is asked for once.
func (r *request) fetch() session.Verdict {
	raw := r.text("url")
	if raw == "" {
		title := "Search the web"
		if r.spec.Name != "search_web" {
			title = "Use tool " + oneLine(r.spec.Name, 100)
		}
		if q := r.text("query"); q != "" {
			title += ": " + oneLine(q, 200)
		}
		return r.other("*", title, true)
	}
	return r.other(host(raw), "Fetch: "+oneLine(raw, 300), true)
}

// host names the host of an address as rules do: lower case, with its port where that is not the scheme's own; the whole address when it
// has none.
func host(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Hostname() == "" {
		return exactly(raw)
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if port := u.Port(); port != "" && !(port == "443" && u.Scheme == "https") && !(port == "80" && u.Scheme == "http") {
		return net.JoinHostPort(name, port)
	}
	return name
}

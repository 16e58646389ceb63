package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rind-dev/rind/protocol"
)

// through is the proxy at an address for every request.
func through(t testing.TB, at string) ProxyFunc {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return func(*http.Request) (*url.URL, error) { return u, nil }
}

func TestWithAProxyNamesAreItsBusinessAndPrivateHostsAreRefusedByName(t *testing.T) {
	var asked []string
	proxy := handle(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "by the proxy")
	})
	c := nowhere(t)
	c.Proxy = through(t, proxy)
	if res := fetch(t, c, "http://page.example/x"); res.Data != "by the proxy" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
	for _, host := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "2130706433", "localhost", "metadata.google.internal"} {
		refusedAs(t, fetch(t, c, "http://"+host+"/"), protocol.ErrPermissionDenied)
	}
	refusedAs(t, fetch(t, c, "http://page.example/redirect"), protocol.ErrPermissionDenied)
	if got := strings.Join(asked, " "); got != "http://page.example/x http://page.example/redirect" {
		t.Errorf("the proxy was asked for %s", got)
	}
}

func TestAProxyOnlyForSomeLeavesTheOthersChecked(t *testing.T) {
	n := newNames(t, map[string][][]string{"inside.example": {{"127.0.0.2"}}})
	c := guarded(n)
	refusedAs(t, fetch(t, c, "http://inside.example/"), protocol.ErrPermissionDenied)
	c.Proxy = through(t, serve(t, "text/plain", "by the proxy"))
	if res := fetch(t, c, "http://inside.example/"); res.Data != "by the proxy" {
		t.Errorf("%v %s", res.Data, res.Error)
	}
}

func TestAProxyThatCannotBeUsedIsSaidWithoutItsPassword(t *testing.T) {
	for name, proxy := range map[string]ProxyFunc{
		"unusable": func(*http.Request) (*url.URL, error) {
			return nil, errors.New("invalid proxy address http://u:canary@")
		},
		"gone": through(t, "http://u:canary@127.0.0.1:1"),
	} {
		res := fetch(t, Config{Proxy: proxy}, "http://page.example/")
		if res.ErrorType != protocol.ErrInternal || !strings.Contains(res.Error, "proxy") || strings.Contains(res.Error, "canary") {
			t.Errorf("%s: %s %q", name, res.ErrorType, res.Error)
		}
	}
}

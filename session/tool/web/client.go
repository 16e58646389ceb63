package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/rind-dev/rind/protocol"
)

// client makes requests that go where they may, and only there. Nothing of a request outlives it.
type client struct {
	Config
	direct  *http.Transport   // dials the host of the URL: the address is checked
	proxied *http.Transport   // dials the proxy of the user's environment: the host is judged by its name alone
	hide    *strings.Replacer // takes the search key out of what servers say
}

// newClient makes one; anywhere lets it reach private addresses.
func newClient(c Config, anywhere bool) *client {
	dialer := &net.Dialer{Timeout: c.Timeout, Resolver: c.Resolver}
	transport := func(d *net.Dialer) *http.Transport {
		return &http.Transport{
			DialContext:            d.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // no connection waits for a second call
			MaxResponseHeaderBytes: maxHeader,
		}
	}
	proxied := transport(dialer)
	proxied.Proxy = proxyOf
	checked := *dialer
	if !anywhere {
		checked.Control = c.control
	}
	return &client{Config: c, direct: transport(&checked), proxied: proxied, hide: hider(c)}
}

// control runs between the lookup of a name and the connection, for each address that is tried: a name that changes its address between
// a check and its use is judged by the one that is used.
func (c Config) control(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && c.public(a.Addr()) {
		return nil
	}
	return &closedError{address}
}

// closedError is a connection that was not made.
type closedError struct{ address string }

func (e *closedError) Error() string { return "refused to connect to " + e.address }

type proxyKey struct{}

// proxyOf is the proxy that round chose for the request.
func proxyOf(r *http.Request) (*url.URL, error) {
	u, _ := r.Context().Value(proxyKey{}).(*url.URL)
	return u, nil
}

// round makes one request, without following anything.
func (c *client) round(req *http.Request) (*http.Response, error) {
	proxy, err := c.Proxy(req)
	if err != nil {
		return nil, errors.New("the proxy that the environment names has no usable address") // which may hold a password
	}
	if proxy == nil {
		return c.direct.RoundTrip(req)
	}
	return c.proxied.RoundTrip(req.WithContext(context.WithValue(req.Context(), proxyKey{}, proxy)))
}

// get fetches u and follows redirects, each checked as u is. It returns the response and where it came from; the caller closes the body.
func (c *client) get(ctx context.Context, u *url.URL) (*http.Response, *url.URL, *fault) {
	asked := u
	for hop := 0; ; hop++ {
		f := c.checkURL(u)
		if f != nil {
			if hop > 0 {
				f.text = "The page redirects. " + f.text
				f.status = protocol.ToolFailed
			}
			return nil, u, f
		}
		if !sameSite(asked, u) { // consent was for a host
			return nil, u, failed(protocol.ErrPermissionDenied, "%s redirects to another host, %s, which is not followed: ask for that address if you want it.", shown(asked), shown(u))
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, u, invalid("%q is no address of a page: check it and call again.", shown(u))
		}
		req.Header.Set("User-Agent", c.UserAgent)
		req.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1")
		resp, err := c.round(req)
		if err != nil {
			return nil, u, c.unreached(ctx, u, err)
		}
		next, f := redirect(resp, u)
		if next == nil && f == nil {
			return resp, u, nil
		}
		resp.Body.Close()
		if f == nil && hop == maxRedirects {
			f = failed(protocol.ErrNotFound, "%s redirects more than %d times: ask for the page it ends at, if you know it.", shown(u), maxRedirects)
		}
		if f != nil {
			return nil, u, f
		}
		u = next
	}
}

// redirect is where resp sends us; nil when it is an answer itself.
func redirect(resp *http.Response, from *url.URL) (*url.URL, *fault) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	where := resp.Header.Get("Location")
	if where == "" {
		return nil, nil
	}
	if len(where) > maxURL {
		return nil, failed(protocol.ErrTooLarge, "%s redirects to an address longer than %d bytes, which is not followed.", shown(from), maxURL)
	}
	next, err := from.Parse(where)
	if err != nil {
		return nil, failed(protocol.ErrNotFound, "%s redirects to what is no address (status %d).", shown(from), resp.StatusCode)
	}
	if from.Scheme == "https" && next.Scheme == "http" {
		return nil, failed(protocol.ErrPermissionDenied, "%s redirects to an unencrypted page, %s, which is not followed: ask for that address if you want it.", shown(from), shown(next))
	}
	if next.Fragment == "" {
		next.Fragment = from.Fragment
	}
	return next, nil
}

// sameSite tells whether consent for one address covers the other: the same host and port, with or without "www.".
func sameSite(a, b *url.URL) bool {
	host := func(u *url.URL) string { return strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.") }
	return host(a) == host(b) && a.Port() == b.Port()
}

// unreached says why no response came.
func (c *client) unreached(ctx context.Context, u *url.URL, err error) *fault {
	if e, ok := errors.AsType[*closedError](err); ok {
		return refused("%s leads to %s, which is not on the public internet; such pages are not fetched unless the settings allow it.", shown(u), e.address)
	}
	if f := c.late(ctx, u, err); f != nil {
		return f
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return failed(protocol.ErrNotFound, "There is no host %q: check its spelling.", protocol.OneLine(u.Hostname(), 100))
	}
	if text := err.Error(); strings.Contains(text, "response header") && (strings.Contains(text, "exceeded") || strings.Contains(text, "larger than")) {
		return failed(protocol.ErrTooLarge, "%s answers with more than %d KiB of headers, which is not read.", shown(u), maxHeader>>10)
	}
	return failed(protocol.ErrInternal, "%s could not be reached: %s. Try again later, or another address.", shown(u), reason(err))
}

// late is the fault of a call that took too long; nil for another error.
func (c *client) late(ctx context.Context, u *url.URL, err error) *fault {
	timeout := errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		timeout = true
	}
	if !timeout {
		return nil
	}
	return &fault{
		status: protocol.ToolTimedOut, errorType: protocol.ErrTimedOut,
		text: fmt.Sprintf("%s did not answer in full within %v: try again later, or another address.", shown(u), c.Timeout),
	}
}

// reason is the part of a network error that tells a reader something, without addresses of this machine.
func reason(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "looking up its name failed (" + e.Err + ")"
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is not of a known authority (" + e.Error() + ")"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		before := ""
		for ok {
			if e.Op == "proxyconnect" {
				before = "the proxy that the environment names: "
			}
			err = e.Err
			e, ok = errors.AsType[*net.OpError](err)
		}
		return before + protocol.OneLine(err.Error(), 300)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it closed the connection"
	}
	return strings.TrimSuffix(protocol.OneLine(err.Error(), 300), ".")
}

// within is ctx with the call's own limit of time.
func (c *client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(c.Timeout, time.Millisecond))
}

// Package web holds the tools that read the web: fetch_web_page and search_web (docs/protocol/rind-v2.md section 9, docs/web.md).
//
// What a page says is material for the model, whoever wrote it, so the package trusts nothing that comes back: addresses that are not
// public are refused at the moment a connection is made, whatever name or redirect led there; headers, bodies, decompression, time and the
// work of turning a page into Markdown are bounded. It keeps nothing between calls: no cookies, no cache, no idle connections. It owns no
// goroutine; those of net/http end with the call that made them.
package web

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/rind-dev/rind/protocol"
	"github.com/rind-dev/rind/session"
)

// Bounds of a call.
const (
	defaultTimeout = 30 * time.Second // of a whole call, redirects and body included
	maxRedirects   = 5
	maxURL         = 8192     // bytes
	maxBody        = 2 << 20  // bytes, after decompression
	maxHeader      = 64 << 10 // bytes of a response's headers
	maxPageChars   = 30_000   // of what a page becomes
	maxErrorChars  = 200      // of a server's own words in an error
)

const defaultAgent = "rind"

// Config says where the tools may go. The zero value fetches public pages and searches nothing.
type Config struct {
	// AllowPrivate lets fetch_web_page reach addresses that are not public, and hosts in any spelling.
	AllowPrivate bool
	// SearchURL is the address of a JSON search endpoint, with {query} where the query goes; without it q=… is added. "" offers no search.
	// It is the user's own setting: it may be a private address.
	SearchURL string
	// SearchKey is sent as "Authorization: Bearer KEY", or as it is in the header SearchHeader. It appears in no result and no error.
	SearchKey    string
	SearchHeader string

	UserAgent string                // "" is rind
	Timeout   time.Duration         // of a whole call; 0 is 30 s
	Proxy     ProxyFunc             // nil: the proxies the environment names
	Resolver  *net.Resolver         // nil: the system's
	RootCAs   *x509.CertPool        // nil: the system's
	public    func(netip.Addr) bool // nil: Public
}

// ProxyFunc names the proxy for a request, nil for none, as http.Transport.Proxy does.
type ProxyFunc = func(*http.Request) (*url.URL, error)

func (c Config) filled() Config {
	if c.UserAgent == "" {
		c.UserAgent = defaultAgent
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Proxy == nil {
		c.Proxy = http.ProxyFromEnvironment
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.public == nil {
		c.public = Public
	}
	return c
}

// decode reads the arguments of a call. Numbers go into float64 fields: 1.0 is an integer, too.
func decode(call session.ToolCall, into any) *fault {
	if err := json.Unmarshal(call.Arguments, into); err != nil {
		return invalid("Invalid arguments for %s: %v.", call.Name, err)
	}
	return nil
}

// fault is why a call gave nothing, as its result says it.
type fault struct {
	status, errorType string
	text              string
	meta              map[string]any
}

func (f *fault) Error() string { return f.text }

func (f *fault) result() session.ToolResult {
	return session.ToolResult{Status: f.status, ErrorType: f.errorType, Error: protocol.OneLine(f.text, 1000), Meta: f.meta}
}

func invalid(format string, args ...any) *fault {
	return &fault{status: protocol.ToolRejected, errorType: protocol.ErrInvalidArguments, text: fmt.Sprintf(format, args...)}
}

func refused(format string, args ...any) *fault {
	return &fault{status: protocol.ToolRejected, errorType: protocol.ErrPermissionDenied, text: fmt.Sprintf(format, args...)}
}

func failed(errorType, format string, args ...any) *fault {
	return &fault{status: protocol.ToolFailed, errorType: errorType, text: fmt.Sprintf(format, args...)}
}

// ended is what a call that came to nothing returns: the cause when ctx was cancelled, else the fault as a result.
func ended(ctx context.Context, f *fault) (session.ToolResult, error) {
	if ctx.Err() != nil {
		return session.ToolResult{}, context.Cause(ctx)
	}
	return f.result(), nil
}

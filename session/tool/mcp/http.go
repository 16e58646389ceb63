package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rind-dev/rind/session"
)

const (
	maxPosts    = 256                    // answers and notifications under way
	resumptions = 5                      // of one answer's stream
	farewell    = 300 * time.Millisecond // the runtime has a second to end
)

// remote is the link to an HTTP server (streamable HTTP). It owns a goroutine per message that is sent, which reads what the server answers
// it with, and one that listens to what the server says unasked; they end in close.
type remote struct {
	peer    *peer
	entry   *entry
	agent   string
	client  *http.Client
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup
	sending chan struct{} // of room for maxPosts

	mu      sync.Mutex // guards what follows
	closed  bool
	session string // that the server gave; "" for none
	version string
	cancels map[int64]context.CancelFunc // of calls
}

func newRemote(p *peer, e *entry, version string) *remote {
	l := &remote{peer: p, entry: e, agent: "rind/" + version, sending: make(chan struct{}, maxPosts), cancels: map[int64]context.CancelFunc{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: sameHost,
	}
	return l
}

// sameHost follows redirects only where headers of the entry may go, and only as the same request.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if !strings.EqualFold(req.URL.Host, first.URL.Host) || req.Method != first.Method || len(via) > 3 || first.URL.Scheme == "https" && req.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// start implements link. The first message connects.
func (l *remote) start() error { return nil }

// run starts a goroutine that close waits for.
func (l *remote) run(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("the connection was closed")
	}
	l.wg.Go(f)
	return nil
}

// send implements link.
func (l *remote) send(msg []byte, id int64) error {
	if id == 0 {
		select {
		case l.sending <- struct{}{}:
		default:
			return errUnread
		}
		err := l.run(func() {
			defer func() { <-l.sending }()
			ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
			defer cancel()
			if err := l.post(ctx, msg, 0); err != nil && l.ctx.Err() == nil {
				l.peer.log.Debug("mcp message not sent", "err", l.peer.quiet(err.Error(), 250))
			}
		})
		if err != nil {
			<-l.sending
		}
		return err
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	l.cancels[id] = cancel
	l.mu.Unlock()
	err := l.run(func() {
		defer l.withdraw(id)
		if err := l.post(ctx, msg, id); err != nil {
			l.peer.fail(id, err)
		}
	})
	if err != nil {
		l.withdraw(id)
	}
	return err
}

// withdraw implements link.
func (l *remote) withdraw(id int64) {
	l.mu.Lock()
	cancel := l.cancels[id]
	delete(l.cancels, id)
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// opened implements link. It waits until the server has taken msg, which it must know before it is asked anything.
func (l *remote) opened(ctx context.Context, version string, msg []byte) error {
	l.mu.Lock()
	l.version = version
	l.mu.Unlock()
	if err := l.post(ctx, msg, 0); err != nil {
		return err
	}
	return l.run(l.listen)
}

// request makes one with the headers that are due.
func (l *remote) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.entry.url.String(), r)
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("User-Agent", l.agent)
	for name, values := range l.entry.headers {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		req.Header.Set("Mcp-Session-Id", l.session)
	}
	if l.version != "" {
		req.Header.Set("Mcp-Protocol-Version", l.version)
	}
	return req, nil
}

// post sends one message and takes what comes back. An error says that no answer to the call id will come.
func (l *remote) post(ctx context.Context, msg []byte, id int64) error {
	req, err := l.request(ctx, http.MethodPost, msg)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := l.client.Do(req)
	if err != nil {
		return unreached(err)
	}
	defer resp.Body.Close()
	if given := resp.Header.Get("Mcp-Session-Id"); given != "" && len(given) <= 1024 {
		l.mu.Lock()
		if l.session == "" {
			l.session = given
		}
		l.mu.Unlock()
	}
	if resp.StatusCode >= 300 {
		return l.refused(resp)
	}
	if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent || id == 0 {
		if id != 0 {
			return fmt.Errorf("the server answered %s, without an answer to the call", resp.Status)
		}
		return nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		body, err := io.ReadAll(io.LimitReader(resp.Body, int64(l.peer.limit)+1))
		switch {
		case err != nil:
			return fmt.Errorf("read the answer: %w", err)
		case len(body) > l.peer.limit:
			return errTooLong
		}
		l.peer.receive(body)
	case "text/event-stream":
		if err := l.follow(ctx, resp.Body, id); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the server answered with %q, not with JSON; is its url right?", clean(kind, 60))
	}
	if l.peer.waits(id) {
		return errors.New("the server's answer does not hold one to the call")
	}
	return nil
}

// follow takes the messages of an answer's stream until the call is answered. A stream that breaks off is asked to go on where it was, if the
// server numbers its events.
func (l *remote) follow(ctx context.Context, body io.Reader, id int64) error {
	var last string
	var cut error
	for try := 0; ; try++ {
		es := newEvents(body, l.peer.limit)
		es.last = last
		cut = l.drain(es, id)
		if !l.peer.waits(id) {
			return nil
		}
		if errors.Is(cut, errTooLong) {
			return cut
		}
		if last = es.last; last == "" || try == resumptions || ctx.Err() != nil {
			break
		}
		_ = session.Pause(ctx, max(es.retry, 100*time.Millisecond))
		resp, err := l.resume(ctx, last)
		if err != nil {
			return fmt.Errorf("the connection broke off and could not be taken up again: %w", err)
		}
		defer resp.Body.Close()
		body = resp.Body
	}
	if cut != nil && !errors.Is(cut, io.EOF) {
		return fmt.Errorf("the connection broke off: %w", unreached(cut))
	}
	return errors.New("the connection was closed before the answer came")
}

// drain takes a stream's messages to its end, or for a call until that is answered.
func (l *remote) drain(es *events, id int64) error {
	for {
		ev, err := es.next()
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(ev.data)) > 0 {
			l.peer.receive(ev.data)
		}
		if id != 0 && !l.peer.waits(id) {
			return nil
		}
	}
}

// resume asks for a stream: the one whose event last was, or for "" the one of what the server says unasked.
func (l *remote) resume(ctx context.Context, last string) (*http.Response, error) {
	req, err := l.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, unreached(err)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		defer resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil, &lasting{errors.New("the server offers no stream")}
		}
		return nil, l.refused(resp)
	}
	return resp, nil
}

// listen hears what the server says unasked, if it offers that.
func (l *remote) listen() {
	last, wait := "", time.Second
	for l.ctx.Err() == nil {
		resp, err := l.resume(l.ctx, last)
		if err != nil {
			if _, ok := errors.AsType[*lasting](err); ok {
				return
			}
			_ = session.Pause(l.ctx, wait)
			wait = min(2*wait, longestPause*time.Second)
			continue
		}
		es := newEvents(resp.Body, l.peer.limit)
		es.last = last
		began := time.Now()
		_ = l.drain(es, 0)
		resp.Body.Close()
		if last = es.last; time.Since(began) > time.Minute {
			wait = time.Second
		}
		_ = session.Pause(l.ctx, max(es.retry, wait))
		wait = min(2*wait, longestPause*time.Second)
	}
}

// refused says what a status that is no success means. A session that the server has forgotten ends the connection.
func (l *remote) refused(resp *http.Response) error {
	l.mu.Lock()
	had := l.session != "" && resp.Request.Header.Get("Mcp-Session-Id") != ""
	l.mu.Unlock()
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound && had:
		l.peer.end(errForgotten)
		return errForgotten
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		token := "\"Authorization\": \"Bearer ${NAME}\" with NAME set in the environment"
		if l.entry.literal {
			token = "Authorization, where the editor names the server"
		}
		return &lasting{fmt.Errorf("the server refuses the connection (%d): it wants a login; give it a token in headers, as %s", code, token)}
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return &lasting{fmt.Errorf("there is no such server at the url (%d); check it", code)}
	case code < 400:
		return &lasting{fmt.Errorf("the server sends elsewhere (%d); put the address it moved to into url", code)}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if had && resp.StatusCode == http.StatusBadRequest && forgotten().Match(body) { // what some say instead of 404
		l.peer.end(errForgotten)
		return errForgotten
	}
	text := fmt.Sprintf("the server answered with status %d", resp.StatusCode)
	if said := clean(l.entry.quiet.Replace(string(body)), 200); said != "" {
		text += ": " + said
	}
	return errors.New(text)
}

var (
	errForgotten = errors.New("the server has forgotten the session")
	forgotten    = pattern(`(?i)session|not initialized`)
)

// unreached is why a request got no response, without its address, which may hold a key.
func unreached(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("the server cannot be reached: %w", err)
}

// close implements link.
func (l *remote) close() {
	l.mu.Lock()
	l.closed = true
	session := l.session
	l.mu.Unlock()
	l.stop()
	l.wg.Wait()
	if session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		if req, err := l.request(ctx, http.MethodDelete, nil); err == nil {
			if resp, err := l.client.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		cancel()
	}
	l.client.CloseIdleConnections()
}

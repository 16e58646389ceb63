package providertest

import (
	"context"
	"io"
	"net/http"
	"strings"
)

// RoundTrip is a transport made of a function.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Spoken answers every request with a stream that speak writes, without a network. Each say waits until it is read; it does nothing once the
// request has ended.
func Spoken(speak func(say func(text string))) RoundTrip {
	return func(r *http.Request) (*http.Response, error) {
		out, in := io.Pipe()
		ended := context.AfterFunc(r.Context(), func() { _ = in.CloseWithError(context.Cause(r.Context())) })
		go func() { // ends with speak
			defer in.Close()
			defer ended()
			speak(func(text string) { _, _ = io.WriteString(in, text) })
		}()
		return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: out}, nil
	}
}

// Canned answers every request with a status and a body, without a network.
func Canned(status int, body string) RoundTrip {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}
